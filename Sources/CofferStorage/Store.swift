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
  /// The identity of the file; nil while it has no name yet.
  private let identity: FileIdentity?
  /// The owner of the store's files, existing and new.
  package let owner: FileOwner
  let below: VFSPointer
  package let vfs: EncryptingVFS
  private let file: EnvelopeFile
  private let processToken = ProcessToken.current
  private let state: Lock<State>
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

  private struct State {
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
    isReadOnly: Bool = false, needsRepair: Bool = false
  ) throws {
    self.file = file
    self.identity = identity
    self.owner = owner
    self.isReadOnly = isReadOnly
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
      // Of a store that is salvaged with the older copy, the newer one is of no use.
      let isOlder = state.envelope.sequence == contents.outdated?.sequence
      return isOlder ? [0, 1].filter { !contents.outdatedCopies.contains($0) } : contents.damagedCopies
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

  private func isUnder(_ rootKey: SecretBytes) -> Bool { self.rootKey.isEqual(to: rootKey) }

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
    guard try readEnvelope(&state).sequence != state.envelope.sequence else { return }
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

  /// Whether another file now has the store's name.
  package var isReplaced: Bool {
    identity?.found(at: givenPath) == .other
  }

  /// Why a commit would be lost: the file no longer has the store's name; nil if it has.
  var lossOfName: StorageError? {
    switch identity?.found(at: givenPath) {
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
}

// MARK: - Opening

extension Store {
  /// Opens the store at `path`.
  ///
  /// Nothing is written. To be opened for writing, the file must be writable: SQLite would otherwise open it
  /// read-only, and leave a log beside it. It must belong to this user, or to one of the user's groups that shares
  /// it; root acts with the owner's rights. A store opened read-only may belong to anyone.
  package static func open(
    at path: String, key: KeySource, isReadOnly: Bool = false, vfs: EncryptingVFS = .standard
  ) throws -> Store {
    try whileReplaced {
      let store = try openOnce(at: path, key: key, isReadOnly: isReadOnly, vfs: vfs)
      if store.envelope.isPlaced { try store.settle() }
      return store
    }
  }

  /// Opens a store for reading what is left in it: with the older copy of the envelope if the key does not open the newer
  /// one, which need not have been written with a key.
  package static func openForSalvage(at path: String, key: KeySource) throws -> Store {
    do {
      return try open(at: path, key: key, isReadOnly: true)
    } catch {
      guard let store = try? openOutdated(at: path, key: key) else { throw error }
      return store
    }
  }

  /// - Returns: A store that no other opening gets.
  private static func openOutdated(at path: String, key: KeySource) throws -> Store? {
    let (path, identity, owner) = try checkFile(at: path, isReadOnly: true)
    let vfs = EncryptingVFS.standard
    let file = try owner.acting { try EnvelopeFile(path: path, below: vfs.below, isReadOnly: true) }
    guard let envelope = try file.read().outdated else { return nil }
    return try Store(
      path: path, givenPath: path, owner: owner, vfs: vfs, file: file, envelope: envelope,
      rootKey: try envelope.open(key), source: nil, identity: identity, isReadOnly: true, needsRepair: false)
  }

  /// How often to start over with a store that is replaced meanwhile.
  package static let attemptCount = 20

  /// Runs `body` again while it throws `StorageError.replaced`: a restore may replace the file at any moment.
  ///
  /// - Throws: The errors of `body`; `.busy` if the file is replaced again and again.
  package static func whileReplaced<Result>(_ body: () throws -> Result) throws -> Result {
    for _ in 0..<attemptCount {
      do { return try body() } catch StorageError.replaced {}
    }
    throw StorageError.busy
  }

  /// - Throws: `StorageError.replaced` when the file was replaced meanwhile.
  private static func openOnce(
    at path: String, key: KeySource, isReadOnly: Bool, vfs: EncryptingVFS
  ) throws -> Store {
    let name = path
    let (path, identity, owner) = try checkFile(at: path, isReadOnly: isReadOnly)
    let absolute = FilePath.absolute(name)
    let givenPath = FilePath.goesThroughLink(absolute) ? absolute : path
    let file = try owner.acting { try EnvelopeFile(path: path, below: vfs.below, isReadOnly: isReadOnly) }
    // By the name, another file may have been opened than was checked.
    guard identity.found(at: path) != .other else { throw StorageError.replaced(path: path) }
    let contents = try file.read()
    let envelope = contents.envelope
    let rootKey = try envelope.open(key)
    return try shared.withLock { table in
      table.removeAll { $0.store == nil }
      // SQLite finds the log by the name, so another name of the file is another store.
      let index = table.firstIndex {
        $0.identity == identity && $0.store?.path == path && $0.store?.givenPath == givenPath
      }
      if let store = index.flatMap({ table[$0].store }), store.storeID == envelope.storeID, store.vfs === vfs {
        // An envelope that the open store would not follow must not admit anyone to it.
        if !store.isUnder(rootKey.key) {
          try store.refresh()
          guard try store.isUnder(file.read().envelope.open(key).key) else {
            throw StorageError.rootKeyUnverified(path: path)
          }
        }
        return store
      }
      if try file.logNotice()?.meaning(at: path) == .otherLog { throw StorageError.usedUnderAnotherName(path: path) }
      let store = try Store(
        path: path, givenPath: givenPath, owner: owner, vfs: vfs, file: file, envelope: envelope, rootKey: rootKey,
        source: key.isReadAtOnce ? key : nil, identity: identity, isReadOnly: isReadOnly,
        needsRepair: !isReadOnly && !contents.damagedCopies.isEmpty)
      if let index { table.remove(at: index) }
      table.append(WeakStore(identity: identity, store: store))
      return store
    }
  }

  /// The resolved path of the store at `path`, and whose it is.
  package static func owner(at path: String) throws -> (path: String, user: uid_t) {
    let (path, _, owner) = try checkFile(at: path, isReadOnly: true)
    return (path, owner.user)
  }

  /// The same of a store that is missing: who would be its owner.
  package static func owner(ofNewAt path: String) throws -> (path: String, user: uid_t) {
    (try FilePath.resolved(path), try FileOwner(ofNewFileAt: path).user)
  }

  /// The envelope of the store at `path`, read without a key and therefore not trusted.
  package static func peekEnvelope(at path: String, vfs: EncryptingVFS = .standard) throws -> Envelope {
    let (path, _, owner) = try checkFile(at: path, isReadOnly: true)
    return try owner.acting { try EnvelopeFile(path: path, below: vfs.below, isReadOnly: true) }.read().envelope
  }

  /// Removes the store at `path` with its log and its shared memory; needs no key.
  ///
  /// Damaged stores and those of a newer format are removed, too. The store file goes last, so that an interrupted
  /// removal can be repeated.
  ///
  /// - Returns: The resolved path of the store, and its owner.
  /// - Throws: `StorageError.unsupported` when the file has other names, under which it would stay.
  package static func remove(at path: String) throws -> (path: String, user: UInt32) {
    do {
      _ = try peekEnvelope(at: path)
    } catch StorageError.damaged {
    } catch StorageError.newerFormat {}
    let (path, identity, owner) = try checkFile(at: path, isReadOnly: true)
    guard try !isOpenHere(identity) && !isOpenElsewhere(path) else { throw StorageError.busy }
    try owner.acting {
      try checkOnlyName(
        path, otherwise: "the store would stay under the others. Remove those first; nothing was removed")
      for path in [path + "-wal", path + "-shm", path] where unlink(path) != 0 && errno != ENOENT {
        throw StorageError(errno: errno, path: path)
      }
    }
    return (path, owner.user)
  }

  /// Throws `StorageError.unsupported` when the file at `path` has other names.
  ///
  /// - Parameter consequence: What would happen to the store under those, and what to do.
  static func checkOnlyName(_ path: String, otherwise consequence: String) throws {
    // Its creation was interrupted: names of this file.
    for leftover in StoreCopies.leftovers(besides: path) where KeyFile.isSame(leftover, path) { unlink(leftover) }
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink > 1 else { return }
    throw StorageError.unsupported(
      reason: "\(path) has \(status.st_nlink) names (hard links), and \(consequence)")
  }

  static func isOpenHere(_ identity: FileIdentity) -> Bool {
    shared.withLock { table in
      table.contains {
        $0.identity.device == identity.device && $0.identity.inode == identity.inode && $0.store != nil
      }
    }
  }

  /// Whether a process has the store open: each holds a lock on a byte of the shared memory, the one after the eight
  /// of https://www.sqlite.org/walformat.html#wal_locks.
  ///
  /// Only for a store that is not open in this process, because closing the file would drop its locks.
  private static func isOpenElsewhere(_ path: String) throws -> Bool {
    let path = path + "-shm"
    let descriptor = Platform.openForReading(path)
    guard descriptor >= 0 else {
      if errno == ENOENT { return false }
      throw StorageError(errno: errno, path: path)
    }
    defer { close(descriptor) }
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = 128
    lock.l_len = 1
    guard fcntl(descriptor, F_GETLK, &lock) == 0 else { throw StorageError(errno: errno, path: path) }
    return lock.l_type != Int16(F_UNLCK)
  }

  /// The identity of a file.
  struct FileIdentity: Equatable {
    let device: UInt64
    let inode: UInt64
    let isReadOnly: Bool

    /// What is at a path.
    enum Found {
      case same, other, nothing
    }

    /// Whether the file at `path` is this one, as far as that can be said.
    func found(at path: String) -> Found {
      var status = stat()
      guard lstat(path, &status) == 0 else { return errno == ENOENT || errno == ENOTDIR ? .nothing : .same }
      return status.st_ino == inode && UInt64(status.st_dev) == device ? .same : .other
    }
  }

  private struct WeakStore {
    let identity: FileIdentity
    weak var store: Store?
  }

  /// An array, because a process has few stores, and the first dictionary with a new key type makes the runtime
  /// search all conformances: a fiftieth of the time of a process's first opening.
  private static let shared = Lock<[WeakStore]>([])

  /// Refuses files that cannot be a store, or are not this user's, before anything is opened.
  static func checkFile(
    at path: String, isReadOnly: Bool
  ) throws -> (path: String, identity: FileIdentity, owner: FileOwner) {
    do {
      let path = try FilePath.resolved(path)
      var status = stat()
      guard lstat(path, &status) == 0 else { throw StorageError(errno: errno, path: path) }
      switch status.st_mode & S_IFMT {
      case S_IFREG: break
      case S_IFLNK: throw StorageError.notAStore(path: path, reason: "it is a symbolic link, which is never followed")
      case S_IFDIR: throw StorageError.notAStore(path: path, reason: "it is a directory")
      default: throw StorageError.notAStore(path: path, reason: "it is not a regular file")
      }
      let owner = try owner(ofFileAt: path, status, isReadOnly: isReadOnly)
      let identity = FileIdentity(
        device: UInt64(status.st_dev), inode: UInt64(status.st_ino), isReadOnly: isReadOnly)
      return (path, identity, owner)
    } catch StorageError.permissionDenied(let denied, let reason) {
      if let folder = FilePermissions.foreignFolder(above: path) {
        throw StorageError.belongsToAnother(path: folder.path, user: folder.user)
      }
      throw StorageError.permissionDenied(path: denied, reason: reason)
    }
  }

  /// The owner whose rights this user acts with on a file.
  private static func owner(ofFileAt path: String, _ status: stat, isReadOnly: Bool) throws -> FileOwner {
    let owner = FileOwner(status)
    let access = isReadOnly ? R_OK : R_OK | W_OK
    let isOwn = owner.user == geteuid() || FileOwner.canAct
    let code = try owner.acting { faccessat(AT_FDCWD, path, access, AT_EACCESS) == 0 ? 0 : errno }
    guard code == 0 else {
      // Root may read what the owner could not, and creates no files of its own there.
      if isReadOnly, FileOwner.canAct { return FileOwner.ofThisProcess }
      if !isOwn, code == EACCES { throw StorageError.belongsToAnother(path: path, user: owner.user) }
      throw StorageError(errno: code, path: path)
    }
    guard isReadOnly || isOwn || owner.isShared else {
      throw StorageError.belongsToAnother(path: path, user: owner.user)
    }
    return owner
  }

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
