import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Values") struct ValueTests {
  private struct Point: Codable, Equatable {
    var x: Double
    var y: UInt64
    var label: String?
  }

  private enum Level: Int, Codable {
    case low = 1
    case high = 9
  }

  private func roundTrip<T: Codable>(_ value: T) throws -> T {
    try ValueCoder.decode(ValueCoder.encode(value), as: T.self)
  }

  @Test("1.5 read back equal, of every type")
  func everyType() throws {
    for text in ["", "plain", "a\0b", "e\u{301}", String(repeating: "x", count: 100_000)] {
      #expect(try Array(roundTrip(text).utf8) == Array(text.utf8))
    }
    for number in [Int.min, -1, 0, 1, Int.max] { #expect(try roundTrip(number) == number) }
    for number in [0, UInt64(Int64.max), UInt64.max] { #expect(try roundTrip(number) == number) }
    for number in [0.0, -0.0, 1.5, .infinity, -.infinity, .nan, .greatestFiniteMagnitude, .leastNonzeroMagnitude] {
      #expect(try roundTrip(number).bitPattern == number.bitPattern)
      #expect(try roundTrip([number])[0].bitPattern == number.bitPattern)
      #expect(try roundTrip(Float(number)).isNaN == number.isNaN)
    }
    #expect(try roundTrip(true))
    #expect(try !roundTrip(false))
    #expect(try roundTrip(Data()) == Data())
    #expect(try roundTrip(Data([0, 255])) == Data([0, 255]))
    #expect(try roundTrip(Date.distantPast) == Date.distantPast)
    let relative = try #require(URL(string: "b", relativeTo: URL(string: "https://example.org/a/")))
    #expect(try roundTrip(relative) == relative)
    #expect(try roundTrip(relative).baseURL == relative.baseURL)
    let uuid = UUID()
    #expect(try roundTrip(uuid) == uuid)
    #expect(try roundTrip([[1, nil], []] as [[Int?]]) == [[1, nil], []])
    #expect(try roundTrip(["a": [Date.distantFuture]]) == ["a": [.distantFuture]])
    #expect(try roundTrip(Point(x: -0.0, y: .max, label: nil)) == Point(x: -0.0, y: .max, label: nil))
    #expect(try roundTrip(Level.high) == .high)
  }

  @Test("that are URLs read back with their base, also an empty text, which a URL made of parts can have")
  func urls() throws {
    let base = try #require(URL(string: "https://example.org/a/"))
    let empty = try #require(URLComponents().url)
    #expect(empty.relativeString.isEmpty)
    let urls = [
      (URL(string: "b", relativeTo: base), "b\0https://example.org/a/"),
      (URL(string: "b/c"), "b/c"),
      // A relative base, and one that has a base itself.
      (URL(string: "c", relativeTo: URL(string: "a/b/")), "c\0a/b/"),
      (URL(string: "c", relativeTo: URL(string: "b/", relativeTo: base)), "c\0https://example.org/a/b/"),
      (URL(string: "https://example.org/x", relativeTo: base), "https://example.org/x"),
      (URL(string: "a\0b"), "a%00b"),
      (URL(string: "é"), "%C3%A9"),
      (empty, ""), (URLComponents().url(relativeTo: base), "\0https://example.org/a/"),
      (URL(string: "b", relativeTo: empty), "b\0"),
    ]
    for (url, text) in urls {
      let url = try #require(url)
      #expect(try ValueCoder.encode(url) == StoredValue(kind: .url, bytes: Array(text.utf8)))
      let read = try roundTrip(url)
      #expect(read.relativeString == url.relativeString && read.absoluteString == url.absoluteString)
      #expect(read.baseURL?.absoluteString == url.baseURL?.absoluteString)
    }
    for text in ["a\0b\0c", "a\0b\0", "http://[::1", "a\0http://[::1"] {
      #expect(throws: ValueCodingError.self) { try Value(StoredValue(kind: .url, bytes: Array(text.utf8))) }
    }
    #expect(throws: ValueCodingError.self) { try Value(StoredValue(kind: .url, bytes: [0x61, 0xff])) }
  }

  private struct Held<T: Encodable>: Encodable {
    var v: T
  }

  @Test("of Codable types are the JSON of FORMAT.md")
  func json() throws {
    func check(_ value: some Encodable, _ expected: String) throws {
      #expect(try Value(ValueCoder.encode(Held(v: value))) == .json("{\"v\":\(expected)}"))
    }
    let doubles: [(Double, String)] = [
      (0, "0"), (-0.0, "-0"), (1, "1"), (-1.5, "-1.5"), (0.1, "0.1"), (1e15, "1000000000000000"), (1e16, "1e+16"),
      (9_007_199_254_740_991, "9007199254740991"), (1.5e300, "1.5e+300"), (0.0001, "0.0001"), (1e-5, "1e-05"),
      (.leastNonzeroMagnitude, "5e-324"), (.infinity, "\"inf\""), (-.infinity, "\"-inf\""), (.nan, "\"nan\""),
    ]
    for (double, text) in doubles { try check(double, text) }
    try check(Float(0.1), "0.1")
    try check(UInt64.max, "18446744073709551615")
    try check(Int64.min, "-9223372036854775808")
    try check(Date(timeIntervalSinceReferenceDate: 812_345_678.25), "812345678.25")
    try check(Date(timeIntervalSinceReferenceDate: -0.0), "-0")
    try check(Data([0, 1, 255, 254]), "\"AAH//g==\"")
    try check(try #require(URL(string: "b", relativeTo: URL(string: "https://e.org/a/"))), "\"https://e.org/a/b\"")
    try check(
      try #require(UUID(uuidString: "6ba7b810-9dad-11d1-80b4-00c04fd430c8")), "\"6BA7B810-9DAD-11D1-80B4-00C04FD430C8\""
    )
    try check("a/b \"\\ \u{8}\u{c}\n\r\t \0\u{1f}", #""a/b \"\\ \b\f\n\r\t \u0000\u001f""#)
    for text in ["\u{7f}\u{80}", "\u{2028}", "é", "e\u{301}", "🗝"] { try check(text, "\"\(text)\"") }
    try check(["b": 1, "a": 2, "B": 3, "": 4, "10": 5, "9": 6], #"{"":4,"10":5,"9":6,"B":3,"a":2,"b":1}"#)
    try check([Int?.none], "[null]")
    #expect(try Value(ValueCoder.encode(Held(v: Int?.none))) == .json("{\"v\":null}"))
  }

  @Test("set as JSON are stored unchanged, and invalid JSON stored by another program can be read")
  func jsonAsGiven() throws {
    let text = #"{ "b" : 1, "a":1.0 }"#
    #expect(try Value(Value.json(text).stored) == .json(text))
    #expect(try Value.json(text).stored.bytes.withUnsafeBytes(Array.init) == Array(text.utf8))
    for other in ["{", #"{"a":1,"a":2}"#, ""] {
      let bytes = Array(other.utf8).withUnsafeBytes { StoredBytes(copying: $0, isSecret: false) }
      #expect(try Value(StoredValue(kind: .json, bytes: bytes)) == .json(other))
      #expect(throws: ValueCodingError.self) { try Value.json(other).stored }
    }
  }

  @Test("describe themselves, so that a tool can show values of any program")
  func selfDescribing() throws {
    func kind(_ value: some Encodable) throws -> Value.Kind { try ValueCoder.encode(value).kind }
    #expect(try kind(UInt8(3)) == .int)
    #expect(try kind(UInt64.max) == .uint64)
    #expect(try kind(true) == .bool)
    #expect(try kind(Float(1)) == .double)
    #expect(try kind(["a"]) == .array)
    #expect(try kind(["a": 1]) == .dictionary)
    #expect(try kind(Level.low) == .int)
    #expect(try kind(Point(x: 1, y: 2)) == .json)
    #expect(try Value(ValueCoder.encode(Point(x: 1, y: 2))) == .json(#"{"x":1,"y":2}"#))
  }

  @Test("have one form: equal values have equal bytes, and equal integers one kind")
  func canonical() throws {
    let one = Dictionary(uniqueKeysWithValues: (0..<100).map { ("key \($0)", $0) })
    let other = Dictionary(uniqueKeysWithValues: (0..<100).reversed().map { ("key \($0)", $0) })
    #expect(try ValueCoder.encode(one) == ValueCoder.encode(other))
    #expect(try Value.uint64(5).stored == Value.int(5).stored)
  }

  @Test("read as exactly their type: an integer also as other integers and Double if nothing is lost")
  func exactTypes() throws {
    func read<T: Codable>(_ value: some Encodable, as type: T.Type) throws -> T {
      try ValueCoder.decode(ValueCoder.encode(value), as: type)
    }
    #expect(try read(200, as: UInt8.self) == 200)
    #expect(try read(3, as: Double.self) == 3)
    #expect(throws: ValueCodingError.self) { try read(300, as: UInt8.self) }
    #expect(throws: ValueCodingError.self) { try read(-1, as: UInt64.self) }
    #expect(throws: ValueCodingError.self) { try read(Int.max, as: Double.self) }
    #expect(throws: ValueCodingError.self) { try read(1.0, as: Int.self) }
    #expect(throws: ValueCodingError.self) { try read(true, as: Int.self) }
    #expect(throws: ValueCodingError.self) { try read(1, as: Bool.self) }
    #expect(throws: ValueCodingError.self) { try read("1", as: Int.self) }
    // Nor as nil, to an optional type.
    #expect(throws: ValueCodingError.self) { try read("1", as: Int?.self) }
    #expect(try read(1, as: Int?.self) == .some(1))
    #expect(throws: ValueCodingError.self) { try read([1, 2], as: [String].self) }
    #expect(throws: ValueCodingError.self) { try read(7, as: Level.self) }
  }

  @Test("built as a list or dictionary read as a Codable type, and JSON as a list")
  func acrossForms() throws {
    let byHand = ["x": 1, "y": 2, "label": "p"] as Value
    #expect(try ValueCoder.decode(byHand.stored, as: Point.self) == Point(x: 1, y: 2, label: "p"))
    #expect(try ValueCoder.decode(Value.json("[1,2]").stored, as: [Int].self) == [1, 2])
    #expect(try ValueCoder.decode(Value.json("[1,2]").stored, as: Value.self) == .json("[1,2]"))
  }

  @Test("nested too deeply are refused when set")
  func depth() throws {
    var value = Value.int(1)
    for _ in 0..<Value.maximumDepth { value = .array([value]) }
    let stored = try value.stored
    #expect(try Value(stored) == value)
    #expect(throws: ValueCodingError.self) { try Value.array([value]).stored }
    #expect(throws: ValueCodingError.self) { try Value.null.stored }
  }

  @Test("from malformed bytes are an error, never a crash")
  func malformed() throws {
    let samples: [Value] = [
      "text", 1, 2.5, true, .uuid(UUID()), .date(.now), ["a": [1, "x", .null]], .url(URL(fileURLWithPath: "/x")),
    ]
    var generator = SplitMix64(state: 7)
    for sample in samples {
      let stored = try sample.stored
      let original = stored.bytes.withUnsafeBytes(Array.init)
      for kind in Value.Kind.allCases {
        _ = try? Value(StoredValue(kind: kind, bytes: original))
        for cut in original.indices {
          _ = try? Value(StoredValue(kind: kind, bytes: Array(original[..<cut])))
        }
      }
      for _ in 0..<2000 {
        var bytes = original
        bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
        _ = try? Value(StoredValue(kind: stored.kind, bytes: bytes))
      }
    }
    #expect(throws: ValueCodingError.self) { try Value(StoredValue(kind: .int, bytes: [1])) }
    #expect(throws: ValueCodingError.self) { try Value(StoredValue(kind: .string, bytes: [0xff])) }
    #expect(throws: ValueCodingError.self) { try Value(StoredValue(kind: .array, bytes: [5, 200, 1])) }
  }
}
