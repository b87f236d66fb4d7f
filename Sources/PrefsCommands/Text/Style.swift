/// Colour for a word, or none.
struct Style {
  let isOn: Bool

  func good(_ text: String) -> String { colored(text, "32") }

  func bad(_ text: String) -> String { colored(text, "31") }

  private func colored(_ text: String, _ code: String) -> String {
    isOn ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text
  }
}
