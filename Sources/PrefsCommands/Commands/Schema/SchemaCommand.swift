import ArgumentParser

/// The command `prefs schema`.
struct SchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Print, infer or load declarations of settings, and end former names.",
    subcommands: [
      SchemaPrintCommand.self, SchemaInferCommand.self, SchemaLoadCommand.self, SchemaContractCommand.self,
    ],
    defaultSubcommand: SchemaPrintCommand.self)
}
