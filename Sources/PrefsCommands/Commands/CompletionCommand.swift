import ArgumentParser

/// The command `prefs completion`.
struct CompletionCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "completion",
    abstract: "Print a completion script for a shell.",
    discussion: """
      Examples:
        prefs completion bash > ~/.local/share/bash-completion/completions/prefs
        prefs completion zsh > ~/.zsh/completions/_prefs
        prefs completion fish > ~/.config/fish/completions/prefs.fish
      """)

  enum Shell: String, CaseIterable, ExpressibleByArgument {
    case bash, zsh, fish
  }

  @Argument(help: "bash, zsh or fish.")
  var shell: Shell

  mutating func run() throws {
    let script =
      switch shell {
      case .bash: PrefsCommand.completionScript(for: .bash)
      case .zsh: PrefsCommand.completionScript(for: .zsh)
      case .fish: PrefsCommand.completionScript(for: .fish)
      }
    try StandardOutput.write(Self.offering(ProgramBeside.names(), in: script) + "\n")
  }

  /// The script, extended so that programs beside the tool are offered like its commands.
  static func offering(_ programs: [String], in script: String) -> String {
    guard !programs.isEmpty else { return script }
    let lines = script.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    return lines.flatMap { line in
      if line.contains(" completion help'") {
        return [line.replacing(" completion help'", with: " completion help \(programs.joined(separator: " "))'")]
      }
      guard line.contains("'completion"), line.contains(configuration.abstract) else { return [line] }
      return [line]
        + programs.map { program in
          line.replacing("'completion", with: "'\(program)")
            .replacing(configuration.abstract, with: "The program prefs-\(program).")
        }
    }.joined(separator: "\n")
  }
}
