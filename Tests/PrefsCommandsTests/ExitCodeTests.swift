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

@Suite("Exit codes")
struct ExitCodeTests {
  @Test("--exit-codes prints the table")
  func table() throws {
    let text = try Tool().succeed("--exit-codes")
    let codes = text.split(separator: "\n").compactMap { Int($0.split(separator: " ")[0]) }
    #expect(codes == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 125, 126, 127])
  }

  @Test(
    "Wrong usage is 2, with the reason on standard error",
    arguments: [
      ["nonsense"], ["get"], ["get", "a", "b"], ["get", "--nonsense", "a"], ["set", "a"], ["set", "a", "b", "c"],
      ["set", "a", "1", "--int", "--bool"], ["set", "a", "1", "--type", "float"],
      ["set", "a", "b", "--value-file", "f"],
      ["restore-store", "-"],
      ["set", "a", "b", "--if-absent", "--if-version", "1"], ["set", "a", "b", "--if-version", "-1"],
      ["set", "a", "b", "--base64", "--hex"], ["set", "a", "b", "--int", "--hex"],
      ["set", "a", "b", "--strip-newline"],
      ["unset"], ["unset", "a", "--all"], ["unset", "--all", "--match", "x"], ["list", "a", "-c", "b"],
      ["list", "--json", "--plain"], ["get", "a", "--json", "--hex"], ["get", "a", "--timeout", "soon"],
      ["get", "a", "--timeout", "-1"], ["get", "a", "--key-file", "f", "--key-fd", "3"],
      ["get", "a", "--key-fd", "-3"],
      ["get", "a", "--store", ""], ["completion", "tcsh"], ["init", "--passphrase", "--key-file", "f"], ["type"],
    ])
  func usage(_ arguments: [String]) throws {
    let tool = try Tool()
    let run = try tool.run(arguments, input: "".utf8)
    #expect(run.code == 2)
    #expect(run.text.isEmpty != arguments.contains("--json"))
    #expect(run.message.hasPrefix("prefs: "), "\(run.message)")
    #expect(!tool.exists(tool.store) && !tool.exists(tool.keyFile))
  }

