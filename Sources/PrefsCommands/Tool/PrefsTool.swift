import ArgumentParser
import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The `prefs` command-line tool as a library.
///
/// `Sources/prefs/main.swift` calls ``main()`` and nothing else.
public enum PrefsTool {
  /// The version that `prefs --version` prints.
  public static let version = "0.1.0"

  /// What a program prints if its arguments ask for its version; nil if they do not.
  ///
  /// With `--verbose` it names the libraries, too.
  ///
  /// - Parameter others: The versions of the libraries that only this program has.
  package static func versionText(
    of program: String, for arguments: [String], others: @autoclosure () -> [String] = []
  ) -> String? {
    guard arguments.contains("--version"), arguments.allSatisfy(["--version", "--verbose", "-v"].contains) else {
      return nil
    }
    var lines = ["\(program) \(version)"]
    if arguments.count > 1 {
      let place = Libraries.areInside ? "They are inside this program." : "They are the system's."
      lines += Libraries.versions + others() + [place]
    }
    return lines.map { $0 + "\n" }.joined()
  }

  /// Runs the tool with the arguments of this process, and ends the process with its exit code.
  public static func main() -> Never {
    prepare()
    exit(run())
  }

  /// Runs the one command of a program beside the tool with the arguments of this process, and ends the process with its
  /// exit code.
  ///
  /// - Parameter name: The subcommand that the name of the program stands for, if it has several.
  package static func main(_ command: any ParsableCommand.Type, under name: String? = nil) -> Never {
    prepare()
    do {
      let arguments = [name].compactMap(\.self) + (try CommandArguments.ofThisProcess())
      try Environment.check()
      if try printCompletionScript(arguments, of: command) { exit(ExitStatus.success.rawValue) }
      var parsed = try command.parseAsRoot(CommandArguments.movingOptions(arguments, behindCommandOf: command))
      Cryptography.setUpAlone(withNamesAndWords: false)
      try parsed.run()
      exit(ExitStatus.success.rawValue)
    } catch {
      exit(report(error, of: Array(CommandLine.arguments.dropFirst()), root: command))
    }
  }

  /// What a program does before anything secret is in its memory.
  package static func prepare() {
    Libraries.prepare()
    FileDescriptor.rememberPassed()
    FileDescriptor.reserveStandard()
    // If the system refuses, the tool works without it, and keys are left out of dumps one by one.
    CoreLimit.remember()
    try? CoreDumps.disable()
    Hardening.turnOffBacktraces()
    SignalHandlers.set()
  }

  /// The argument with which completion scripts call the tool.
  static let completionRequest = "---completion"

  private static func run() -> Int32 {
    do {
      let arguments = try CommandArguments.ofThisProcess()
      try Environment.check()
      // Handle frequent requests before the full command tree, which takes 40 pages of memory.
      if let request = PlainArguments.request(arguments) {
        Cryptography.setUpAlone(withNamesAndWords: false)
        try request.run()
      } else if let text = versionText(of: "prefs", for: arguments) {
        try StandardOutput.write(text)
      } else if arguments == ["help", "options"] {
        try StandardOutput.write(HelpText.options)
      } else if let failure = try startProgram(arguments) {
        throw failure
      } else if arguments.first == completionRequest {
        Cryptography.setUpAlone(withNamesAndWords: false)
        // The words of an unfinished command line, passed on unchanged.
        _ = try PrefsCommand.parseAsRoot(arguments)
      } else {
        let marked = CommandArguments.marked(arguments)
        var command = try CommandArguments.parseAlone(marked) ?? PrefsCommand.parseAsRoot(marked)
        // SQLCipher looks algorithms up by legacy names; a start without them is a tenth faster.
        Cryptography.setUpAlone(withNamesAndWords: command is ImportCommand)
        try command.run()
      }
      return ExitStatus.success.rawValue
    } catch {
      return report(error, of: Array(CommandLine.arguments.dropFirst()))
    }
  }

  /// Starts the program `prefs-NAME` if the first argument is not a command but the name of a program installed with
  /// the tool.
  ///
  /// - Returns: The error; nil if there is no such program.
  private static func startProgram(_ arguments: [String]) throws -> Failure? {
    // `help NAME …` stands for `NAME … --help`, and a completion script names the command after its request.
    let isCompletion = arguments.first == completionRequest
    guard var index = isCompletion ? 0 : CommandArguments.indexOfFirstWord(in: arguments) else { return nil }
    let isHelp = arguments[index] == "help"
    if isHelp || isCompletion { index += 1 }
    guard index < arguments.endIndex, !PrefsCommand.isBuiltIn(arguments[index]),
      let program = ProgramBeside(named: arguments[index])
    else { return nil }
    let own = arguments[(index + 1)...]
    if isHelp { return try program.replaceProcess(Array(own) + ["--help"]) }
    // Options come before or after the name, as with the commands of the tool itself.
    return try program.replaceProcess(Array(arguments[..<index] + own))
  }

