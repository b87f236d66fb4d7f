import Coffer
import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// `api/token` is text that was set before it was declared as a secret, and `api/given` an administrator's.
@Suite("A declared secret that is stored as text") struct DeclaredSecretTests {
  private let tool: Tool
  private let environment: [String: String]

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "api/token", "hunter2")
    try tool.succeed("history", "--keep", "api")
    try tool.succeed("set", "api/token", "hunter22")
    try tool.succeed(
      "schema", "load", "-", "--application", "api", "--application-version", "1",
      input: """
        [{"name": "token", "collection": "api", "type": "secret"},
         {"name": "given", "collection": "api", "type": "secret"}]
        """)
    try FileManager.default.createDirectory(
      atPath: tool.path("managed/api.d"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    chmod(try tool.write("managed/api.d/10.json", #"{"locked": {"given": "hunter2g"}}"#.utf8), 0o644)
    environment = ["PREFS_MANAGED_DIR": tool.path("managed")]
  }

  @Test(
    "is hidden by every command that hides secrets",
    arguments: [
      ["list", "api", "--values"], ["list", "api", "--values", "--json"], ["list", "api", "--all"], ["find", "hunter"],
      ["export", "api"], ["export", "api", "--format", "yaml"], ["export"], ["history", "api/token"],
      ["history", "api/token", "--json"], ["diff", "api", "other"], ["diff", "api", "other", "--json"],
      ["copy", "api", "other", "--dry-run", "--merge"], ["describe", "api/token"], ["describe", "api/given"],
      ["export", "api", "--format", "env"], ["export", "api", "-o", "out.sqlite"],
      ["exec", "-c", "api", "--mask", "--", "/bin/sh", "-c", "echo $TOKEN $GIVEN"],
    ])
  func hidden(_ words: [String]) throws {
    try tool.succeed("set", "other/x", "1")
    let words = words.map { $0 == "out.sqlite" ? tool.path($0) : $0 }
    let run = try tool.run(words, input: [], environment: environment)
    #expect(!run.text.contains("hunter") && !run.message.contains("hunter2"), "\(run)")
    if words.contains(tool.path("out.sqlite")) { #expect(run.code == 11 && !tool.exists(tool.path("out.sqlite"))) }
  }

  @Test(
    "is hidden under its former name by every command that hides secrets",
    arguments: [
      ["list", "api", "--values"], ["list", "api", "--values", "--json"], ["find", "hunter"],
      ["diff", "api", "other"],
      ["copy", "api", "other", "--dry-run", "--merge"],
      ["import", "new.json", "-c", "api", "--dry-run", "--undeclared"],
      ["export", "api"],
    ])
  func formerName(_ words: [String]) throws {
    try tool.succeed("set", "api/old", "hunter2o", "--undeclared")
    try tool.succeed("set", "other/old", "1")
    try tool.succeed(
      "schema", "load", "-", "--application", "api", "--application-version", "2",
      input: #"[{"name": "kept", "collection": "api", "type": "secret", "formerly": [{"name": "old"}]}]"#)
    let file = try tool.write("new.json", #"{"old": "hunter2n"}"#.utf8)
    let run = try tool.run(words.map { $0 == "new.json" ? file : $0 }, input: [], environment: environment)
    #expect([0, 1, 3].contains(run.code), "\(run)")
    #expect(!run.text.contains("hunter2") && !run.message.contains("hunter2"), "\(run)")
  }

  private func load(_ version: String, _ declarations: String) throws {
    try tool.succeed(
      "schema", "load", "-", "--application", "web", "--application-version", version, input: declarations)
  }

  /// Lets all former names end that no version in force declares.
  private func contract() throws {
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile))
    try database.makeConnection().perform {
      try $0.connection.execute("UPDATE renames SET until = 0")
      try $0.connection.execute("UPDATE versions SET until = 0")
    }
    try database.close()
    try tool.succeed("schema", "contract")
  }

  @Test(
    "is hidden under a former name that an earlier version declares as text",
    arguments: [
      ["list", "web", "--values"], ["find", "hunter"], ["describe", "web/w"], ["history", "web/w"], ["export", "web"],
      ["export", "web", "--format", "env"], ["copy", "web", "new", "--dry-run"],
      ["import", "new.json", "-c", "web", "--dry-run"],
      ["exec", "-c", "web", "--mask", "--", "/bin/sh", "-c", "echo $W"],
    ])
  func declaredAsText(_ words: [String]) throws {
    try load("1", #"[{"name": "w", "collection": "web", "type": "string"}]"#)
    try tool.succeed("set", "web/w", "hunter3")
    try tool.succeed("history", "--keep", "web")
    try tool.succeed("set", "web/w", "hunter33")
    try load(
      "2", #"[{"name": "v", "collection": "web", "type": "secret", "formerly": [{"name": "w"}]}]"#)
    try load(
      "3", #"[{"name": "u", "collection": "web", "type": "secret", "formerly": [{"name": "v"}]}]"#)
    let file = try tool.write("new.json", #"{"w": "hunter333"}"#.utf8)
    let run = try tool.run(words.map { $0 == "new.json" ? file : $0 }, input: [])
    #expect([0, 3, 11].contains(run.code), "\(run)")
    #expect(!run.text.contains("hunter3") && !run.message.contains("hunter3"), "\(run)")
    // An argument is seen by others; text that is piped in is what version 1 reads.
    let set = try tool.run("set", "web/w", "newtext")
    #expect(set.code == 2 && set.message.contains("must not be an argument"), "\(set)")
    #expect(try tool.run("set", "web/w", "-", input: "piped").code == 0)
    #expect(try tool.succeed("get", "web/w") == "piped\n")
  }

  @Test("stays hidden in the history when no version states its former name any more, and the name is free then")
  func forgotten() throws {
    try tool.succeed("history", "--keep", "web")
    try tool.succeed("set", "web/x", "hunter5")
    try load("1", #"[{"name": "x", "collection": "web", "type": "secret"}]"#)
    try tool.succeed("set", "web/x", "--secret", "-", input: "s")
    try load("2", #"[{"name": "y", "collection": "web", "type": "secret", "formerly": [{"name": "x"}]}]"#)
    try load("3", #"[{"name": "z", "collection": "web", "type": "secret", "formerly": [{"name": "y"}]}]"#)
    try contract()
    #expect(try tool.succeed("history", "web/x").contains("<secret: 7 bytes>"))
    try load("4", #"[{"name": "z", "collection": "web", "type": "secret"}]"#)
    try contract()
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    for store in [[], ["-d", backup]] {
      let history = try tool.run(["history", "web/x"] + store, input: [])
      #expect(history.text.contains("<secret: 7 bytes>") && !history.text.contains("hunter"), "\(history)")
    }
    try load("5", #"[{"name": "x", "collection": "web", "type": "string"}]"#)
    try tool.succeed("set", "web/x", "shown")
    #expect(try tool.succeed("list", "web", "--values").contains("shown"))
    #expect(try !tool.succeed("history", "web/x").contains("hunter"))
  }

  @Test("stays hidden when its declaration goes, with the value that is set")
  func undeclared() throws {
    try load("1", #"[{"name": "x", "collection": "web", "type": "string"}]"#)
    try tool.succeed("schema", "load", "-", "--application", "api", "--application-version", "2", input: "[]")
    try contract()
    for words in [["list", "api", "--values"], ["history", "api/token"], ["export", "api"]] {
      #expect(try !tool.run(words, input: []).text.contains("hunter"), "\(words)")
    }
    #expect(try tool.succeed("get", "api/token") == "hunter22\n")
  }

  @Test("is a secret where it is copied, renamed or moved to a store without its declaration")
  func moved() throws {
    try tool.succeed("copy", "api", "copied")
    try tool.succeed("rename", "api/token", "renamed/token")
    for name in ["copied", "renamed"] {
      let list = try tool.succeed("list", name, "--values")
      #expect(list.contains("<secret: 8 bytes>") && !list.contains("hunter"), "\(list)")
      #expect(try tool.succeed("get", "\(name)/token") == "hunter22\n")
    }
  }

  @Test("is hidden in the history of a name that has ended")
  func ended() throws {
    try tool.succeed("set", "api/old", "hunter2o", "--undeclared")
    try tool.succeed(
      "schema", "load", "-", "--application", "api", "--application-version", "2",
      input: #"[{"name": "kept", "collection": "api", "type": "secret", "formerly": [{"name": "old"}]}]"#)
    try tool.succeed("unset", "api/old", "--quiet")
    let history = try tool.succeed("history", "api/old")
    #expect(history.contains("<secret: 8 bytes>") && !history.contains("hunter"), "\(history)")
  }

  @Test(
    "is hidden under a name that has ended, wherever else it is",
    arguments: [
      ["diff", "gone", "other"], ["copy", "gone", "other", "--dry-run", "--merge"], ["export", "gone"],
      ["import", "new.json", "-c", "gone", "--dry-run", "--undeclared"],
    ], [false, true])
  func endedElsewhere(_ words: [String], isOfOlderVersion: Bool) throws {
    try tool.succeed("set", "gone/old", "hunter2o")
    try tool.succeed("set", "other/x", "1")
    try tool.succeed(
      "schema", "load", "-", "--application", "api", "--application-version", "2",
      input: #"""
        [{"name": "kept", "collection": "api", "type": "secret", "formerly": [{"name": "old", "collection": "gone"}]}]
        """#)
    try tool.succeed("set", "gone/old", "-", "--undeclared", input: "hunter2p")
    if isOfOlderVersion {
      let newer = #"[{"name": "other", "collection": "api", "type": "string"}]"#
      try tool.succeed("schema", "load", "-", "--application", "api", "--application-version", "3", input: newer)
    }
    let file = try tool.write("new.json", #"{"old": "hunter2q"}"#.utf8)
    let run = try tool.run(words.map { $0 == "new.json" ? file : $0 }, input: [], environment: environment)
    #expect(run.text.contains("old") && !run.text.contains("hunter") && !run.message.contains("hunter"), "\(run)")
  }

  @Test("is shown where secrets are: by get, inject and --reveal, and what hides it can be imported again")
  func shown() throws {
    #expect(try tool.succeed("get", "api/token") == "hunter22\n")
    #expect(try tool.succeed("list", "api", "--values", "--reveal").contains("hunter22"))
    #expect(try tool.succeed("export", "api", "--reveal").contains("hunter22"))
    let file = try tool.write("out.json", tool.succeed("export", "api").utf8)
    try tool.succeed("import", file, "-c", "api")
    #expect(try tool.succeed("get", "api/token") == "hunter22\n")
  }
}
