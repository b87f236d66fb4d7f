import Foundation
import TestSupport
import Testing

@testable import Coffer

/// What each getter answers for a stored value.
struct Coercion: Sendable, CustomStringConvertible {
  let value: Value?
  var string: String?
  var bool = false
  var integer = 0
  var double = 0.0
  var float: Float
  var url: URL?
  /// Whether Foundation's UserDefaults takes such a value.
  var isPropertyList = true

  init(
    _ value: Value?, _ string: String? = nil, _ bool: Bool = false, _ integer: Int = 0, _ double: Double = 0,
    float: Float? = nil, url: URL? = nil, isPropertyList: Bool = true
  ) {
    self.value = value
    self.string = string
    self.bool = bool
    self.integer = integer
    self.double = double
    self.float = float ?? Float(double)
    self.url = url
    self.isPropertyList = isPropertyList
  }

  /// A text: as itself, and as the path it is.
  static func text(_ text: String, _ bool: Bool, _ integer: Int, _ double: Double, float: Float? = nil) -> Coercion {
    Coercion(.string(text), text, bool, integer, double, float: float, url: URL(filePath: text))
  }

  /// A number that was set as a `Float`.
  static func float(_ number: Float, _ string: String, _ integer: Int) -> Coercion {
    Coercion(.double(Double(number)), string, true, integer, Double(number), float: number)
  }

  var description: String { value.map { "\($0)" } ?? "nothing" }

  /// What every getter answers, by its name; text, so that NaN is equal to itself.
  var answers: [String: String] {
    var answers = [
      "string": string.debugDescription, "bool": "\(bool)", "integer": "\(integer)", "double": "\(double)",
      "float": "\(float)", "url": Self.text(url), "data": "nil", "array": "nil", "dictionary": "nil",
      "stringArray": "nil",
    ]
    switch value {
    case .data(let data): answers["data"] = Self.text(data)
    case .array(let elements):
      answers["array"] = "\(elements.count) elements"
      let texts = elements.compactMap { if case .string(let text) = $0 { text } else { nil } }
      if texts.count == elements.count { answers["stringArray"] = "\(texts)" }
    case .dictionary(let members): answers["dictionary"] = "\(members.keys.sorted())"
    default: break
    }
    return answers
  }

  static func text(_ url: URL?) -> String { url?.absoluteString ?? "nil" }
  static func text(_ data: Data?) -> String { data.map { "\(Array($0))" } ?? "nil" }

  private static let url = URL(string: "https://example.org/a?b=c#d")!
  private static let fileURL = URL(filePath: "/tmp/x y")

