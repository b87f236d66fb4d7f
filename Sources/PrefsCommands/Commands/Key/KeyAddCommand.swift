import ArgumentParser
import Coffer

/// The command `prefs key add`.
struct KeyAddCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Add a key slot to the store.",
    discussion: """
      Adds a passphrase by default. Everything that opened the store before still does.

      Examples:
        prefs key add --label Ada
        prefs key add --new-key-file /media/stick/prefs-key --label stick
        prefs key add --key-command 'secret-tool lookup app prefs'
        prefs key add --passphrase --calibrate 2
      """)

  @OptionGroup var new: NewKeyOptions

  @OptionGroup var whose: SlotOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try Session(common)
    try session.withSlots(whose) { slots in
      let hash = try new.stretching.hash()
      let slot = try slots.holder.addSlot(
        try new.source(session.lookup), label: new.label.map(CommandArguments.value) ?? "", stretching: hash)
      common.note("added \(SlotText.describe(slot)).")
    }
  }
}
