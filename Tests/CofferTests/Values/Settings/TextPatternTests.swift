import TestSupport
import Testing

@testable import Coffer

@Suite("Patterns of declarations") struct TextPatternTests {
  private func matches(_ pattern: String, _ text: String) throws -> Bool {
    try TextPattern(pattern).compare(text) == .matches
  }

  @Test(
    "match whole texts as ECMA-262 says",
    arguments: [
      ("", [""], ["a"]),
      ("[a-z]+", ["a", "abc"], ["", "A", "ab1", "abc\n"]),
      ("a|bc|", ["a", "bc", ""], ["b", "abc"]),
      ("(?:ab)*c?", ["", "abab", "ababc", "c"], ["aba", "cc"]),
      ("a{2}", ["aa"], ["a", "aaa"]),
      ("a{2,}", ["aa", "aaaaa"], ["a"]),
      ("a{1,3}b", ["ab", "aaab"], ["b", "aaaab"]),
      ("a{0}", [""], ["a"]),
      ("(a*)*b", ["b", "aaab"], ["a"]),
      ("(a+)+?b??", ["a", "ab"], ["", "abb"]),
      (#"\d{3}-\d{4}"#, ["555-0123"], ["٥٥٥-٠١٢٣"]),
      (#"\w+\W\w+"#, ["a_1-b"], ["a_1b", "é-é"]),
      (#"\s\S"#, [" a", "\u{a0}a", "\u{feff}a"], ["aa", "  "]),
      (".", ["a", "é", "\u{1f600}", "\u{85}"], ["", "\n", "\r", "\u{2028}", "ab"]),
      (#"^a$|^b"#, ["a", "b"], ["ab", ""]),
      (#"a\b.\bb"#, ["a b"], ["axb"]),
      (#"a\Bb"#, ["ab"], ["a b"]),
      (#"[^\d\-x-z]"#, ["a", "é", "\n"], ["1", "-", "y"]),
      (#"[\D5]"#, ["5", "a"], ["4"]),
      (#"[^\D5]"#, ["4"], ["5", "a"]),
      ("[]", [], ["", "a"]),
      ("[^]", ["a", "\n"], [""]),
      ("[a-]", ["a", "-"], ["b"]),
      (#"[\]\\\b]"#, ["]", "\\", "\u{8}"], ["b"]),
      (#"[({.*+?^$|})\[/]"#, ["(", "[", "$", "/"], ["\\"]),
      (#"\x41\u0042\u{43}\u{1F600}\ud83d\ude00"#, ["ABC\u{1f600}\u{1f600}"], ["ABC"]),
      (#"\t\n\v\f\r\0\.\/"#, ["\t\n\u{b}\u{c}\r\0./"], []),
      (#"\p{L}\p{Lu}\P{L}"#, ["éÉ1"], ["éé1", "1É1", "éÉé"]),
      (#"[\p{Nd}\P{Ll}]"#, ["٥", "A"], ["a"]),
      (#"(([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)\.)*[a-z]{2,63}"#, ["www.example.org", "org"], ["-a.org", "a..org"]),
    ] as [(String, [String], [String])])
  func language(pattern: String, matching: [String], differing: [String]) throws {
    for text in matching { #expect(try matches(pattern, text), "\(pattern) \(text)") }
    for text in differing { #expect(try !matches(pattern, text), "\(pattern) \(text)") }
  }

  @Test(
    "that are malformed, or look around or back, are refused with the place",
    arguments: [
      ("(a", 1), ("a)", 2), ("a(?=b)", 2), ("(?!a)", 1), ("(?<=a)b", 1), ("(?<n>a)", 1), ("(?i)a", 1), (#"(a)\1"#, 4),
      (#"\k<n>"#, 1), ("*a", 1), ("a**", 3), ("a{", 2), ("a{,3}", 2), ("a{1", 2), ("a{3,2}", 2), ("a}", 2), ("]", 1),
      ("[a", 1), ("[z-a]", 2), (#"[a-\d]"#, 2), (#"\"#, 1), (#"\q"#, 1), (#"\-"#, 1), (#"\ud83d"#, 1),
      (#"\u{110000}"#, 1),
      (#"\x4"#, 1), (#"\p{Letter}"#, 1), (#"\p"#, 1), (#"\00"#, 1), ("^*", 2), (#"[\B]"#, 2), (#"\cA"#, 1),
    ] as [(String, Int)])
  func malformed(pattern: String, character: Int) {
    #expect(TextPattern.problem(of: pattern)?.position == character - 1, "\(pattern)")
  }

  /// Inputs with which engines that backtrack, or parse without a limit, hang, crash, or take gigabytes.
  @Test("are bounded in length, nesting and size before anything is built from them")
  func bounds() {
    func problem(_ pattern: String) -> String? { TextPattern.problem(of: pattern)?.reason }
    func nested(_ open: String, _ close: String, _ depth: Int) -> String {
      String(repeating: open, count: depth) + "a" + String(repeating: close, count: depth)
    }
    #expect(problem(nested("(", ")", 32)) == nil)
    #expect(problem(nested("(?:", ")*", 33))?.contains("nested deeper than 32") == true)
    #expect(problem(nested("(", ")", 5_000))?.contains("longer than 2000") == true)
    #expect(problem(String(repeating: "[", count: 5_000)) != nil)
    #expect(problem(String(repeating: "[", count: 1_900)) != nil)
    #expect(problem(String(repeating: "a", count: 2_000)) == nil)
    #expect(problem(String(repeating: "é", count: 2_001)) != nil)
    #expect(problem(String(repeating: "(a|b)", count: 2_000_000)) != nil)
    for pattern in [
      "a{10001}", "a{99999999999999999999}", "((a{100}){100}){100}", "((){10000}){10000}", "(a{9,}){2000}",
    ] {
      #expect(problem(pattern)?.contains("10000") == true, "\(pattern)")
    }
  }

  @Test("are compared in steps that grow with the text, not with the ways to match it")
  func steps() throws {
    let text = String(repeating: "a", count: 10_000)
    for pattern in ["(a+)+$", "(a|a)*", "(a*)*b|a*", "(a|aa)+", "([a-z]+)*x|(.*)*"] {
      #expect(try matches(pattern, text), "\(pattern)")
      #expect(try !matches(pattern.replacing("$", with: ""), text + "\n"), "\(pattern)")
    }
    #expect(try !matches("(a+)+$", text + "b"))
  }

  @Test("stop at a comparison that would take too many steps, and say so")
  func tooLong() throws {
    let pattern = "(?:a*){2000}"
    let limit = SettingLimit.pattern(pattern)
    let text = Value.string(String(repeating: "a", count: 4_000))
    #expect(try TextPattern(pattern).compare(String(repeating: "a", count: 4_000)) == .tooLong)
    #expect(!limit.allows(text))
    #expect(limit.refusal(of: text).hasSuffix("and the value is too long to compare"))
    #expect(limit.refusal(of: .string("b")).hasSuffix("and the value is not"))
  }
}
