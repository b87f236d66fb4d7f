import ArgumentParser
import Coffer

/// The command `prefs key change`.
struct KeyChangeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "change",
    abstract: "Change what opens a key slot.",
    discussion: """
      A passphrase slot gets a new passphrase by default. Anyone who had the old secret can still read copies of the store \
      made before, and later ones until `prefs rotate --new-root-key`.

      Examples:
        prefs key change Ada
        prefs key change 0 --new-key-file ~/.config/prefs/new-key
        prefs key change 1 --passphrase --cost 19
      """)

  @Argument(help: "The slot's number or label.", completion: Completions.slots)
  var slot: String

  @OptionGroup var new: NewKeyOptions

  @OptionGroup var whose: SlotOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try CommandSession(common)
    try session.withSlots(whose) { slots in
      let all = try slots.holder.slots()
      let slot = try SlotReference.slot(slot, in: all)
      if new.isEmpty, slot.kind != .passphrase {
        throw Failure(
          .usage,
          "\(SlotText.describe(slot)) has no passphrase to change. Say what opens it from now on: --passphrase, "
            + "--new-key-file, --key-command or --credential.")
      }
      if new.isRandomKey { try slots.requireRecovery(in: all, without: [slot.id]) }
      let hash = try new.stretching.hash()
      let opened = try slots.key.flatMap(slots.holder.slot(openedBy:))
      let changed = try slots.holder.changeSlot(
        slot.id, to: try new.source(session.lookup),
        label: new.label.map(CommandArguments.value) ?? slots.tpmFile.labelWithoutTPM(of: slot, in: all),
        stretching: hash
      ) { present in
        try slots.requireUnchanged([slot], in: present)
        if new.isRandomKey { try slots.requireRecovery(in: present, without: [slot.id]) }
      }
      common.note("changed \(SlotText.describe(changed)). \(slots.warning)")
      if let note = slots.noteOfPlace(of: slot, openedBy: opened, newKeyFile: new.newKeyFile) { common.note(note) }
      session.noteCopies()
    }
  }
}
