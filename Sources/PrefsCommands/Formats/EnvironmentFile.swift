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
    if text.utf8.contains(0) { throw FormatProblem("it holds the character U+0000") }
    guard isWhole(text, of: value) else {
      throw FormatProblem("its text, as `prefs get` prints it, is not all of it; use another format")
    }
    _ = try EnvironmentQuotes.quoted(text)
    return .string(text)
  }

  /// Whether a value can be read again from its text: a date, and a list with no types but those of JSON.
  private static func isWhole(_ text: String, of value: Value) -> Bool {
    switch value {
    case .date(let date): Timestamp.date(text) == date
    case .array, .dictionary: (try? JSONReader.value(text).stored) == (try? value.stored)
    default: true
    }
  }

  /// The name under which a key is written.
  ///
  /// - Throws: ``FormatProblem``, also for a variable that bash or dash does not let a file set.
  static func writtenName(_ key: String) throws -> String {
    let name = try name(key)
    guard !shellsOwn.contains(name) else {
      throw FormatProblem("\(name) is a variable of the shell's own, which no file sets")
    }
    return name
  }

  /// https://www.gnu.org/software/bash/manual/html_node/Bash-Variables.html; OPTIND, which must be a number, by POSIX.
  private static let shellsOwn: Set<String> = [
    "_", "BASHOPTS", "BASHPID", "BASH_ALIASES", "BASH_ARGC", "BASH_ARGV", "BASH_ARGV0", "BASH_CMDS", "BASH_COMMAND",
    "BASH_LINENO", "BASH_SOURCE", "BASH_SUBSHELL", "BASH_VERSINFO", "COMP_WORDBREAKS", "DIRSTACK", "EPOCHREALTIME",
    "EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS", "HISTCMD", "LINENO", "OPTIND", "PIPESTATUS", "PPID", "RANDOM",
    "SECONDS", "SHELLOPTS", "SRANDOM", "UID",
  ]

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
