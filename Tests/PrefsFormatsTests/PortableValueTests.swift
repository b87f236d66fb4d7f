import Coffer
import Foundation
import Testing

@testable import PrefsCommands

@Suite("Values in files of other formats")
struct PortableValueTests {
  private static let values: [Value] = [
    true, false, 0, -1, .int(.min), .int(.max), .uint64(.max), .uint64(1 << 63), 0.0, -0.0, 1.0,
    .double(.leastNonzeroMagnitude), 1e16,
    1.7976931348623157e308, 0.1, .double(.infinity), .double(-.infinity), .double(.nan),
    .double(Double(bitPattern: 0x7ff8_0000_0000_0001)), "", " ", "true", "no", "~", "null", "1", "0x10", "1e3", ".inf",
    "2026-01-31", "=", "<<", "- x", "a: b", "#x", "a #b", "it's", "\"", "\\", "\n", "a\nb\n", "\r\n", "\t",
    "\u{7f}\u{85}",
    "\u{2028}\u{feff}\u{fffe}", "é e\u{301} 🔑", "&a *b &c", "$date", "<secret: 7 bytes>", "<sealed>", "'''\"\"\"",
    .data(Data()), .data(Data([0, 255])), .date(Date(timeIntervalSinceReferenceDate: 0)),
    .date(Date(timeIntervalSince1970: 1_769_848_200.25)), .date(Date(timeIntervalSinceReferenceDate: 0.1234567)),
    .date(Date(timeIntervalSinceReferenceDate: 1e13)), .date(.distantPast), .date(.distantFuture),
    .date(Date(timeIntervalSinceReferenceDate: .infinity)), .uuid(UUID()), .json("{\"a\":[1,null,2.0]}"),
    .json("[1, 2]"),
    .json("\"x\""), .json("null"), [], [:], [[], [:], [[]], [["a": []]]], ["": "", "a b": 1, "ü": [.null, true]],
    ["$date": "x"], ["$dict": ["$null": true]], ["$url": 1, "b": 2], [.null, .date(.distantPast), .data(Data([1]))],
    ["x": .uint64(.max), "y": .double(.nan), "z": .array([.double(.infinity), "$secret"])],
    .secret(Secret("hunter2")), .secret(Data([0xff, 0]).withUnsafeBytes(Secret.init(copying:))),
  ]

  private static let urls =
    ["https://example.org/a?b=c#d", "file:///tmp/a%20b", "relative", "mailto:a@example.org"]
    .compactMap { URL(string: $0) }
    + [URL(string: "x", relativeTo: URL(string: "https://example.org/y/"))].compactMap { $0 }

  @Test(
    "round-trip through each of them, bit for bit", arguments: [SettingsFormat.plist, .json, .yaml, .toml])
  func roundTrip(_ format: SettingsFormat) throws {
    for value in Self.values + Self.urls.map(Value.url) {
      let tree = try PortableValue.tree(value, native: format.native)
      try checkComesBack(value, from: format.bytes(["k": tree], isBinary: true), format)
    }
  }

  @Test("round-trip through a property list in XML, if it supports them")
  func xmlRoundTrip() throws {
    for value in Self.values + Self.urls.map(Value.url) {
      let tree = try PortableValue.tree(value, native: SettingsFormat.plist.native)
      guard (try? PropertyListFile.check(tree)) != nil else { continue }
      try checkComesBack(value, from: SettingsFormat.plist.bytes(["k": tree]), .plist)
    }
  }

  private func checkComesBack(_ value: Value, from bytes: [UInt8], _ format: SettingsFormat) throws {
    let text = String(decoding: bytes, as: UTF8.self)
    guard case .dictionary(let members) = try format.value(bytes), let read = members["k"] else {
      Issue.record("\(value.kind) is no setting in \(text)")
      return
    }
    let back = try PortableValue.value(read)
    #expect(Self.identity(back) == Self.identity(value), "\(text)")
  }

