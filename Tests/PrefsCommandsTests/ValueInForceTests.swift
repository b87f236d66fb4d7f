import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What `get`, `type`, `increment`, `append`, `exec` and `inject` take for the value of a key.
@Suite("The value in force") struct ValueInForceTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    let declared = """
      [{"name": "retries", "collection": "z", "type": "int", "default": 5},
       {"name": "hosts", "collection": "z", "type": "array", "default": ["a"]},
       {"name": "limit", "collection": "z", "type": "int", "default": 1}]
      """
    try tool.succeed("schema", "load", "-", "--application", "z", input: declared)
    try FileManager.default.createDirectory(
      atPath: tool.path("managed/z.d"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    let file = try tool.write(
      "managed/z.d/10.json", #"{"size": 12, "limit": 7, "names": ["m"], "locked": {"port": 80}}"#.utf8)
    chmod(file, 0o644)
  }

  private func run(_ arguments: String..., input: String = "") throws -> String {
    let run = try tool.run(arguments, input: input.utf8, environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
    #expect(run.code == 0, "\(arguments): \(run.message)")
    return run.text
  }

  @Test("A declared default is the value of get, type, exec and inject, and increment and append start from it")
  func declared() throws {
    #expect(try run("get", "z/retries") == "5\n")
    #expect(try run("get", "z/retries", "--show-origin", "--default", "9") == "default\t5\n")
    #expect(try run("type", "z/retries") == "int\n")
    #expect(try run("exec", "-c", "z", "--only", "retries", "--pristine", "--", "/usr/bin/env") == "RETRIES=5\n")
    #expect(try run("inject", "-", input: "{{prefs:z/retries|9}}") == "5")
    #expect(try run("increment", "z/retries") == "6\n")
    try tool.succeed("append", "z/hosts", "b")
    #expect(try run("get", "z/hosts") == "[\"a\",\"b\"]\n")
  }

  @Test("An administrator's default comes before the declared one")
  func managed() throws {
    #expect(try run("get", "z/limit") == "7\n")
    #expect(try run("type", "z/size") == "int\n")
    #expect(
      try run("exec", "-c", "z", "--only", "limit,size", "--pristine", "--", "/usr/bin/env") == "LIMIT=7\nSIZE=12\n")
    #expect(try run("increment", "z/limit") == "8\n")
    #expect(try run("increment", "z/size", "2", "--undeclared") == "14\n")
    _ = try run("append", "z/names", "n", "--undeclared")
    #expect(try run("get", "z/names") == "[\"m\",\"n\"]\n")
  }

  @Test("A locked value is the value of all, and needs no key")
  func locked() throws {
    try tool.succeed("set", "z/port", "8080", "--undeclared")
    rename(tool.keyFile, tool.path("away"))
    #expect(try run("get", "z/port") == "80\n")
    #expect(try run("type", "z/port") == "int\n")
    rename(tool.path("away"), tool.keyFile)
    #expect(try run("exec", "-c", "z", "--only", "port", "--pristine", "--", "/usr/bin/env") == "PORT=80\n")
  }

  @Test("In an environment, the collection's value is the start")
  func environment() throws {
    try tool.succeed("set", "w/n", "--int", "10")
    try tool.succeed("env", "create", "w@s")
    #expect(try run("--env", "s", "increment", "w/n") == "11\n")
    #expect(try run("get", "w/n") == "10\n")
  }
}