  @Test("A missing key or collection is 3, and prints nothing")
  func notFound() throws {
    let tool = try Tool()
    try tool.succeed("set", "a/b", "x")
    for arguments in [["get", "a/c"], ["get", "c"], ["type", "a/c"], ["list", "c"], ["unset", "a/c"]] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 3 && run.text == "" && run.message.hasPrefix("prefs: there is no "), "\(arguments)")
    }
  }

  @Test(
    "A missing store is 4, and reading creates none",
    arguments: [
      ["get", "a"], ["list"], ["collections"], ["type", "a"], ["unset", "a"], ["unset", "--all", "-f"], ["doctor"],
    ])
  func noStore(_ arguments: [String]) throws {
    let tool = try Tool()
    let run = try tool.run(arguments, input: "".utf8)
    #expect(run.code == 4 && run.text == "")
    #expect(try FileManager.default.contentsOfDirectory(atPath: tool.home.path).isEmpty)
    #expect(try tool.run("get", "a", "--default", "x").text == "x\n")
    #expect(try FileManager.default.contentsOfDirectory(atPath: tool.home.path).isEmpty)
  }

  @Test("A missing backup is 4, with no advice to create one")
  func noBackup() throws {
    let tool = try Tool()
    try tool.succeed("set", "a", "x")
    let run = try tool.run("restore-store", "nowhere", "--force")
    #expect(run.code == 4 && run.message.contains("there is no backup at nowhere. Check the path;"), "\(run)")
    #expect(try tool.run("get", "a").text == "x\n")
  }

  @Test("A damaged store is 7, and stays unchanged")
  func damaged() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "value")
    var bytes = try tool.contents(tool.store)
    // Everything behind the envelope.
    for index in stride(from: 16384, to: bytes.count, by: 512) { bytes[index] ^= 1 }
    try tool.write("broken", bytes)
    let broken = tool.path("broken")
    chmod(broken, 0o600)
    #expect(try tool.run("get", "x", "-d", broken).code == 7)
    #expect(try tool.run("set", "x", "y", "-d", broken).code == 7)
    let doctor = try tool.run("doctor", "--json", "-d", broken)
    #expect(doctor.code == 7)
    #expect(doctor.text.contains(#""ok":false"#) && !doctor.text.contains(#""problems":[]"#))
    #expect(try tool.contents(broken) == bytes)
  }

  @Test("A damaged page is 7, or not in the way, for commands that say what is in force, too")
  func damagedPage() throws {
    let tool = try Tool()
    let declaration = #"[{"name":"rate","collection":"web","type":"int","default":1}]"#
    try tool.succeed("schema", "load", "-", "--application", "web", "--application-version", "1", input: declaration)
    try tool.succeed("set", "web/rate", "5")
    let whole = try tool.contents(tool.store)
    var codes: Set<Int32> = []
    for page in stride(from: 16_384, to: whole.count, by: 4_096) {
      var bytes = whole
      bytes[page + 2_000] ^= 1
      try tool.write("broken", bytes)
      let broken = tool.path("broken")
      chmod(broken, 0o600)
      for arguments in [["export"], ["export", "--format", "env", "-c", "web"], ["unset", "web/rate"], ["validate"]] {
        let run = try tool.run(arguments + ["-d", broken], input: "".utf8)
        #expect([0, 7].contains(run.code), "\(page), \(arguments): \(run)")
        codes.insert(run.code)
      }
    }
    #expect(codes == [0, 7])
  }

  @Test(
    "A file that is not a store is 8, and stays unchanged",
    arguments: ["", "text", String(repeating: "x", count: 99_999)])
  func notAStore(_ text: String) throws {
    let tool = try Tool()
    let path = try tool.write("file", text.utf8)
    for arguments in [["get", "x"], ["set", "x", "y"], ["init"], ["doctor"]] {
      let run = try tool.run(arguments + ["-d", path], input: "".utf8)
      #expect(run.code == 8, "\(arguments) \(run.message)")
      #expect(try tool.contents(path) == Array(text.utf8))
    }
    #expect(!tool.exists(tool.keyFile))
  }

  @Test(
    "A value that does not parse is 8, and is not shown in the message",
    arguments: [
      ["--int", "twelve"], ["--int", "1.0"], ["--int", "18446744073709551616"], ["--int", ""], ["--int", "0x1f"],
      ["--double", "1,5"], ["--double", "1e999"], ["--bool", "maybe"], ["--bool", "2"], ["--bool", "tru"],
      ["--date", "yesterday"], ["--date", "2026-02-30"], ["--date", "2026-01-31T25:00:00Z"],
      ["--date", "2026-01-31T08:30:00"], ["--data", "not base64!"], ["--data", "abc"], ["--hex", "abc"],
      ["--hex", "xy"],
      ["--url", "has a space"], ["--url", ""], ["--uuid", "1234"], ["--array", "{}"], ["--dict", "[]"],
      ["--array", "[1"], ["--dict", "{\"a\":1,\"a\":2}"], ["--type", "json", "{a:1}"], ["--type", "json", "null"],
      ["--type", "json", "01"], ["--type", "plist", "<plist><array></plist>"], ["--secret", "-"],
    ])
  func badValue(_ arguments: [String]) throws {
    let tool = try Tool()
    let run = try tool.run(["set", "key"] + arguments, input: "".utf8)
    #expect(run.code == 8)
    #expect(run.message.hasPrefix("prefs: the value for key \"key\": "), "\(run.message)")
    #expect(!tool.exists(tool.store), "nothing is made for a value that is refused")
  }

  @Test("Bytes that are not text are 8 as a string, and 2 as an argument")
  func notText() throws {
    let tool = try Tool()
    let run = try tool.run(["set", "x", "-"], input: [0xff, 0xfe])
    #expect(run.code == 8 && run.message.contains("--type data"))
    #expect(try tool.run(["set", "x", "-", "--data"], input: [0xff, 0xfe]).code == 0)
    #expect(try tool.run("get", "x").output == [0xff, 0xfe])
  }

  @Test("A condition that does not hold is 9, and changes nothing")
  func conflicts() throws {
    let tool = try Tool()
    #expect(try tool.run("set", "x", "a", "--if-version", "1").code == 9)
    #expect(!tool.exists(tool.store))
    try tool.succeed("set", "x", "a", "--if-absent")
    #expect(try tool.run("set", "x", "b", "--if-absent").code == 9)
    #expect(try tool.run("set", "x", "b", "--if-version", "0").code == 9)
    #expect(try tool.run("set", "x", "b", "--if-version", "1").code == 9)
    #expect(try tool.succeed("get", "x") == "a\n")
    // The first commit after those that made the store.
    try tool.succeed("set", "x", "b", "--if-version", "2")
    #expect(try tool.run("set", "x", "c", "--if-version", "2").message.contains("has version 3"))
    #expect(try tool.run("set", "y", "c", "--if-version", "1").message.contains("does not exist"))
    try tool.succeed("set", "y", "c", "--if-version", "0")
    #expect(try tool.succeed("get", "x") == "b\n")
    // Also where the value could not be set otherwise.
    try tool.succeed("set", "n", "5", "--int")
    #expect(try tool.run("set", "n", "v", "--if-absent").code == 9 && tool.run("set", "n", "v").code == 8)
  }

  @Test("init over a store is 9, and keeps it")
  func initTwice() throws {
    let tool = try Tool()
    try tool.succeed("init")
    let bytes = try tool.contents(tool.store)
    let run = try tool.run("init", "--key-file", tool.path("other"))
    #expect(run.code == 9)
    #expect(!tool.exists(tool.path("other")))
    #expect(try tool.contents(tool.store) == bytes)
  }

  @Test("What the system refuses is 14")
  func inputOutput() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    #expect(try tool.run("get", "x", "-o", tool.path("none/file")).code == 14)
    #expect(try tool.run("set", "x", "--value-file", tool.path("none")).code == 14)
    #if os(Linux)
      let child = try tool.spawn(
        ["get", "x"], files: [(1, "/dev/full", O_WRONLY), (2, tool.path("errors"), O_WRONLY | O_CREAT)])
      #expect(try Tool.exitCode(of: child) == 14)
    #endif
  }

  @Test("The output of get never overwrites the store")
  func outputIsStore() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    try FileManager.default.createSymbolicLink(atPath: tool.path("link"), withDestinationPath: tool.store)
    for path in [tool.store, tool.path("link")] { #expect(try tool.run("get", "x", "-o", path).code == 2) }
    #expect(try tool.succeed("get", "x") == "1\n")
  }

  @Test("Closing its output ends the tool quietly, as the signal would")
  func closedPipe() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "-", input: String(repeating: "x", count: 1 << 20))
    let script = "\"$0\" get x 2>\"$1\" | true; echo \"${PIPESTATUS[0]}\""
    let shell = try Child.run(
      "/bin/bash", ["-c", script, Tool.executable, tool.path("errors")],
      environment: ["HOME": tool.home.path, "PATH": "/usr/bin:/bin"])
    #expect(shell.text == "141\n")
    #expect(try tool.contents(tool.path("errors")).isEmpty)
  }
}
