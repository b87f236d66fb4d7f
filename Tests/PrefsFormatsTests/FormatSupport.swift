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
