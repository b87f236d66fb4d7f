import Coffer

/// The program `prefs-fleet`, asked for what only it can read of a store.
package enum FleetProgram {
  /// More than it needs to read the store.
  private static let timeLimit = Duration.seconds(10)

  /// The members of the store's fleet, as `prefs fleet members --json` prints them; nil if the program is missing, does not answer, cannot
  /// open the store without asking for a key, or the store belongs to several fleets.
  package static func members(of session: CommandSession) -> String? {
    var words = ["members", "--json", "--no-input", "--store", session.path]
    if let file = session.options.keyFile { words += ["--key-file", file] }
    guard let answer = try? ProgramBeside(named: "fleet")?.run(words, input: "", within: timeLimit), answer.status == 0
    else { return nil }
    let text = String(decoding: answer.output, as: UTF8.self)
    guard case .array? = try? JSONReader.value(text) else { return nil }
    return text
  }
}
