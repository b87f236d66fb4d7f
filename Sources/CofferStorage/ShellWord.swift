/// A word of a command that a message tells a person to run.
package enum ShellWord {
  /// The word as a shell reads it: in quotes, where a space, a `;` or a `$` in it would make another command of it.
  package static func quoted(_ word: String) -> String {
    let isPlain =
      !word.isEmpty
      && word.unicodeScalars.allSatisfy { scalar in
        scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || "_@%+=:,./-".unicodeScalars.contains(scalar)
      }
    return isPlain ? word : "'" + word.replacing("'", with: #"'\''"#) + "'"
  }
}
