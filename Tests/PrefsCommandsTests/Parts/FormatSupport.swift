import Coffer
import Testing

@testable import PrefsCommands
@testable import PrefsFormats

extension SettingsFormat {
  /// Reads a file whose names differ in more than their Unicode normalization.
  func value(_ bytes: [UInt8]) throws -> Value {
    try #require(try tree(bytes, reading: Self.reading).asValue)
  }

  func bytes(_ members: [String: Value], isBinary: Bool = false) throws -> [UInt8] {
    try bytes(.value(.dictionary(members)), isBinary: isBinary)
  }

  /// Reads YAML and TOML in this process: starting one takes longer than reading a small file.
  static let reading: @Sendable (String, SettingsFormat) throws -> FileTree = FormatsTool.tree
}

/// Numbers that are the same in every run (Vigna, splitmix64).
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}
