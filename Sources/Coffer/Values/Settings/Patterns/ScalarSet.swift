/// A set of characters in a pattern: ranges, and Unicode categories.
struct ScalarSet: Sendable {
  private var ranges: [ClosedRange<UInt32>]
  /// A bit for each of ``categories``.
  private var categoryBits: UInt32 = 0
  private var isNegated = false

  init(_ ranges: [ClosedRange<UInt32>] = []) { self.ranges = ranges }

  init(_ scalar: Unicode.Scalar) { self.init([scalar.value...scalar.value]) }

  func contains(_ scalar: Unicode.Scalar) -> Bool {
    let isMember =
      ranges.contains { $0.contains(scalar.value) }
      || categoryBits != 0 && categoryBits & Self.bit(of: scalar.properties.generalCategory) != 0
    return isMember != isNegated
  }

  /// All other characters.
  var negated: ScalarSet {
    var set = self
    set.isNegated.toggle()
    return set
  }

  /// Adds the characters of another set; a negated one must be of ranges alone, or of categories alone.
  mutating func formUnion(_ other: ScalarSet) {
    ranges += other.isNegated && other.categoryBits == 0 ? Self.complement(of: other.ranges) : other.ranges
    if other.categoryBits != 0 { categoryBits |= other.isNegated ? ~other.categoryBits : other.categoryBits }
  }

  /// - Parameter ranges: In ascending order, without overlaps.
  private static func complement(of ranges: [ClosedRange<UInt32>]) -> [ClosedRange<UInt32>] {
    var complement: [ClosedRange<UInt32>] = []
    var start: UInt32 = 0
    for range in ranges {
      if start < range.lowerBound { complement.append(start...range.lowerBound - 1) }
      start = range.upperBound + 1
    }
    return complement + [start...0x10ffff]
  }

  // MARK: The classes of ECMA-262

  /// `\d`: ASCII digits.
  static let digits = ScalarSet([0x30...0x39])
  /// `\w`: ASCII letters, digits and the underscore.
  static let words = ScalarSet([0x30...0x39, 0x41...0x5a, 0x5f...0x5f, 0x61...0x7a])
  /// `\s`: its white space and line terminators.
  static let spaces = ScalarSet([
    0x9...0xd, 0x20...0x20, 0xa0...0xa0, 0x1680...0x1680, 0x2000...0x200a, 0x2028...0x2029, 0x202f...0x202f,
    0x205f...0x205f, 0x3000...0x3000, 0xfeff...0xfeff,
  ])
  /// `.` stands for all others.
  static let lineTerminators = ScalarSet([0xa...0xa, 0xd...0xd, 0x2028...0x2029])

  // MARK: Categories

  /// The characters of a general category of Unicode, by its short name; nil if there is none.
  ///
  /// - Parameter name: `L` or `Lu`.
  init?(category name: String) {
    self.init()
    for (index, category) in Self.categories.enumerated() where category.name == name || category.name.prefix(1) == name
    {
      categoryBits |= 1 << UInt32(index)
    }
    if categoryBits == 0 { return nil }
  }

  private static func bit(of category: Unicode.GeneralCategory) -> UInt32 {
    categories.firstIndex { $0.category == category }.map { 1 << UInt32($0) } ?? 0
  }

  private static let categories: [(name: String, category: Unicode.GeneralCategory)] = [
    ("Lu", .uppercaseLetter), ("Ll", .lowercaseLetter), ("Lt", .titlecaseLetter), ("Lm", .modifierLetter),
    ("Lo", .otherLetter), ("Mn", .nonspacingMark), ("Mc", .spacingMark), ("Me", .enclosingMark),
    ("Nd", .decimalNumber), ("Nl", .letterNumber), ("No", .otherNumber), ("Pc", .connectorPunctuation),
    ("Pd", .dashPunctuation), ("Ps", .openPunctuation), ("Pe", .closePunctuation), ("Pi", .initialPunctuation),
    ("Pf", .finalPunctuation), ("Po", .otherPunctuation), ("Sm", .mathSymbol), ("Sc", .currencySymbol),
    ("Sk", .modifierSymbol), ("So", .otherSymbol), ("Zs", .spaceSeparator), ("Zl", .lineSeparator),
    ("Zp", .paragraphSeparator), ("Cc", .control), ("Cf", .format), ("Cs", .surrogate), ("Co", .privateUse),
    ("Cn", .unassigned),
  ]
}
