import ArgumentParser
import Coffer

/// The command `prefs type`.
struct TypeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "type",
    abstract: "Print the type of a value.",
    discussion: """
      Prints string, int, double, bool, date, data, url, uuid, array, dict or json.

      Examples:
        prefs type editor/font-size
        prefs type editor/font-size --json
      """)

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var key: String

  @Flag(help: "Print a JSON object with collection, key and type.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let reference = try common.reference(key)
    let kind = try CommandSession(common, in: [reference.place]).read { transaction in
      guard let item = try reference.shownItem(transaction) else {
        throw reference.notFound(in: transaction)
      }
      return item.value.kind
    }
    let object = JSONText.object([
      ("collection", JSONText.quoted(reference.collection)),
      ("key", JSONText.quoted(reference.key)),
      ("type", JSONText.quoted(kind.name)),
    ])
    try StandardOutput.write((json ? object : kind.name) + "\n")
  }
}
