import ArgumentParser
import Coffer

/// The command `prefs env list`.
struct EnvListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the environments.",
    discussion: """
      Prints one environment per line, with the number of keys set in it. One that cannot be read is named in an error after the \
      others.

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
    var problems: [(environment: CollectionEnvironment, error: CofferError)] = []
    let found = try CommandSession(common).read { transaction in
      var found: [(CollectionEnvironment, count: Int)] = []
      problems = []
      for environment in try transaction.environments()
      where collection.map({ $0.utf8.elementsEqual(environment.parent.utf8) }) ?? true {
        do {
          found.append((environment, try transaction.numberOfKeys(inCollection: environment.collection)))
        } catch let error as CofferError where [.integrity, .newerFormat].contains(error.exitStatus) {
          problems.append((environment, error))
        }
      }
      return found
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
      for (environment, count) in found { try output.write(nulRecord: "\(environment.collection)\t\(count)") }
    case .text:
      var table = Table()
      for (environment, count) in found {
        table.add([DisplayText.escapingControls(environment.collection), DisplayText.count(count, "key", "keys")])
      }
      for line in table.lines() { output.write(line) }
    }
    try output.finish()
    let sentences = problems.map { environment, error in
      "the environment \(DisplayText.escapingControls(environment.collection)) cannot be read: \(error)"
    }
    guard let first = problems.first else { return }
    throw Failure(first.error.exitStatus, sentences[0], details: Array(sentences.dropFirst()))
  }
}
