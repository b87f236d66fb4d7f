import Coffer
import PrefsCommands

/// The commands of `prefs` that do in a terminal what the page does with a setting.
struct SettingCommand {
  private let name: String
  /// The option of its collection, if that is not in the name.
  private let place: String

  init(_ key: String, _ collection: String) {
    // Only names with one slash are read without the store.
    let isPlain = !collection.utf8.contains(UInt8(ascii: "/")) && !key.utf8.contains(UInt8(ascii: "/"))
    name = isPlain && !collection.isEmpty ? "\(collection)/\(key)" : key
    place = isPlain ? "" : " " + ShellWord.option("-c", collection, quoting: ShellWord.executed)
  }

  /// Opens the page at the setting.
  var opening: String { line("ui", []) }

  /// It is copied, and not shown: any shell has to read it.
  private func line(_ words: String, _ values: [String]) -> String {
    CommandHint.text(words + place, operands: [name] + values, quoting: ShellWord.executed)
  }

  /// Sets a value; one that is secret or sealed is asked for.
  ///
  /// - Parameter value: nil if it is not shown.
  /// - Returns: nil if there is no value, or none that an argument can hold.
  func setting(_ value: Value?, isHidden: Bool) throws -> String? {
    if isHidden { return line("set --secret", []) }
    guard let value else { return nil }
    let type: String
    switch value {
    case .null, .secret: return nil
    case .uint64: type = Value.Kind.int.name
    default: type = value.kind.name
    }
    let isTree = value.kind == .array || value.kind == .dictionary
    let text = isTree ? try EditedText.text(of: value) : ValueText.text(value)
    // A dash alone stands for standard input.
    guard !text.utf8.contains(0), text.utf8.count <= Self.argumentByteCount, text != "-" else { return nil }
    return line("set --type \(type)", [text])
  }

  /// Longer values do not belong on a command line.
  private static let argumentByteCount = 4096
}
