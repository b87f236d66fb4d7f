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
      let leaked: LeakedKey
      switch try LeakedKey.find(slots, named: slot, of: all) {
      case .finished(let keyFile): return try finish(keyFile, slots, session)
      case .found(let key): leaked = key
      }
      let key = try replacementKey(for: leaked, slots, session)
      try key.check()
      // An interrupted run may have added its slot.
      let known = try key.existing.flatMap { try slots.holder.slot(openedBy: $0) == nil ? nil : $0 }
      let replacement = KeyReplacement(
        slots: slots, keys: try keep.sources() + [known].compactMap(\.self),
        dropped: try keep.droppedSlots(in: all).union([leaked.slot.id]), options: common.ofSession)
      // Before anything is made or changed.
      let staysAny = all.contains { !replacement.dropped.contains($0.id) }
      let sources = staysAny ? try replacement.sources() : []
      let opened = try slots.key.flatMap(slots.holder.slot(openedBy:))
      try slots.holder.checkRewritable()
      let added = try add(key, for: leaked, to: slots)
      var former: String?
      do {
        former = try key.putInPlace()
        try replacement.replace(openedBy: sources + [key.source])
      } catch {
        throw interrupted(error, slots, leaked, added, key, former)
      }
      common.note(
        "\(SlotText.describe(leaked.slot)) is locked out; \(SlotText.describe(added)) has taken its place. Anyone who had "
          + "the old key can still read copies made before.")
      if let former {
        common.note("the old key file is kept as \(former), for copies made before. Remove it if you do not need it.")
      }
      if let note = slots.noteOfPlace(of: leaked.slot, openedBy: opened, newKeyFile: new.newKeyFile) {
        common.note(note)
      }
      try complete(key, slots, session)
    }
    // `prefs unlock` kept the old key.
    if whose.vault {
      try UnlockState(storeID: Database.storeID(at: session.path), options: common.ofSession).forget()
    }
  }

  /// Completes a run that was interrupted after it had locked out the leaked key.
  private func finish(_ keyFile: String, _ slots: OpenSlots, _ session: CommandSession) throws {
    try ProgressBar.during("re-encrypting", common.ofSession) { try slots.holder.finishReplacement(progress: $0) }
    common.note(
      "completed the replacement that was interrupted: \(keyFile) has the new key, and the one from before opens "
        + "\(slots.areOfVault ? "the vault" : "the store") no more. To replace the new one, too, run this again.")
    try complete(ReplacementKey(inPlaceOf: keyFile), slots, session)
  }

  private func complete(_ key: ReplacementKey, _ slots: OpenSlots, _ session: CommandSession) throws {
    for file in key.complete() {
      common.note("removed \(file), which a killed program had left, and which holds a key.")
    }
    common.note(try slots.openers())
    session.noteCopies()
  }

  /// The error of a run that failed after the new slot was added: what is in force, and how to go on.
  private func interrupted(
    _ error: any Error, _ slots: OpenSlots, _ leaked: LeakedKey, _ added: SlotInfo, _ key: ReplacementKey,
    _ former: String?
  ) -> any Error {
    guard let error = error as? CofferError else { return error }
    var done = "\(SlotText.describe(added)) is added."
    if let former { done += " The key file \(key.path ?? "") is the new one, and the old one is kept as \(former)." }
    // The new key behind the slots may be in force, whatever failed afterwards.
    let isLockedOut = (try? slots.holder.slots())?.allSatisfy { $0.id != leaked.slot.id } ?? false
    done += " \(SlotText.describe(leaked.slot)) is \(isLockedOut ? "locked out" : "not locked out yet")."
    let isInPlace = former != nil || !isLockedOut
    let next =
      isInPlace
      ? "Run the same command again to go on."
      : "To finish it, run: \(CommandHint.text(slots.areOfVault ? "compact" : "rotate"))."
    if case .unfinished(let more, _, let cause) = error {
      return CofferError.unfinished(done: "\(done) \(more)", next: next, cause: cause)
    }
    return CofferError.unfinished(done: done, next: next, cause: error)
  }

  private func replacementKey(
    for leaked: LeakedKey, _ slots: OpenSlots, _ session: CommandSession
  ) throws -> ReplacementKey {
    if !new.isEmpty || leaked.slot.kind == .passphrase { return ReplacementKey(try new.source(session.lookup)) }
    if leaked.isReplacedInPlace, let path = leaked.keyFile, let key = slots.key {
      return KeyFile.noteReplacement(of: path, by: ReplacementKey.newFile(for: path))
        ? ReplacementKey(inPlaceOf: path) : ReplacementKey(key)
    }
    guard let path = leaked.keyFile else {
      throw Failure(
        .usage,
        "\(SlotText.describe(leaked.slot)) has no key file here that can be replaced. Say what opens it from now on: "
          + "--new-key-file, --passphrase, --key-command or --credential.")
    }
    return ReplacementKey(inPlaceOf: path)
  }

  /// Adds a slot for the new key, unless an interrupted run has done so.
  private func add(_ key: ReplacementKey, for leaked: LeakedKey, to slots: OpenSlots) throws -> SlotInfo {
    let isMadeHere = try key.make()
    do {
      try key.checkMade()
      return try slots.holder.addSlot(
        key.existing ?? key.source, label: new.label.map(CommandArguments.value) ?? leaked.slot.label,
        stretching: new.stretching.hash())
    } catch CofferError.secretInUse(let id) where id != leaked.slot.id {
      guard let slot = try slots.holder.slots().first(where: { $0.id == id }) else { throw CofferError.busy }
      return slot
    } catch {
      if isMadeHere { key.discard() }
      throw error
    }
  }
}

