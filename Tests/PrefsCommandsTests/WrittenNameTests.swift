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

  @Test(
    "An environment that does not exist is refused however it is named, by each command that reads",
    arguments: [
      ["get", "billing@prod/cur"], ["get", "-c", "billing@prod", "cur"],
      ["get", "-c", "billing@prod", "cur", "--default", "x"],
      ["list", "billing@prod"], ["list", "billing@prod", "--all", "--values"], ["describe", "billing@prod/cur"],
      ["type", "billing@prod/cur"], ["exec", "-c", "billing@prod", "--", "/usr/bin/env"],
      ["find", "E", "-c", "billing@prod"],
      ["exec", "-c", "billing@prod", "--mask", "--", "/usr/bin/env"], ["inject", "template"],
      ["export", "billing@prod"], ["validate", "billing@prod"], ["set", "billing@prod/cur", "x"],
      ["ui", "--no-open", "-c", "billing@prod"],
      ["ui", "--no-open", "billing@prod/cur"], ["get", "acme/billing@prod/cur"],
    ], [false, true])
  func missingEnvironment(_ words: [String], isLocked: Bool) throws {
    if isLocked { try manage(#"{"locked": {"billing/cur": "CHF"}}"#) }
    let template = try tool.write("template", "{{prefs:billing@prod/cur}}".utf8)
    let run = try tool.run(
      words.map { $0 == "template" ? template : $0 }, input: [],
      environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
    if isLocked, words[0] == "set" { return #expect([3, 13].contains(run.code), "\(run)") }
    #expect(run.code == (words[0] == "exec" ? 125 : 3), "\(run)")
    #expect(run.text.isEmpty && run.message.contains(#"there is no environment "prod" of"#), "\(run)")
  }

  @Test("What was in an environment that is gone is found by history and log")
  func goneEnvironment() throws {
    try tool.succeed("env", "create", "billing@old")
    try tool.succeed("history", "--keep", "billing@old")
    try tool.succeed("set", "billing@old/cur", "USD")
    try tool.succeed("env", "remove", "billing@old", "--force")
    #expect(try tool.succeed("history", "billing@old/cur").contains("USD"))
    #expect(try tool.succeed("log", "billing@old/cur").contains("billing@old"))
  }

  /// Runs the tool for `org.x`, on the store of the others.
  private func app(_ words: String..., input: String = "") throws -> Tool.Run {
    try tool.run(
      ["--app", "org.x", "-d", tool.store, "--key-file", tool.keyFile] + words, input: input.utf8,
      environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
  }

  @Test("With --app, a setting that the application declares elsewhere is not set in its own collection")
  func ofOtherCollection() throws {
    for (words, input) in [
      (["set", "billing/cur", "GBP"], ""), (["import", "-", "--format", "json"], #"{"billing/cur": "GBP"}"#),
    ] {
      let run = try tool.run(
        ["--app", "org.x", "-d", tool.store, "--key-file", tool.keyFile] + words, input: input.utf8)
      #expect(run.code == 8, "\(words): \(run)")
      #expect(run.message.contains(#"key "cur" of collection "billing" is. Name the collection with -c."#), "\(run)")
    }
    #expect(try app("set", "-c", "billing", "cur", "GBP").code == 0)
    #expect(try app("get", "billing/cur").code == 3)
  }

  @Test("With --app alone, validate, list --all, schema and contract are about all collections of the application")
  func ofApplication() throws {
    // It declares nothing in its own collection, which is not there.
    #expect(try app("validate").code == 0)
    #expect(try app("list", "--all", "--values").text.contains("billing/cur"))
    #expect(try app("list", "--all", "--json").text.contains(#""collection":"billing","key":"cur""#))
    #expect(try app("schema").text.contains("billing/cur"))
    #expect(try app("schema", "--format", "json-schema").text.contains("billing"))
    try manage(#"{"locked": {"billing/cur": 5}}"#)
    let locked = try app("validate")
    #expect(locked.code == 8 && locked.text.contains("billing/cur in "), "\(locked)")
    try manage("{}")
    #expect(try app("set", "-c", "billing", "cur", "5", "--int", "--force").code == 0)
    let validate = try app("validate")
    #expect(validate.code == 8 && validate.text.contains("billing/cur must be"), "\(validate)")
    // Others' settings are not its own.
    try tool.succeed(
      "schema", "load", "-", "--application", "org.y", input: #"[{"name": "n", "collection": "org.y", "type": "int"}]"#)
    try tool.succeed("set", "org.y/n", "text", "--string", "--force")
    #expect(try !app("validate").text.contains("org.y"))
    #expect(try app("list", "--all").text == "billing/cur\n" || app("list", "--all").text.contains("billing/cur"))
    #expect(try !app("schema").text.contains("org.y"))
    try tool.succeed(
      "schema", "load", "-", "--application", "org.x", "--application-version", "2",
      input: #"""
        [{"name": "currency", "collection": "billing", "type": "string", "formerly": [{"name": "cur"}]}]
        """#)
    let contract = try app("schema", "contract")
    #expect(contract.code == 11 && contract.message.contains("billing/cur is kept for org.x 1"), "\(contract)")
  }
}
