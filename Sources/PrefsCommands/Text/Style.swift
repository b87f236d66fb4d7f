/// Colour for a word, or none.
package struct Style {
  let isOn: Bool

  func good(_ text: String) -> String { colored(text, "32") }

  func bad(_ text: String) -> String { colored(text, "31") }

  /// The word for a type; another colour for what is not shown.
  func kind(_ name: String, isHidden: Bool) -> String { colored(name, isHidden ? "33" : "36") }

  /// What is there for the sake of completeness.
  func faint(_ text: String) -> String { colored(text, "2") }

  private func colored(_ text: String, _ code: String) -> String {
    isOn ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text
  }
}
