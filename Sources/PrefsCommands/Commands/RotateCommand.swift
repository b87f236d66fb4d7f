import ArgumentParser
import Coffer

/// The command `prefs rotate`.
struct RotateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate",
    abstract: "Re-encrypt the store under a new key.",
    discussion: """
      Everything is encrypted anew, while others read and, for the while, wait to write. The slots stay as they are. With \
      --new-root-key the key behind the slots is replaced, too: who had a slot that is gone, or a copy of the key, reads \
      nothing that is written from then on. That needs the secret of every slot that is to stay; the one the store was \
      opened with is kept by itself, and passphrases are asked for. With --vault it is the key of the vault that is \
      replaced, in the same way.

      Examples:
        prefs rotate
        prefs rotate --new-root-key
        prefs rotate --new-root-key --keep-key-file /media/stick/prefs-key --drop Ada
        prefs rotate --vault
      """)

  @Flag(help: "Replace the root key as well.")
  var newRootKey = false

  @OptionGroup var keep: KeepOptions

  @Flag(help: "Print a JSON object with what was done.")
  var json = false

  @OptionGroup var whose: SlotOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if newRootKey, whose.vault { throw ValidationError("Use --new-root-key or --vault, not both.") }
    if !newRootKey, !whose.vault, !keep.isEmpty {
      throw ValidationError(
        "Without --new-root-key all slots stay. Leave out --drop and the options that begin with --keep.")
    }
  }

  mutating func run() throws {
    let session = try Session(common)
    if newRootKey || whose.vault {
      try session.withSlots(whose) { slots in
        let before = try slots.holder.slots()
        let dropped = try keep.droppedSlots(in: before)
        try KeyReplacement(slots: slots, keys: keep.sources(), dropped: dropped, options: common.ofSession).run()
        try report(session, before: before, after: try slots.holder.slots())
      }
      // `prefs unlock` kept the old key.
      if whose.vault {
        try UnlockState(storeID: Database.storeID(at: session.path), options: common.ofSession).forget()
      }
    } else {
      try session.using(try session.open()) { database in
        let slots = try database.slots()
        try ProgressBar.during("re-encrypting", common) { try database.rotate(progress: $0) }
        try report(session, before: slots, after: slots)
      }
    }
  }

  private func report(_ session: Session, before: [SlotInfo], after: [SlotInfo]) throws {
    let dropped = before.filter { slot in !after.contains { $0.id == slot.id } }
    if json {
      let object = JSONText.object([
        ("store", JSONText.quoted(session.path)), ("vault", whose.vault ? "true" : "false"),
        ("newRootKey", newRootKey ? "true" : "false"),
        ("dropped", JSONText.array(dropped.map(SlotText.json))), ("slots", JSONText.array(after.map(SlotText.json))),
      ])
      try StandardOutput.write(object + "\n")
    }
    let ending = dropped.isEmpty ? "" : " Gone: \(SlotText.list(dropped))."
    let what = whose.vault ? "the vault of \(session.path), which is locked now," : session.path
    common.note("encrypted \(what) under a new key.\(ending)")
  }
}

/// The options for the slots to keep when the key is replaced.
struct KeepOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Keep the slot that this key file opens.", valueName: "path"), completion: .file())
  var keepKeyFile: [String] = []

  @Option(help: ArgumentHelp("Keep the slot that what this command prints opens.", valueName: "command"))
  var keepKeyCommand: [String] = []

  @Option(help: ArgumentHelp("Keep the slot with the passphrase that this descriptor gives.", valueName: "n"))
  var keepPassphraseFd: [Int32] = []

  @Option(help: ArgumentHelp("Keep the slot with the recovery key that this descriptor gives.", valueName: "n"))
  var keepRecoveryKeyFd: [Int32] = []

  @Option(parsing: .unconditionalSingleValue, help: ArgumentHelp("Let this slot go.", valueName: "slot"))
  var drop: [String] = []

  var isEmpty: Bool {
    keepKeyFile.isEmpty && keepKeyCommand.isEmpty && keepPassphraseFd.isEmpty && keepRecoveryKeyFd.isEmpty
      && drop.isEmpty
  }

  mutating func validate() throws {
    try DescriptorOptions.check(keepPassphraseFd + keepRecoveryKeyFd)
  }

  func sources() throws -> [KeySource] {
    let random = keepKeyFile.map(KeySource.keyFile) + keepKeyCommand.map(KeySource.keyCommand)
    let passphrases = try keepPassphraseFd.map { KeySource.passphrase(try FileDescriptor.readTypedSecret($0)) }
    return try random + passphrases + keepRecoveryKeyFd.map { .recoveryKey(try FileDescriptor.readTypedSecret($0)) }
  }

  func droppedSlots(in slots: [SlotInfo]) throws -> Set<Int> {
    Set(try drop.map { try SlotReference.slot($0, in: slots).id })
  }
}
