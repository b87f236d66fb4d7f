import Foundation
import TestSupport
import Testing

@testable import PrefsCommands

@Suite("Arguments in their usual form, which bypass the argument parser")
struct PlainArgumentsTests {
  @Test(
    "The result is the same as through the parser",
    arguments: ["app/theme", "top", "app/icon", "app/nothing", "nothing/theme", "app/", "", "-5", "--help", "-x", "/a"])
  func sameAnswer(key: String) throws {
    let tool = try Tool()
    try tool.succeed("set", "app/theme", "dark")
    try tool.succeed("set", "top", "--double", "1")
    try tool.succeed("set", "app/icon", "--data", "aWNvbg==")
    try tool.succeed("set", "--", "-5", "minus five")
    let plain = try tool.run("get", key)
    // An option that changes nothing here.
    let parsed = try tool.run("get", key, "--color", "auto")
    #expect(plain.code == parsed.code)
    #expect(plain.output == parsed.output)
    #expect(plain.message == parsed.message)
  }

  @Test("It uses the same store and key from the environment, and reports missing ones in the same way")
  func sameSources() throws {
    let tool = try Tool()
    try tool.succeed("set", "--store", tool.path("other"), "--key-file", tool.path("other-key"), "a", "b")
    for environment in [
      ["PREFS_STORE": tool.path("other"), "PREFS_KEY_FILE": tool.path("other-key")],
      ["PREFS_STORE": tool.path("other")], [:],
    ] {
      let plain = try tool.run("get", "a", environment: environment)
      let parsed = try tool.run("get", "a", "--color", "auto", environment: environment)
      #expect(plain.code == parsed.code)
      #expect(plain.text == parsed.text)
      #expect(plain.message == parsed.message)
    }
  }

  @Test(
    "Every command answers the same as through the parser",
    arguments: [
      ["get", "web/port"], ["get", "-c", "web", "port", "--json"], ["get", "port", "-c", "web", "--env", "staging"],
      ["--env=staging", "get", "web/port", "--show-origin"], ["get", "web/none", "--default", ""],
      ["get", "web/port", "--env", "none"], ["get", "-d", "none", "web/port"],
      ["get", "web/port", "--key-file", "none"],
      ["get", "x", "--app", "org.example.none"], ["get", "web/icon", "--hex"], ["get", "web/port", "-o", ""],
      ["list", "web"], ["list", "-c", "web", "-l", "--plain"], ["list", "web", "--env", "staging", "--values", "-0"],
      ["list", "none"], ["list", "--json"], ["list", "web", "--reveal"], ["list", "web", "--json", "-0"],
      ["set", "web/port", "--int", "x"], ["set", "web/", "x"], ["set", "web/port", "--if-absent", "1"],
      ["set", "web/port", "--type", "none", "1"], ["set", "--secret", "web/token", "text"],
      ["set", "web/port", "eighty"],
      ["set", "web/port", "1", "--must-exist", "--env", "none"], ["set", "web/a", "--hex", "--base64", "00"],
      ["exec", "-c", "web", "--pristine", "--", "/usr/bin/env"], ["exec", "-c", "web", "--", "none-such"],
      ["exec", "-c", "web", "--only", "none", "--", "env"], ["exec", "-c", "none", "--pristine", "--", "/usr/bin/env"],
      ["exec", "-c", "web", "--prefix", "app_", "--only", "port", "--pristine", "--", "/usr/bin/env"],
      ["exec", "-c", "web", "--env", "staging", "--only", "port", "--pristine", "--", "/usr/bin/env"],
      ["exec", "-c", "paths", "--", "/usr/bin/env"], ["exec", "-c", "web", "--"], ["exec", "--", ""],
      ["log", "web/port"], ["log", "web", "--limit", "1", "--plain"], ["log", "none"], ["log", "--since", "never"],
      ["log", "port", "-c", "web", "--json"], ["log", "--limit=-1"],
    ])
  func sameAnswers(arguments: [String]) throws {
    let tool = try Tool()
    try tool.succeed("set", "web/port", "--int", "80")
    try tool.succeed("set", "web/icon", "--data", "aWNvbg==")
    try tool.succeed("set", "paths/path", "/tmp")
    try tool.succeed("env", "create", "web@staging")
    try tool.succeed("set", "web@staging/port", "--int", "81")
    let plain = try tool.run(arguments, input: "".utf8)
    let parsed = try tool.run(["--color", "auto"] + arguments, input: "".utf8)
    #expect(PlainArguments.request(["--color", "auto"] + arguments) == nil)
    #expect(plain.code == parsed.code)
    #expect(plain.text == parsed.text)
    #expect(plain.message == parsed.message)
  }

