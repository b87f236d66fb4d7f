import ArgumentParser

/// The arguments of the process, made fit for the parser.
package enum CommandArguments {
  /// Stands before an argument that begins with a dash and yet is a value.
  ///
  /// The parser takes `-5` for the option `5`. It has no setting for negative numbers in positional arguments, so they go
  /// through it with a NUL in front, which no argument of a process can hold, and lose it on the other side.
  private static let mark: Character = "\0"

  /// The arguments after the program's name.
  ///
  /// `CommandLine.arguments` repairs what is not UTF-8, and would so store another value than the one given.
  ///
  /// - Throws: ``Failure`` with the status `usage` when an argument is not UTF-8, `other` when they cannot be read.
  package static func ofThisProcess() throws -> [String] {
    // On Linux Swift reads them from there.
    guard CommandLine.argc > 0 else {
      throw Failure(.other, "the arguments cannot be read without /proc. Mount it: mount -t proc proc /proc.")
    }
    var arguments: [String] = []
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let bytes = CommandLine.unsafeArgv[index] else { break }
      guard let argument = String(validatingCString: bytes) else {
        throw Failure(
          .usage, "argument \(index) is not valid UTF-8. Give other bytes through - or --value-file, with --type data.")
      }
      arguments.append(argument)
    }
    return arguments
  }

  /// The arguments with the negative numbers before `--` marked as values.
  static func marked(_ arguments: [String]) -> [String] {
    let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
    let command = commandName(in: arguments)
    // `-0` separates names by NUL in the commands that list them; elsewhere it is a number.
    let zeroIsNumber = command.map { !PrefsCommand.listingCommandNames.contains($0) } ?? false
    return arguments[..<end].map { argument in
      isNegativeNumber(argument) && (argument != "-0" || zeroIsNumber) ? "\(mark)\(argument)" : argument
    } + arguments[end...]
  }

  /// Which command the arguments name.
  static func commandName(in arguments: [String]) -> String? {
    words(in: arguments).first.flatMap { PrefsCommand.commandNames.contains($0) ? $0 : nil }
  }

  /// The common options that are followed by a value, which is not to be taken for a command.
  static let optionsWithValue: Set<String> = [
    "-d", "--store", "--app", "--env", "--actor", "-c", "--collection", "--key-file", "--key-fd", "--passphrase-fd",
    "--recovery-key-fd", "--vault-key-file", "--vault-key-fd", "--timeout", "--color",
  ]

  /// The arguments that are neither options nor their values.
  private static func words(in arguments: [String]) -> [String] {
    var words: [String] = []
    var isValue = false
    for argument in arguments.prefix(while: { $0 != "--" }) {
      if !isValue, !argument.hasPrefix("-") { words.append(argument) }
      isValue = !isValue && optionsWithValue.contains(argument)
    }
    return words
  }

  // MARK: - One command

  /// Parses for the command that the arguments name, and for no other: the whole tree takes twice as long.
  ///
  /// - Returns: The command, ready to run; nil where that is not so sure, or something is wrong, or help is asked for. Then
  ///   the tree has to say what it is.
  static func parseAlone(_ arguments: [String]) -> (any ParsableCommand)? {
    guard var index = indexOfCommand(in: arguments) else { return nil }
    let common = arguments[..<index]
    var command: any ParsableCommand.Type = PrefsCommand.self
    repeat {
      guard index < arguments.endIndex,
        let next = command.configuration.subcommands.first(where: { names($0, arguments[index]) })
      else { return nil }
      (command, index) = (next, index + 1)
    } while !command.configuration.subcommands.isEmpty
    let own = arguments[index...]
    guard !takesCommonOption(own) else { return nil }
    let parsed = try? command.parseAsRoot(Array(common) + own)
    return parsed.flatMap { type(of: $0) == command ? $0 : nil }
  }

  /// Where the command is named; nil where what stands before it is not clear at once.
  private static func indexOfCommand(in arguments: [String]) -> Int? {
    var index = 0
    while index < arguments.endIndex, arguments[index].hasPrefix("-") {
      if optionsWithValue.contains(arguments[index]) {
        index += 2
      } else if arguments[index].hasPrefix("--"), arguments[index] != "--" {
        index += 1
      } else {
        return nil
      }
    }
    return index < arguments.endIndex ? index : nil
  }

  private static func names(_ command: any ParsableCommand.Type, _ word: String) -> Bool {
    command.configuration.commandName == word || command.configuration.aliases.contains(word)
  }

  /// Options of commands that take whatever follows for their value.
  static let greedyOptions: Set<String> = [
    "--default", "--prefix", "--only", "--allow", "--label", "--confirm", "--drop", "--match", "--keep", "--off",
  ]

  /// Whether the value of such an option looks like an option, which the tree, but not the command, might take for one.
  private static func takesCommonOption(_ arguments: ArraySlice<String>) -> Bool {
    zip(arguments, arguments.dropFirst()).contains { greedyOptions.contains($0) && $1.hasPrefix("-") }
  }

  // MARK: - Unknown commands

  /// What other tools call our commands.
  private static let foreignNames = [
    "ls": "list", "dir": "list", "keys": "list", "rm": "unset", "del": "unset", "remove": "unset", "mv": "rename",
    "cp": "copy", "compare": "diff",
    "move": "rename", "cat": "get", "show": "get", "put": "set", "insert": "set", "grep": "find", "search": "find",
    "verify": "doctor", "vacuum": "compact", "run": "exec", "dump": "export", "new": "init",
    "rekey": "rotate",
  ]

  /// The failure for a command that there is not, with the nearest one there is; nil when the commands are fine.
  static func unknownCommand(in arguments: [String], of root: any ParsableCommand.Type) -> Failure? {
    var command = root
    var path = root.configuration.commandName ?? ""
    for word in words(in: arguments) where word != "help" {
      let subcommands = command.configuration.subcommands
      if subcommands.isEmpty { return nil }
      guard let next = subcommands.first(where: { PrefsCommand.names(of: [$0]).contains(word) }) else {
        let near =
          foreignNames[word].flatMap { PrefsCommand.names(of: subcommands).contains($0) ? $0 : nil }
          ?? NearName.best(for: word, among: PrefsCommand.names(of: subcommands).sorted() + ["help"])
        let hint = near.map { "; did you mean \"\($0)\"?" } ?? "."
        return Failure(.usage, "there is no command \"\(path) \(word)\"\(hint) Run `\(path) --help` for a list.")
      }
      (command, path) = (next, "\(path) \(word)")
    }
    return nil
  }

  /// The text without the marks.
  static func unmarked(_ text: String) -> String {
    text.contains(mark) ? text.filter { $0 != mark } : text
  }

  /// An argument without the mark that ``marked(_:)`` may have put in front of it.
  static func value(_ argument: String) -> String {
    argument.first == mark ? String(argument.dropFirst()) : argument
  }

  private static func isNegativeNumber(_ argument: String) -> Bool {
    guard argument.first == "-" else { return false }
    let rest = argument.dropFirst()
    if let first = rest.first(where: { $0 != "." }), ("0"..."9").contains(first) {
      return rest.prefix(while: { $0 == "." }).count <= 1
    }
    return ["inf", "infinity", "nan"].contains(rest.lowercased())
  }
}
