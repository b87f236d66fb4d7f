import Coffer
import Testing

@testable import PrefsCommands

@Suite("Reading JSON")
struct JSONReaderTests {
  @Test(
    "Values of all kinds",
    arguments: [
      ("null", Value.null), ("true", .bool(true)), ("false", .bool(false)), (" 0 ", .int(0)), ("-0", .double(-0.0)),
      ("1", .int(1)), ("1.0", .double(1)), ("1e2", .double(100)), ("-9223372036854775808", .int(.min)),
      ("9223372036854775808", .uint64(1 << 63)), ("1.8446744073709551616e19", .double(18446744073709551616)),
      ("\"\"", .string("")), (#""\"\\\/\b\f\n\r\t\u00e9""#, .string("\"\\/\u{8}\u{c}\n\r\té")),
      (#""\ud83d\udd11""#, .string("🔑")), ("\"é🔑\u{7f}\"", .string("é🔑\u{7f}")),
      ("[]", .array([])), ("{}", .dictionary([:])), ("[1,[2]]", .array([.int(1), .array([.int(2)])])),
      ("{\"\":{\"a\":null}}", .dictionary(["": .dictionary(["a": .null])])),
    ])
  func values(_ text: String, _ value: Value) throws {
    let read = try JSONReader.value(text)
    #expect(read == value)
    #expect(read.kind == value.kind)
    #expect(JSONText.text(read, bigIntegers: .numbers) == JSONText.text(value, bigIntegers: .numbers))
  }

  @Test(
    "A text is stored in the canonical form of FORMAT.md",
    arguments: [
      ("{\"b\" : 1, \"a\" :\n[ 1 ,2 ]}", #"{"a":[1,2],"b":1}"#), (#"{"é":1,"z":2,"B":3}"#, #"{"B":3,"z":2,"é":1}"#),
      ("-0", "-0.0"), ("1.0", "1.0"), ("1e2", "100.0"), ("1E+16", "1e+16"), ("1.5e300", "1.5e+300"), ("1e-5", "1e-05"),
      ("18446744073709551615", "18446744073709551615"), ("18446744073709551616.0", "1.8446744073709552e+19"),
      ("[null,true]", "[null,true]"),
      (#""a\/b \u00e9 \ud83d\udddd \"\\""#, #""a/b é 🗝 \"\\""#),
      (#""\b\f\n\r\t\u0001""#, #""\b\f\n\r\t\u0001""#),
      ("\"\u{7f}\u{9f}\u{a0}\u{2028}\u{2029}\"", "\"\\u007f\\u009f\u{a0}\\u2028\\u2029\""),
    ])
  func stored(_ text: String, _ expected: String) throws {
    #expect(try ValueReader(type: .json, encoding: .raw).value(Array(text.utf8)) == .json(expected))
  }

  @Test(
    "Invalid JSON is refused",
    arguments: [
      "", " ", "nul", "truex", "1 2", "01", "-", "+1", "1.", ".5", "1e", "1e999", "0x1", "NaN", "'a'", "\"", "\"\\x\"",
      "\"\n\"", "\"\\ud800\"", "\"\\ud800x\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\\u12\"", "\"\\u+123\"", "[",
      "[1",
      "[1,]", "[,1]", "[1 2]", "]", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{\"a\":1,\"a\":2}", "{\"a\" 1}",
      "// x", "[1]x",
    ])
  func refusals(_ text: String) {
    #expect(throws: JSONReader.Problem.self) { try JSONReader.value(text) }
  }

  @Test("An integer beyond 64 bits is not rounded, except where the text itself is kept")
  func beyond64Bits() throws {
    for text in [
      "18446744073709551616", "[-9223372036854775809]", "{\"a\":1" + String(repeating: "0", count: 400) + "}",
    ] {
      let problem = #expect(throws: JSONReader.Problem.self) { try JSONReader.value(text) }
      #expect(problem?.isNumber ?? false)
      for type in [ValueType.json, .array, .dict] {
        #expect(throws: Failure.self) { try ValueReader(type: type, encoding: .raw).value(Array(text.utf8)) }
      }
    }
    #expect(throws: Failure.self) {
      try ValueReader(type: .auto, encoding: .raw).value(Array("[18446744073709551616]".utf8))
    }
    #expect(try JSONReader.value("18446744073709551616", roundsNumbers: true) == .double(18446744073709551616))
    // As a program's Codable type was encoded: stored as it is, and shown so.
    let stored = Value.json("{\"b\":\n 18446744073709551616}")
    #expect(try Value(stored.stored) == stored)
    #expect(ValueText.text(stored) == "{\"b\": 18446744073709551616}")
  }

  @Test("Nesting is bounded, and exceeding it does not crash")
  func depth() throws {
    let limit = JSONReader.depthLimit
    let deep = String(repeating: "[", count: limit) + String(repeating: "]", count: limit)
    _ = try JSONReader.value(deep)
    #expect(throws: JSONReader.Problem.self) { try JSONReader.value("[" + deep + "]") }
    #expect(throws: JSONReader.Problem.self) { try JSONReader.value(String(repeating: "[", count: 1_000_000)) }
  }
}
