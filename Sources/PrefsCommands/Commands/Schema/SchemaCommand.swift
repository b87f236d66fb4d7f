import ArgumentParser

/// The command `prefs schema`.
struct SchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Print, infer or load declarations of settings.",
    subcommands: [SchemaPrintCommand.self, SchemaInferCommand.self, SchemaLoadCommand.self],
    defaultSubcommand: SchemaPrintCommand.self)
}
