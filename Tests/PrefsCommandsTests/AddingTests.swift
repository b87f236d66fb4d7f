import Foundation
import Testing

@Suite("Adding to stored values") struct AddingTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
  }

  @Test("appends to an array, which is created if missing")
  func arrays() throws {
    try tool.succeed("append", "a/list", "x", "y z")
    try tool.succeed("append", "a/list", "--int", "-5", "6")
    try tool.succeed("append", "a/list", #"{"b":1}"#)
    try tool.succeed("append", "a/list", "-", "--strip-newline", input: "line\n")
    try tool.succeed("append", "a/list", "-", input: "line\n")
    #expect(try tool.succeed("get", "a/list") == #"["x","y z",-5,6,{"b":1},"line","line\n"]"# + "\n")
  }

  @Test("adds to a dictionary by pairs, or by one object, and replaces existing names")
  func dictionaries() throws {
    try tool.succeed("append", "a/map", "--dict-add", "text", "black", "paper", "white")
    try tool.succeed("append", "a/map", "--int", "size", "12")
    try tool.succeed("append", "a/map", #"{"text":"red","on":true}"#)
    #expect(try tool.succeed("get", "a/map") == #"{"on":true,"paper":"white","size":12,"text":"red"}"# + "\n")
  }

  @Test(
    "What cannot be added is 8, and changes nothing",
    arguments: [
      ["text", "x"], ["number", "x"], ["map", "alone"], ["map", "a", "b", "c"], ["list", "--int", "1", "two"],
      ["list", "--dict-add", "a", "b"], ["new", "--dict-add", "a"], ["secret", "x"],
    ])
  func refused(_ arguments: [String]) throws {
    try tool.succeed("set", "text", "t")
    try tool.succeed("set", "secret", "--secret", "-", input: "hunter2")
    try tool.succeed("set", "number", "--int", "1")
    try tool.succeed("set", "map", "--dict", "{}")
    try tool.succeed("set", "list", "--array", "[]")
    let before = try tool.succeed("list", "--values", "-l")
    let run = try tool.run(["append"] + arguments, input: [])
    #expect(run.code == 8 && run.text == "" && !run.message.contains("hunter2"), "\(run.message)")
    #expect(try tool.succeed("list", "--values", "-l") == before)
  }

  @Test("A refused command creates nothing")
  func noStore() throws {
    for arguments in [["append", "k", "--int", "x"], ["append", "k", "--dict-add", "x"], ["increment", "k", "x"]] {
      #expect(try tool.run(arguments, input: []).code == 8)
    }
    for arguments in [["append", "k"], ["append", "k", "-", "x"], ["append", "k", "x", "--int", "--bool"]] {
      #expect(try tool.run(arguments, input: []).code == 2)
    }
    #expect(!tool.exists(tool.store) && !tool.exists(tool.keyFile))
  }

  @Test(
    "increment prints the sum and keeps the type",
    arguments: [
      ([], ["1"], "2"), ([], ["1", "--int"], "2"), ([], ["--double", "1"], "2.0"), (["--int", "41"], [], "42"),
      (["--int", "5"], ["-12"], "-7"), (["--double", "0.5"], ["1"], "1.5"), (["--double", "0.5"], ["-0.25"], "0.25"),
      (["--int", "9223372036854775807"], ["1"], "9223372036854775808"),
      (["--int", "18446744073709551615"], ["-18446744073709551615"], nil),
      (["--int", "18446744073709551615"], ["-9223372036854775808"], "9223372036854775807"),
      (["--double", "1"], ["inf"], "inf"),
    ] as [([String], [String], String?)])
  func sums(_ stored: [String], _ step: [String], _ sum: String?) throws {
    if stored.isEmpty {
      #expect(try tool.run(["increment", "k"] + step, input: []).text == (step.contains("--double") ? "1.0\n" : "1\n"))
    } else {
      #expect(try tool.run(["set", "k"] + stored, input: []).code == 0)
    }
    let run = try tool.run(["increment", "k"] + step, input: [])
    // A number that no integer type holds is not read.
    guard let sum else { return #expect(run.code == 8) }
    #expect(run.code == 0 && run.text == sum + "\n", "\(run.message)")
    #expect(try tool.succeed("get", "k") == sum + "\n")
  }

  @Test(
    "A sum out of range, or of a value that is not a number, is 8, and changes nothing",
    arguments: [
      (["--int", "18446744073709551615"], "1"), (["--int", "-9223372036854775808"], "-1"), (["--int", "1"], "0.5"),
      (["--double", "1.7e308"], "1.7e308"), (["12"], "1"), (["--bool", "1"], "1"),
    ])
  func overflow(_ stored: [String], _ step: String) throws {
    try tool.run(["set", "k"] + stored, input: [])
    let before = try tool.succeed("get", "k", "--json")
    let run = try tool.run("increment", "k", step)
    #expect(run.code == 8 && run.text == "" && run.message.contains("Nothing was changed"), "\(run.message)")
    #expect(try tool.succeed("get", "k", "--json") == before)
  }
}
