/// A word of a command that a message tells a person to run.
package enum ShellWord {
  /// The word as a shell reads it: in quotes, where a space, a `;` or a `$` in it would make another command of it.
  ///
  /// What a terminal must not show is escaped, as bash, zsh and ksh read it.
  package static func quoted(_ word: String) -> String {
    guard !word.unicodeScalars.contains(where: isHidden) else {
      return "$'" + word.unicodeScalars.map(escaped).joined() + "'"
    }
    return executed(word)
  }

  /// The word as every shell reads it, also one that knows no `$'…'`.
  package static func executed(_ word: String) -> String {
    let isPlain =
      !word.isEmpty
      && word.unicodeScalars.allSatisfy { scalar in
        scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || "_@%+:,./-".unicodeScalars.contains(scalar)
      }
    return isPlain ? word : "'" + word.replacing("'", with: #"'\''"#) + "'"
  }

  /// An option with its value, which may begin with a dash.
  package static func option(_ name: String, _ value: String, quoting: (String) -> String = quoted) -> String {
    "\(name)\(value.utf8.first == UInt8(ascii: "-") ? "=" : " ")\(quoting(value))"
  }

  /// Control characters, and those that reorder the text around them.
  private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }

  private static func escaped(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\n": #"\n"#
    case "\r": #"\r"#
    case "\t": #"\t"#
    case "\\", "'": "\\\(scalar)"
    case _ where isHidden(scalar):
      scalar.utf8.map { #"\x"# + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    default: "\(scalar)"
    }
  }
}
