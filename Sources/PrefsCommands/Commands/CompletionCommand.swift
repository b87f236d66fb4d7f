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
    try StandardOutput.write(script + "\n")
  }
}
