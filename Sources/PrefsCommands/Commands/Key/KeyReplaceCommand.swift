import ArgumentParser
import Coffer

/// The command `prefs key replace`.
struct KeyReplaceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replace",
    abstract: "Lock out a key that has leaked.",
    discussion: """
      Gives the slot another key, and everything another root key: anyone who has the old key, or a copy of the store that it \
      opens, can read nothing written afterwards. Without SLOT, it is the key that opened the store. A key file gets a new \
      key in its place, so that programs find it there; the old file is kept beside it, with -replaced-1 after its name, for \
      copies made before. For other kinds, or another place, say what opens the slot from now on. As with `prefs rotate \
      --new-root-key`, the secret of every other slot is needed, or --drop. If it is interrupted, run it again.

      Examples:
        prefs key replace
        prefs key replace 0 --keep-recovery-key-fd 3 3< recovery-key.txt
        prefs key replace Ada --new-key-file /media/stick/prefs-key
        prefs key replace Ada --drop Bob
        prefs key replace --vault
      """)

  @Argument(help: "The slot's number or label.", completion: Completions.slots)
  var slot: String?

  @OptionGroup var new: NewKeyOptions

  @OptionGroup var keep: KeepOptions

  @OptionGroup var whose: SlotOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try CommandSession(common)
    try session.withSlots(whose) { slots in
      let all = try slots.holder.slots()
      let opened = try slots.key.flatMap(slots.holder.slot(openedBy:))
      let leaked = try slot.map { try SlotReference.slot($0, in: all) } ?? opened
      guard let leaked else { throw Failure(.usage, "say which slot: \(SlotText.list(all)).") }
      try slots.requireRecovery(
        in: all, without: keep.droppedSlots(in: all).union([leaked.id]),
        adding: !new.isRandomKey && (!new.isEmpty || leaked.kind == .passphrase))
      let key = try replacementKey(for: leaked, isOpened: leaked.id == opened?.id, slots, session)
      try key.check(slots)
      let left = try key.slotsOfInterruptedRun(slots.holder).filter { $0.id != opened?.id && $0.id != leaked.id }
      var replacement = KeyReplacement(
        slots: slots, known: all, keys: try keep.sources(),
        dropped: try keep.droppedSlots(in: all).union(([leaked] + left).map(\.id)), options: common.ofSession)
      // Before anything is made or changed.
      let staysAny = all.contains { !replacement.dropped.contains($0.id) }
      let sources = staysAny ? try replacement.sources() : []
      try slots.holder.checkRewritable()
      // The file that lists them is about to be removed, and the new slot may get the number of one.
      for slot in left {
        try slots.holder.removeSlot(slot.id) { try slots.requireUnchanged([slot], in: $0) }
        replacement.dropped.remove(slot.id)
      }
      let label = new.label.map(CommandArguments.value) ?? slots.tpmFile.labelWithoutTPM(of: leaked, in: all)
      let added = try add(key, for: leaked, label: label, to: slots)
      var former: String?
      do {
        former = try key.putInPlace()
        try replacement.replace(openedBy: sources + [key.source])
      } catch {
        throw interrupted(error, slots, leaked, added, key, former)
      }
      let interrupted = left.map { "\(SlotText.describe($0)), which an interrupted run has left, is locked out, too. " }
      common.note(
        "\(SlotText.describe(leaked)) is locked out; \(SlotText.describe(added)) has taken its place. "
          + interrupted.joined() + "Anyone who had the old key can still read copies made before.")
      if let former {
        common.note(
          "the old key file is kept as \(former), for copies made before. If you need none of them, and it opens nothing else, "
            + "remove it.")
      }
      if let note = slots.noteOfPlace(of: leaked, openedBy: opened, newKeyFile: new.newKeyFile) {
        common.note(note)
      }
      for file in key.complete() {
        common.note("removed \(file), which a killed program had left, and which holds a key.")
      }
      common.note(try slots.openers())
      session.noteCopies()
    }
    // `prefs unlock` kept the old key.
    if whose.vault {
      try UnlockState(storeID: Database.storeID(at: session.path), options: common.ofSession).forget()
    }
  }

  /// The error of a run that failed after the new slot was added: what is in force, and how to go on.
  private func interrupted(
    _ error: any Error, _ slots: OpenSlots, _ leaked: SlotInfo, _ added: SlotInfo, _ key: ReplacementKey,
    _ former: String?
  ) -> any Error {
    var done = "\(SlotText.describe(added)) is added."
    if let former { done += " The key file \(key.path ?? "") is the new one, and the old one is kept as \(former)." }
    // The new key behind the slots may be in force, whatever failed afterwards.
    let isLockedOut = (try? slots.holder.slots())?.allSatisfy { $0.id != leaked.id } ?? false
    done += " \(SlotText.describe(leaked)) is \(isLockedOut ? "locked out" : "not locked out yet")."
    // Once the file has the new key, the slot has none here.
    let again = former == nil ? "Run the same command again" : "Run the command again, without the slot,"
    let next =
      isLockedOut
      ? "To finish it, run: \(CommandHint.text(slots.areOfVault ? "compact" : "rotate"))." : "\(again) to go on."
    if let failure = error as? Failure { return Failure(failure.status, "\(failure.message) \(done) \(next)") }
    guard let error = error as? CofferError else { return error }
    if case .unfinished(let more, _, let cause) = error {
      return CofferError.unfinished(done: "\(done) \(more)", next: next, cause: cause)
    }
    return CofferError.unfinished(done: done, next: next, cause: error)
  }

  /// - Parameter isOpened: Whether the leaked key has opened the slots, so that its file, if it has one, is known.
  private func replacementKey(
    for leaked: SlotInfo, isOpened: Bool, _ slots: OpenSlots, _ session: CommandSession
  ) throws -> ReplacementKey {
    if !new.isEmpty || leaked.kind == .passphrase { return ReplacementKey(try new.source(session.lookup)) }
    if isOpened, case .keyFile(let named)? = slots.key, let path = KeyFile.regularFile(at: named) {
      return ReplacementKey(inPlaceOf: path)
    }
    throw Failure(
      .usage,
      "\(SlotText.describe(leaked)) has no key file here that can be replaced. Say what opens it from now on: "
        + "--new-key-file, --passphrase, --key-command or --credential.")
  }

  /// Adds a slot for the new key, unless an interrupted run has done so for the same one.
  private func add(
    _ key: ReplacementKey, for leaked: SlotInfo, label: String, to slots: OpenSlots
  ) throws -> SlotInfo {
    try key.make()
    do {
      try key.checkMade()
      return try slots.holder.addSlot(
        key.made ?? key.source, label: label, stretching: new.stretching.hash())
    } catch CofferError.secretInUse(let id) where id != leaked.id {
      guard let slot = try slots.holder.slots().first(where: { $0.id == id }) else { throw CofferError.busy }
      return slot
    } catch {
      key.discard()
      throw error
    }
  }
}

