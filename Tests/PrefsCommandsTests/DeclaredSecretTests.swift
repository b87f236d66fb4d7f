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
    try tool.succeed("set", "gone/old", "hunter2p", "--undeclared")
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
