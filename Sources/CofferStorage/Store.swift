import CSQLite
import CofferCrypto
import Synchronization

/// One store file in this process: its keys, derived once, and the only handle that reads and writes its envelope.
///
/// The handle is opened by the VFS below, never by `open(2)`: closing any other descriptor of the file would drop
/// SQLite's locks on it (https://www.sqlite.org/howtocorrupt.html, 2.2), while that VFS defers the close. All
/// databases of this process on one file, under one name, share one `Store`.
package final class Store: Sendable {
  package let path: String
  /// The absolute path by which it was opened, with the links on the way to it: they may lead to another store later.
  package let givenPath: String
  package let storeID: [UInt8]
  /// Whether this object may not write, whatever the file allows.
  package let isReadOnly: Bool
  /// Whether it was opened with the older copy of the envelope, because the key does not open the newer one.
  private let isOutdated: Bool
  /// The identity of the file; nil while it has no name yet.
  private let identity: FileIdentity?
  private let isIndexKept = Atomic<Bool>(false)
  private let isWrittenOver = Atomic<Bool>(false)
  /// The file of the wal-index that all connections of this process use, and how many do.
  private let index = Lock<(file: FileIdentity?, userCount: Int)>((nil, 0))
  /// The owner of the store's files, existing and new.
  package let owner: FileOwner
  let below: VFSPointer
  package let vfs: EncryptingVFS
  private let file: EnvelopeFile
  private let processToken = ProcessToken.current
  let state: Lock<State>
  /// Held while this process settles the store; the lock on the file does not exclude threads.
  let settling = Lock<Void>(())
  /// Whether a sync of the log failed, and its frames must be written again.
  let hasUnsyncableLog = Atomic<Bool>(false)

  /// The frames of the log that this process knows to be synced.
  private let synced = Lock<(salts: UInt64, count: UInt32)>((0, 0))

  /// nil if this process has neither begun nor synced a log with these salts.
  func syncedFrameCount(salts: UInt64) -> UInt32? {
    synced.withLock { $0.salts == salts ? $0.count : nil }
  }

  func noteSync(ofFrames count: UInt32, salts: UInt64) {
    synced.withLock { $0 = (salts, $0.salts == salts ? max($0.count, count) : count) }
  }

  /// Frames after `count` will be written again.
  func forgetSync(after count: UInt32) {
    synced.withLock { $0.count = min($0.count, count) }
  }

  /// What remembers this store; see `consult(_:)`.
  private let witnesses = Lock<[WeakWitness]>([])

  private struct WeakWitness: @unchecked Sendable {
    // Unchecked: a weak reference is read and cleared atomically, and never assigned again.
    weak var witness: (any EnvelopeWitness)?
  }

  struct State {
    var rootKey: RootKey
    var envelope: Envelope
    var keys: [EpochKeys]
    /// Where the key came from, if it can be read again at once: if its slot is replaced together with the root key,
    /// the new secret may be there by then.
    var source: KeySource?
    /// Whether a copy of the envelope was damaged when the store was opened, and has not been repaired since.
    var needsRepair: Bool
  }

  init(
    path: String, givenPath: String? = nil, owner: FileOwner, vfs: EncryptingVFS, file: EnvelopeFile,
    envelope: Envelope, rootKey: RootKey, source: KeySource? = nil, identity: FileIdentity? = nil,
    isReadOnly: Bool = false, isOutdated: Bool = false, needsRepair: Bool = false
  ) throws {
    self.file = file
    self.identity = identity
    self.owner = owner
    self.isReadOnly = isReadOnly
    self.isOutdated = isOutdated
    self.path = path
    self.givenPath = givenPath ?? path
    self.vfs = vfs
    below = vfs.below
    storeID = envelope.storeID
    let keys = try envelope.keys(rootKey: rootKey.key)
    state = Lock(State(rootKey: rootKey, envelope: envelope, keys: keys, source: source, needsRepair: needsRepair))
  }

  /// The current envelope.
  package var envelope: Envelope { state.withLock { $0.envelope } }

  /// The copies of the envelope, 0 and 1, that currently differ from the newest one in the file: damaged or outdated.
  package func damagedEnvelopeCopies() throws -> [Int] {
    try state.withLock { state in
      let contents = try file.read()
      // The newer copy is of no use then.
      return isOutdated ? [0, 1].filter { !contents.outdatedCopies.contains($0) } : contents.damagedCopies
    }
  }

  /// Those of them that are whole, and older than the other one.
  package func outdatedEnvelopeCopies() throws -> [Int] {
    try state.withLock { _ in try file.read().outdatedCopies }
  }

  /// All secrets of the store in memory, by name; for tests.
  package var secrets: [(name: String, key: SecretBytes)] {
    state.withLock { state in
      [("root key", state.rootKey.key), ("slot key", state.rootKey.slotKey.wrapping)]
        + state.keys.flatMap { [("page key", $0.page), ("log header key", $0.logHeader)] }
    }
  }

  var rootKey: SecretBytes { state.withLock { $0.rootKey.key } }

  /// The key that seals records of this store, and the one that sealed those under the former root key.
  func witnessKeys() throws -> (current: SecretBytes, former: SecretBytes?) {
    try state.withLock { state in
      let rootKey = state.rootKey.key
      return (
        try Witness.key(rootKey: rootKey, storeID: storeID),
        try state.envelope.succession?.formerWitnessKey(rootKey: rootKey, storeID: storeID)
      )
    }
  }

  /// The slot that opened the store.
  package var openedSlot: UInt8 { state.withLock { $0.rootKey.slotID } }

  package func hasSameRootKey(as other: Store) -> Bool { isUnder(other.rootKey) }

  func isUnder(_ rootKey: SecretBytes) -> Bool { self.rootKey.isEqual(to: rootKey) }

  /// Whether this store is under the root key of `other`, an earlier one of the same ID, or under its successor.
  package func succeeds(_ other: Store) throws -> Bool {
    let former = other.rootKey
    return try state.withLock { state in
      if try state.envelope.isAuthentic(under: former) { return true }
      return try state.envelope.succession?.names(state.rootKey.key, after: former, storeID: storeID) ?? false
    }
  }

  /// The epochs' keys, and the sequence of the envelope they come from.
  var keys: (sequence: UInt64, keys: [EpochKeys]) {
    state.withLock { ($0.envelope.sequence, $0.keys) }
  }

  /// The keys, if the envelope in the file has changed since `sequence`.
  func keys(changedSince sequence: UInt64) throws -> (sequence: UInt64, keys: [EpochKeys])? {
    try state.withLock { state in
      // Usually two numbers show that nothing has changed.
      let (first, second) = try file.sequences()
      if first != state.envelope.sequence || second != first { try readAgain(&state) }
      return state.envelope.sequence == sequence ? nil : (state.envelope.sequence, state.keys)
    }
  }

  /// Loads the current envelope from the file.
  package func refresh() throws {
    try state.withLock { try readAgain(&$0) }
  }

  private func readEnvelope(_ state: inout State) throws -> Envelope {
    let contents = try file.read()
    if !isReadOnly, !contents.damagedCopies.isEmpty { state.needsRepair = true }
    return contents.envelope
  }

  private func readAgain(_ state: inout State) throws {
    guard try !isOutdated && readEnvelope(&state).sequence != state.envelope.sequence else { return }
    // A record is renewed after the envelope, and read before it: so it is never of a later one.
    let records = changedRecords()
    let envelope = try readEnvelope(&state)
    guard envelope.storeID == storeID else { throw StorageError.replaced(path: path) }
    guard envelope.sequence > state.envelope.sequence else {
      throw StorageError.damaged(part: "envelope", reason: "it was replaced by an older one")
    }
    let rootKey = try envelope.follow(state.rootKey, source: state.source, path: path)
    for (_, record) in records { try check(record, vouchesFor: envelope, rootKey.key) }
    try take(envelope, rootKey, &state)
    for (witness, record) in records { witness.noteVouched(record) }
  }

  /// Reads what `witness` remembers before this store follows an envelope that others have written.
  ///
  /// The root key held here cannot tell whether it was replaced meanwhile: an envelope under it, with a higher sequence, may
  /// come from someone whom the replacement locked out.
  package func consult(_ witness: any EnvelopeWitness) {
    witnesses.withLock { list in
      list.removeAll { $0.witness == nil }
      list.append(WeakWitness(witness: witness))
    }
  }

  private func changedRecords() -> [(witness: any EnvelopeWitness, record: [UInt8])] {
    witnesses.withLock { $0.compactMap(\.witness) }.compactMap { witness in
      witness.changedRecord().map { (witness, $0) }
    }
  }

  /// Throws if a record was made under a later root key than that of `envelope`, or remembers a later envelope.
  private func check(_ record: [UInt8], vouchesFor envelope: Envelope, _ rootKey: SecretBytes) throws {
    let reading = try Witness.read(
      record, storeID: storeID, current: Witness.key(rootKey: rootKey, storeID: storeID),
      former: envelope.succession?.formerWitnessKey(rootKey: rootKey, storeID: storeID))
    switch reading {
    case .whole(let known, _) where known.envelope > envelope.sequence:
      throw StorageError.rolledBack(knownCommit: known.commit, known: known.envelope, found: envelope.sequence)
    case .otherRootKey(let known):
      throw StorageError.rolledBack(knownCommit: nil, known: known, found: envelope.sequence)
    case .whole, .otherStore, .unreadable: break
    }
  }

  private func take(_ envelope: Envelope, _ rootKey: RootKey, _ state: inout State) throws {
    state.keys = try envelope.keys(rootKey: rootKey.key, known: state.keys)
    state.rootKey = rootKey
    state.envelope = envelope
  }

  /// Changes both copies of the envelope in the file.
  ///
  /// The caller holds SQLite's write lock, and commits afterwards: others check the envelope when they take a lock.
  ///
  /// - Parameter change: Receives the current envelope and the root key.
  /// - Returns: The result of `change`.
  func changeEnvelope<Result>(_ change: (inout EnvelopeChange) throws -> Result) throws -> Result {
    guard !isReadOnly else { throw StorageError.permissionDenied(path: path, reason: "it was opened read-only") }
    return try state.withLock { state in
      try readAgain(&state)
      var draft = EnvelopeChange(envelope: state.envelope, rootKey: state.rootKey)
      let result = try change(&draft)
      draft.envelope.sequence = try state.envelope.nextSequence()
      // Parse the encoded copy: it is what others will read, including the authenticated bytes.
      let copy = try draft.envelope.encoded(rootKey: draft.rootKey.key)
      let envelope = try Envelope(copy: copy[...])
      do {
        if try !file.write(copy) { state.needsRepair = true }
      } catch {
        state.needsRepair = true
        throw error
      }
      try take(envelope, draft.rootKey, &state)
      return result
    }
  }

  /// Whether one of the envelope's copies is not written, or not synced; the next change of the store repairs that.
  package var hasUnwrittenEnvelopeCopy: Bool { state.withLock { $0.needsRepair } }

  /// Restores a damaged or outdated copy of the envelope from the other one.
  ///
  /// The caller holds SQLite's write lock. One whole copy is enough to continue, so a failure to write the other one
  /// is ignored.
  func repairEnvelope() {
    state.withLock { state in
      guard state.needsRepair else { return }
      let (sequence, rootKey) = (state.envelope.sequence, state.rootKey.key)
      do {
        try file.repair { envelope in
          try envelope.verify(rootKey: rootKey)
          return envelope.sequence == sequence
        }
        state.needsRepair = false
      } catch {
        // The next change of the store tries again: the other copy may still have a slot that was removed.
      }
    }
  }

  /// Whether there is a log.
  package var hasLog: Bool { access(path + "-wal", F_OK) == 0 || errno != ENOENT }

  /// Whether another file now has the store's name, or other contents were written into this one.
  package var isReplaced: Bool { hasOtherContents || hasLostName }

  /// Whether another file now has the store's name.
  var hasLostName: Bool { identity?.found(at: givenPath) == .other }

  /// Whether something other than a connection has written into the file while one had it open, as `cp` does.
  var hasOtherContents: Bool { isWrittenOver.load(ordering: .acquiring) }

  /// Whether the envelope in the file is later than the one that is known here, or cannot be read.
  var mayHaveLaterEnvelope: Bool {
    state.withLock { state in
      guard let (first, second) = try? file.sequences(), min(first, second) > 0 else { return true }
      return max(first, second) > state.envelope.sequence
    }
  }

  /// Whether that was the only thing that replaced it: the file still has the store's name.
  package var isOverwrittenInPlace: Bool { hasOtherContents && !hasLostName }

  /// Whether that has happened while the log had changes, which do not belong to the new contents.
  package var isMixed: Bool { isOverwrittenInPlace && logByteCount > 0 }

  func noteOtherContents() { isWrittenOver.store(true, ordering: .releasing) }

  /// Whether a connection of this process has the wal-index open.
  package var isIndexOpen: Bool { index.withLock { $0.userCount > 0 } }

  /// Called once a connection uses the wal-index, which had its name just now.
  ///
  /// - Returns: The file that it uses: SQLite opens it for the first connection of a process, and keeps it for the others.
  func useIndex(_ file: FileIdentity) -> FileIdentity? {
    index.withLock { index in
      if index.userCount == 0 { index.file = file }
      index.userCount += 1
      return index.file
    }
  }

  func endUseOfIndex() { index.withLock { $0.userCount -= 1 } }

  /// Called as a connection to a replaced store closes, whose index is that of the store in its place.
  ///
  /// Closing the last one would close the index, and so drop all locks of this process on its file, which are also those on
  /// the other store (https://www.sqlite.org/howtocorrupt.html, 2.2): other programs would truncate the index while it is mapped.
  ///
  /// - Returns: Whether the connection has to stay open for good, as the only one.
  func keepIndexOpen() -> Bool { !isIndexKept.exchange(true, ordering: .relaxed) }

  /// Why a commit would be lost: the file no longer has the store's name, or its contents; nil if it has.
  package var lossOfName: StorageError? {
    guard !hasOtherContents else { return .replaced(path: path) }
    return switch identity?.found(at: givenPath) {
    case .other: .replaced(path: path)
    case .nothing: .notFound(path: path)
    case .same, nil: nil
    }
  }

  /// Whether the file was overwritten with another store.
  var isOverwritten: Bool {
    state.withLock { _ in (try? file.read().envelope.storeID).map { $0 != storeID } ?? false }
  }

  /// Runs `body` while no other process has a connection to the file, or opens one.
  ///
  /// - Parameter isNeeded: Whether to keep waiting; asked again and again, and with the lock held.
  /// - Throws: `StorageError.busy` when that is not so in half a minute.
  func whileAlone(if isNeeded: () throws -> Bool, _ body: () throws -> Void) throws {
    try settling.withLock { _ in
      for _ in 0..<3000 {
        if state.withLock({ _ in file.lock() }) {
          defer { state.withLock { _ in file.unlock() } }
          return try isNeeded() ? body() : ()
        }
        usleep(10_000)
        // Another process may have been faster, and keeps the store open.
        if try !isNeeded() { return }
      }
      throw StorageError.busy
    }
  }

  func fileByteCount() throws -> Int64 {
    try state.withLock { _ in try file.byteCount() }
  }

  func readRaw(_ buffer: inout [UInt8], at offset: Int64) throws {
    try state.withLock { _ in try file.read(into: &buffer, at: offset) }
  }

  /// SQLite connections do not cross `fork()` (https://www.sqlite.org/howtocorrupt.html, 2.6).
  package func checkProcess() throws {
    guard ProcessToken.current == processToken else { throw StorageError.usedAfterFork }
  }

  // MARK: Files

  /// The permissions that let others access the files of this store: their modes, and that of their folder.
  package func fileProblems() -> [String] {
    ["", "-wal", "-shm"].flatMap { FilePermissions.problems(ofFileAt: path + $0, of: owner) }
      + FilePermissions.problems(ofFolderAbove: path, of: owner)
  }

  /// The size of the log file, 0 when there is none.
  package var logByteCount: Int {
    var status = stat()
    return lstat(path + "-wal", &status) == 0 ? Int(clamping: status.st_size) : 0
  }
}