  @Test("are numbers for readers of YAML 1.1, too: with a point before the exponent")
  func exponents() throws {
    for (number, text) in [(1e22, "1.0e+22"), (-1e-7, "-1.0e-07"), (1.5e300, "1.5e+300"), (2, "2.0")] {
      let bytes = try SettingsFormat.yaml.bytes(["x": .double(number)])
      #expect(String(decoding: bytes, as: UTF8.self) == "x: \(text)\n")
      #expect(try SettingsFormat.yaml.value(bytes) == ["x": .double(number)])
    }
  }

  @Test("have keys of any form in each of them", arguments: [SettingsFormat.plist, .json, .yaml, .toml])
  func keys(_ format: SettingsFormat) throws {
    let keys =
      ["", "a", "a.b", "true", "1", "<<", "~", "- a", "a: b", "\"", "'", "[x]", "$date", "ü 🔑", "\n", "#", "="]
      + [String(repeating: "long ", count: 300)]
    let tree = Dictionary(uniqueKeysWithValues: keys.map { ($0, Value.array([.dictionary([$0: .string($0)])])) })
    #expect(try format.value(format.bytes(tree, isBinary: true)) == .dictionary(tree))
  }

  @Test("that a format cannot represent are refused, not truncated")
  func refusals() {
    #expect(throws: FormatProblem.self) { try PortableValue.tree("a\0b", native: SettingsFormat.toml.native) }
    #expect(throws: FormatProblem.self) { try PortableValue.tree(["a\0": 1], native: SettingsFormat.toml.native) }
    #expect(throws: FormatProblem.self) { try PropertyListFile.check("\u{1}") }
    #expect(throws: FormatProblem.self) { try PropertyListFile.check(["a\r": 1]) }
    #expect(throws: FormatProblem.self) { try PropertyListFile.check([.date(Date(timeIntervalSince1970: 0.5))]) }
    #expect(throws: FormatProblem.self) { try EnvironmentFile.variable(.data(Data())) }
    #expect(throws: FormatProblem.self) { try EnvironmentFile.variable("a\0") }
    #expect(throws: FormatProblem.self) { try EnvironmentFile.name("") }
    for key in ["uid", "optind", "é"] {
      #expect(throws: FormatProblem.self, "\(key)") { try EnvironmentFile.writtenName(key) }
    }
    // No text of it is read as this date again.
    let finer = Value.date(Date(timeIntervalSinceReferenceDate: 700_000_000.nextUp))
    for value in [finer, [finer], [.date(Date(timeIntervalSince1970: 0))], ["k": .data(Data([1]))], [.double(.nan)]] {
      #expect(throws: FormatProblem.self, "\(value)") { try EnvironmentFile.variable(value) }
    }
    #expect(throws: Never.self) { try EnvironmentFile.variable([1, 1.5, "a", ["b": true]]) }
  }

  @Test("are refused if their tags have other contents")
  func malformedMarks() {
    let trees: [Value] = [
      ["$date": "yesterday"], ["$date": true], ["$data": "?"], ["$url": [1]], ["$uuid": "x"], ["$json": "{"],
      ["$int": "1.5"],
      ["$double": "0x0"], ["$double": "1"], ["$null": false], ["$secret": ""], [["$secret": "x"]], ["$dict": 1], .null,
      ["$null": true],
    ]
    for tree in trees { #expect(throws: FormatProblem.self, "\(tree)") { try PortableValue.value(tree) } }
  }

  /// A text that two values share only if they are of one type and the same bits, unlike NaN and -0.0 for `==`.
  private static func identity(_ value: Value) -> String {
    switch value {
    case .double(let number): "double \(String(number.bitPattern, radix: 16))"
    case .date(let date): "date \(String(date.timeIntervalSinceReferenceDate.bitPattern, radix: 16))"
    case .array(let elements): "[" + elements.map(identity).joined(separator: ",") + "]"
    case .dictionary(let members):
      "{" + members.sorted { $0.key < $1.key }.map { "\($0.key):\(identity($0.value))" }.joined(separator: ",") + "}"
    case .string(let text), .json(let text): "\(value.kind) \(Array(text.utf8))"
    case .url(let url): "url \(url.relativeString) \(url.baseURL?.absoluteString ?? "")"
    case .secret(let secret): "secret \(secret.withUnsafeBytes(Array.init))"
    default: "\(value)"
    }
  }
}
