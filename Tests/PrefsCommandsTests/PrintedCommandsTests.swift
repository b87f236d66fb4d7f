import Foundation
import Testing

@Suite("A command that a message prints, copied into a shell")
struct PrintedCommandsTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("init")
  }

  /// Runs the end of a message behind `words`.
  private func follow(_ message: String, behind words: String) throws {
    let command = try #require(message.firstRange(of: words).map { String(message[$0.upperBound...]) }, "\(message)")
    let run = try tool.run(
      ["-c", "prefs() { \"$0\" \"$@\"; }; \(command)", Tool.executable], input: "".utf8, program: "/bin/bash")
    #expect(run.code == 0, "\(command): \(run.message)")
  }

  private func succeed(_ arguments: [String]) throws {
    let run = try tool.run(arguments, input: "".utf8)
    #expect(run.code == 0, "\(arguments): \(run.message)")
  }

  private static let names = ["plain", "a b", "it's; exit 3", "$(exit 3)", "-coll", "n\nl", "\u{202E}x", "back\\slash"]

  @Test("keeps the history of that collection, whatever it is called", arguments: names + [""])
  func history(_ name: String) throws {
    let place = name.isEmpty ? [] : ["--collection=\(name)"]
    try succeed(["set", "x", "1"] + place)
    try follow(tool.run(["history"] + place, input: "".utf8).message, behind: "run: ")
    #expect(try !tool.run(["history"] + place, input: "".utf8).message.contains("keeps no history"))
    #expect(try tool.succeed("collections", "-0").split(separator: "\0").count <= 1)
  }

  @Test("creates that environment", arguments: names)
  func environment(_ name: String) throws {
    try succeed(["set", "x", "1", "--collection=\(name)"])
    let missing = try tool.run("list", "--collection=\(name)@st")
    #expect(missing.code == 3)
    try follow(missing.message, behind: "Create it with: ")
    try succeed(["list", "--collection=\(name)@st"])
  }

  @Test("has the store and the key file that led to the message", arguments: names)
  func options(_ name: String) throws {
    let (store, key) = ("--store=\(tool.path(name))", "--key-file=\(tool.path(name + "k"))")
    try succeed(["init", "-q", store, key])
    try succeed(["set", "c/x", "1", store, key])
    try follow(tool.run(["list", "-c", "c@st", store, key], input: "".utf8).message, behind: "Create it with: ")
    try succeed(["list", "-c", "c@st", store, key])
  }

  @Test("names the key file that unlocking needs")
  func unlocking() throws {
    let options = ["-d", tool.path("s"), "--key-file", tool.path("k")]
    try succeed(["set", "c/x", "1"] + options)
    #expect(try tool.run(["seal", "c", "--vault-key-file", tool.path("v")] + options, input: "".utf8).code == 0)
    let locked = try tool.run(["get", "c/x"] + options, input: "".utf8)
    #expect(locked.code == 6 && locked.message.contains("run `prefs unlock \(options.joined(separator: " "))`"))
  }

  @Test("sets a key that was written with its value in one argument")
  func separateArgument() throws {
    let refusal = try tool.run("set", "a b; exit 3=1")
    #expect(refusal.code == 2 && refusal.message.contains("prefs set 'a b; exit 3' VALUE."))
  }
}
