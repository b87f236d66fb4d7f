/// Optional colours for text.
package struct Style {
  let isOn: Bool

  func good(_ text: String) -> String { colored(text, "32") }

  func bad(_ text: String) -> String { colored(text, "31") }

  /// The name of a type; in another colour for a hidden value.
  func kind(_ name: String, isHidden: Bool) -> String { colored(name, isHidden ? "33" : "36") }

  /// Less important text.
  func faint(_ text: String) -> String { colored(text, "2") }

  private func colored(_ text: String, _ code: String) -> String {
    isOn ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text
  }
}