  @Test("PREFS_ENV selects the environment, as through the parser")
  func environmentVariable() throws {
    let tool = try Tool()
    try tool.succeed("set", "web/port", "--int", "80")
    try tool.succeed("env", "create", "web@staging")
    try tool.succeed("set", "web@staging/port", "--int", "81")
    for (name, code, text) in [("staging", Int32(0), "81\n"), ("none", 3, "")] {
      for options in [[], ["--color", "auto"]] {
        let run = try tool.run(options + ["get", "web/port"], input: "".utf8, environment: ["PREFS_ENV": name])
        #expect(run.code == code)
        #expect(run.text == text)
      }
    }
  }

  @Test("A negative number is the value of an option as it stands")
  func negativeNumbers() throws {
    let tool = try Tool()
    try tool.succeed("set", "web/port", "--int", "80", "--actor", "-5")
    #expect(try tool.succeed("log", "--json").contains(#""actor":"-5""#))
    let run = try tool.run(["get", "web/port", "--store", "-7", "--must-exist"], input: "".utf8)
    #expect(run.message.contains("-7") && !run.message.contains("\0"))
    let exec = try tool.run(
      ["exec", "-c", "web", "--prefix", "-5", "--pristine", "--", "/usr/bin/env"], input: "".utf8)
    #expect(exec.text == "_5PORT=80\n")
  }

  /// The request of a command line as the parser sees it.
  private func parsed(_ arguments: [String]) throws -> any Request {
    let marked = CommandArguments.marked(arguments)
    switch try CommandArguments.parseAlone(marked) ?? PrefsCommand.parseAsRoot(marked) {
    case let command as GetCommand:
      try command.common.checkCollectionCount()
      return try command.request()
    case let command as ListCommand:
      try command.common.checkCollectionCount()
      return try command.request()
    case let command as SetCommand:
      try command.common.checkCollectionCount()
      return try command.request()
    case let command as ExecCommand: return try command.request()
    case let command as LogCommand:
      try command.common.checkCollectionCount()
      return try command.request()
    case let command: throw Failure(.other, "\(type(of: command))")
    }
  }

