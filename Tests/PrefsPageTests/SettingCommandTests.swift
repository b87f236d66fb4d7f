import Coffer
import TestSupport
import Testing

@testable import PrefsPage

@Suite("A command that the page copies") struct SettingCommandTests {
  private static let names = [
    "plain", "a b", "it's; exit 3", "$(exit 3)", "-c", "n\nl", "\u{202E}x", "back\\slash", "a/b",
  ]

  /// The words that a shell gives to the program.
  private func read(_ command: String) throws -> [String] {
    let script = "prefs() { printf '%s\\0' \"$@\"; }; " + command
    let child = try Child.run("/bin/sh", ["-c", script])
    #expect(child.status == 0, "\(command)")
    return child.text.split(separator: "\0", omittingEmptySubsequences: false).dropLast().map(String.init)
  }

  /// The options of the store that other tests have open come behind the words, in front of `--`.
  private func expect(_ command: String, _ words: [String], operands: [String]) throws {
    let found = try read(command)
    if operands.contains(where: { $0.hasPrefix("-") }) {
      #expect(found.starts(with: words) && found.suffix(operands.count + 1) == ["--"] + operands, "\(command)")
    } else {
      #expect(found.starts(with: words + operands), "\(command)")
    }
  }

  @Test("is read by any shell as it was meant, whatever the names and the value are", arguments: names)
  func words(_ name: String) throws {
    for (key, collection) in [(name, ""), ("k", name), (name, name), (name, "a/b")] {
      let isPlain = !(key + collection).contains("/")
      let operand = isPlain && !collection.isEmpty ? "\(collection)/\(key)" : key
      let place = isPlain ? [] : collection.hasPrefix("-") ? ["-c=\(collection)"] : ["-c", collection]
      let command = SettingCommand(key, collection)
      try expect(command.opening, ["ui"] + place, operands: [operand])
      let setting = try #require(try command.setting(.string(name), isHidden: false))
      try expect(setting, ["set", "--type", "string"] + place, operands: [operand, name])
      try expect(#require(try command.setting(nil, isHidden: true)), ["set", "--secret"] + place, operands: [operand])
    }
  }
}
