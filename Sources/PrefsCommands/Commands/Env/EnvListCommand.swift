import ArgumentParser
import Coffer

/// The command `prefs env list`.
struct EnvListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the environments.",
    discussion: """
      Prints one environment per line, with the number of keys set in it.

      Examples:
        prefs env list
        prefs env list web --json
      """)

  @Argument(help: "The collection; without it, all of them.", completion: Completions.collections)
  var name: String?

  @OptionGroup var form: ListForm

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let collection = name.map(CommandArguments.value) ?? common.namedCollection
    let found = try Session(common).read { transaction in
      try transaction.environments()
        .filter { environment in collection.map { $0.utf8.elementsEqual(environment.parent.utf8) } ?? true }
        .map { ($0, count: try transaction.numberOfKeys(inCollection: $0.collection)) }
    }
    var output = StandardOutput(pager: form.pager)
    switch form.choice {
    case .json:
      let objects = found.map { environment, count in
        JSONText.object([
          ("collection", JSONText.quoted(environment.collection)),
          ("environment", JSONText.quoted(environment.name)),
          ("parent", JSONText.quoted(environment.parent)),
          ("keys", "\(count)"),
        ])
      }
      output.write(JSONText.array(objects) + "\n")
    case .plain:
      for (environment, count) in found {
        output.write("\(DisplayText.plainField(environment.collection))\t\(count)\n")
      }
    case .nul:
      for (environment, count) in found { output.write("\(environment.collection)\t\(count)\0") }
    case .text:
      var table = Table()
      for (environment, count) in found {
        table.add([DisplayText.escapingControls(environment.collection), DisplayText.count(count, "key", "keys")])
      }
      for line in table.lines() { output.write(line) }
    }
    try output.finish()
  }
}