/// The key to lock out.
private struct LeakedKey {
  let slot: SlotInfo
  /// The key file that opens the slot, if it opened the store.
  var keyFile: String?
  /// Whether an interrupted run has already put the new key into the place of this one, and it opened the store.
  var isReplacedInPlace = false

  enum Finding {
    case found(LeakedKey)
    /// An interrupted run has locked it out, and put the new key into its place, which is this file.
    case finished(keyFile: String)
  }

  /// - Parameter named: The slot's number or label; nil for the key that opened the store.
  static func find(_ slots: OpenSlots, named: String?, of all: [SlotInfo]) throws -> Finding {
    let opened = try slots.key.flatMap(slots.holder.slot(openedBy:))
    var path: String?
    if case .keyFile(let named)? = slots.key { path = KeyFile.regularFile(at: named) }
    let replaced = try path.map(KeyFile.replaced(at:))?.compactMap { file -> SlotInfo? in
      // Any file may have such a name.
      guard let key = try? KeyFile.read(at: file) else { return nil }
      return try slots.holder.slot(openedBy: .key(key))
    }
    let interrupted = replaced?.first { $0.id != opened?.id }
    if let path, interrupted == nil, KeyFile.isSame(path, ReplacementKey.newFile(for: path)) {
      // What the interrupted run was to lock out has no slot any more.
      if named.map({ (try? SlotReference.slot($0, in: all)) == nil }) ?? true { return .finished(keyFile: path) }
      KeyFile.discard(at: ReplacementKey.newFile(for: path))
    }
    let slot: SlotInfo
    if let named {
      slot = try SlotReference.slot(named, in: all)
    } else if let found = interrupted ?? opened {
      slot = found
    } else {
      throw Failure(.usage, "say which slot: \(SlotText.list(all)).")
    }
    let isReplacedInPlace = slot.id == interrupted?.id
    return .found(
      LeakedKey(
        slot: slot, keyFile: slot.id == opened?.id || isReplacedInPlace ? path : nil,
        isReplacedInPlace: isReplacedInPlace))
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
  static func newFile(for path: String) -> String { path + "-new" }

  /// The key of the new file, if it is there, also once it was renamed.
  var existing: KeySource? {
    files.flatMap { try? KeyFile.read(at: $0.new) }.map(KeySource.key)
  }

  /// Checks, before anything is made, that the new file can be put into its place.
  func check() throws {
    guard let files else { return }
    do {
      try KeyFile.checkPlace(of: files.path)
    } catch CofferError.belongsToAnotherUser(let path, let user) {
      throw Failure(
        .otherUser,
        "the key file \(path) belongs to user \(user), and only that user, or root, can put another one in its place. "
          + "Nothing was changed.")
    }
  }

  /// Makes the new file, unless an interrupted run has left it.
  ///
  /// - Returns: Whether it was made here.
  func make() throws -> Bool {
    try files.map { try KeyFile.create(at: $0.new, group: KeyFile.group(at: $0.path)) } ?? false
  }

  /// Checks that the new file is one that can be put into its place; an interrupted run of another user may have left it.
  func checkMade() throws {
    guard let files else { return }
    guard existing != nil else {
      let owner = KeyFile.owner(at: files.new).map { " of user \($0)" } ?? ""
      throw Failure(
        .conflict,
        "\(files.new) is in the way: no key can be read from it. If an interrupted run\(owner) has left it, that user can "
          + "complete it, or remove the file, and the slot that it opens, if there is one: \(CommandHint.text("key list")). "
          + "Nothing was changed.")
    }
    try KeyFile.check(files.new, inPlaceOf: files.path)
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
