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
    let shell: CompletionShell =
      switch shell {
      case .bash: .bash
      case .zsh: .zsh
      case .fish: .fish
      }
    var script = CompletionScript(PrefsCommand.completionScript(for: shell), for: shell)
    for name in ProgramBeside.names() {
      script.add(name, ProgramBeside(named: name)?.completionScript(for: shell))
    }
    try StandardOutput.write(script.text + "\n")
  }
}
