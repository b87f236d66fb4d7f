import TestSupport
import Testing

@testable import CofferStorage

@Suite("A word of a command that a message tells a person to run") struct ShellWordTests {
  @Test(
    "is one word for the shell, and the same",
    arguments: [
      "", "a b", "it's", "''", "; exit 3", "$(exit 3)", "`exit 3`", "\\", "\"", "*", "~", "#", "!x", "a&b", "é",
      "/x-1.key",
    ])
  func quoted(_ word: String) throws {
    let child = try Child.run("/bin/sh", ["-c", "printf '<%s>' \(ShellWord.quoted(word))"])
    #expect(child.status == 0 && child.text == "<\(word)>")
  }

  @Test(
    "shows no control character, and is still the same", arguments: ["a\nb", "\u{1B}[1m", "\u{202E}'\\", "\u{85}é\t"])
  func hidden(_ word: String) throws {
    let quoted = ShellWord.quoted(word)
    #expect(!quoted.unicodeScalars.contains { [.control, .format].contains($0.properties.generalCategory) })
    let child = try Child.run("/bin/bash", ["-c", "printf '<%s>' \(quoted)"])
    #expect(child.status == 0 && child.text == "<\(word)>")
  }

  @Test("has no quotes that it does not need", arguments: ["/home/x/my_key-1.txt", "app@staging", "größe"])
  func plain(_ word: String) {
    #expect(ShellWord.quoted(word) == word)
  }
}
