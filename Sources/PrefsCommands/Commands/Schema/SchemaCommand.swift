import ArgumentParser

/// The command `prefs schema`.
struct SchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Write down which settings are declared, or declare them from a file.",
    subcommands: [SchemaPrintCommand.self, SchemaLoadCommand.self],
    defaultSubcommand: SchemaPrintCommand.self)
}
