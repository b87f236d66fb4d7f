import ArgumentParser
import Coffer

/// The command `prefs key remove`.
struct KeyRemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove a key slot.",
    discussion: """
      Its secret no longer opens the store. Anyone who had it can still read copies made before, and later ones, and change the \
      store if they can write its file, until `prefs rotate --new-root-key`, which is offered on a terminal. The last slot \
      cannot be removed.

      Examples:
        prefs key remove Ada
        prefs key remove 2 --force
      """)

  @Argument(help: "The slot's number or label.", completion: Completions.slots)
  var slot: String

  @Flag(name: .shortAndLong, help: "Do not ask, and do not offer to rotate.")
  var force = false

  @OptionGroup var whose: SlotOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try CommandSession(common)
    try session.withSlots(whose) { slots in
      let all = try slots.holder.slots()
      let slot = try SlotReference.slot(slot, in: all)
      guard all.count > 1 else { throw CofferError.lastSlot }
      try slots.requireRecovery(in: all, without: [slot.id])
      if !force { try confirm(slot) }
      try slots.holder.removeSlot(slot.id) { present in
        try slots.requireUnchanged([slot], in: present)
        try slots.requireRecovery(in: present, without: [slot.id])
      }
      common.note("removed \(SlotText.describe(slot)). \(slots.warning)")
      if !force, try Terminal.confirm("Replace the \(slots.areOfVault ? "key of the vault" : "root key") now?") == true
      {
        try replaceKey(slots, without: slot)
        common.note("replaced it.")
      }
      session.noteCopies()
    }
  }

  private func replaceKey(_ slots: OpenSlots, without removed: SlotInfo) throws {
    do {
      try KeyReplacement(slots: slots, known: [], options: common.ofSession).run()
    } catch let error as CofferError {
      let what = slots.areOfVault ? "the key of the vault" : "the root key"
      throw error.after("\(SlotText.describe(removed)) is removed, but \(what) is not replaced", next: "Rotate later.")
    }
  }

  private func confirm(_ slot: SlotInfo) throws {
    let name = SlotText.describe(slot)
    let answer = common.noInput ? nil : try Terminal.confirm("Remove \(name)?")
    guard let answer else {
      throw Failure(.usage, "this removes \(name). Confirm with --force; there is no terminal to ask on.")
    }
    guard answer else { throw Failure(.other, "nothing was removed.") }
  }
}
