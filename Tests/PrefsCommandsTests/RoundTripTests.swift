import Foundation
import Testing

@Suite("Values in and out")
struct RoundTripTests {
  private struct Case {
    let arguments: [String]
    let type: String
    let text: String

    init(_ arguments: [String], _ type: String, _ text: String) {
      self.arguments = arguments
      self.type = type
      self.text = text
    }
  }

  private static let cases: [Case] = [
    // Strings, and what only looks like something else.
    Case(["dark"], "string", "dark"),
    Case([""], "string", ""),
    Case(["true"], "string", "true"),
    Case(["42"], "string", "42"),
    Case(["-5"], "string", "-5"),
    Case(["naïve — 日本語 🗝️"], "string", "naïve — 日本語 🗝️"),
    Case(["two\nlines\tand a tab"], "string", "two\nlines\tand a tab"),
    Case(["--", "--dashes"], "string", "--dashes"),
    Case(["--type", "string", "[1]"], "string", "[1]"),
    Case(["--string", "{}"], "string", "{}"),
    Case(["(hello)"], "string", "(hello)"),
    Case(["<b>"], "string", "<b>"),
    Case(["{not json"], "string", "{not json"),
    Case(["[1,]"], "string", "[1,]"),
    Case(["\"a\" and \"b\""], "string", "\"a\" and \"b\""),
    Case([" [1]"], "string", " [1]"),
    // Integers.
    Case(["--int", "0"], "int", "0"),
    Case(["--int", "-5"], "int", "-5"),
    Case(["-5", "--int"], "int", "-5"),
    Case(["--int", "9223372036854775807"], "int", "9223372036854775807"),
    Case(["--int", "-9223372036854775808"], "int", "-9223372036854775808"),
    Case(["--int", "18446744073709551615"], "int", "18446744073709551615"),
    Case(["--type", "int", "+7"], "int", "7"),
    // Doubles.
    Case(["--double", "1"], "double", "1.0"),
    Case(["--double", "-0"], "double", "-0.0"),
    Case(["--double", "-.5"], "double", "-0.5"),
    Case(["--double", "0.1"], "double", "0.1"),
    Case(["--double", "1e300"], "double", "1e+300"),
    Case(["--double", "5e-324"], "double", "5e-324"),
    Case(["--double", "nan"], "double", "nan"),
    Case(["--double", "-inf"], "double", "-inf"),
    // Truth.
    Case(["--bool", "true"], "bool", "true"),
    Case(["--bool", "YES"], "bool", "true"),
    Case(["--bool", "On"], "bool", "true"),
    Case(["--bool", "1"], "bool", "true"),
    Case(["--bool", "False"], "bool", "false"),
    Case(["--bool", "no"], "bool", "false"),
    Case(["--bool", "off"], "bool", "false"),
    Case(["--bool", "0"], "bool", "false"),
    // Dates.
    Case(["--date", "2026-01-31T08:30:00Z"], "date", "2026-01-31T08:30:00.000Z"),
    Case(["--date", "2026-01-31T08:30:00.1234+02:00"], "date", "2026-01-31T06:30:00.1234Z"),
    Case(["--date", "1969-12-31 23:59:59.999Z"], "date", "1969-12-31T23:59:59.999Z"),
    Case(["--date", "2024-02-29"], "date", "2024-02-29T00:00:00.000Z"),
    // Data.
    Case(["--data", "AAEC/w=="], "data", "\u{0}\u{1}\u{2}\u{FFFD}"),
    Case(["--data", ""], "data", ""),
    Case(["--hex", "68 69"], "data", "hi"),
    // URLs and UUIDs.
    Case(["--url", "https://example.org/a%20b?c=d#e"], "url", "https://example.org/a%20b?c=d#e"),
    Case(["--url", "../relative"], "url", "../relative"),
    Case(
      ["--uuid", "6f9619ff-8b86-d011-b42d-00c04fc964ff"], "uuid", "6F9619FF-8B86-D011-B42D-00C04FC964FF"),
    // Arrays and dictionaries.
    Case(["[]"], "array", "[]"),
    Case(["{}"], "dict", "{}"),
    Case(["[1, 1.0, true, \"x\", null]"], "array", "[1,1.0,true,\"x\",null]"),
    Case(["{\"b\": [0, false], \"a\": 9007199254740993}"], "dict", "{\"a\":9007199254740993,\"b\":[0,false]}"),
    Case(["\"quoted\\u00e9\""], "string", "quotedé"),
    Case(["(a, \"b c\")"], "array", "[\"a\",\"b c\"]"),
    Case(["{ name = x; list = (1, 2); }"], "dict", "{\"list\":[\"1\",\"2\"],\"name\":\"x\"}"),
    Case(["--array", "[1]"], "array", "[1]"),
    Case(["--array", "(hello)"], "array", "[\"hello\"]"),
    Case(["--dict", "{\"a\":{}}"], "dict", "{\"a\":{}}"),
    Case(["--type", "json", "{\"b\":1,\"a\":\"\\/\"}"], "json", "{\"a\":\"/\",\"b\":1}"),
    Case(
      ["--type", "plist", "<plist><array><real>1</real><integer>1</integer><true/></array></plist>"], "array",
      "[1.0,1,true]"),
    Case(["<plist><string>text</string></plist>"], "string", "text"),
  ]

