import Coffer

/// A command that a message names, with the options that led to the store.
package enum CommandHint {
  /// The options that named the store which the command is about.
  ///
  /// Unsafe: sessions, which set it, are made by the one thread that runs the command.
  nonisolated(unsafe) static var storeOptions = ""

  /// - Parameter words: The words after `prefs`, as a shell reads them.
  package static func text(_ words: String) -> String { "prefs \(words)\(storeOptions)" }

  /// - Parameters:
  ///   - words: The words after `prefs`, as a shell reads them.
  ///   - operand: The word behind them, which is no option even if it begins with a dash.
  package static func text(_ words: String, operand: String) -> String { text(words, operands: [operand]) }

  /// - Parameter operands: The words behind them, which are no options even if they begin with a dash.
  package static func text(
    _ words: String, operands: [String], quoting: (String) -> String = ShellWord.quoted
  ) -> String {
    let end = operands.map { " " + quoting($0) }.joined()
    return operands.contains { $0.utf8.first == UInt8(ascii: "-") } ? "\(text(words)) --\(end)" : text(words + end)
  }
}
