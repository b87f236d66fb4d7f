import ArgumentParser

/// The command `prefs schema`.
struct SchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Print, infer, load or contract declarations.",
    subcommands: [
      SchemaPrintCommand.self, SchemaInferCommand.self, SchemaLoadCommand.self, SchemaContractCommand.self,
    ],
    defaultSubcommand: SchemaPrintCommand.self)
}
