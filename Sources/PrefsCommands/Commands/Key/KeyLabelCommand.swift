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
    try Session(common).withSlots(whose) { slots in
      let slot = try SlotReference.slot(slot, in: slots.holder.slots())
      try slots.holder.labelSlot(slot.id, CommandArguments.value(text))
    }
  }
}
