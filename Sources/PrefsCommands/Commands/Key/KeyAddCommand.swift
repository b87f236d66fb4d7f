import ArgumentParser
import Coffer

/// The command `prefs key add`.
struct KeyAddCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Add a key slot to the store.",
    discussion: """
      Adds a passphrase by default. Everything that opened the store before still does.

      With --tpm, this machine's TPM 2.0 opens the store where no other key is named. That takes the programs of tpm2-tools, and a \
      recovery key or a passphrase, which has to stay: the TPM's key is lost with the machine. The file STORE.tpm, or \
      STORE.tpm-vault for the vault, has the key, sealed by the TPM. `prefs unlock` uses that of the vault. The label begins with "TPM".

      Examples:
        prefs key add --label Ada
        prefs key add --new-key-file /media/stick/prefs-key --label stick
        prefs key add --key-command 'secret-tool lookup app prefs'
        prefs key add --passphrase --calibrate 2
        prefs key add --tpm
      """)

  @Flag(help: "A random key that only this machine's TPM opens.")
  var tpm = false

  @OptionGroup var new: NewKeyOptions

  @OptionGroup var whose: SlotOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if tpm, !new.isEmpty || new.stretching.areGiven {
      throw ValidationError("Use --tpm alone, with --label and --vault at most.")
    }
  }

  mutating func run() throws {
    let session = try CommandSession(common)
    try session.withSlots(whose) { slots in
      let label = new.label.map(CommandArguments.value)
      if tpm {
        let slot = try slots.addTPM(label: label.map(TPMFile.label) ?? TPMFile.label)
        common.note(
          "added \(SlotText.describe(slot)). Its key is in \(slots.tpmFile.path), and opens on this machine only: that protects "
            + "a copy of the files, or a disk that is taken out, but not a machine that is stolen whole.")
        return
      }
      let hash = try new.stretching.hash()
      let slot = try slots.holder.addSlot(try new.source(session.lookup), label: label ?? "", stretching: hash)
      common.note("added \(SlotText.describe(slot)).")
    }
  }
}
