import ArgumentParser

/// The command `prefs schema`.
struct SchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Print the declared settings, or load declarations.",
    subcommands: [SchemaPrintCommand.self, SchemaLoadCommand.self],
    defaultSubcommand: SchemaPrintCommand.self)
}
