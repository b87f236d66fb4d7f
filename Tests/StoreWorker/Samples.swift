import Coffer
import Foundation

/// One value of every type of `semantics` 1.5, by a key that says what it is.
enum Samples {
  struct Server: Codable, Equatable {
    var host: String
    var ports: [Int]
    var ratio: Double
    var note: String?
    var since: Date
  }

  enum Theme: String, Codable {
    case light, dark
  }

  /// How a sample is set, and how it is checked.
  private struct Sample: Sendable {
    let key: String
    let set: @Sendable (ConnectionProxy) throws -> Void
    let isRight: @Sendable (ConnectionProxy) throws -> Bool
  }

  private static func sample<T: Codable & Sendable>(
    _ key: String, _ value: T, _ isEqual: @escaping @Sendable (T, T) -> Bool
  ) -> Sample {
    Sample(key: key) { proxy in
      try proxy.setObject(value, forKey: key, inCollection: "samples")
    } isRight: { proxy in
      guard let found: T = try proxy.object(forKey: key, inCollection: "samples") else { return false }
      return isEqual(value, found)
    }
  }

  private static func sample<T: Codable & Sendable & Equatable>(_ key: String, _ value: T) -> Sample {
    sample(key, value) { $0 == $1 }
  }

  private static func bits(_ key: String, _ value: Double) -> Sample {
    sample(key, value) { $0.bitPattern == $1.bitPattern }
  }

  private static let all: [Sample] = [
    sample("string", "dark"), sample("string.empty", ""), sample("string.nul", "a\0b"),
    sample("string.unicode", "caf\u{65}\u{301} 🗝"),
    sample("int", 42), sample("int.min", Int.min), sample("int.max", Int.max), sample("uint64.max", UInt64.max),
    sample("int8", Int8(-128)), sample("bool.true", true), sample("bool.false", false),
    bits("double", 12.34), bits("double.whole", 1.0), bits("double.nan", .nan), bits("double.infinity", .infinity),
    bits("double.negativeInfinity", -.infinity), bits("double.negativeZero", -0.0),
    bits("double.least", .leastNonzeroMagnitude), sample("float", Float(0.1)),
    sample("data", Data([0, 1, 2, 255])), sample("data.empty", Data()),
    sample("date", Date(timeIntervalSinceReferenceDate: 812_345_678.901_234_5)), sample("date.past", Date.distantPast),
    sample("url", URL(string: "https://example.org/a?b=c#d")!), sample("url.file", URL(fileURLWithPath: "/tmp/x y")),
    sample("url.relative", URL(string: "b/c", relativeTo: URL(string: "https://example.org/a/")!)!),
    sample("uuid", UUID(uuidString: "6BA7B810-9DAD-11D1-80B4-00C04FD430C8")!),
    sample("array.strings", ["b", "a", ""]), sample("array.empty", [Int]()), sample("array.nested", [[1, 2], []]),
    sample("array.optional", [1, nil, 3]), sample("array.dates", [Date(timeIntervalSince1970: 0.5)]),
    sample("dict.ints", ["one": 1, "two": 2]), sample("dict.nested", ["a": ["b": Data([7])]]),
    sample("codable", Server(host: "h", ports: [1, 65535], ratio: -0.0, note: nil, since: .distantFuture)),
    sample("codable.array", [Server(host: "é", ports: [], ratio: .infinity, note: "n", since: .distantPast)]),
    sample("codable.enum", Theme.dark),
    sample(
      "value",
      ["mixed": [1, 2.5, true, "x", .null, .uuid(UUID(uuidString: "6BA7B810-9DAD-11D1-80B4-00C04FD430C8")!)]] as Value),
  ]

  static func set(through proxy: ConnectionProxy) throws {
    for sample in all { try sample.set(proxy) }
  }

  static func problems(in proxy: ConnectionProxy) throws -> [String] {
    try all.compactMap { try $0.isRight(proxy) ? nil : "\($0.key) is not what was set" }
  }
}
