import Coffer

/// A command that a message names, with the options that led to the store.
package enum CommandHint {
  /// The options that named the store which the command is about.
  ///
  /// Unsafe: sessions, which set it, are made by the one thread that runs the command.
  nonisolated(unsafe) static var storeOptions: [(name: String, value: String)] = []

  /// - Parameter words: The words after `prefs`, as a shell reads them.
  package static func text(_ words: String) -> String { text(words, quoting: ShellWord.quoted) }

  private static func text(_ words: String, quoting: (String) -> String) -> String {
    (["prefs", words] + options(storeOptions, quoting: quoting)).joined(separator: " ")
  }

  /// The options with their values, as a shell reads them.
  static func options(
    _ options: [(name: String, value: String)], quoting: (String) -> String = ShellWord.quoted
  ) -> [String] {
    options.map { ShellWord.option($0.name, $0.value, quoting: quoting) }
  }

  /// - Parameters:
  ///   - words: The words after `prefs`, as a shell reads them.
  ///   - operand: The word behind them, which is no option even if it begins with a dash.
  package static func text(_ words: String, operand: String) -> String { text(words, operands: [operand]) }

  /// - Parameter operands: The words behind them, which are no options even if they begin with a dash.
  package static func text(
    _ words: String, operands: [String], quoting: (String) -> String = ShellWord.quoted
  ) -> String {
    let end = operands.map { " " + quoting($0) }.joined()
    let hasDash = operands.contains { $0.utf8.first == UInt8(ascii: "-") }
    return hasDash ? "\(text(words, quoting: quoting)) --\(end)" : text(words + end, quoting: quoting)
  }
}
