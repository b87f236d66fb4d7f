import Coffer
import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("Slips of a newcomer, and what commands say to them") struct SlipTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "shop/port", "1", "--int")
  }

  private func message(_ arguments: String..., location: SourceLocation = #_sourceLocation) throws -> String {
    try tool.run(arguments, input: []).message
  }

  @Test("A mistyped collection to prepare is noted, with the near one")
  func emptyCollections() throws {
    let key = tool.path("vault-key")
    for command in [
      ["history", "--keep", "shpo"], ["env", "create", "shpo@test"], ["seal", "shpo", "--vault-key-file", key],
    ] {
      let run = try tool.run(command, input: [])
      #expect(run.code == 0 && run.message.contains("\"shpo\" holds nothing yet; did you mean \"shop\"?"), "\(run)")
      #expect(try tool.run(command + ["-q"], input: []).message.isEmpty || command[0] == "env")
    }
    #expect(try message("history", "--keep", "shop") == "")
  }

  @Test("An empty key, as an empty variable leaves it, is not set; one that is there can be listed, read and removed")
  func emptyKey() throws {
    for arguments in [
      ["set", "w/", "v"], ["set", "-c", "w", "", "v"], ["set", "w/", "--secret", "-"], ["set", "", "v"],
      ["append", "w/", "v"], ["increment", "w/"], ["rename", "shop/port", "shop/"],
    ] {
      let run = try tool.run(arguments, input: "v".utf8)
      #expect(run.code == 2 && run.message.contains("the key is empty"), "\(arguments) \(run)")
    }
    #expect(try tool.run("list", "w").code == 3)
    let bench = try CraftingBench(in: tool.path("other"))
    let database = try bench.open()
    try database.makeConnection().readWrite { transaction in
      try transaction.setObject("v", forKey: "", inCollection: "w")
      try transaction.setObject("v", forKey: "k", inCollection: "w")
    }
    try database.close()
    func run(_ arguments: String...) throws -> String {
      try tool.run(arguments + ["-d", bench.path, "--key-file", bench.keyFile], input: []).text
    }
    #expect(try run("list", "w") == "\"\"\nk\n")
    #expect(try run("list", "w", "--plain") == "\nk\n")
    #expect(try run("get", "w/") == "v\n")
    _ = try run("rename", "w/", "w/named")
    #expect(try run("list", "w") == "k\nnamed\n")
  }

  @Test("A key that was removed, and is locked, keeps its locked value, which unset and rename say")
  func locked() throws {
    try FileManager.default.createDirectory(
      atPath: tool.path("managed/shop.d"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    let file = try tool.write("managed/shop.d/a.json", #"{"locked": {"port": 2}}"#.utf8)
    chmod(file, 0o644)
    let managed = ["PREFS_MANAGED_DIR": tool.path("managed")]
    for command in [
      ["unset", "shop/port"], ["unset", "--match", "shop/*"], ["unset", "-c", "shop", "--all", "-f"],
      ["unset", "-c", "shop", "--all", "-f", "--purge"], ["rename", "shop/port", "shop/harbour"],
    ] {
      try tool.succeed("set", "shop/port", "1", "--int")
      let run = try tool.run(command, input: [], environment: managed)
      #expect(
        run.code == 0 && run.message == "prefs: shop/port keeps the value that \(file):1 locks.\n")
      #expect(try tool.run("get", "shop/port", environment: managed).text == "2\n")
      #expect(try tool.run("get", "shop/port").code == 3)
    }
  }

  @Test("A collection whose keys have expired is said to have expired, before and after they are removed")
  func expired() throws {
    try tool.succeed("set", "api/token", "x", "--expires-in", "1s")
    let deadline = Date(timeIntervalSinceNow: 20)
    while try tool.run("get", "api/token").code == 0, Date() < deadline { usleep(50_000) }
    for command in [["list", "api"], ["exec", "-c", "api", "--", "true"], ["unset", "-c", "api", "--all"]] {
      #expect(try tool.run(command, input: []).message.contains("its last keys have expired"), "\(command)")
    }
    try tool.succeed("set", "other", "1")
    #expect(try message("list", "api").contains("its last keys have expired"))
    #expect(try message("list", "none").contains("there is no collection"))
  }

  @Test("A hint names the argument that was meant: without the collection after -c, and all of the options")
  func hints() throws {
    try tool.succeed("set", "shop/PORT", "1")
    #expect(try message("get", "shop/port", "-c", "shop").contains("with -c shop, omit \"shop/\": the key is \"port\""))
    #expect(try message("history", "shop").contains("prefs history -c shop"))
    let (store, key) = (tool.path("s"), tool.path("k"))
    let options = ["-d", store, "--key-file", key]
    _ = try tool.run(["init"] + options, input: [])
    let end = " -d \(store) --key-file \(key)"
    #expect(try tool.run(["rotate"] + options, input: []).message.contains("prefs key replace SLOT\(end)"))
    #expect(try tool.run(["unlock"] + options, input: []).message.contains("prefs seal COLLECTION\(end)"))
  }

  @Test("revert, increment and set --array say what form is expected")
  func forms() throws {
    #expect(try message("revert", "shop/port").contains("the version is missing"))
    #expect(try message("revert", "shop/port@x").contains("\"x\" is not the number of a version"))
    let step = try message("increment", "shop/port", "x")
    #expect(step.contains("N is not a number. Examples: 5, -1, 0.25.") && !step.contains("inf"))
    #expect(try message("set", "shop/list", "--array", "1,2").contains(#"Example: '["a", "b"]'"#))
    #expect(try message("set", "shop/list", "--array", "[1,2").contains("not JSON"))
  }

  @Test("A key file that moved is said to be named from now on, and a wrong one is named")
  func keyFiles() throws {
    let moved = tool.path("moved")
    let change = try message("key", "change", "0", "--new-key-file", moved)
    #expect(change.contains("\(tool.keyFile) opens the store no longer") && change.contains("--key-file \(moved)"))
    #expect(try message("get", "shop/port").contains("wrong key: the key file \(tool.keyFile) opens no slot"))
    #expect(try tool.succeed("get", "shop/port", "--key-file", moved) == "1\n")
    let back = try message("key", "replace", "--new-key-file", tool.path("other"), "--key-file", moved)
    #expect(back.contains("\(moved) opens the store no longer"))
  }

  @Test("No name or label breaks a line of a message")
  func lines() throws {
    try tool.succeed("set", "shop/harbour\nprefs: all is well", "1")
    for arguments in [
      ["get", "shop/harbour\nprefs: all is wel"], ["get", "shop/a\nb"], ["list", "sh\nop"],
      ["key", "remove", "a\nb"], ["schema", "load", "a\nb"], ["validate", "-d", "a\nb"],
    ] {
      let run = try tool.run(arguments, input: [])
      #expect(run.code != 0 && run.message.split(separator: "\n").count == 1, "\(run.message)")
    }
  }

  @Test(
    "A file whose entries name no application is refused with one line for all of them, other mistakes with a line each"
  )
  func nameless() throws {
    let entries = (0..<20).map { #"{"name": "k\#($0)", "type": "\#($0 < 2 ? "wrong" : "int")"}"# }.joined(
      separator: ",\n")
    let run = try tool.run("schema", "load", tool.write("s.json", "[\(entries)]".utf8))
    let lines = run.message.split(separator: "\n")
    #expect(run.code == 8 && lines.count == 4, "\(run.message)")
    #expect(
      lines.dropFirst().first
        == "  line 1: 20 entries, this one first, name no application. Name it with --application.")
  }

  @Test("Tables have a line that names their columns, and nothing without rows")
  func columns() throws {
    try tool.succeed("history", "--keep", "shop")
    try tool.succeed("set", "shop/port", "2", "--int")
    let history = try tool.succeed("history", "shop/port").split(separator: "\n")
    #expect(history.count == 2 && history[0].split(separator: " ") == ["VERSION", "SET", "ENDED", "AUTHOR", "VALUE"])
    #expect(try tool.succeed("history", "shop/port", "--limit", "0") == "")
    #expect(try tool.succeed("log", "--since", "2199-01-01") == "")
  }
}
