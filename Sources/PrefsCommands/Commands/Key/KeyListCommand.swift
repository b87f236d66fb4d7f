import ArgumentParser
import Coffer

/// The command `prefs key list`.
struct KeyListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the key slots.",
    discussion: """
      Shows number, kind, label, stretching of the passphrase, and creation time. It needs no key, so its output is not \
      authenticated; `prefs doctor` shows the same for a store that it has opened.

      Examples:
        prefs key list
        prefs key list --json
      """)

  @Flag(help: "Print a JSON array.")
  var json = false

  @Flag(help: "Print one slot per line: fields separated by tabs, escapes with backslashes, no alignment.")
  var plain = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  @Flag(help: "List the slots of the vault, which needs the key of the store.")
  var vault = false

  mutating func validate() throws {
    if json, plain { throw ValidationError("Use --json or --plain, not both.") }
  }

  mutating func run() throws {
    let slots = try slots()
    var output = StandardOutput()
    if json {
      output.write(JSONText.array(slots.map(SlotText.json)) + "\n")
    } else if plain {
      try output.write(records: slots.lazy.map(SlotText.fields))
    } else {
      for line in SlotText.lines(slots) { output.write(line) }
    }
    try output.finish()
  }

  private func slots() throws -> [SlotInfo] {
    let session = try CommandSession(common)
    guard vault else { return try Database.slots(at: session.path) }
    return try session.using(try session.openForReading()) { database in
      try VaultAccess(vault: database.vault, session: session).requireVault()
      return try database.vault.slots()
    }
  }
}
