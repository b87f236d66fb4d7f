import ArgumentParser
import Coffer

/// The command `prefs collections`.
struct CollectionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "collections",
    abstract: "List the collections.",
    discussion: """
      Prints one name per line. The default collection has the empty name, shown as "".

      Examples:
        prefs collections
        prefs collections --json
      """,
    aliases: ["domains"])

  @OptionGroup var form: ListForm

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let names = try CommandSession(common).read { try $0.allCollections() }
    var output = StandardOutput(pager: form.pager)
    switch form.choice {
    case .json: output.write(JSONText.array(names.map(JSONText.quoted)) + "\n")
    case .plain: for name in names { output.write(DisplayText.plainField(name) + "\n") }
    case .nul: for name in names { try output.write(nulRecord: name) }
    case .text: for name in names { output.write((name.isEmpty ? "\"\"" : DisplayText.escapingControls(name)) + "\n") }
    }
    try output.finish()
  }
}
