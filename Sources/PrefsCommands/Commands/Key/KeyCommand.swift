import ArgumentParser

/// The command `prefs key`, which has only subcommands.
struct KeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "key",
    abstract: "List, add, change and remove key slots.",
    discussion: """
      A store has up to 16 key slots, each of which opens it, and so has its vault. SLOT is the number or the label of a \
      slot.

      Examples:
        prefs key list
        prefs key add --label Ada
        prefs key recovery --label "in the safe"
        prefs key remove Ada
        prefs key replace 0
        prefs key add --vault --label "second passphrase"
      """,
    subcommands: [
      KeyListCommand.self, KeyAddCommand.self, KeyRemoveCommand.self, KeyChangeCommand.self, KeyReplaceCommand.self,
      KeyLabelCommand.self, KeyRecoveryCommand.self,
    ])
}
