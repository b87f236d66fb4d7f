import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Reading property lists") struct PropertyListReaderTests {
  private func value(_ text: String) throws -> Value {
    try PropertyListReader.value(Data(text.utf8))
  }

  private func xml(_ body: String) throws -> Value {
    try value("<plist version=\"1.0\">\(body)</plist>")
  }

  // MARK: Beside Foundation

  /// A property list of everything, at random.
  private func sample(_ depth: Int, _ generator: inout SplitMix64) -> Value {
    let texts = ["", "a", "é", "🗝", "a&b<c>", "\"'", "line\nline", "$null", "<real>1</real>", "]]>", "\t", "CF$UID"]
    func count() -> Int { [0, 1, 3, 14, 15, 16, 300].randomElement(using: &generator)! }
    switch Int.random(in: 0..<(depth < 3 ? 9 : 7), using: &generator) {
    case 0: return .bool(.random(using: &generator))
    case 1: return .int([0, 1, -1, 127, 128, 255, 256, 65535, 65536, .max, .min].randomElement(using: &generator)!)
    case 2: return .double([0, 1, -1, 1.5, 1e300, 5e-7, .infinity].randomElement(using: &generator)!)
    case 3: return .string(String(repeating: texts.randomElement(using: &generator)!, count: count()))
    case 4: return .data(Data((0..<count()).map { _ in .random(in: 0...255, using: &generator) }))
    case 5: return .date(Date(timeIntervalSinceReferenceDate: .random(in: -1e9...1e9, using: &generator).rounded()))
    case 6: return .string(texts.randomElement(using: &generator)!)
    case 7: return .array((0..<min(20, count())).map { _ in sample(depth + 1, &generator) })
    default:
      var members: [String: Value] = [:]
      for index in 0..<min(20, count()) {
        members["\(texts.randomElement(using: &generator)!)\(index)"] = sample(depth + 1, &generator)
      }
      return .dictionary(members)
    }
  }

  @Test("returns what Foundation wrote, in XML and binary, and keeps true, 1 and 1.0 distinct")
  func foundation() throws {
    var generator = SplitMix64(state: 4)
    for _ in 0..<300 {
      let sample = sample(0, &generator)
      for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
        let data = try PropertyListSerialization.data(fromPropertyList: sample.asObject, format: format, options: 0)
        let read = try PropertyListReader.value(data)
        #expect(read == sample)
        let (kept, given) = (try read.storedEvenScalars, try sample.storedEvenScalars)
        #expect(kept == given)
      }
    }
  }

  // MARK: XML

  private static let xmlCases: [(String, Value)] = [
    ("<string/>", ""), ("<string></string>", ""), ("<string> a </string>", " a "),
    ("<string>$null</string>", "$null"),
    ("<string>a&amp;b&lt;&gt;&quot;&apos;&#233;&#x1F5DD;</string>", "a&b<>\"'é🗝"),
    ("<string>a<![CDATA[<real>1</real>&amp;]]>b</string>", "a<real>1</real>&amp;b"),
    ("<string>a<!-- no -->b</string>", "ab"), ("<!-- c --> <true/> <!-- d -->", true), ("<false></false>", false),
    ("<integer>1</integer>", 1), ("<integer> -1 </integer>", -1), ("<integer>+1</integer>", 1),
    ("<integer>0x1F</integer>", 31), ("<integer>-0x8000000000000000</integer>", .int(.min)),
    ("<integer>18446744073709551615</integer>", .uint64(.max)), ("<real>1</real>", .double(1)),
    ("<real>-0</real>", .double(-0.0)),
    ("<real>+infinity</real>", .double(.infinity)), ("<real>1e3</real>", .double(1000)),
    ("<date>2001-01-01T00:00:01Z</date>", .date(Date(timeIntervalSinceReferenceDate: 1))),
    ("<data>\n\tAQI=\n</data>", .data(Data([1, 2]))), ("<data/>", .data(Data())), ("<array/>", []), ("<dict/>", [:]),
    ("<array><true/><integer>1</integer><real>1</real></array>", [true, 1, .double(1)]),
    ("<dict><key>a</key><array><string>b</string></array><key/><dict></dict></dict>", ["a": ["b"], "": [:]]),
  ]

  @Test("reads XML as its document type defines, and more", arguments: xmlCases)
  func readsXML(_ body: String, _ expected: Value) throws {
    let found = try xml(body)
    #expect(found == expected)
    #expect(found.kind == expected.kind)
    #expect(
      try value("\u{feff}<?xml version=\"1.0\"?>\n<!DOCTYPE plist PUBLIC \"a\" \"b\">\n<plist>\n\(body)\n</plist>\n")
        == expected)
  }

  @Test(
    "refuses XML that is not a property list",
    arguments: [
      "", "<string>", "<string></integer>", "<string>&nbsp;</string>", "<string>&#xD800;</string>",
      "<string>&#+65;</string>",
      "<string>&#x+41;</string>",
      "<string>&amp</string>",
      "<integer/>", "<integer>1.5</integer>", "<integer>18446744073709551616</integer>", "<integer>0x</integer>",
      "<integer>- 1</integer>", "<real>abc</real>", "<real/>", "<date>yesterday</date>", "<date/>", "<data>!!!</data>",
      "<data>A</data>", "<true>1</true>", "<set/>", "<dictionary/>", "<Dict/>", "<dict><key>a</key></dict>",
      "<dict><string>a</string><true/></dict>", "<dict><key>a</key><true/><key>a</key><true/></dict>", "<true/><true/>",
      "<array><true/>", "text", "<true/>text", "<array>text</array>", "<!-- ", "<![CDATA[",
    ])
  func refusesXML(_ body: String) {
    #expect(throws: PropertyListReader.Problem.self) { try xml(body) }
  }

  /// A binary list of one object, referred to many times with one byte each.
  private func repeated(_ count: Int, object: [UInt8]) -> Data {
    var bytes = Array("bplist00".utf8) + [0xaf, 0x12]
    bytes += withUnsafeBytes(of: UInt32(count).bigEndian) { Array($0) }
    bytes += [UInt8](repeating: 1, count: count)
    let second = bytes.count
    bytes += object
    let table = bytes.count
    for offset in [8, second] { bytes += withUnsafeBytes(of: UInt32(offset).bigEndian) { Array($0) } }
    bytes += [0, 0, 0, 0, 0, 0, 4, 1]
    for number in [2, 0, table] { bytes += withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) } }
    return Data(bytes)
  }

  @Test("A list that refers to one object ten million times is refused before memory is taken for its values")
  func manyReferences() throws {
    #expect(try PropertyListReader.value(repeated(3, object: [0x00])) == .array([.null, .null, .null]))
    let problem = #expect(throws: PropertyListReader.Problem.self) {
      try PropertyListReader.value(repeated(10_000_000, object: [0x00]))
    }
    #expect(problem?.reason.contains("too many values") == true)
  }

  @Test(
    "Text with more than four million values is refused in every form",
    .enabled(if: ProcessInfo.processInfo.environment["COFFER_SOAK"] == "1"))
  func manyValues() throws {
    let count = 4_000_001
    for list in [
      "(" + String(repeating: "a,", count: count) + ")",
      "<array>" + String(repeating: "<true/>", count: count) + "</array>",
    ] {
      let problem = #expect(throws: PropertyListReader.Problem.self) { try PropertyListReader.value(Data(list.utf8)) }
      #expect(problem?.reason.contains("more than 4000000 values") == true)
    }
    let problem = #expect(throws: JSONReader.Problem.self) {
      try JSONReader.value("[" + String(repeating: "0,", count: count) + "0]")
    }
    #expect(problem?.reason == "more than 4000000 values")
  }

  @Test("An archive whose objects refer to one again and again is refused")
  func sharedObjects() throws {
    func uid(_ number: Int64) -> Value { ["CF$UID": .int(number)] }
    let list: [String: Value] = ["$class": uid(2), "NS.objects": .array(Array(repeating: uid(3), count: 2_000))]
    let inner: [String: Value] = ["$class": uid(2), "NS.objects": .array(Array(repeating: uid(4), count: 2_000))]
    let outer: [String: Value] = ["$class": uid(2), "NS.objects": .array(Array(repeating: uid(1), count: 2_000))]
    let archive: Value = [
      "$archiver": "NSKeyedArchiver", "$top": ["root": uid(5)],
      "$objects": .array([
        "$null", .dictionary(list), ["$classname": "NSArray"], .dictionary(inner), "x", .dictionary(outer),
      ]),
    ]
    #expect(KeyedArchive.value(archive) == nil)
  }

  @Test("refuses documents that declare entities, or continue after their end")
  func documents() throws {
    #expect(throws: PropertyListReader.Problem.self) {
      try value("<!DOCTYPE plist [<!ENTITY a \"b\">]><plist><string>&a;</string></plist>")
    }
    #expect(throws: PropertyListReader.Problem.self) { try value("<plist><true/></plist><plist/>") }
    #expect(throws: PropertyListReader.Problem.self) { try value("<plist><true/>") }
    let utf16 =
      Data([0xff, 0xfe])
      + Data("<plist><string>é</string></plist>".utf16.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] })
    #expect(try PropertyListReader.value(utf16) == "é")
    #expect(throws: PropertyListReader.Problem.self) { try PropertyListReader.value(utf16.dropLast()) }
    #expect(throws: PropertyListReader.Problem.self) { try PropertyListReader.value(Data([0xc3, 0x28])) }
  }

  // MARK: Text

  private static let textCases: [(String, Value)] = [
    ("word", "word"), ("a-b_c.d/e:f$1", "a-b_c.d/e:f$1"), ("\"a b\"", "a b"), ("'a \"b\"'", "a \"b\""),
    (#""\a\b\f\n\r\t\v\\\"\'\101\60\U00e9\Ud83d\Uddddx""#, "\u{7}\u{8}\u{c}\n\r\t\u{b}\\\"'A0é🗝x"),
    ("()", []), ("(a, b, )", ["a", "b"]), ("(a, (b), {c = d;})", ["a", ["b"], ["c": "d"]]), ("{}", [:]),
    ("{a = 1; \"b c\" = (2); d = <0a 1B>}", ["a": "1", "b c": ["2"], "d": .data(Data([10, 27]))]),
    ("// note\n{ /* note */ a = b; }", ["a": "b"]), ("\"a\" = \"b\";\n\"c\" = \"d\";", ["a": "b", "c": "d"]),
    ("<>", .data(Data())),
  ]

  @Test("reads the old text form", arguments: textCases)
  func readsText(_ text: String, _ expected: Value) throws {
    // The pair of surrogates in the long one is 🗝, D83D DDDD.
    let found = try value(text)
    #expect(found == expected)
  }

  @Test(
    "refuses text that is not a property list",
    arguments: [
      " ", "a b", "(a b)", "(a", "{a}", "{a = }", "{a = b c;}", "{a = b; a = c;}", "\"a", "'", "<0>", "<0g>", "<",
      "/* ", "{",
      "\"\\Ud83d\"", "\"\\Udddd\"", "\"\\Ux\"", "\"\\377\"", "(a,,b)", "=", ";", "é", "}",
    ])
  func refusesText(_ text: String) {
    #expect(throws: PropertyListReader.Problem.self) { try value(text) }
  }

  // MARK: Anything at all

  @Test("refuses what is nested too deeply, in time linear in its length")
  func depth() throws {
    let limit = JSONReader.depthLimit
    func nested(_ count: Int, _ open: String, _ content: String, _ close: String) -> String {
      String(repeating: open, count: count) + content + String(repeating: close, count: count)
    }
    for (open, content, close) in [
      ("(", "", ")"), ("{a=", "b", ";}"), ("<array>", "<true/>", "</array>"),
      ("<dict><key>a</key>", "<true/>", "</dict>"),
    ] {
      _ = try value(nested(limit, open, content, close))
      #expect(throws: PropertyListReader.Problem.self) { try value(nested(limit + 1, open, content, close)) }
      #expect(throws: PropertyListReader.Problem.self) { try value(nested(100_000, open, content, close)) }
      #expect(throws: PropertyListReader.Problem.self) { try value(String(repeating: open, count: 100_000)) }
    }
  }

  /// A binary list of these objects, the first one at its top.
  private func binary(_ objects: [[UInt8]]) -> Data {
    var bytes = Array("bplist00".utf8)
    var offsets: [UInt8] = []
    for object in objects {
      offsets += [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xff)]
      bytes += object
    }
    let table = UInt64(bytes.count)
    bytes += offsets + [0, 0, 0, 0, 0, 0, 2, 1]
    for number in [UInt64(objects.count), 0, table] { bytes.append(bigEndian: number) }
    return Data(bytes)
  }

  @Test("reads binary integers of every width, and types only of archives")
  func binaryObjects() throws {
    let objects: [([UInt8], Value)] = [
      ([0x10, 0xff], 255), ([0x11, 0xff, 0xff], 65535), ([0x12, 0xff, 0xff, 0xff, 0xff], 4_294_967_295),
      ([0x13] + Array(repeating: 0xff, count: 8), -1),
      ([0x14] + Array(repeating: 0, count: 8) + Array(repeating: 0xff, count: 8), .uint64(.max)),
      ([0x14] + Array(repeating: 0xff, count: 16), -1), ([0x22, 0x3f, 0x80, 0, 0], .double(1)), ([0x09], true),
      ([0x80, 0x07], ["CF$UID": 7]), ([0x61, 0x00, 0xe9], "é"), ([0x00], .null),
    ]
    for (bytes, value) in objects {
      let read = try PropertyListReader.value(binary([bytes]))
      #expect(read == value)
      #expect(read.kind == value.kind)
    }
    for wrong: [UInt8] in [
      [0x0f], [0x15], [0x14, 1], [0x24], [0x31], [0x5f], [0x5f, 0x13, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
      [0x51, 0xff], [0x61, 0xd8, 0x00], [0x61, 0x00], [0xa1, 1], [0xa1, 0], [0xc0], [0xd1, 0, 0], [0x70], [0xf0], [],
      [0x14] + Array(repeating: 0x01, count: 16),
    ] {
      #expect(throws: PropertyListReader.Problem.self) { try PropertyListReader.value(binary([wrong])) }
    }
  }

  @Test("refuses binary lists that contain each other endlessly, or too often")
  func binaryBombs() throws {
    #expect(throws: PropertyListReader.Problem.self) { try PropertyListReader.value(binary([[0xa1, 0]])) }
    // A hundred lists, each of which holds the next one twice.
    let bomb = (0..<100).map { [0xa2, UInt8($0 + 1), UInt8($0 + 1)] } + [[0x09]]
    #expect(throws: PropertyListReader.Problem.self) { try PropertyListReader.value(binary(bomb)) }
  }

  @Test("survives any damage to a binary, XML or text list")
  func damage() throws {
    var generator = SplitMix64(state: 5)
    let list: [String: Any] = [
      "a": [1, 2.5, true, "x", "é", Data([1, 2, 3]), Date(timeIntervalSinceReferenceDate: 0)], "b": ["c": ["d": 70000]],
      "long": String(repeating: "text ", count: 10),
    ]
    let originals = [
      try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0),
      try PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0),
      Data(#"{a = (1, "b\U00e9", <0a1b>); 'c' = {d = e;}; /* f */ }"#.utf8),
    ]
    var refusals = 0
    for original in originals {
      for _ in 0..<5000 {
        var data = original
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
          data[Int.random(in: 0..<data.count, using: &generator)] = .random(in: 0...255, using: &generator)
        }
        if Bool.random(using: &generator) { data = data.prefix(Int.random(in: 0...data.count, using: &generator)) }
        do { _ = try PropertyListReader.value(Data(data)) } catch { refusals += 1 }
      }
    }
    #expect(refusals > 5000)
  }
}

extension Value {
  /// The bytes of a value inside a list, so that two can be compared to the last bit.
  fileprivate var storedEvenScalars: StoredValue { get throws { try Value.array([self]).stored } }
}
