import Coffer
import CofferMaintenance
import Foundation
import TestSupport
import Testing

@testable import PrefsCommands

/// Random settings of all kinds through all formats, compared by their bytes.
@Suite("Settings of any kind in files")
struct FormatPropertyTests {
  private static let isLong = ProcessInfo.processInfo.environment["COFFER_SOAK"] == "1"

  @Test(
    "come back the same, bit for bit, or are refused; seed 46",
    arguments: [SettingsFormat.json, .yaml, .toml, .plist], [true, false])
  func roundTrip(_ format: SettingsFormat, _ isBinary: Bool) throws {
    guard isBinary || format == .plist else { return }
    var settings = RandomSettings(seed: 46)
    var (kept, refused) = (0, 0)
    for _ in 0..<(Self.isLong ? 2_000 : 20) {
      let source = try Database.inMemory()
      let items = settings.items()
      try source.makeConnection().readWrite { transaction in
        for item in items { try transaction.setObject(item.value, forKey: item.key, inCollection: item.collection) }
      }
      var bytes: [UInt8] = []
      while true {
        do {
          bytes = try source.makeConnection().read { transaction in
            var tree = SettingsTree(format: format, reveals: true, isBinary: isBinary)
            let bytes = try tree.fileOfAllCollections(transaction)
            try tree.checkReadsBack(bytes, of: nil, reading: SettingsFormat.reading)
            return bytes
          }
          break
        } catch CofferError.notExportable(let collection, let key, _) {
          refused += 1
          try source.makeConnection().readWrite { transaction in
            if key.isEmpty {
              try transaction.removeAllObjects(inCollection: collection)
            } else {
              try transaction.removeObject(forKey: key, inCollection: collection)
            }
          }
        }
      }
      let file = try ImportedSettings(
        bytes, format: format, named: "file", collection: nil, reading: SettingsFormat.reading)
      let target = try Database.inMemory()
      _ = try target.importSettings(file.settings, collections: file.collections)
      let (before, after) = (try contents(source), try contents(target))
      #expect(before == after, "\(format): \(String(decoding: bytes, as: UTF8.self))")
      kept += before.count
    }
    // Fails if hardly anything was written.
    #expect(kept > refused)
    print("\(format) \(isBinary ? "" : "XML, ")seed 46: \(kept) values the same, \(refused) refused")
  }

  @Test("come back the same from SQLite; seed 46")
  func database() throws {
    var settings = RandomSettings(seed: 46)
    let path = NSTemporaryDirectory() + "coffer-plain-\(UUID().uuidString)"
    for _ in 0..<(Self.isLong ? 500 : 10) {
      defer { unlink(path) }
      let (source, target) = (try Database.inMemory(), try Database.inMemory())
      let items = settings.items()
      try source.makeConnection().readWrite { transaction in
        for item in items { try transaction.setObject(item.value, forKey: item.key, inCollection: item.collection) }
      }
      try source.exportPlain(to: path)
      _ = try target.importPlain(from: path, format: .sqlite)
      #expect(try contents(source) == contents(target))
    }
  }

  @Test("are exported by the library as property lists that read back the same, or refused; seed 46")
  func preferences() throws {
    var settings = RandomSettings(seed: 46)
    var kept = 0
    for _ in 0..<(Self.isLong ? 2_000 : 20) {
      for format in [Preferences.PropertyListFormat.binary, .xml] {
        let (source, target) = (try Preferences.inMemory(), try Preferences.inMemory())
        for item in settings.items() { try? source.set(item.value, forKey: item.key) }
        while true {
          do {
            try target.importPropertyList(try source.exportPropertyList(format: format))
            break
          } catch CofferError.notExportable(_, let key, _) {
            try source.removeObject(forKey: key)
          }
        }
        let (before, after) = (source.dictionaryRepresentation(), target.dictionaryRepresentation())
        #expect(before.count == after.count)
        for key in before.keys {
          guard let value = source.value(forKey: key), let read = target.value(forKey: key) else { continue }
          // URLs of files become paths, Codable types lists, and XML has dates of whole seconds, as from UserDefaults.
          switch value {
          case .string, .int, .uint64, .double, .bool, .data: #expect(try value.stored == read.stored)
          default: break
          }
          kept += 1
        }
      }
    }
    #expect(kept > 100)
  }

  /// All values of a store by their places, as the bytes that are stored.
  private func contents(_ database: Database) throws -> [String: [UInt8]] {
    try database.makeConnection().read { transaction in
      var contents: [String: [UInt8]] = [:]
      for collection in try transaction.allCollections() {
        try transaction.enumerateRows(inCollection: collection, as: Value.self, metadata: Value.self) {
          key, value, _, _ in
          let stored = try value.stored
          // Hexadecimal, since texts compare by canonical equivalence.
          let place = HexText.text(collection.utf8) + "/" + HexText.text(key.utf8)
          contents[place] = [stored.kind.rawValue] + stored.bytes.withUnsafeBytes(Array.init)
        }
      }
      return contents
    }
  }
}

/// Settings that files get wrong: texts in both normalizations, marks, words and numbers of other types, ends of ranges.
private struct RandomSettings {
  private var random: SplitMix64

