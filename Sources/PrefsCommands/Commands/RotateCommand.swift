import ArgumentParser
import Coffer

/// The command `prefs rotate`.
struct RotateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate",
    abstract: "Re-encrypt the store under a new key.",
    discussion: """
      Re-encrypts everything. Other programs can read meanwhile; writers wait. The key slots do not change: a key that has \
      leaked still opens the store, until `prefs key replace` locks it out. With \
      --new-root-key, the key behind the slots is replaced, too: anyone with a removed slot or a copy of the old key can read nothing written \
      afterwards. That needs the secret of every slot that stays; the slot that opened the store is kept automatically, \
      and passphrases are asked for. With --vault, the key of the vault is replaced in the same way.

      Examples:
        prefs rotate
        prefs rotate --new-root-key
        prefs rotate --new-root-key --keep-key-file /media/stick/prefs-key --drop Ada
        prefs rotate --vault
      """)

  @Flag(help: "Also replace the root key.")
  var newRootKey = false

  @OptionGroup var keep: KeepOptions

  @Flag(help: "Print a JSON object about the rotation.")
  var json = false

  @OptionGroup var whose: SlotOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if newRootKey, whose.vault { throw ValidationError("Use --new-root-key or --vault, not both.") }
    if !newRootKey, !whose.vault, !keep.isEmpty {
      throw ValidationError(
        "Without --new-root-key all slots stay. Omit --drop and the --keep options.")
    }
  }

  mutating func run() throws {
    let session = try CommandSession(common)
    let report: Report
    if newRootKey || whose.vault {
      report = try session.withSlots(whose) { slots in
        let before = try slots.holder.slots()
        let dropped = try keep.droppedSlots(in: before)
        try slots.requireRecovery(in: before, without: dropped)
        try KeyReplacement(
          slots: slots, known: before, keys: keep.sources(), dropped: dropped, options: common.ofSession
        ).run()
        return Report(before: before, after: try slots.holder.slots(), openers: try slots.openers())
      }
      // `prefs unlock` kept the old key.
      if whose.vault {
        try UnlockState(storeID: Database.storeID(at: session.path), options: common.ofSession).forget()
      }
    } else {
      report = try session.using(try session.open()) { database in
        let slots = try database.slots()
        try ProgressBar.during("re-encrypting", common) { try database.rotate(progress: $0) }
        let open = OpenSlots(
          holder: database, key: nil, areOfVault: false, tpmFile: TPMFile(ofStoreAt: session.path),
          other: database.vault)
        return Report(before: slots, after: slots, openers: try open.openers())
      }
    }
    try write(report, session)
  }

  /// What is known once everything is done.
  private struct Report {
    let before: [SlotInfo]
    let after: [SlotInfo]
    /// What still opens the store or the vault, in a sentence.
    let openers: String

    var dropped: [SlotInfo] { before.filter { slot in !after.contains { $0.id == slot.id } } }
  }

  private func write(_ report: Report, _ session: CommandSession) throws {
    let dropped = report.dropped
    let ending = dropped.isEmpty ? "" : " Dropped: \(SlotText.list(dropped))."
    let what = whose.vault ? "the vault of \(session.path), which is locked now," : session.path
    common.note("encrypted \(what) under a new key.\(ending)")
    common.note(report.openers)
    session.noteCopies()
    guard json else { return }
    let object = JSONText.object([
      ("store", JSONText.quoted(session.path)), ("vault", whose.vault ? "true" : "false"),
      ("newRootKey", newRootKey ? "true" : "false"),
      ("dropped", JSONText.array(dropped.map(SlotText.json))),
      ("slots", JSONText.array(report.after.map(SlotText.json))),
    ])
    try StandardOutput.report(object + "\n", of: "\(whose.vault ? "the vault" : "the store") has its new key")
  }
}

/// The options for the slots to keep when the key is replaced.
struct KeepOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Keep the slot that this key file opens.", valueName: "path"), completion: .file())
  var keepKeyFile: [String] = []

  @Option(help: ArgumentHelp("Keep the slot that the output of this command opens.", valueName: "command"))
  var keepKeyCommand: [String] = []

  @Option(help: ArgumentHelp("Keep the slot that the passphrase from this descriptor opens.", valueName: "n"))
  var keepPassphraseFd: [Int32] = []

  @Option(help: ArgumentHelp("Keep the slot that the recovery key from this descriptor opens.", valueName: "n"))
  var keepRecoveryKeyFd: [Int32] = []

  @Option(parsing: .unconditionalSingleValue, help: ArgumentHelp("Drop this slot.", valueName: "slot"))
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
