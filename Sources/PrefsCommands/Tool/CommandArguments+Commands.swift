import ArgumentParser
import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

// Prepares the arguments of the process for the parser, by the names of the commands.

extension CommandArguments {
  /// The arguments after the program's name.
  ///
  /// `CommandLine.arguments` repairs invalid UTF-8, and would so store another value than the one given.
  ///
  /// The arguments of the program that `exec` starts may be other bytes; see ``bytes(_:)``.
  ///
  /// - Throws: ``Failure`` with the status `usage` when an argument is not UTF-8, `other` when they cannot be read.
  package static func ofThisProcess() throws -> [String] {
    // On Linux, Swift reads them from there.
    guard CommandLine.argc > 0 else {
      throw Failure(.other, "the arguments cannot be read without /proc. Mount it: mount -t proc proc /proc.")
    }
    var arguments: [String] = []
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let bytes = CommandLine.unsafeArgv[index] else { break }
      if let argument = String(validatingCString: bytes) {
        arguments.append(argument)
      } else if isForOtherProgram(after: arguments) {
        arguments.append(bytesMark + HexText.text(UnsafeRawBufferPointer(start: bytes, count: strlen(bytes))))
      } else {
        throw Failure(
          .usage, "argument \(index) is not valid UTF-8. Pass other bytes with - or --value-file, and --type data.")
      }
    }
    return arguments
  }

  /// Whether the next argument is one of the program that `exec` starts.
  private static func isForOtherProgram(after arguments: [String]) -> Bool {
    guard let end = arguments.firstIndex(of: "--"), arguments.count > end + 1 else { return false }
    return commandName(in: arguments) == ExecCommand.configuration.commandName
  }

  /// The arguments with the negative numbers before `--` marked as values.
  static func marked(_ arguments: [String]) -> [String] {
    let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
    let command = commandName(in: arguments)
    // In commands that list names, `-0` is the option that separates them by NUL; elsewhere it is a number.
    let zeroIsNumber = command.map { !PrefsCommand.listingCommandNames.contains($0) } ?? false
    return arguments[..<end].map { argument in
      isNegativeNumber(argument) && (argument != "-0" || zeroIsNumber) ? "\(mark)\(argument)" : argument
    } + arguments[end...]
  }

  /// The name of the command in the arguments.
  static func commandName(in arguments: [String]) -> String? {
    words(in: arguments).first.flatMap { PrefsCommand.commandNames.contains($0) ? $0 : nil }
  }

  /// The arguments with the options before the name of a subcommand, if any, behind it: subcommands alone take them.
  package static func movingOptions(_ arguments: [String], behindCommandOf root: any ParsableCommand.Type) -> [String] {
    // A completion script names the command after its request.
    guard arguments.first != PrefsTool.completionRequest, let first = indexOfFirstWord(in: arguments) else {
      return arguments
    }
    var (command, index) = (root, first)
    while index < arguments.endIndex,
      let next = command.configuration.subcommands.first(where: { names($0, arguments[index]) })
    {
      (command, index) = (next, index + 1)
    }
    return Array(arguments[first..<index] + arguments[..<first] + arguments[index...])
  }

  // MARK: - One command

  /// Parses with the named command alone: with the whole tree, `list` takes 33 million instructions instead of 20, most of them
  /// for the types of commands that were not named.
  ///
  /// - Returns: The command, ready to run; nil if that is ambiguous, invalid, or a request for help, which the tree
  ///   then handles.
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

  /// The index of the command's name; nil if the arguments before it are ambiguous.
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

  /// Options of commands that take any next argument as their value.
  static let greedyOptions: Set<String> = [
    "--default", "--prefix", "--only", "--allow", "--label", "--confirm", "--drop", "--match", "--keep", "--off",
  ]

  /// Whether the value of such an option looks like an option, which the tree, unlike the command, might parse as
  /// one.
  private static func takesCommonOption(_ arguments: ArraySlice<String>) -> Bool {
    zip(arguments, arguments.dropFirst()).contains { greedyOptions.contains($0) && $1.hasPrefix("-") }
  }

  // MARK: - Unknown commands

  /// Names of our commands in other tools.
  private static let foreignNames = [
    "ls": "list", "dir": "list", "keys": "list", "rm": "unset", "del": "unset", "remove": "unset", "mv": "rename",
    "cp": "copy", "compare": "diff",
    "move": "rename", "cat": "get", "show": "get", "put": "set", "insert": "set", "grep": "find", "search": "find",
    "verify": "doctor", "vacuum": "compact", "run": "exec", "dump": "export", "new": "init",
    "rekey": "rotate", "check": "validate", "lint": "validate", "fsck": "doctor", "undo": "revert", "restore": "revert",
    "environment": "env", "dotenv": "export", "info": "status", "stat": "status",
  ]
  /// The same for subcommands, such as those of `key`.
  private static let foreignSubcommandNames = [
    "rm": "remove", "del": "remove", "delete": "remove", "unset": "remove", "drop": "remove", "ls": "list",
    "show": "print",
    "new": "create", "make": "create", "rename": "label",
  ]

  /// The name that was probably meant by a word which is none.
  private static func nearest(_ word: String, among names: some Collection<String>, isTop: Bool, isHelp: Bool)
    -> String?
  {
    let foreign = [isTop ? foreignNames[word] : nil, foreignSubcommandNames[word]].compactMap(\.self)
    let beginning = names.filter { word.utf8.count > 2 && $0.hasPrefix(word) }
    // Help is asked for by the name of a command, not by what it is about.
    let singular = isHelp ? names.first { word == $0 + "s" } : nil
    return singular ?? foreign.first { names.contains($0) } ?? (beginning.count == 1 ? beginning.first : nil)
      ?? NearName.best(for: word, among: names.sorted() + ["help"])
  }

  /// The failure for an unknown command, with the nearest known one; nil if the command is known.
  static func unknownCommand(in arguments: [String], of root: any ParsableCommand.Type) -> Failure? {
    var command = root
    var path = root.configuration.commandName ?? ""
    for word in words(in: arguments) where word != "help" {
      let subcommands = command.configuration.subcommands
      if subcommands.isEmpty { return nil }
      guard let next = subcommands.first(where: { PrefsCommand.names(of: [$0]).contains(word) }) else {
        let near = nearest(
          word, among: PrefsCommand.names(of: subcommands), isTop: command == PrefsCommand.self,
          isHelp: words(in: arguments).first == "help")
        // It may be a secret that is meant as the value of that option, which the parser names.
        if near == nil, isBehindOption(word, in: arguments) { return nil }
        // A value, or the whole store.
        let isRestore = word == "restore" && command == PrefsCommand.self
        let hint =
          isRestore
          ? "; \"revert\" brings back an earlier value, and \"restore-store\" a backup."
          : near.map { "; did you mean \"\($0)\"?" } ?? "."
        return Failure(.usage, "there is no command \"\(path) \(word)\"\(hint) Run `\(path) --help` for a list.")
      }
      (command, path) = (next, "\(path) \(word)")
    }
    return nil
  }

  private static func isBehindOption(_ word: String, in arguments: [String]) -> Bool {
    guard let index = arguments.firstIndex(of: word), index > 0 else { return false }
    return arguments[index - 1].hasPrefix("-")
  }

  /// An error of the parser without the arguments that may be secrets where none is expected.
  ///
  /// Those for options of another type stay, but for a descriptor, which many take for the secret itself.
  static func withoutSecrets(_ text: String, _ arguments: [String]) -> String {
    let isSuspect = ["nexpected argument", "does not take any value", "-fd <"].contains { text.contains($0) }
    guard isSuspect else { return text }
    let values = arguments.flatMap { argument -> [Substring] in
      guard argument.hasPrefix("-") else { return [argument[...]] }
      return Array(argument.split(separator: "=", maxSplits: 1).dropFirst())
    }
    return values.reduce(text) { $0.replacing("'\($1)'", with: "'…'") }
  }
}