  init(seed: UInt64) { random = SplitMix64(state: seed) }

  private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
  private mutating func one<Element>(_ elements: [Element]) -> Element { elements[number(0...(elements.count - 1))] }

  mutating func items() -> [(collection: String, key: String, value: Value)] {
    (0..<number(1...12)).map { _ in (one(["c", "caf\u{e9}", "cafe\u{301}", text()]), text(), value(depth: 0)) }
  }

  private static let pieces = [
    "\u{e9}", "e\u{301}", "\u{feff}", "\u{0}", "\r", "\n", "\r\n", "\t", "'", "\"", "\\", "$", "#", ":", " ", "-", "a",
    "é", "🔑",
    "\u{2028}", "\u{85}", "\u{7f}", "\u{1}", "<", "&", "]]>", "%", "~", "=", "\u{fffe}", "\u{ffff}", "\u{10ffff}",
    "\u{d7ff}", "|",
    ">", "{", "}", "[", "]", ",", "*", "!", "`", "@", "?", "\u{200b}", "\u{301}", "\u{ac00}", "\u{1100}\u{1161}",
    "\u{212b}",
  ]
  private static let words = [
    "", "true", "no", "null", "~", "1", "-0.0", "0x10", "0o7", "017", "1e3", ".inf", "nan", "2026-01-31", "1:30", "<<",
    "=", "$date",
    "$url", "$dict", "<sealed>", "<secret: 7 bytes>", "---", "...", "- a", "a: b", "%YAML 1.1", "18446744073709551616",
    "caf\u{e9}", "cafe\u{301}", "bplist00", "<?xml", "+infinity", "\u{feff}id;name",
  ]

  private mutating func text() -> String {
    if number(0...3) == 0 { return one(Self.words) }
    if number(0...20) == 0 { return String(repeating: one(Self.pieces), count: number(100...400)) }
    return (0..<number(0...5)).map { _ in one(Self.pieces) }.joined()
  }

  private mutating func double() -> Double {
    switch number(0...3) {
    case 0:
      one([
        0.0, -0.0, 1, -1, 0.1, 1e16, 1e21, 1e22, .infinity, -.infinity, .nan, Double(bitPattern: 0xfff8_0000_0000_0000),
        Double(bitPattern: 0x7ff8_0000_0000_0001), .leastNonzeroMagnitude, -.greatestFiniteMagnitude,
        9_007_199_254_740_992,
        18_446_744_073_709_551_616, -9_223_372_036_854_775_808,
      ])
    case 1: Double(Float(bitPattern: UInt32.random(in: 0...UInt32.max, using: &random)))
    default: Double(bitPattern: random.next())
    }
  }

  private mutating func date() -> Date {
    switch number(0...3) {
    case 0:
      Date(
        timeIntervalSinceReferenceDate: one([0, -0.0, 0.5, -13_197_600_001, 252_423_993_600, 1e13, -63_114_076_800.25]))
    case 1: Date(timeIntervalSinceReferenceDate: Double(number(-1_000_000_000...1_000_000_000)))
    case 2: Date(timeIntervalSince1970: Double(number(0...2_000_000_000)) + Double(number(0...999)) / 1000)
    default: Date(timeIntervalSinceReferenceDate: double())
    }
  }

  private mutating func url() -> URL {
    let texts = [
      "https://example.org/?a=b&c=%3C#d", "file:///tmp/a%20b", "relative", "mailto:a@example.org",
      "https://example.org/%C3%A9",
    ]
    let base = number(0...3) == 0 ? URL(string: "https://example.org/b/") : nil
    return URL(string: one(texts), relativeTo: base) ?? URL(filePath: "/")
  }

  private mutating func value(depth: Int) -> Value {
    switch number(0...(depth < 3 ? 14 : 9)) {
    case 0: depth == 0 ? true : .null
    case 1: .bool(number(0...1) == 0)
    case 2: .int(one([0, -1, .min, .max, 1 << 53, (1 << 53) + 1, Int64(bitPattern: random.next())]))
    case 3: .uint64(one([.max, 1 << 63, (1 << 63) + 1, 9_223_372_036_854_775_808 | random.next()]))
    case 4: .double(double())
    case 5: .data(Data((0..<number(0...5)).map { _ in UInt8(truncatingIfNeeded: random.next()) }))
    case 6: .date(date())
    case 7: .url(url())
    case 8: .uuid(UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, UInt8(number(0...255)))))
    case 9: depth == 0 ? secret() : .string(text())
    case 10: .array((0..<number(0...3)).map { _ in value(depth: depth + 1) })
    case 11:
      .dictionary(Dictionary((0..<number(0...3)).map { _ in (text(), value(depth: depth + 1)) }) { $1 })
    case 12:
      .json(one(["{\"a\":[1,null,2.0]}", "[1, 2]", "\"x\"", "null", "18446744073709551616", "{\"b\":1,\"a\":-0.0}"]))
    default: .string(text())
    }
  }

  private mutating func secret() -> Value {
    let text = text()
    return text.isEmpty || number(0...2) == 0
      ? .secret(Data([0xff, UInt8(number(0...255))]).withUnsafeBytes(Secret.init(copying:))) : .secret(Secret(text))
  }
}