  @Test(
    "They mean the same as to the parser",
    arguments: [
      ["get", "app/theme"], ["get", ""], ["get", "help"], ["get", "a", "--json", "-n"], ["get", "--no-newline", "a"],
      ["get", "-d", "s", "--key-file", "k", "-c", "a/b", "c/d", "-q"], ["get", "a", "--store", "s", "--store", "t"],
      ["-d", "s", "--key-file", "k", "get", "a"], ["-q", "-c", "a", "get", "b"], ["--store=s", "read", "a"],
      ["get", "a/b/c", "--env", "e", "--app", "org.example.a"], ["--app=org.example.a", "get", "a"], ["get", "-5"],
      ["get", "a", "--default", ""], ["get", "a", "--default=b", "--show-origin", "-o", "f"], ["get", "a", "-c", ""],
      ["get", "a", "--hex", "--vault-key-file", "k", "--no-input", "-v"],
      ["list"], ["list", "a"], ["list", "-c", "a"], ["list", "a", "-l", "--values", "--quiet"],
      ["list", "--json", "a"], ["list", "--collection", "a", "-l", "-l", "--json"], ["list", "-0"],
      ["list", "a", "--all", "--values", "--reveal", "--plain", "--no-pager"], ["list", "--app", "a"],
      ["list", "a", "--env", "e"],
      ["set", "a/b", "c"], ["set", "a", "--int", "14"], ["set", "a", "--int", "-14"], ["set", "a", "-", "--actor", ""],
      ["set", "--dict", "a", "{}", "-c", "b"], ["set", "--url", "--key-file", "k", "a", ""], ["set", "a", "-q", "b=c"],
      ["set", "a", "-t", "double", "-0"], ["write", "a", "--type=int", "1"], ["set", "a", "--secret", "-"],
      ["set", "a", "--secret", "--value-file", "f", "--strip-newline"], ["set", "a", "--data", "--hex", "00"],
      ["set", "a/b", "c", "--env", "e", "--must-exist", "--if-absent"],
      ["exec", "--", "env"], ["exec", "-c", "a", "--", "env", "-q", "--", "get"], ["exec", "--app", "a", "--", "env"],
      ["exec", "-c", "a", "--prefix", "p", "--only", "a,b", "--only", "c", "--allow=PATH", "--pristine", "--", "env"],
      ["-d", "s", "exec", "-c", "a", "--env", "e", "--", "a"],
      ["log"], ["log", "a"], ["log", "a/b", "--limit", "3"], ["log", "k", "-c", "a", "--json"], ["log", "-0", "-5"],
      ["log", "a", "--env", "e", "--since", "2026-01-31", "--plain"],
    ])
  func sameRequest(arguments: [String]) throws {
    let plain = try #require(PlainArguments.request(arguments), "\(arguments) are left to the parser")
    #expect(String(reflecting: plain) == String(reflecting: try parsed(arguments)))
  }

  @Test(
    "Other forms, wrong arguments and help are left to the parser",
    arguments: [
      [], ["get"], ["get", "-h"], ["get", "a", "b"], ["get", "--", "a"], ["get", "a", "--json", "--hex"],
      ["get", "a", "--store"], ["get", "a", "--store", ""], ["get", "a", "-c", "-q"], ["get", "a", "--store="],
      ["get", "a", "-c", "b", "-c", "c"], ["get", "a", "-l"], ["get", "a", "-\u{301}"],
      ["get", "a", "--store=\u{301}"],
      ["get", "a", "--env", "x@y"], ["get", "a", "--env", ""], ["get", "a", "-ds"], ["get", "a", "--timeout", "1"],
      ["-l", "list"], ["--json", "get", "a"], ["-c", "a", "get", "-c", "b", "c"], ["--", "get", "a"], ["-d", "get"],
      ["list", "a", "b"], ["list", "a", "-c", "b"], ["list", "-lq"], ["list", "--reveal"], ["list", "--json", "-0"],
      ["set", "a"], ["set", "a", "b", "c"], ["set", "", "b"], ["set", "a/", "b"], ["set", "a", "b", "--int", "--bool"],
      ["set", "a", "b", "--int", "--type", "int"], ["set", "a", "b", "--type", "number"],
      ["set", "a", "b", "--secret"],
      ["set", "a", "--secret"], ["set", "a", "b", "--strip-newline"], ["set", "a", "b", "--value-file", "f"],
      ["set", "a", "--int", "--hex", "0"], ["set", "a", "--hex", "--base64", "0"],
      ["set", "a", "-", "--secret", "--int"],
      ["exec"], ["exec", "env"], ["exec", "--"], ["exec", "--", ""], ["exec", "--watch", "--", "a"],
      ["exec", "-c", "a", "-c", "b", "--", "c"], ["exec", "--mask", "--", "a"], ["log", "--verify"], ["log", "a", "b"],
      ["log", "--limit", "-1"], ["log", "--limit", "many"], ["log", "--since", "soon"], ["log", "--env", "e"],
      ["unset", "a"], ["gets", "a"],
      ["-", "set", "a"], ["-5", "get"], ["-5", "list"], ["-inf", "get"], ["-q", "-.5", "log"], ["-c", "a", "-", "get"],
      ["set", "a", "5", "--type", "none", "--type", "int"], ["set", "a", "5", "-t", "none", "--type", "int"],
      ["log", "--limit", "many", "--limit", "3"], ["log", "--since", "soon", "--since", "2d"],
      ["get", "a", "-o", "b", "--output", "c"],
    ])
  func othersAreParsed(arguments: [String]) {
    #expect(PlainArguments.request(arguments) == nil)
  }

