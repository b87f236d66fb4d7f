import Coffer
import Foundation
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
    #expect(try SettingsFormat.yaml.tree(Array("k: \(text)\n".utf8)) == ["k": value], "\(text)")
  }

  private static let refused: [(SettingsFormat, String)] = [
    (.json, "{\"a\": 1,\n \"a\": 2}"), (.json, "{\"a\": hunter2}"), (.json, "{\"a\": 1e999}"),
    (.json, ""),
    (.yaml, "hunter2: 1\nhunter2: 2\n"), (.yaml, "a: [hunter2"), (.yaml, "a: !!hunter2 x"), (.yaml, "a: *hunter2"),
    (.yaml, "? [hunter2]\n: 1\n"), (.yaml, "<<: {hunter2: 1}"), (.yaml, "a: 1\n---\nhunter2: 2\n"),
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
    (.env, "A='hunter2' x"), (.env, "A=hunter2\0"), (.env, "A B=hunter2"),
    (.plist, "<plist><dict><key>a</key><hunter2/></dict></plist>"), (.plist, "bplist00hunter2"),
  ]

  @Test(
    "A file of another format is refused without showing any of it",
    arguments: Self.refused)
  func refusals(_ format: SettingsFormat, _ text: String) throws {
    let problem = try #require(throws: FormatProblem.self, "\(text)") { try format.tree(Array(text.utf8)) }
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
    let tree = try SettingsFormat.toml.tree(Array(text.utf8))
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
    #expect(try YAMLReader.tree(YAMLWriter.text(["k": text])) == ["k": text])
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
    var random = Generator(state: 0x5eed)
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
      do { _ = try format.tree(bytes, reading: FormatsTool.tree) } catch is FormatProblem {}
    }
  }

  /// Numbers that are the same in every run (Vigna, splitmix64).
  private struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var z = state
      z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
      z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
      return z ^ (z >> 31)
    }
  }

  @Test("Variables are read as a shell and other readers of .env files do")
  func variables() throws {
    let text = """
      # comment
      A=plain # comment
      export B='single $x \\n'
      C="double \\$x\\n\\"q\\" \\z"
      D=
      E=with spaces inside   \r
      F='it'\\''s'
      G="two
      lines"
      H=a#b
        I=\\#x
      J='' # empty
      K=a\\
      b
      """
    #expect(
      try EnvironmentFile.tree(text) == [
        "A": "plain", "B": "single $x \\n", "C": "double $x\n\"q\" \\z", "D": "", "E": "with spaces inside",
        "F": "it's",
        "G": "two\nlines", "H": "a#b", "I": "#x", "J": "", "K": "ab",
      ])
  }

  @Test(
    "Variables round-trip through their own writer",
    arguments: ["", "a b", "'", "''", "\"$x`\\", "a\nb\n", "#", " x ", "é🔑"])
  func variableRoundTrip(_ text: String) throws {
    let tree: [String: Value] = ["A": .string(text), "B": "after"]
    #expect(try EnvironmentFile.tree(EnvironmentFile.text(tree)) == .dictionary(tree))
  }
}
