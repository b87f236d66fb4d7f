/// A word of a shell's command line as typed: with quotes and backslashes, possibly unfinished.
struct TypedWord {
  /// A quote that is open at the end of a word.
  enum Quote: Character {
    case single = "'"
    case double = "\""
  }

  /// The word that a program would get.
  private(set) var text = ""
  /// The quote that is still open; nil for none.
  private(set) var quote: Quote?

  /// - Parameter isFish: Whether fish's rules hold: a backslash also counts within single quotes.
  init(_ typed: some StringProtocol, isFish: Bool = false) {
    var scalars = typed.unicodeScalars[...]
    var text = String.UnicodeScalarView()
    while let scalar = scalars.popFirst() {
      switch (quote, scalar) {
      case (nil, "'"): quote = .single
      case (nil, "\""): quote = .double
      case (.single?, "'"), (.double?, "\""): quote = nil
      case (_, "\\"):
        // At the end, the character that it stands for has not been typed yet.
        guard let next = scalars.first else { break }
        if Self.isEscaped(next, in: quote, isFish) {
          scalars.removeFirst()
          text.append(next)
        } else {
          text.append(scalar)
        }
      default: text.append(scalar)
      }
    }
    self.text = String(text)
  }

  private static func isEscaped(_ scalar: Unicode.Scalar, in quote: Quote?, _ isFish: Bool) -> Bool {
    switch quote {
    case nil: true
    case .single?: isFish && (scalar == "'" || scalar == "\\")
    case .double?: scalar == "\"" || scalar == "\\" || scalar == "$" || (scalar == "`" && !isFish)
    }
  }

  /// Text quoted for bash, so that nothing in it is expanded.
  ///
  /// - Parameter quote: The quote that is open before it. readline closes it, unless the last character is that quote.
  static func quoted(_ text: some StringProtocol, after quote: Quote?) -> String {
    var result = text.unicodeScalars.reduce(into: "") { $0 += quoted($1, after: quote) }
    switch (quote, text.unicodeScalars.last) {
    case (.single?, "'"): result.removeLast()
    case (.double?, "\""), (.double?, "!"): result += "\""
    default: break
    }
    return result
  }

  private static func quoted(_ scalar: Unicode.Scalar, after quote: Quote?) -> String {
    switch (quote, scalar) {
    case (nil, _): isPlain(scalar) ? String(scalar) : "\\\(scalar)"
    case (.single?, "'"): "'\\''"
    case (.double?, "\""), (.double?, "\\"), (.double?, "$"), (.double?, "`"): "\\\(scalar)"
    // Within double quotes, the backslash that prevents history expansion would stay.
    case (.double?, "!"): "\"\\!\""
    default: String(scalar)
    }
  }

  /// Whether a character needs no backslash; those that need none and end a word for readline get one.
  private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "A"..."Z", "0"..."9", "_", "-", ".", "/", "%", "+", ",": true
    default: !scalar.isASCII
    }
  }
}