  @Test("Each type keeps its kind and prints as its text")
  func roundTrip() throws {
    // One home for all: most of the time goes into starting processes.
    let tool = try Tool()
    for (index, example) in Self.cases.enumerated() {
      let set = try tool.run(["set", "key\(index)"] + example.arguments, input: "".utf8)
      #expect(set.code == 0 && set.text == "", "\(example.arguments): \(set.message)")
    }
    var types: [Substring: Substring] = [:]
    for line in try tool.succeed("list", "-l", "--plain").split(separator: "\n") {
      let fields = line.split(separator: "\t")
      types[fields[0]] = fields[1]
    }
    for (index, example) in Self.cases.enumerated() {
      #expect(types["key\(index)"] == Substring(example.type), "\(example.arguments)")
      let newline = example.type == "data" ? "" : "\n"
      #expect(try tool.succeed("get", "key\(index)") == example.text + newline, "\(example.arguments)")
    }
  }

  @Test("The output of get for a double can be set again")
  func doublesReadBack() throws {
    let tool = try Tool()
    for text in ["0.30000000000000004", "1e+16", "1.2345678901234568e+17", "2.2250738585072014e-308"] {
      try tool.succeed("set", "x", "--double", text)
      #expect(try tool.succeed("get", "x") == text + "\n")
    }
  }

  @Test("Standard input is kept byte for byte", arguments: ["", "\n", "text", "text\n", "text\r\n\n", "a\u{0}b\n"])
  func standardInput(_ input: String) throws {
    let tool = try Tool()
    try tool.succeed("set", "text", "-", input: input)
    #expect(try tool.succeed("get", "text", "--no-newline") == input)
    try tool.succeed("set", "bytes", "--data", "-", input: input)
    #expect(try tool.succeed("get", "bytes") == input)
  }

  @Test("--strip-newline drops one newline at the end and nothing else")
  func stripNewline() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "-", "--strip-newline", input: "line\n\n")
    #expect(try tool.succeed("get", "x") == "line\n\n")
    try tool.succeed("set", "x", "--value-file", try tool.write("f", "no newline".utf8), "--strip-newline")
    #expect(try tool.succeed("get", "x") == "no newline\n")
  }

  @Test("Numbers and words in a file may be surrounded by white space")
  func whiteSpace() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "--int", "-", input: " 12\n")
    #expect(try tool.succeed("get", "x") == "12\n")
    try tool.succeed("set", "x", "--bool", "-", input: "yes\n")
    #expect(try tool.succeed("get", "x") == "true\n")
    try tool.succeed("set", "x", "--base64", "-", input: "aGVs\nbG8=\n")
    #expect(try tool.succeed("get", "x") == "hello")
  }

  @Test("All bytes survive as data, through files and as text")
  func allBytes() throws {
    let tool = try Tool()
    let bytes = (0...255).map(UInt8.init)
    try tool.succeed("set", "x", "--data", "--value-file", try tool.write("all", bytes))
    #expect(try tool.run("get", "x").output == bytes)
    #expect(try tool.succeed("get", "x", "--hex").hasPrefix("000102"))
    try tool.succeed("set", "y", "--base64", try tool.succeed("get", "x", "--base64"))
    try tool.succeed("get", "y", "-o", tool.path("copy"))
    #expect(try tool.contents(tool.path("copy")) == bytes)
    #expect(try tool.mode(tool.path("copy")) == 0o600)
  }

  @Test("A value of a megabyte survives")
  func megabyte() throws {
    let tool = try Tool()
    let text = String(repeating: "0123456789abcdé\n", count: 1 << 16)
    try tool.succeed("set", "x", "-", input: text)
    #expect(try tool.succeed("get", "x", "-n") == text)
  }

  @Test("Keys and collections may be any text")
  func names() throws {
    let tool = try Tool()
    let names = [
      "a.b", "a b", "", "line\nbreak", "ключ", "🗝️", "\u{1b}[31m", "-dash", "-5", "e\u{301}", "%s", "'\"\\",
    ]
    for name in names {
      try tool.succeed("set", "-c", name, "--", name + "/" + name, name)
      let key = name.isEmpty ? "no name" : name
      try tool.succeed("set", "-c", name, "--", key, "x")
      #expect(try tool.succeed("get", "-c", name, "--", name + "/" + name) == name + "\n")
      #expect(
        try tool.succeed("list", "-0", "-c", name).split(separator: "\0").map(String.init).sorted()
          == [key, "\(name)/\(name)"].sorted())
    }
    let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    #expect(try tool.succeed("collections", "-0") == sorted.map { $0 + "\0" }.joined())
    #expect(try tool.succeed("list", "-c", "line\nbreak", "--plain") == "line\\nbreak\nline\\nbreak/line\\nbreak\n")
  }

  @Test("A key splits at its first slash, and not at all with -c")
  func slashes() throws {
    let tool = try Tool()
    try tool.succeed("set", "a/b/c", "x")
    #expect(try tool.succeed("get", "-c", "a", "b/c") == "x\n")
    #expect(try tool.run("get", "-c", "", "a/b/c").code == 3)
    try tool.succeed("set", "-c", "", "a/b/c", "y")
    #expect(try tool.succeed("get", "-c", "", "a/b/c") == "y\n")
    #expect(try tool.succeed("get", "a/b/c") == "x\n")
    #expect(try tool.succeed("get", "/b", "--default", "none") == "none\n")
  }

  @Test("Composed and decomposed letters are two keys")
  func normalization() throws {
    let tool = try Tool()
    try tool.succeed("set", "caf\u{e9}", "composed")
    try tool.succeed("set", "cafe\u{301}", "decomposed")
    #expect(try tool.succeed("get", "caf\u{e9}") == "composed\n")
    #expect(try tool.succeed("get", "cafe\u{301}") == "decomposed\n")
  }
}