/// The key that takes the place of a leaked one.
private struct ReplacementKey {
  /// What opens the new slot once the key is in its place.
  let source: KeySource
  /// The key file to replace, and the new one beside it.
  private let files: (path: String, new: String)?
  /// The key file that is replaced; nil if none is.
  var path: String? { files?.path }

  init(_ source: KeySource) {
    self.source = source
    files = nil
  }

  /// - Parameter path: The key file to replace.
  init(inPlaceOf path: String) {
    source = .keyFile(path)
    files = (path, Self.newFile(for: path))
  }

  /// Where the new key file is made; afterwards it is another name of that in its place, until everything is completed.
  static func newFile(for path: String) -> String { path + KeyFile.replacementMark }

  /// The key of the new file, if it is there, also once it was renamed.
  var made: KeySource? {
    files.flatMap { Self.key(in: $0.new) }.map(KeySource.key)
  }

  /// Any file may have the names of key files, and a pipe would keep its reader waiting.
  private static func key(in file: String) -> SecretBytes? {
    KeyFile.regularFile(at: file).flatMap { try? KeyFile.read(at: $0) }
  }

  /// Checks, before anything is made, that a new file can be made and put into its place, and that the old one opens nothing else
  /// in the store.
  func check(_ slots: OpenSlots) throws {
    guard let files else { return }
    do {
      try KeyFile.checkPlace(of: files.path)
    } catch CofferError.belongsToAnotherUser(let path, let user) {
      throw Failure(
        .otherUser,
        "the key file \(path) belongs to user \(user), and only that user, or root, can put another one in its place. "
          + "Nothing was changed.")
    }
    if KeyFile.exists(at: files.new), made == nil { throw obstacle(files.new) }
    guard let slot = try slots.otherSlot(openedBy: .keyFile(files.path)) else { return }
    let (this, other) = slots.areOfVault ? ("vault", "store") : ("store", "vault")
    throw Failure(
      .refused,
      "\(files.path) opens \(SlotText.describe(slot)) of the \(other), too, which would be left without it. Give the \(this) a key "
        + "file of its own: \(CommandHint.text("key replace\(slots.areOfVault ? " --vault" : "") --new-key-file FILE")). "
        + "Nothing was changed.")
  }

  /// The slots that an interrupted run was to lock out after it had put its key into place, or that it added for a key which it
  /// did not.
  func slotsOfInterruptedRun(_ holder: any SlotHolder) throws -> [SlotInfo] {
    guard let files, KeyFile.exists(at: files.new) else { return [] }
    let keys = KeyFile.isSame(files.path, files.new) ? KeyFile.replaced(at: files.path) : [files.new]
    return try keys.compactMap(Self.key).compactMap { try holder.slot(openedBy: .key($0)) }
  }

  /// Makes the new file, in the place of one that an interrupted run has left: its key may be known to others.
  func make() throws {
    guard let files else { return }
    KeyFile.discard(at: files.new)
    guard try KeyFile.create(at: files.new, group: KeyFile.group(at: files.path)) else { throw obstacle(files.new) }
  }

  private func obstacle(_ file: String) -> Failure {
    let owner = KeyFile.owner(at: file).map { " of user \($0)" } ?? ""
    return Failure(
      .conflict,
      "\(file) is in the way: no key can be read from it, or it cannot be removed. If an interrupted run\(owner) has left it, that "
        + "user can complete it, or remove the file, and the slot that it opens, if there is one: "
        + "\(CommandHint.text("key list")). Nothing was changed.")
  }

  /// Checks that the new file is one that can be put into its place.
  func checkMade() throws {
    if let files { try KeyFile.check(files.new, inPlaceOf: files.path) }
  }

  /// Puts a new key file into the place of the old one.
  ///
  /// - Returns: The path of the old one; nil if nothing was replaced.
  func putInPlace() throws -> String? {
    try files.map { try KeyFile.putInPlace(of: $0.path, $0.new) }
  }

  /// Removes the second name of a new key file, and what killed runs have left.
  ///
  /// - Returns: What such runs have left.
  func complete() -> [String] {
    guard let files else { return [] }
    if KeyFile.isSame(files.path, files.new) { KeyFile.discard(at: files.new) }
    return KeyFile.removeLeftovers(besides: files.path)
  }

  /// Removes a new key file that opens nothing.
  func discard() {
    if let files { KeyFile.discard(at: files.new) }
  }
}