  // MARK: - Errors

  /// Reports `error` to the user, and as JSON with `--json`, and returns its exit code.
  ///
  /// - Parameter root: The command that the arguments were parsed for.
  package static func report(
    _ error: any Error, of arguments: [String], root: any ParsableCommand.Type = PrefsCommand.self
  ) -> Int32 {
    let outcome = outcome(of: error, root)
    let name = CommandArguments.commandName(in: arguments)
    let isExec = name == ExecCommand.configuration.commandName
    let code =
      if isExec, !(error is ExitCode) {
        ExitStatus.ofExec(outcome.code)
      } else if name == DiffCommand.configuration.commandName, !(error is ExitCode) {
        ExitStatus.ofDiff(outcome.code)
      } else {
        outcome.code
      }
    guard let lines = outcome.lines else { return code }
    Message.error(lines: lines)
    if !isExec, arguments.prefix(while: { $0 != "--" }).contains("--json") {
      let failure = Failure(ExitStatus(rawValue: outcome.code) ?? .other, lines.joined(separator: "\n"))
      try? StandardOutput.write(failure.json(code: code, store: CommandSession.firstPath) + "\n")
    }
    return code
  }

  /// The exit code and the lines of the message for `error`.
  private static func outcome(
    of error: any Error, _ root: any ParsableCommand.Type
  ) -> (code: Int32, lines: [String]?) {
    switch error {
    case let failure as Failure: (failure.status.rawValue, [failure.message] + failure.details)
    case let error as CofferError:
      switch error {
      case .diskFull(let path)
      where CommandSession.firstPath.map({ FilePlace.isTaken($0) && OutputFile.isPart(path, ofStore: $0) }) ?? false:
        (
          error.exitStatus.rawValue,
          [
            "\(error.description) Reading works without space, writing and removing do not. If nothing else can be moved away, "
              + "move the store: \(CommandHint.text("backup OTHER-DISK/FILE")), and use the copy with -d OTHER-DISK/FILE."
          ]
        )
      case .rolledBack, .anotherStore, .vaultKeyUnverified:
        (
          error.exitStatus.rawValue,
          ["\(error.description) To accept it, run: \(CommandHint.text("doctor --accept-older"))"]
        )
      default: outcome(of: Failure(error), root)
      }
    case let report as UnwrittenReport: outcome(of: report, root)
    case let code as ExitCode: (code.rawValue, nil)
    // The code that SIGPIPE would have caused, had the caller not chosen to ignore it.
    case is ClosedPipe: (128 + SIGPIPE, nil)
    default: outcomeOfParsing(error, root)
    }
  }

  private static func outcome(
    of report: UnwrittenReport, _ root: any ParsableCommand.Type
  ) -> (code: Int32, lines: [String]?) {
    let (code, lines) = outcome(of: report.cause, root)
    let cause = lines ?? ["standard output: the reader has closed it."]
    return (code, ["\(report.done); only the report of that could not be written: \(cause.joined(separator: " "))"])
  }

  /// Whether the arguments ask for the list of commands.
  private static var isHelpOfAll: Bool {
    [[], ["help"], ["-h"], ["--help"]].contains(Array(CommandLine.arguments.dropFirst()))
  }

  /// The programs beside the tool, and what they do.
  private static var programsBeside: [(name: String, abstract: String)] {
    let abstracts = [
      "fleet": "Share settings between hosts.", "keyring": "Keep the secrets of git, docker and other programs.",
      "serve": "Serve settings to a program in another language.",
      "ui": "Show and edit settings in a browser.",
    ]
    return ProgramBeside.names().map { ($0, abstracts[$0] ?? "") }
  }

  /// Help, version and the errors of the argument parser, whose own exit code for wrong usage is 64.
  private static func outcomeOfParsing(
    _ error: any Error, _ root: any ParsableCommand.Type
  ) -> (code: Int32, lines: [String]?) {
    let code = root.exitCode(for: error)
    let arguments = Array(CommandLine.arguments.dropFirst())
    if let failure = CommandArguments.unknownCommand(in: arguments, of: root) {
      return outcome(of: failure, root)
    }
    let text = CommandArguments.withoutSecrets(CommandArguments.unmarked(root.fullMessage(for: error)), arguments)
    if code == .success {
      var output = StandardOutput()
      do {
        if isHelpOfAll, root == PrefsCommand.self {
          output.write(HelpText.top(programs: programsBeside))
        } else {
          output.write(HelpText.page(text))
          output.write("\n")
        }
        try output.finish()
        return (ExitStatus.success.rawValue, nil)
      } catch {
        return outcome(of: error, root)
      }
    }
    let prefix = "Error: "
    let message = text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text
    return (
      code == .validationFailure ? ExitStatus.usage.rawValue : code.rawValue,
      message.isEmpty ? nil : message.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    )
  }
}
