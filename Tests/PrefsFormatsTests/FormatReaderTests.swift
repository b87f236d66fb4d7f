import Coffer
import Foundation
import TestSupport
import Testing

@testable import PrefsCommands
@testable import PrefsFormats

@Suite("Reading files of other formats")
struct FormatReaderTests {
  /// Written out for the compiler, which looks long for the types of literals otherwise.
  private static let scalars: [(String, Value)] = [
    ("", .null), ("~", .null), ("null", .null), ("true", true), ("False", false), ("no", "no"), ("off", "off"),
    ("12", 12), ("-12", -12), ("+12", 12), ("007", 7), ("0o17", 15), ("0xff", 255),
    ("9223372036854775808", .uint64(1 << 63)),
    ("1.0", 1.0), ("1e3", 1000.0), (".5", 0.5), ("-.inf", .double(-.infinity)), ("1.2.3", "1.2.3"), ("1-2", "1-2"),
    ("+", "+"), (".", "."), ("'12'", "12"), ("\"\\u00e9\\x41\\0\"", "éA\0"), ("!!str 12", "12"),
    ("!!float 2", 2.0), ("!!binary AP8=", .data(Data([0, 255]))),
    ("2026-01-31", .date(Date(timeIntervalSince1970: 1_769_817_600))),
    ("2026-01-31 08:30:00Z", .date(Date(timeIntervalSince1970: 1_769_848_200))),
    ("{a: [1, {b: }]}", ["a": [1, ["b": .null]]]),
    ("|\n    a\n    b\n", "a\nb\n"), ("[&x 1, *x]", [1, 1]),
  ]

  @Test(
    "YAML scalars are what the core schema of YAML 1.2 says, with timestamps and binary",
    arguments: Self.scalars)
  func yaml(_ text: String, _ value: Value) throws {
    #expect(try SettingsFormat.yaml.value(Array("k: \(text)\n".utf8)) == ["k": value], "\(text)")
  }

  private static let refused: [(SettingsFormat, String)] = [
    (.json, "{\"a\": 1,\n \"a\": 2}"), (.json, "{\"a\": hunter2}"), (.json, "{\"a\": 1e999}"),
    (.json, ""),
    (.yaml, "hunter2: 1\nhunter2: 2\n"), (.yaml, "a: [hunter2"), (.yaml, "a: !!hunter2 x"), (.yaml, "a: *hunter2"),
    (.yaml, "? [hunter2]\n: 1\n"), (.yaml, "<<: hunter2"), (.yaml, "a: 1\n---\nhunter2: 2\n"),
    (.yaml, "a: \u{1}hunter2"),
    (.yaml, "a: 99999999999999999999"), (.yaml, "a: 1e999"), (.yaml, "a: !!int hunter2x\u{7}"),
    (.yaml, "a: !!binary '?'"),
    (.toml, "hunter2 = 1\nhunter2 = 2\n"), (.toml, "a = hunter2"), (.toml, "a = 99999999999999999999"),
    (.toml, "a = 07:32:00"), (.toml, "a = 1979-05-27T07:32:00"), (.toml, "a = \"\\u0000hunter2\""),
    (.toml, "a = \"\0\""),
    (.toml, "a = 1979-05-27T:30:00"), (.toml, "a = 1979-05-27thunter2:0"), (.toml, "[a]\n[a]"),
    (.toml, "[^hunter2]"), (.toml, "a = [1]\n [[ ?hunter2]]"), (.toml, "["), (.toml, "\u{feff}[é]"),
    (.toml, "a = \"hunter2"), (.toml, "a.b = 1\na = 2"),
    (.env, "A=hunter2\nA=2"), (.env, "1A=hunter2"), (.env, "hunter2"), (.env, "A='hunter2"), (.env, "A=\"hunter2"),
    (.env, "A='hunter2' x"), (.env, "A=hunter2\0"), (.env, "A=hunter2'x"), (.env, "A=hunter2\\x"),
    (.env, "A=\"hunter2\\n\""), (.env, "A B=hunter2"),
    (.plist, "<plist><dict><key>a</key><hunter2/></dict></plist>"), (.plist, "bplist00hunter2"),
  ]

  @Test(
    "A file of another format is refused without showing any of it",
    arguments: Self.refused)
  func refusals(_ format: SettingsFormat, _ text: String) throws {
    let problem = try #require(throws: FormatProblem.self, "\(text)") { try format.value(Array(text.utf8)) }
    #expect(!problem.reason.contains("hunter2"), "\(problem.reason)")
  }

