import ArgumentParser
import Coffer

/// The command `prefs type`.
struct TypeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "type",
    abstract: "Print the type of a value.",
    discussion: """
      Prints string, int, double, bool, date, data, url, uuid, array, dict, json or secret: the type of the value that `prefs get` \
      prints.

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
    var reference = try common.reference(key)
    let session = try CommandSession(common, in: reference.certainPlaces)
    guard let kind = try session.valueInForce(of: &reference).found?.value.kind else { return }
    let object = JSONText.object([
      ("collection", JSONText.quoted(reference.collection)),
      ("key", JSONText.quoted(reference.key)),
      ("type", JSONText.quoted(kind.name)),
    ])
    try StandardOutput.write((json ? object : kind.name) + "\n")
  }
}
