import ArgumentParser
import Coffer

/// The command `prefs describe`.
struct DescribeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "describe",
    abstract: "Describe a declared setting.",
    discussion: """
      Prints its type, limits, default, current value and the origin of that value, its summary, when a change takes \
      effect, and which programs declare it. A value that does not match the declaration is a problem, and skipped. A program that takes arguments or variables of its process prefers those, unless the \
      value is locked; what they are for a program that runs is not known here. Secrets are shown only by their size, values of sealed collections not at \
      all.

      Examples:
        prefs describe shop/http.port
        prefs describe shop/http.port --json
      """)

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var key: String

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let reference = try common.reference(key)
    let setting = try CommandSession(common, in: reference.certainPlaces).read { transaction in
      try DescribedSetting(reference.resolved(transaction), transaction)
    }
    try StandardOutput.write(json ? setting.json + "\n" : setting.text)
  }
}