  @Test("Brackets that begin a line of TOML are names of tables, or arrays in arrays")
  func brackets() throws {
    let text = """
      \u{feff}a = [
        [+1, -1], # [?]
        [{b = '[^'}, +inf], ["]"]
      ]
      s = \"""
      [^]
      \"""
       [ "c" . 'd' ]
      [[e]]
      f.g = 1
      """
    let tree = try SettingsFormat.toml.value(Array(text.utf8))
    #expect(
      tree == [
        "a": [[1, -1], [["b": "[^"], .double(.infinity)], ["]"]], "s": "[^]\n", "c": ["d": [:]],
        "e": [["f": ["g": 1]]],
      ])
  }

  @Test("Text that is not UTF-8 is refused", arguments: [SettingsFormat.json, .yaml, .toml, .env, .plist])
  func encoding(_ format: SettingsFormat) {
    #expect(throws: FormatProblem.self) { try format.tree(Array("a: \"".utf8) + [0xff, 0xc0, 0x80]) }
  }

  @Test("Aliases of aliases are bounded, as values and as keys")
  func aliases() throws {
    var lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in 1...9 {
      let aliases = (0..<10).map { _ in "*a\(level - 1)" }.joined(separator: ", ")
      lines.append("a\(level): &a\(level) [\(aliases)]")
    }
    #expect(throws: FormatProblem.self) { try YAMLReader.tree(lines.joined(separator: "\n")) }
    #expect(throws: FormatProblem.self) { try YAMLReader.tree((lines + ["? *a9", ": 1"]).joined(separator: "\n")) }
    // Within the first bound, but not the second.
    #expect(throws: FormatProblem.self) { try YAMLReader.tree(lines.prefix(6).joined(separator: "\n")) }
    #expect(throws: Never.self) { try YAMLReader.tree(lines.prefix(3).joined(separator: "\n")) }
    // Text that contains many of both is neither.
    let text = Value.string(String(repeating: "&anchor *alias ", count: 1000))
    #expect(try SettingsFormat.yaml.value(SettingsFormat.yaml.bytes(["k": text])) == ["k": text])
    let jobs = (0..<2_000).map { "job\($0):\n  run: make a && make b && make c\n  paths: ['**/*.swift', '*.md']\n" }
    #expect(try YAMLReader.tree(jobs.joined()).sortedMembers?.count == 2_000)
    // Anchors that hold the one before would nest deeper than any value.
    let deep = "a0: &a0 []\n" + (1...5_000).map { "a\($0): &a\($0) [*a\($0 - 1)]\n" }.joined()
    #expect(throws: FormatProblem.self) { try YAMLReader.tree(deep) }
  }

  @Test("A damaged file is read or refused, without other effects", arguments: SettingsFormat.allCases)
  func damaged(_ format: SettingsFormat) throws {
    let whole = try format.bytes(
      format == .env
        ? ["A": "it's", "B": "a\nb"]
        : [
          "a": ["b": [1, -0.5, true, "é\n\"'&*"]], "k": "text", "n": 12,
          "long": .string(String(repeating: "x ", count: 80)),
        ])
    let alphabet = Array("\0\n\t \"'\\#&*!|>%@`[]{}:,.=-+?~$<0a\u{80}".utf8) + [0xff]
    var random = SplitMix64(state: 0x5eed)
    for _ in 0..<1_000 {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        let byte = alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[place] = byte
        case 1: bytes.insert(byte, at: place)
        default: bytes.removeSubrange(place..<min(bytes.count - 1, place + 7))
        }
      }
      do { _ = try format.tree(bytes, reading: SettingsFormat.reading) } catch is FormatProblem {}
    }
  }

  @Test(
    "A file that cannot be held exactly is refused with its line",
    arguments: [
      (SettingsFormat.json, "{\"n\":\n 18446744073709551616}", "line 2"),
      (.json, "{\"n\": [-9223372036854775809]}", "64 bits"), (.yaml, "a: 0x1FFFFFFFFFFFFFFFF", "64 bits"),
      (.yaml, "a: 0o7777777777777777777777", "64 bits"), (.yaml, "a: -9223372036854775809", "64 bits"),
      (.yaml, "a: !!int abc", "tag"), (.yaml, "é: [?x, *.y]", "begins with ?"), (.yaml, "{?a: 1}", "begins with ?"),
      (.yaml, "é: &a:b x", "anchor"), (.yaml, "a: !!str &a:b x", "anchor"), (.yaml, "a: &a x\nb: [*a:b]", "anchor"),
      (.yaml, "a: 1e-400", "too small"), (.yaml, "a: 1e400", "too large"), (.json, "{\"a\": -0.1e-400}", "too small"),
      (.toml, "a = 1e400", "line 1"), (.toml, "a = [1,\u{85}]", "ASCII"), (.toml, "a = [\u{a0}]", "ASCII"),
      (.toml, "a = 2026-01-31 8\n", "no time"), (.toml, "a = [2026-01-31 8]", "no time"),
      (.toml, "a = 1e-400", "too small"), (.plist, "<real>1e400</real>", "64 bits"),
      (.plist, "<real>1e-400</real>", "64 bits"),
      (.plist, "{ c = { \"caf\u{e9}\" = 1; \"cafe\u{301}\" = 2; }; }", "normalization"),
      (.yaml, "%YAML 1.1\n---\na: no\n", "%YAML 1.1"),
      (.yaml, "a: [red,#fff\n ]\n", "line 1, column 9"), (.yaml, "é: \"x\"#y\n", "line 1, column 7"),
      (.yaml, "a: [b]#c\n", "comment"),
      (.yaml, "a: !!str ># b\n  c\n", "comment"), (.yaml, "# a\nb: |2-# |\n  c\n", "line 2, column 7"),
      (.yaml, "a: 1 # b\u{2028}c: 2\n", "line 1, column 9"), (.yaml, "a: 'é\u{85}b'\n", "U+0085"),
      (.yaml, "a: |\n  b\u{2029}c\n", "U+2029"), (.yaml, "\u{feff}\u{feff}a: 1\n", "byte order marks"),
      (.yaml, "a: |\n  b", "end the line"), (.yaml, "- |+\n   ", "end the line"),
      (.yaml, "a: >\n  b\n   ", "end the line"),
      (.yaml, "a: |\n    \n  #!/bin/sh\n", "lines of spaces"), (.yaml, "a: >-\n\n   \n # b\nc: 1\n", "lines of spaces"),
      (.yaml, "a: [-]\n", "only a -"), (.yaml, "a: {-: b}\n", "only a -"),
      (.yaml, "a: {? }\n", "name is missing"), (.yaml, "?\n: b\n", "name is missing"),
      (.toml, "a = 1 # note\0 more\nb = 2\n", "U+0000"), (.toml, "a = 1\nb = '\0'\n", "line 2"),
      (.toml, "a = 0xfffffffffffffffff", "line 1"),
    ] as [(SettingsFormat, String, String)])
  func exactness(_ format: SettingsFormat, _ text: String, _ words: String) throws {
    let problem = try #require(throws: FormatProblem.self, "\(text)") { try format.value(Array(text.utf8)) }
    #expect(problem.reason.contains(words), "\(problem.reason)")
  }

  @Test(
    "Comments, blocks of text and dashes are read where all readers of YAML agree",
    arguments: [
      ("#a\nb: 1 #c\n  #d\n", ["b": 1]), ("a: [b, #c]\n d\t# e\n ] # f\n", ["a": ["b", "d"]]),
      ("a: b#c\n", ["a": "b#c"]),
      ("a: '#b'\nc: \"d #e\"\n", ["a": "#b", "c": "d #e"]), ("a: | # b\n  #c\n\n# d\n", ["a": "#c\n"]),
      ("a: !!str # > b\n  |-\n  #c\n", ["a": "#c"]), ("%YAML 1.2 # a\n--- # b\nc: 1\n... # d\n", ["c": 1]),
      ("a: &b # c\n  d: e\n", ["a": ["d": "e"]]), ("a: 1 #b", ["a": 1]),
      ("a: |-\n  b", ["a": "b"]), ("a: |+\n  b\n\n", ["a": "b\n\n"]), ("a: |\n  b\n#c", ["a": "b\n"]),
      ("a: |\n\n  b\n", ["a": "\nb\n"]), ("a: |\n   \n# b\nc: >\n", ["a": "", "c": ""]),
      ("a: |1\n   \n # b\n", ["a": "  \n# b\n"]),
      ("a: [--, -1, -b]\n", ["a": ["--", -1, "-b"]]), ("a:\n- - b\n", ["a": [["b"]]]), ("'': 1\n", ["": 1]),
      ("a: \"\\N\\L\\P\"\n", ["a": "\u{85}\u{2028}\u{2029}"]),
    ] as [(String, Value)])
  func agreed(_ text: String, _ value: Value) throws {
    for text in [text, text.replacing("\n", with: "\r\n")] {
      #expect(try SettingsFormat.yaml.value(Array(text.utf8)) == value, "\(text)")
    }
  }

  @Test(
    "Numbers near the ends of 64 bits are read",
    arguments: ["0e-400", "-0.0e9", "4.9e-324", "1.7976931348623157e308", "-0.000"])
  func ends(_ number: String) throws {
    for (format, text) in [
      (SettingsFormat.json, "{\"a\": \(number)}"), (.yaml, "a: \(number)"), (.toml, "a = \(number)"),
      (.plist, "<dict><key>a</key><real>\(number)</real></dict>"),
    ] {
      guard case .dictionary(let members) = try format.value(Array(text.utf8)), case .double(let read)? = members["a"]
      else {
        Issue.record("\(format): \(number)")
        continue
      }
      #expect(read.bitPattern == Double(number)?.bitPattern, "\(format): \(number)")
    }
  }

  @Test("Names that differ only in their normalization are two settings, and one name in a value")
  func twins() throws {
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
    let tree = FileTree.members([
      .init(composed, .members([.init(decomposed, .value(2)), .init(composed, .value(1))])),
      .init(decomposed, .members([.init("k", .value("\u{feff}\u{e9}e\u{301}"))])),
    ])
    for format in [SettingsFormat.json, .yaml, .toml, .plist] {
      for isBinary in [true, false] {
        let bytes = try format.bytes(tree, isBinary: isBinary)
        let members = try format.tree(bytes, reading: SettingsFormat.reading).sortedMembers
        #expect(members == tree.sortedMembers, "\(format)")
      }
    }
    for (format, text) in [
      (SettingsFormat.json, "{\"c\":{\"k\":{\"\(composed)\":1,\"\(decomposed)\":2}}}"),
      (.yaml, "c: {k: {\(composed): 1, \(decomposed): 2}}"),
      (.toml, "[c]\nk = {\"\(composed)\" = 1, \"\(decomposed)\" = 2}"),
    ] {
      let problem = #expect(throws: FormatProblem.self) {
        try format.tree(Array(text.utf8), reading: SettingsFormat.reading)
      }
      #expect(problem?.reason.contains("normalization") ?? false, "\(problem?.reason ?? "")")
    }
  }

  @Test("A merge key merges dictionaries, which the others of a dictionary hide")
  func merges() throws {
    let text = """
      base: &base {a: 1, b: 1}
      more: &more {b: 2, c: 2}
      one: {<<: *base, b: 3}
      two:
        c: 4
        <<: [*more, *base]
      text: {"<<": 5}
      """
    let tree = try SettingsFormat.yaml.value(Array(text.utf8))
    guard case .dictionary(let members) = tree else {
      Issue.record("no dictionary")
      return
    }
    #expect(members["one"] == ["a": 1, "b": 3] && members["two"] == ["a": 1, "b": 2, "c": 4])
    #expect(members["text"] == ["<<": 5])
    for wrong in ["a: {<<: 1}", "a: {<<: [1]}", "a: {<<: {}, <<: {}}"] {
      #expect(throws: FormatProblem.self, "\(wrong)") { try SettingsFormat.yaml.value(Array(wrong.utf8)) }
    }
  }

  @Test("Line ends of Windows in texts of several lines are newlines")
  func lineEnds() throws {
    #expect(try SettingsFormat.yaml.value(Array("a: |\r\n  x\r\n  y\r\n".utf8)) == ["a": "x\ny\n"])
    #expect(try SettingsFormat.toml.value(Array("a = \"\"\"\r\nx\r\ny\"\"\"\r\n".utf8)) == ["a": "x\ny"])
    #expect(try SettingsFormat.env.value(Array("A=\"x\r\ny\"\r\nB=z\r\n".utf8)) == ["A": "x\ny", "B": "z"])
    let list = "<plist><dict><key>a</key><string>x\r\ny\rz&#13;</string></dict></plist>"
    #expect(try SettingsFormat.plist.value(Array(list.utf8)) == ["a": "x\ny\nz\r"])
  }

}
