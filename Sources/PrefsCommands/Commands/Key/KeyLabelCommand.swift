import ArgumentParser
import Coffer

/// The command `prefs key label`.
struct KeyLabelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "label",
    abstract: "Change the label of a key slot.",
    discussion: """
      Examples:
        prefs key label 0 laptop
        prefs key label laptop "old laptop"
      """)

  @Argument(help: "The slot's number or label.", completion: Completions.slots)
  var slot: String

  @Argument(help: "The new label, up to 64 bytes.")
  var text: String

  @OptionGroup var whose: SlotOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    try SlotReference.check(label: CommandArguments.value(text))
  }

  mutating func run() throws {
    try CommandSession(common).withSlots(whose) { slots in
      let all = try slots.holder.slots()
      let slot = try SlotReference.slot(slot, in: all)
      let label = CommandArguments.value(text)
      let isTPM = slots.tpmFile.slot(in: all) == slot
      let kept = isTPM ? TPMFile.label(label) : label
      try slots.holder.setLabel(kept, forSlot: slot.id)
      guard kept != label else { return }
      common.note("its label is \"\(DisplayText.escapingControls(kept))\", which says that a TPM opens it.")
    }
  }
}
