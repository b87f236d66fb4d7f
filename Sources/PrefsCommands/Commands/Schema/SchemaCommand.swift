import ArgumentParser

/// The command `prefs schema`.
struct SchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Print the declared settings, infer declarations from values, or load them.",
    subcommands: [SchemaPrintCommand.self, SchemaInferCommand.self, SchemaLoadCommand.self],
    defaultSubcommand: SchemaPrintCommand.self)
}
