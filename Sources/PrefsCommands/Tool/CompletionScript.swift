import ArgumentParser

/// A completion script of the tool, extended by the programs beside it.
///
/// The argument parser generates a script from the commands of one program. So each program generates one for a `prefs` with itself
/// as the only command, and the parts about the program are copied from there.
struct CompletionScript {
  private let shell: CompletionShell
  private var lines: [String]
  private var programs: [String] = []

  init(_ text: String, for shell: CompletionShell) {
    self.shell = shell
    lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  /// The script.
  var text: String {
    let text = offeringHelpTopics(lines.joined(separator: "\n"))
    switch shell {
    case .bash: return BashNames.added(to: text)
    // Without it, zsh would leave an exclamation mark without a backslash, which stands for the history.
    case .zsh: return text.replacing("unsetopt aliases banghist", with: "unsetopt aliases")
    default: return text
    }
  }

  /// Offers the commands behind `help`, where a generated script offers nothing.
  private func offeringHelpTopics(_ text: String) -> String {
    let commands = PrefsCommand.groups.flatMap { group in
      group.subcommands.compactMap { $0.configuration.commandName }
    }
    let names = (commands + programs + ["options"]).joined(separator: " ")
    guard shell != .fish else {
      let condition = "__prefs_should_offer_completions_for_positional \"prefs help\" -eq 1"
      return "\(text)\ncomplete -c 'prefs' -n '\(condition)' -fa '\(names)'"
    }
    guard let help = text.firstRange(of: "_prefs_help() {") else { return text }
    let flags = "__prefs_offer_flags_options -1"
    let words = "COMPREPLY+=($(compgen -W '\(names)' -- \"${cur}\"))"
    let (generated, offering) =
      shell == .zsh
      ? ("'*:subcommands:'", "'1:command:(\(names))'")
      : (flags, "\(flags)\n    [[ \"${positional_number}\" -ne 1 ]] || \(words)")
    let rest = text[help.upperBound...].replacing(generated, with: offering, maxReplacements: 1)
    return String(text[..<help.upperBound] + rest)
  }

  // MARK: - Adding

  /// Offers a program, and completes the words after its name.
  ///
  /// - Parameter script: The program's own; if nil, or another program's, only the name is offered.
  mutating func add(_ program: String, _ script: CompletionScript?) {
    programs.append(program)
    let commands = script?.commands(of: program) ?? []
    let description = commands.isEmpty ? nil : script?.offer(of: program).flatMap { script?.lines[$0] }
    offer(program, description)
    guard let script, !commands.isEmpty else { return }
    switch shell {
    case .bash:
      dispatch(to: program)
      insert(commands) { $0.hasPrefix("complete ") }
    case .zsh:
      dispatch(to: program)
      insert(commands) { $0.hasPrefix("if [[ \"${funcstack[1]}\"") }
    default:
      insert(script.options(of: program)) { $0 == "        case 'help'" }
      lines += commands
    }
  }

  private mutating func offer(_ program: String, _ description: String?) {
    if shell == .bash {
      let words = " completion help"
      guard let index = lines.firstIndex(where: { $0.contains(words) }) else { return }
      return lines[index].replace(words, with: " completion \(program) help", maxReplacements: 1)
    }
    let completion = CompletionCommand.configuration
    guard let index = offer(of: "completion"), let next = offer(of: "help") else { return }
    let name = lines[index].replacing("'completion", with: "'\(program)")
      .replacing(completion.abstract, with: "The program prefs-\(program).")
    lines.insert(description ?? name, at: next)
  }

  /// Makes the tool's function call that of the program.
  private mutating func dispatch(to program: String) {
    guard let index = lines.firstIndex(where: { $0.hasSuffix("|help)") }) else { return }
    lines[index].replace("|help)", with: "|\(program)|help)")
  }

  private mutating func insert(_ added: [String], before isNext: (String) -> Bool) {
    guard let index = lines.firstIndex(where: isNext) else { return }
    lines.insert(contentsOf: added, at: index)
  }

  // MARK: - Finding

  /// The line that offers a command of the tool, with its description; there is none in bash.
  private func offer(of command: String) -> Int? {
    lines.firstIndex { line in
      shell == .zsh
        ? line.drop { $0 == " " }.hasPrefix("'\(command):")
        : line.contains("_positional \"prefs\" -eq 1' -fa '\(command)'")
    }
  }

  /// The functions of bash or zsh, or the `complete` lines of fish, for a command and its subcommands.
  private func commands(of command: String) -> [String] {
    guard shell != .fish else {
      return lines.filter { line in
        line.hasPrefix("complete ") && ["\"", " "].contains { line.contains(" \"prefs \(command)\($0)") }
      }
    }
    var functions: [String] = []
    var isInside = false
    for line in lines {
      if line == "_prefs_\(command)() {" || line.hasPrefix("_prefs_\(command)_") { isInside = true }
      if isInside { functions.append(line) }
      if isInside, line == "}" {
        functions.append("")
        isInside = false
      }
    }
    return functions
  }

  /// The lines with which fish parses the options of a command and its subcommands.
  private func options(of command: String) -> [String] {
    guard let start = lines.firstIndex(of: "        case '\(command)'") else { return [] }
    let end = lines[(start + 1)...].firstIndex { $0.hasPrefix("        case ") || $0 == "        end" }
    return Array(lines[start..<(end ?? lines.endIndex)])
  }
}

// MARK: - The script of a program

extension PrefsTool {
  /// The argument with which `prefs completion` asks a program beside it.
  static let scriptRequest = "--generate-completion-script"

  /// Prints a completion script of `prefs` with a program as its only command, if requested.
  ///
  /// - Returns: Whether it was requested.
  package static func printCompletionScript<Program: ParsableCommand>(
    _ arguments: [String], of program: Program.Type
  ) throws -> Bool {
    guard arguments.count == 2, arguments[0] == scriptRequest, let shell = CompletionShell(rawValue: arguments[1])
    else { return false }
    try StandardOutput.write(ToolWith<Program>.completionScript(for: shell))
    return true
  }
}

/// `prefs` with a program as its only command.
private struct ToolWith<Program: ParsableCommand>: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(commandName: "prefs", subcommands: [CommandOfTool<Program>.self])
  }
}

/// A program, whose name is `prefs NAME`, as the command NAME.
private struct CommandOfTool<Program: ParsableCommand>: ParsableCommand {
  static var configuration: CommandConfiguration {
    var configuration = Program.configuration
    configuration.commandName = configuration.commandName?.replacing("prefs ", with: "")
    return configuration
  }

  @OptionGroup var arguments: Program
}
