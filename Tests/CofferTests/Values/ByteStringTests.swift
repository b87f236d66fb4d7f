import Testing

@testable import Coffer

@Suite("Names and keys in memory") struct ByteStringTests {
  /// Short and long ones, as Swift keeps them apart; beginnings of each other; bytes on both sides of 127; a NUL.
  private static let strings = [
    "", "\0", "a", "a\0", "a\0b", "aa", "b", "é", "e\u{301}", "\u{7f}", "\u{80}", "\u{ffff}", "\u{10000}",
    "a key of more than fifteen bytes", "a key of more than fifteen bytes!", "a key of more than fifteen byteś",
  ]

  @Test("1.2 compare by their UTF-8 bytes", arguments: strings)
  func comparison(string: String) {
    for other in Self.strings {
      let (a, b) = (Array(string.utf8), Array(other.utf8))
      #expect((ByteString(string) == ByteString(other)) == (a == b), "\(a) \(b)")
      #expect((ByteString(string) < ByteString(other)) == a.lexicographicallyPrecedes(b), "\(a) \(b)")
    }
    #expect(Set(Self.strings.map(ByteString.init)).count == Self.strings.count)
  }
}
