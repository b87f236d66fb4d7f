/// The keys and values of all contenders.
enum Samples {
  /// The collection that the keys are in.
  static let collection = "settings"

  static func key(_ number: Int) -> String { "setting.key.\(number)" }

  /// The first `count` keys, in an order that is the same in each run.
  static func keys(_ count: Int) -> [String] {
    var generator = Generator(state: 1)
    return (0..<count).shuffled(using: &generator).map(key)
  }

  /// A text of this many bytes, different for each number and version; those take up to 15.
  static func text(_ number: Int, version: Int, byteCount: Int = 100) -> String {
    let start = "\(version).\(number)."
    return start + String(repeating: "x", count: byteCount - start.utf8.count)
  }

  /// A text for each of `count` keys.
  static func texts(_ count: Int, version: Int) -> [String] {
    (0..<count).map { text($0, version: version) }
  }

  /// Numbers below `bound`, spread evenly, the same in each run.
  static func numbers(_ count: Int, below bound: Int, seed: Int) -> [Int] {
    var generator = Generator(state: UInt64(seed))
    return (0..<count).map { _ in Int.random(in: 0..<bound, using: &generator) }
  }

  /// SplitMix64, by Sebastiano Vigna.
  private struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var word = state
      word = (word ^ word >> 30) &* 0xbf58_476d_1ce4_e5b9
      word = (word ^ word >> 27) &* 0x94d0_49bb_1331_11eb
      return word ^ word >> 31
    }
  }
}