  @Test(
    "Random command lines mean the same as to the parser, or are left to it: 1,000 of them, 50,000 with COFFER_SOAK")
  func randomLines() throws {
    let count = ProcessInfo.processInfo.environment["COFFER_SOAK"] == nil ? 1_000 : 50_000
    var lines = RandomLines(seed: 54)
    var plainCount = 0
    for _ in 0..<count {
      let line = lines.next()
      guard let plain = PlainArguments.request(line) else { continue }
      plainCount += 1
      // What the parser refuses must have been left to it.
      let other = try? parsed(line)
      #expect(other.map { String(reflecting: $0) } == String(reflecting: plain), "\(line)")
    }
    #expect(plainCount > count / 5)
  }
}

/// Command lines of frequent commands, many of them right.
private struct RandomLines {
  private var generator: SplitMix64

  private static let names = ["a", "a/b", "a/b/c", "x=y", "help", "get", "int", "", "-", "-5", "-0", "-d", "\u{301}"]
  private static let common = [
    "-d", "--store", "--app", "--env", "-c", "--collection", "--key-file", "--vault-key-file", "--actor",
  ]
  private static let commonFlags = ["-q", "--quiet", "-v", "--no-input", "--must-exist"]
  private static let form = ["--json", "--plain", "-0", "--no-pager"]
  private static let commands: [(name: String, flags: [String], options: [String])] = [
    ("get", ["--json", "-n", "--no-newline", "--base64", "--hex", "--show-origin"], ["--default", "-o", "--output"]),
    ("list", form + ["-l", "--values", "--all", "--reveal"], ["--due"]),
    ("log", form + ["--verify"], ["--since", "--limit"]),
    (
      "set", ["--int", "--string", "--data", "--base64", "--hex", "--secret", "--strip-newline", "--if-absent", "-f"],
      ["-t", "--type", "--value-file"]
    ),
    ("exec", ["--pristine", "--watch"], ["--prefix", "--only", "--allow"]),
    ("unset", ["-f"], ["--match"]),
  ]

  init(seed: UInt64) {
    generator = SplitMix64(state: seed)
  }

  private mutating func one(of words: [String]) -> String { words.randomElement(using: &generator) ?? "" }

  private mutating func option(of names: [String]) -> [String] {
    let (option, value) = (one(of: names), one(of: Self.names))
    return option.hasPrefix("--") && Bool.random(using: &generator) ? ["\(option)=\(value)"] : [option, value]
  }

  mutating func next() -> [String] {
    let command = Self.commands[Int.random(in: 0..<Self.commands.count, using: &generator)]
    var words: [String] = []
    if Int.random(in: 0..<4, using: &generator) == 0 { words += option(of: Self.common) }
    if Int.random(in: 0..<4, using: &generator) == 0 { words.append(one(of: Self.commonFlags)) }
    if Int.random(in: 0..<16, using: &generator) == 0 { words.append(one(of: Self.names)) }
    words.append(command.name)
    if command.name != "exec" { words.append(one(of: Self.names)) }
    if command.name == "set" { words.append(one(of: Self.names)) }
    for _ in 0..<Int.random(in: 0...3, using: &generator) {
      switch Int.random(in: 0..<8, using: &generator) {
      case 0...1: words += option(of: Self.common)
      case 2: words.append(one(of: Self.commonFlags))
      case 3...4: words.append(one(of: command.flags))
      case 5...6: words += option(of: command.options)
      default: words.append(one(of: Self.names))
      }
    }
    return words + (command.name == "exec" ? ["--", one(of: Self.names), one(of: Self.names)] : [])
  }
}
