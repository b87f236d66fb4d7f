/// The parsed request of a command.
protocol Request {
  func run() throws
}

/// Parses the usual arguments of frequent commands without the argument parser, which takes longer than opening a store.
///
/// An option's value is the next argument, or follows a long option's `=`; it does not begin with a dash. Everything else,
/// including all error messages, is left to the argument parser.
struct PlainArguments: CommonArguments {
  /// The commands whose arguments are parsed.
  enum Command {
    case get, list, set, exec, log
  }

  let command: Command
  /// The arguments that are neither options nor their values.
  private(set) var words: [String] = []
  /// The command's options without a value.
  private(set) var flags: [String] = []
  /// The command's options with a value.
  private(set) var values: [(option: String, value: String)] = []
  /// What follows `--`; nil without it.
  private(set) var program: [String]?
  private(set) var collection: [String] = []
  private(set) var env: String?
  private var options = SessionOptions()

  var app: String? { options.app }
  var ofSession: SessionOptions { options }

  /// The options of which all values count.
  private static let repeatable = ["--allow", "--only"]

  /// - Parameter arguments: The arguments after the program's name.
  init?(_ arguments: [String]) {
    guard let index = Self.indexOfCommand(in: arguments), let command = Command(arguments[index]) else { return nil }
    self.command = command
    // The common options may come first.
    var rest = arguments[..<index]
    guard parse(&rest, isBeforeCommand: true) else { return nil }
    rest = arguments[(index + 1)...]
    guard parse(&rest, isBeforeCommand: false), collection.count <= 1 else { return nil }
  }

  private static func indexOfCommand(in arguments: [String]) -> Int? {
    var index = 0
    while index < arguments.endIndex, beginsWithDash(arguments[index]) {
      index += CommandArguments.optionsWithValue.contains(arguments[index]) ? 2 : 1
    }
    return index < arguments.endIndex ? index : nil
  }

  /// - Returns: false if the argument parser has to parse them.
  private mutating func parse(_ rest: inout ArraySlice<String>, isBeforeCommand: Bool) -> Bool {
    while let argument = rest.popFirst() {
      if !isBeforeCommand, command.flags.contains(argument) {
        flags.append(argument)
      } else if isWord(argument) {
        // `-` and negative numbers are words of no command there.
        if isBeforeCommand { return false }
        words.append(argument)
      } else if argument == "--" {
        program = Array(rest)
        return !isBeforeCommand && command == .exec
      } else if !take(flag: argument) {
        guard let (option, value) = Self.optionAndValue(argument, &rest) else { return false }
        if !isBeforeCommand, command.options.contains(option) {
          let name = option == "-o" ? "--output" : option == "-t" ? "--type" : option
          // The argument parser also checks a value that a later one replaces.
          if values.contains(where: { $0.option == name }), !Self.repeatable.contains(name) { return false }
          values.append((name, value))
        } else if !take(option, value) {
          return false
        }
      }
    }
    return true
  }

  private func isWord(_ argument: String) -> Bool {
    !Self.beginsWithDash(argument) || argument == "-"
      || CommandArguments.isNegativeNumber(argument) && (argument != "-0" || !command.lists)
  }

  /// Takes a common option without a value.
  private mutating func take(flag argument: String) -> Bool {
    switch argument {
    case "-q", "--quiet": options.quiet = true
    case "-v", "--verbose": options.verbose = true
    case "--no-input": options.noInput = true
    case "--must-exist": options.mustExist = true
    default: return false
    }
    return true
  }

  /// Takes a common option.
  private mutating func take(_ option: String, _ value: String) -> Bool {
    switch option {
    case "-c", "--collection":
      collection.append(value)
      return true
    case "--actor": options.actor = value
    case "-d", "--store": options.store = value
    case "--app": options.app = value
    case "--env": env = value
    case "--key-file": options.keyFile = value
    case "--vault-key-file": options.vaultKeyFile = value
    default: return false
    }
    return !value.isEmpty || option == "--actor"
  }

  private static func optionAndValue(
    _ argument: String, _ rest: inout ArraySlice<String>
  ) -> (option: String, value: String)? {
    if argument.utf8.starts(with: "--".utf8), let sign = argument.utf8.firstIndex(of: UInt8(ascii: "=")) {
      let value = argument[argument.utf8.index(after: sign)...]
      // A combining mark after the sign would hide it from the argument parser.
      guard let first = value.utf8.first, first < 0x80, !beginsWithDash(value) else { return nil }
      return (String(argument[..<sign]), String(value))
    }
    guard let value = rest.popFirst(), !beginsWithDash(value) else { return nil }
    return (argument, value)
  }

  /// Compares bytes: a combining mark after the dash would hide it from Character.
  private static func beginsWithDash(_ argument: some StringProtocol) -> Bool {
    argument.utf8.first == UInt8(ascii: "-")
  }

  // MARK: - What was given

  /// Whether an option without a value was given, by one of its names.
  func has(_ names: String...) -> Bool { flags.contains { names.contains($0) } }

  /// The value of an option, by its long name.
  func value(_ name: String) -> String? { values.first { $0.option == name }?.value }

  /// All values of an option.
  func allValues(_ name: String) -> [String] { values.filter { $0.option == name }.map(\.value) }
}

extension PlainArguments.Command {
  fileprivate init?(_ word: String) {
    switch word {
    case "get", "read": self = .get
    case "list": self = .list
    case "set", "write": self = .set
    case "exec": self = .exec
    case "log": self = .log
    default: return nil
    }
  }

  /// Whether `-0` separates what it lists; elsewhere it is a number.
  fileprivate var lists: Bool { [.list, .log].contains(self) }

  fileprivate var flags: [String] {
    let form = ["--json", "--plain", "-0", "--no-pager"]
    return switch self {
    case .get: ["--json", "-n", "--no-newline", "--base64", "--hex", "--show-origin"]
    case .list: form + ["-l", "--values", "--all", "--reveal"]
    case .set: ShortValueType.flags + ["--base64", "--hex", "--secret", "--strip-newline", "--if-absent"]
    case .exec: ["--pristine"]
    case .log: form
    }
  }

  fileprivate var options: [String] {
    switch self {
    case .get: ["--default", "-o", "--output"]
    case .list: []
    case .set: ["-t", "--type", "--value-file"]
    case .exec: ["--prefix", "--only", "--allow"]
    case .log: ["--since", "--limit"]
    }
  }
}
