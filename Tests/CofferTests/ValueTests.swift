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

  @Test("1.5 read back equal, whatever their type")
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

  @Test("describe themselves, so that a tool can show what any program stored")
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

  @Test("have one form: equal values have equal bytes, and an integer is never stored as two kinds")
  func canonical() throws {
    let one = Dictionary(uniqueKeysWithValues: (0..<100).map { ("key \($0)", $0) })
    let other = Dictionary(uniqueKeysWithValues: (0..<100).reversed().map { ("key \($0)", $0) })
    #expect(try ValueCoder.encode(one) == ValueCoder.encode(other))
    #expect(try Value.uint64(5).stored == Value.int(5).stored)
  }

  @Test("read as exactly their type: an integer fits other integers and Double where nothing is lost, no more")
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

  @Test("made by hand as a list or dictionary read as a Codable type, and JSON as a list")
  func acrossForms() throws {
    let byHand = ["x": 1, "y": 2, "label": "p"] as Value
    #expect(try ValueCoder.decode(byHand.stored, as: Point.self) == Point(x: 1, y: 2, label: "p"))
    #expect(try ValueCoder.decode(Value.json("[1,2]").stored, as: [Int].self) == [1, 2])
    #expect(try ValueCoder.decode(Value.json("[1,2]").stored, as: Value.self) == .json("[1,2]"))
  }

  @Test("that nest too deep are refused when they are set")
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