  /// Semantics 6.1 to 6.7, value by value.
  static let all: [Coercion] = [
    Coercion(nil),
    // Truth values and numbers.
    Coercion(.bool(true), "1", true, 1, 1), Coercion(.bool(false), "0", false, 0, 0),
    Coercion(.int(42), "42", true, 42, 42), Coercion(.int(1), "1", true, 1, 1), Coercion(.int(0), "0", false, 0, 0),
    Coercion(.int(-7), "-7", true, -7, -7),
    Coercion(.int(.max), "9223372036854775807", true, .max, 9.223372036854776e18),
    Coercion(.int(.min), "-9223372036854775808", true, .min, -9.223372036854776e18),
    // Half way between two floats, and a little more, which a double forgets.
    Coercion(
      .int(0x4000_0040_0000_0001), "4611686293305294849", true, 0x4000_0040_0000_0001, 0x1.000001p62,
      float: 0x1.000002p62),
    Coercion(.uint64(.max), "18446744073709551615", true, .max, 1.8446744073709552e19, isPropertyList: false),
    Coercion(.double(12.34), "12.34", true, 12, 12.34), Coercion(.double(1), "1.0", true, 1, 1),
    Coercion(.double(0), "0.0", false, 0, 0), Coercion(.double(-0.0), "-0.0", false, 0, -0.0),
    Coercion(.double(-0.5), "-0.5", true, 0, -0.5), Coercion(.double(-1.9), "-1.9", true, -1, -1.9),
    Coercion(.double(1e300), "1e+300", true, .max, 1e300, float: .infinity),
    Coercion(.double(-1e300), "-1e+300", true, .min, -1e300, float: -.infinity),
    Coercion(.double(0x1p63), "9.223372036854776e+18", true, .max, 0x1p63),
    Coercion(.double(-0x1p63), "-9.223372036854776e+18", true, .min, -0x1p63),
    Coercion(.double(.leastNonzeroMagnitude), "5e-324", true, 0, .leastNonzeroMagnitude, float: 0),
    Coercion(.double(.infinity), "inf", true, .max, .infinity),
    Coercion(.double(-.infinity), "-inf", true, .min, -.infinity),
    Coercion(.double(.nan), "nan", true, 0, .nan),
    // Text as truth values.
    text("YES", true, 0, 0), text("yes", true, 0, 0), text("Y", true, 0, 0), text("true", true, 0, 0),
    text("True", true, 0, 0), text("tail", true, 0, 0), text("1", true, 1, 1), text("+1", true, 1, 1),
    text("-1", true, -1, -1), text("00001", true, 1, 1), text("12.9", true, 12, 12.9), text(" \t\n 5", true, 5, 5),
    text("0Y", true, 0, 0), text("NO", false, 0, 0), text("no", false, 0, 0), text("false", false, 0, 0),
    text("0", false, 0, 0), text("", false, 0, 0), text(" ", false, 0, 0), text("abc", false, 0, 0),
    text("on", false, 0, 0), text("0.5", false, 0, 0.5), text("0x1F", false, 0, 0), text("-", false, 0, 0),
    text("--1", false, 0, 0), text("+-1", false, 0, 0), text("\u{661}", false, 0, 0),
    // Text as numbers.
    text("1234abc", true, 1234, 1234), text("1e3", true, 1, 1000), text("1E3", true, 1, 1000),
    text("1e+3x", true, 1, 1000), text("25e-1", true, 25, 2.5), text("1e", true, 1, 1), text("1e+", true, 1, 1),
    text(".5", false, 0, 0.5), text("-.5", false, 0, -0.5), text("5.", true, 5, 5), text(".", false, 0, 0),
    text(".e5", false, 0, 0), text("1.2.3", true, 1, 1.2), text("1,000", true, 1, 1), text("1_000", true, 1, 1),
    text("nan", false, 0, 0), text("inf", false, 0, 0), text("infinity", false, 0, 0), text("-0", false, 0, -0.0),
    text("9223372036854775807", true, .max, 9.223372036854776e18),
    text("9223372036854775808", true, .max, 9.223372036854776e18),
    text("-9223372036854775808", true, .min, -9.223372036854776e18),
    text("-9223372036854775809x", true, .min, -9.223372036854776e18),
    text("1" + String(repeating: "0", count: 400), true, .max, .infinity),
    text("1e999", true, 1, .infinity), text("-1e99999999999999999999", true, -1, -.infinity),
    text("1e39", true, 1, 1e39, float: .infinity), text("1e-99999999999999999999", true, 1, 0),
    // Text as paths.
    text("/tmp/a b", false, 0, 0), text("~/notes.txt", false, 0, 0), text("~", false, 0, 0),
    text("relative/path", false, 0, 0), text("https://example.org/", false, 0, 0),
    // All else is only itself.
    Coercion(.data(Data([1, 2]))), Coercion(.data(Data())), Coercion(.date(Date(timeIntervalSinceReferenceDate: 0.5))),
    Coercion(.array([])), Coercion(.array(["a", "b"])), Coercion(.array(["a", 1])), Coercion(.array([[1], ["a": 2]])),
    Coercion(.dictionary([:])), Coercion(.dictionary(["a": 1, "b": ["c": "d"]])),
    Coercion(.url(url), url: url, isPropertyList: false), Coercion(.url(fileURL), url: fileURL, isPropertyList: false),
    Coercion(
      .url(URL(string: "mailto:a@example.org")!), url: URL(string: "mailto:a@example.org")!, isPropertyList: false),
    Coercion(.uuid(UUID(uuidString: "6BA7B810-9DAD-11D1-80B4-00C04FD430C8")!), isPropertyList: false),
    Coercion(.array([.null]), isPropertyList: false),
    Coercion(.json(#"{"a":1}"#), isPropertyList: false), Coercion(.json("[1]"), isPropertyList: false),
    // Floats, which are stored as doubles: as short as they were set.
    float(12.34, "12.34", 12), float(-0.1, "-0.1", 0), float(1e20, "1e+20", .max), float(1e-30, "1e-30", 0),
    float(1 / 3, "0.33333334", 0), float(1.5, "1.5", 1), float(16_777_216, "16777216.0", 16_777_216),
    // A whole one has the text of the Double that it equals, as UserDefaults has it on Linux once it has read its file again.
    float(1e10, "10000000000.0", 10_000_000_000), float(1.969e10, "19690000384.0", 19_690_000_384),
    Coercion(.double(1e10), "10000000000.0", true, 10_000_000_000, 1e10),
    // Doubles that a Float could hold, too, are whole.
    Coercion(.double(1_234_567.875), "1234567.875", true, 1_234_567, 1_234_567.875),
    Coercion(.double(20_000_000), "20000000.0", true, 20_000_000, 20_000_000),
    Coercion(.double(.ulpOfOne), "2.220446049250313e-16", true, 0, .ulpOfOne),
    Coercion(.double(0x1p60), "1.152921504606847e+18", true, 1 << 60, 0x1p60),
    Coercion(.double(0.1), "0.1", true, 0, 0.1), Coercion(.double(1 / 3), "0.3333333333333333", true, 0, 1 / 3),
    // A Codable type that is one number, such as Decimal, or one text.
    Coercion(.json("12.5"), "12.5", true, 12, 12.5, isPropertyList: false),
    Coercion(.json(#""7 days""#), "7 days", true, 7, 7, isPropertyList: false),
  ]
}

@Suite("The getters of UserDefaults") struct PreferencesCoercionTests {
  /// One for all rows: each has keys of its own.
  private static let shared = Result { try Preferences.inMemory() }

  @Test("6.1-6.7 convert every stored value as the table says", arguments: Coercion.all)
  func table(_ row: Coercion) throws {
    let preferences = try Self.shared.get()
    let (key, other) = (UUID().uuidString, UUID().uuidString)
    try preferences.set(row.value, forKey: key)
    #expect(answers(preferences, key) == row.answers)
    try preferences.flushAndWait()
    #expect(answers(preferences, key) == row.answers)
    #expect(preferences.value(forKey: key)?.kind == row.value?.kind)
    #expect(try preferences.throwing.value(forKey: key)?.kind == row.value?.kind)
    // A registered default is a value like any other.
    if let value = row.value { try preferences.register(defaults: [other: value]) }
    #expect(answers(preferences, other) == row.answers)
  }

  private func answers(_ preferences: Preferences, _ key: String) -> [String: String] {
    [
      "string": preferences.string(forKey: key).debugDescription, "bool": "\(preferences.bool(forKey: key))",
      "integer": "\(preferences.integer(forKey: key))", "double": "\(preferences.double(forKey: key))",
      "float": "\(preferences.float(forKey: key))", "url": Coercion.text(preferences.url(forKey: key)),
      "data": Coercion.text(preferences.data(forKey: key)),
      "array": preferences.array(forKey: key).map { "\($0.count) elements" } ?? "nil",
      "dictionary": preferences.dictionary(forKey: key).map { "\($0.keys.sorted())" } ?? "nil",
      "stringArray": preferences.stringArray(forKey: key).map { "\($0)" } ?? "nil",
    ]
  }

  @Test("6.6 read text as a path with the home folder expanded, and keep a URL unchanged")
  func urls() throws {
    let preferences = try Preferences.inMemory()
    try preferences.set("~/notes.txt", forKey: "path")
    #expect(preferences.url(forKey: "path")?.path == NSHomeDirectory() + "/notes.txt")
    #expect(preferences.url(forKey: "path")?.isFileURL == true)
    let relative = try #require(URL(string: "b/c", relativeTo: URL(string: "https://example.org/a/")))
    try preferences.set(relative, forKey: "relative")
    #expect(preferences.url(forKey: "relative") == relative)
    #expect(preferences.url(forKey: "relative")?.absoluteString == "https://example.org/a/b/c")
    for path in ["", "a\0b", "%", "//", "[", "~nobody-of-this-name/x", String(repeating: "x/", count: 10_000)] {
      try preferences.set(path, forKey: "path")
      #expect(preferences.url(forKey: "path")?.isFileURL == true)
    }
  }

  @Test("6.7 return the elements of lists and dictionaries as plain objects")
  func elements() throws {
    let preferences = try Preferences.inMemory()
    try preferences.set([1, 2, 3], forKey: "numbers")
    #expect(preferences.array(forKey: "numbers") as? [Int] == [1, 2, 3])
    #expect(preferences.object(forKey: "numbers") as? [Int] == [1, 2, 3])
    try preferences.set([1, nil], forKey: "gaps")
    #expect(preferences.array(forKey: "gaps") as? [Int?] == [1, nil])
    let mixed: [String: Any] = ["name": "x", "sizes": [1, 2.5] as [Any], "on": true, "inner": ["data": Data([7])]]
    try preferences.set(mixed, forKey: "mixed")
    let found = try #require(preferences.dictionary(forKey: "mixed"))
    #expect(found["name"] as? String == "x")
    #expect((found["sizes"] as? [Any])?.map { "\(type(of: $0))" } == ["Int", "Double"])
    #expect(found["on"] as? Bool == true)
    #expect(found["on"] as? Int == nil)
    #expect((found["inner"] as? [String: Any])?["data"] as? Data == Data([7]))
    #expect(found.count == 4)
  }

  // MARK: Beside Foundation

  /// With `COFFER_COMPARE_USERDEFAULTS=1`: prints where Foundation's own answers are other than the table's.
  @Test("document where Foundation differs", .enabled(if: isComparing))
  func foundation() throws {
    let name = "coffer-comparison-\(UUID().uuidString)"
    let defaults = try #require(UserDefaults(suiteName: name))
    defer { defaults.removePersistentDomain(forName: name) }
    for row in Coercion.all where row.isPropertyList {
      defaults.set(row.value?.asObject, forKey: "k")
      let answers = [
        "string": defaults.string(forKey: "k").debugDescription, "bool": "\(defaults.bool(forKey: "k"))",
        "integer": "\(defaults.integer(forKey: "k"))", "double": "\(defaults.double(forKey: "k"))",
        "float": "\(defaults.float(forKey: "k"))",
        // It ends the process where data is no archive.
        "url": row.value?.kind == .data ? "nil" : Coercion.text(defaults.url(forKey: "k")),
        "data": Coercion.text(defaults.data(forKey: "k")),
        "array": defaults.array(forKey: "k").map { "\($0.count) elements" } ?? "nil",
        "dictionary": defaults.dictionary(forKey: "k").map { "\($0.keys.sorted())" } ?? "nil",
        "stringArray": defaults.stringArray(forKey: "k").map { "\($0)" } ?? "nil",
      ]
      for (getter, answer) in answers.sorted(by: { $0.key < $1.key }) where answer != row.answers[getter] {
        print("\(row): \(getter) is \(row.answers[getter] ?? ""), and \(answer) to Foundation")
      }
    }
  }

  private static var isComparing: Bool { ProcessInfo.processInfo.environment["COFFER_COMPARE_USERDEFAULTS"] != nil }

  // MARK: Anything at all

  @Test("6.2-6.7 work for any text and any value, without a trap")
  func anything() throws {
    var generator = SplitMix64(state: 6)
    let pieces = [
      "-", "+", ".", "e", "E", "0", "1", "9", "00000000000000000000", "99999999999999999999", "y", "T", "nan", "inf",
      "0x", " ", "\t", "\n", "\0", "\u{a0}", "\u{2003}", "\u{301}", "é", "🗝", "~", "/", "//", "..", "%", "%2", ":", "?",
      "#",
      "[", "http://", "file:", "\u{FFFD}", "\u{10FFFF}", "_", ",", "1e400", "e-400",
    ]
    func text() -> String {
      (0..<Int.random(in: 0..<9, using: &generator)).map { _ in pieces.randomElement(using: &generator)! }.joined()
    }
    func value(_ depth: Int) -> Value {
      switch Int.random(in: 0..<(depth < 3 ? 13 : 10), using: &generator) {
      case 0: .null
      case 1: .bool(.random(using: &generator))
      case 2: .int(.random(in: .min ... .max, using: &generator))
      case 3: .uint64(.random(in: .min ... .max, using: &generator))
      case 4: .double(Double(bitPattern: .random(in: .min ... .max, using: &generator)))
      case 5: .data(Data(text().utf8))
      case 6: .date(Date(timeIntervalSinceReferenceDate: Double(bitPattern: generator.next())))
      case 7: URL(string: text()).map(Value.url) ?? .null
      case 8: .json(text())
      case 9, 10: .string(text())
      case 11: .array((0..<Int.random(in: 0..<4, using: &generator)).map { _ in value(depth + 1) })
      default: .dictionary(Dictionary([(text(), value(depth + 1)), (text(), value(depth + 1))]) { $1 })
      }
    }
    for _ in 0..<20_000 {
      let value = value(0)
      let (bool, integer, double) = (value.asBool, value.asInteger, value.asDouble)
      _ = (value.asFloat, value.asURL, value.asObject, value.asArray, value.asDictionary, value.asStringArray)
      guard case .string(let text) = value else { continue }
      #expect(value.asString == text)
      #expect(!double.isNaN, "\(text.debugDescription)")
      // Digits that make a number make it true.
      if integer != 0 { #expect(bool, "\(text.debugDescription)") }
    }
  }
}
