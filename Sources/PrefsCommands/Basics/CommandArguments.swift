import Coffer

/// The arguments of the process, as they pass through the parser.
package enum CommandArguments {
  /// A prefix for a value that begins with a dash.
  ///
  /// The parser takes `-5` for the option `5` and has no setting for negative numbers in positional arguments. They
  /// are passed through it with a NUL in front, which no process argument can contain, and stripped afterwards.
  static let mark: Character = "\0"

  /// A prefix for the hexadecimal digits of an argument that is not text.
  static let bytesMark = "\0\0"

  /// The bytes of an argument for another program.
  static func bytes(_ argument: String) -> [UInt8] {
    guard argument.utf8.starts(with: bytesMark.utf8) else { return Array(argument.utf8) }
    return HexText.bytes(String(argument.utf8.dropFirst(bytesMark.utf8.count)) ?? "") ?? []
  }

  /// The common options that take a value, which must not be mistaken for a command.
  static let optionsWithValue: Set<String> = [
    "-d", "--store", "--app", "--env", "--actor", "-c", "--collection", "--key-file", "--key-fd", "--passphrase-fd",
    "--recovery-key-fd", "--vault-key-file", "--vault-key-fd", "--timeout", "--color",
  ]

  /// The arguments that are neither options nor their values.
  static func words(in arguments: [String]) -> [String] {
    var words: [String] = []
    var isValue = false
    for argument in arguments.prefix(while: { $0 != "--" }) {
      if !isValue, !argument.hasPrefix("-") { words.append(argument) }
      isValue = !isValue && optionsWithValue.contains(argument)
    }
    return words
  }

  /// The index of the first argument that is neither an option nor its value; nil if there is none before `--`.
  static func indexOfFirstWord(in arguments: [String]) -> Int? {
    var index = 0
    while index < arguments.endIndex, arguments[index] != "--" {
      guard arguments[index].hasPrefix("-") else { return index }
      index += optionsWithValue.contains(arguments[index]) ? 2 : 1
    }
    return nil
  }

  /// The text without the marks.
  static func unmarked(_ text: String) -> String {
    text.contains(mark) ? text.filter { $0 != mark } : text
  }

  /// An argument without the prefix that ``marked(_:)`` may have added.
  static func value(_ argument: String) -> String {
    argument.first == mark ? String(argument.dropFirst()) : argument
  }

  static func isNegativeNumber(_ argument: String) -> Bool {
    guard argument.first == "-" else { return false }
    let rest = argument.dropFirst()
    if let first = rest.first(where: { $0 != "." }), ("0"..."9").contains(first) {
      return rest.prefix(while: { $0 == "." }).count <= 1
    }
    return ["inf", "infinity", "nan"].contains(rest.lowercased())
  }
}
