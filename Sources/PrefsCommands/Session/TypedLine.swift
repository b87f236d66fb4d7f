import ArgumentParser

/// The command line up to the cursor, as a completion script passes it on.
struct TypedLine {
  /// The words before the one to complete, without quotes.
  let words: [String]
  /// The typed part of the word, without quotes.
  let prefix: String
  /// The typed part before the part that bash replaces.
  private let kept: TypedWord?

  /// The variable with the part of the word that bash replaces, after an underscore, as it may be empty.
  static let replacedVariable = "PREFS_COMPLETED_PART"

  init(_ words: [String], _ index: Int, _ prefix: String, for shell: CompletionShell?) {
    let isFish = shell == .fish
    // Before fish 4, its words come without quotes.
    let isUnquoted = isFish && (Int(CompletionShell.requestingVersion?.prefix { $0 != "." } ?? "") ?? 0) < 4
    func text(_ word: String) -> String { isUnquoted ? word : TypedWord(word, isFish: isFish).text }
    let isLast = index == words.count - 1
    let typed = isLast && shell != .bash ? prefix : words.indices.contains(index) ? words[index] : ""
    self.words = words.prefix(index).map(text)
    self.prefix = text(typed)
    if shell == .bash {
      let replaced =
        Environment.variable(Self.replacedVariable)?.unicodeScalars.dropFirst() ?? typed.unicodeScalars[...]
      let start = typed.unicodeScalars.dropLast(replaced.count)
      kept = TypedWord(typed.unicodeScalars.dropFirst(start.count).elementsEqual(replaced) ? String(start) : "")
    } else {
      kept = nil
    }
  }

  /// A name as the shell's script expects it.
  ///
  /// For bash it is quoted, without the part that bash keeps; for zsh colons get a backslash, because a description would begin
  /// there. zsh and fish quote names themselves.
  func candidate(_ name: String) -> String {
    guard let kept else {
      guard CompletionShell.requesting == .zsh else { return name }
      return name.replacing("\\", with: "\\\\").replacing(":", with: "\\:")
    }
    return TypedWord.quoted(
      String(decoding: name.utf8.dropFirst(kept.text.utf8.count), as: UTF8.self), after: kept.quote)
  }
}
