/// A command that a message names, with the options that led to the store.
package enum CommandHint {
  /// The options that named the store which the command is about.
  ///
  /// Unsafe: sessions, which set it, are made by the one thread that runs the command.
  nonisolated(unsafe) static var storeOptions = ""

  /// - Parameter words: The words after `prefs`, as a shell reads them.
  package static func text(_ words: String) -> String { "prefs \(words)\(storeOptions)" }

  /// - Parameter operand: A last word, as a shell reads it, that is no option even if it begins with a dash.
  package static func text(_ words: String, literally operand: String) -> String {
    "prefs \(words)\(storeOptions) -- \(operand)"
  }
}
