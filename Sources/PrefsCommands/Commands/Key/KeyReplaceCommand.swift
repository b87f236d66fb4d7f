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
      let leaked = try LeakedKey(slots, named: slot, of: all)
      let key = try replacementKey(for: leaked, slots, session)
      // An interrupted run may have added its slot.
      let known = try key.existing.flatMap { try slots.holder.slot(openedBy: $0) == nil ? nil : $0 }
      let replacement = KeyReplacement(
        slots: slots, keys: try keep.sources() + [known].compactMap(\.self),
        dropped: try keep.droppedSlots(in: all).union([leaked.slot.id]), options: common.ofSession)
      // Before anything is made or changed.
      let staysAny = all.contains { !replacement.dropped.contains($0.id) }
      let sources = staysAny ? try replacement.sources() : []
      let opened = try slots.key.flatMap(slots.holder.slot(openedBy:))
      let added = try add(key, for: leaked, to: slots)
      let former = try key.putInPlace()
      try replacement.replace(openedBy: sources + [key.source])
      common.note(
        "\(SlotText.describe(leaked.slot)) is locked out; \(SlotText.describe(added)) has taken its place. Anyone who had "
          + "the old key can still read copies made before.")
      if let former {
        common.note("the old key file is kept as \(former), for copies made before. Remove it if you do not need it.")
      }
      if let note = slots.noteOfPlace(of: leaked.slot, openedBy: opened, newKeyFile: new.newKeyFile) {
        common.note(note)
      }
      common.note(try slots.openers())
      session.noteCopies()
    }
    // `prefs unlock` kept the old key.
    if whose.vault {
      try UnlockState(storeID: Database.storeID(at: session.path), options: common.ofSession).forget()
    }
  }

  private func replacementKey(
    for leaked: LeakedKey, _ slots: OpenSlots, _ session: CommandSession
  ) throws -> ReplacementKey {
    if !new.isEmpty || leaked.slot.kind == .passphrase { return ReplacementKey(try new.source(session.lookup)) }
    if leaked.isReplacedInPlace, let key = slots.key { return ReplacementKey(key) }
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

  /// - Parameter named: The slot's number or label; nil for the key that opened the store.
  init(_ slots: OpenSlots, named: String?, of all: [SlotInfo]) throws {
    let opened = try slots.key.flatMap(slots.holder.slot(openedBy:))
    var path: String?
    if case .keyFile(let named)? = slots.key { path = KeyFile.regularFile(at: named) }
    let replaced = try path.map(KeyFile.replaced(at:))?.compactMap { file -> SlotInfo? in
      // Any file may have such a name.
      guard let key = try? KeyFile.read(at: file) else { return nil }
      return try slots.holder.slot(openedBy: .key(key))
    }
    let interrupted = replaced?.first { $0.id != opened?.id }
    if let named {
      slot = try SlotReference.slot(named, in: all)
    } else if let found = interrupted ?? opened {
      slot = found
    } else {
      throw Failure(.usage, "say which slot: \(SlotText.list(all)).")
    }
    if slot.id == opened?.id { keyFile = path }
    isReplacedInPlace = slot.id == interrupted?.id
  }
}

/// The key that takes the place of a leaked one.
private struct ReplacementKey {
  /// What opens the new slot once the key is in its place.
  let source: KeySource
  /// The key file to replace, and the new one beside it.
  private let files: (path: String, new: String)?

  init(_ source: KeySource) {
    self.source = source
    files = nil
  }

  /// - Parameter path: The key file to replace.
  init(inPlaceOf path: String) {
    source = .keyFile(path)
    files = (path, path + "-new")
  }

  /// The key of the new file, if it is there, also once it was renamed.
  var existing: KeySource? {
    files.flatMap { try? KeyFile.read(at: $0.new) }.map(KeySource.key)
  }

  /// Makes the new file, unless an interrupted run has left it.
  ///
  /// - Returns: Whether it was made here.
  func make() throws -> Bool {
    try files.map { try KeyFile.create(at: $0.new, group: KeyFile.group(at: $0.path)) } ?? false
  }

  /// Puts a new key file into the place of the old one.
  ///
  /// - Returns: The path of the old one; nil if nothing was replaced.
  func putInPlace() throws -> String? {
    try files.map { try KeyFile.putInPlace(of: $0.path, $0.new) }
  }

  /// Removes a new key file that opens nothing.
  func discard() {
    if let files { KeyFile.discard(at: files.new) }
  }
}
