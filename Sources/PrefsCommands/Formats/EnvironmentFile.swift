import Coffer

/// Settings as lines `NAME='value'`, readable by POSIX shells and `.env` parsers.
///
/// All values are text.
enum EnvironmentFile {
  // MARK: - Writing

  /// - Throws: ``FormatProblem``.
  static func text(_ tree: FileTree) throws -> String {
    try (tree.sortedMembers ?? []).map { member in
      let text = member.tree.asValue.map(ValueText.text) ?? ""
      return "\(member.name)=\(try EnvironmentQuotes.quoted(text))\n"
    }.joined()
  }

  /// The variable's value for a setting, as printed by `get`.
  ///
  /// - Throws: ``FormatProblem``.
  static func variable(_ value: Value) throws -> Value {
    let value = ValueText.revealed(value)
    if case .data = value { throw FormatProblem("a variable can hold only text, and this is data") }
    let text = ValueText.text(value)
    if Redaction.isPlaceholder(text) { throw FormatProblem("it would be read as a hidden secret") }
    if text.utf8.contains(0) { throw FormatProblem("it holds the character U+0000") }
    _ = try EnvironmentQuotes.quoted(text)
    return .string(text)
  }

  /// The variable's name for a key, as in `exec`.
  ///
  /// - Throws: ``FormatProblem``.
  static func name(_ key: String) throws -> String {
    let name = VariableName.of(key, prefix: "")
    guard !name.isEmpty else { throw FormatProblem("an empty key cannot be the name of a variable") }
    return name
  }

  // MARK: - Reading

  /// - Throws: ``FormatProblem``.
  static func tree(_ text: String) throws -> FileTree {
    var reader = EnvironmentReader(text)
    return try reader.variables()
  }
}
