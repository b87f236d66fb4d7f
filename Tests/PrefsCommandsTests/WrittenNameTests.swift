import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// `org.x` declares `cur` of the collection `billing`, which its suites have for themselves.
@Suite("A written name with several slashes") struct WrittenNameTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed(
      "schema", "load", "-", "--application", "org.x", "--application-version", "1",
      input: #"[{"name": "cur", "collection": "billing", "type": "string", "default": "EUR"}]"#)
    try tool.succeed("set", "-c", "acme", "name", "Acme")
  }

  private func manage(_ text: String) throws {
    try FileManager.default.createDirectory(
      atPath: tool.path("managed/org.x.d"), withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o755])
    chmod(try tool.write("managed/org.x.d/10.json", text.utf8), 0o644)
  }

  private func run(_ words: String..., input: String = "") throws -> Tool.Run {
    try tool.run(words, input: Array(input.utf8), environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
  }

  @Test("is the same setting for every command, and as an administrator's file has it")
  func everywhere() throws {
    #expect(try run("set", "acme/billing/cur", "GBP").code == 0)
    #expect(try tool.succeed("get", "-c", "acme/billing", "cur") == "GBP\n")
    #expect(try tool.succeed("list", "acme") == "name\n")
    #expect(try run("inject", "-", input: "{{prefs:acme/billing/cur}}").text == "GBP")
    #expect(try tool.succeed("type", "--json", "acme/billing/cur").contains(#""collection":"acme/billing""#))
    #expect(try tool.succeed("describe", "acme/billing/cur").contains("GBP"))
    #expect(try tool.succeed("log", "acme/billing/cur").contains("acme/billing"))
    try tool.succeed("history", "--keep", "acme/billing")
    #expect(try run("set", "acme/billing/cur", "USD").code == 0)
    #expect(try tool.succeed("history", "acme/billing/cur").contains("GBP"))
    // The slip in a declared collection is found, too.
    let slip = try run("set", "acme/billing/crr", "USD")
    #expect(slip.code == 8 && slip.message.contains("did you mean"), "\(slip)")

    try manage(#"{"locked": {"acme/billing/cur": "CHF"}}"#)
    for words in [["set", "acme/billing/cur", "GBP"], ["append", "acme/billing/cur", "x"]] {
      let run = try tool.run(words, input: [], environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
      #expect(run.code == 13, "\(words): \(run)")
    }
    #expect(try run("get", "acme/billing/cur").text == "CHF\n")
    try tool.succeed("unset", "acme/billing/cur")
  }

  @Test("is refused where it may be two, with both named, and -c says which")
  func ambiguous() throws {
    try tool.succeed("set", "-c", "acme", "billing/cur", "other")
    for command in [["get"], ["set"], ["unset"], ["history"], ["describe"]] {
      let run = try tool.run(command + ["acme/billing/cur"] + (command == ["set"] ? ["x"] : []), input: [])
      #expect(run.code == 2, "\(command): \(run)")
      for words in [#"key "billing/cur" of collection "acme""#, #"key "cur" of collection "acme/billing""#, "-c"] {
        #expect(run.message.contains(words), "\(run.message)")
      }
    }
    let inject = try run("inject", "-", input: "{{prefs:acme/billing/cur}}")
    #expect(inject.code == 2 && inject.text.isEmpty && inject.message.contains("may be key"), "\(inject)")
    #expect(try tool.succeed("get", "-c", "acme", "billing/cur") == "other\n")
    #expect(try tool.succeed("get", "-c", "acme/billing", "cur") == "EUR\n")
  }

  @Test("names a new key of the longest collection that is there, or else of the first part")
  func new() throws {
    try tool.succeed("set", "a/b/c", "1")
    #expect(try tool.succeed("get", "-c", "a", "b/c") == "1\n")
    try tool.succeed("set", "-c", "a/b", "d", "2")
    try tool.succeed("set", "a/b/e", "3")
    #expect(try tool.succeed("get", "-c", "a/b", "e") == "3\n")
    // What is there keeps its name.
    #expect(try tool.succeed("get", "a/b/c") == "1\n" && tool.succeed("get", "a/b/d") == "2\n")
    try tool.succeed("unset", "a/b/c")
    #expect(try tool.run("get", "-c", "a", "b/c").code == 3)
  }

  @Test("is looked up in an environment of its collection")
  func environments() throws {
    try tool.succeed("env", "create", "acme/billing@staging")
    try tool.succeed("set", "acme/billing/cur", "USD", "--env", "staging")
    #expect(try tool.succeed("get", "-c", "acme/billing@staging", "cur") == "USD\n")
    #expect(try tool.succeed("get", "acme/billing@staging/cur") == "USD\n")
    #expect(try tool.run("get", "acme/billing/cur", "--env", "prod").code == 3)
  }
}
