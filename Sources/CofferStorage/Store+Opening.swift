import CSQLite
import CofferCrypto

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
      let source = key.isReadAtOnce ? key : nil
      let store = try openOnce(at: path, isReadOnly: isReadOnly, vfs: vfs, source: source) { try $0.open(key) }
      if store.envelope.isPlaced { try store.settle() }
      return store
    }
  }

  /// Opens, without a key, what is now in the place of `former`, if it has the same envelope; nil if it has another one.
  ///
  /// - Throws: `StorageError.replaced` when the file was replaced meanwhile.
  package static func reopen(_ former: Store) throws -> Store? {
    let (known, rootKey, source) = former.state.withLock { ($0.envelope, $0.rootKey, $0.source) }
    do {
      return try openOnce(at: former.givenPath, isReadOnly: former.isReadOnly, vfs: former.vfs, source: source) {
        // A copy that is put in its place by a restore is not settled yet, and may have the same sequence.
        let isSame = try $0.encoded(rootKey: rootKey.key) == known.encoded(rootKey: rootKey.key)
        guard try isSame && !$0.isPlaced && $0.isAuthentic(under: rootKey.key) else { throw OtherEnvelope() }
        return rootKey
      }
    } catch is OtherEnvelope {
      return nil
    }
  }

  private struct OtherEnvelope: Error {}

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
      path: path, owner: owner, vfs: vfs, file: file, envelope: envelope, rootKey: try envelope.open(key),
      identity: identity, isReadOnly: true, isOutdated: true)
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
    at path: String, isReadOnly: Bool, vfs: EncryptingVFS, source: KeySource?, _ open: (Envelope) throws -> RootKey
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
    let rootKey = try open(envelope)
    return try shared.withLock { table in
      table.removeAll { $0.store == nil }
      // SQLite finds the log by the name, so another name of the file is another store.
      let index = table.firstIndex {
        $0.identity == identity && $0.store?.path == path && $0.store?.givenPath == givenPath
      }
      if let store = index.flatMap({ table[$0].store }), store.storeID == envelope.storeID, store.vfs === vfs,
        !store.hasOtherContents
      {
        // An envelope that the open store would not follow must not admit anyone to it.
        if !store.isUnder(rootKey.key) {
          try store.refresh()
          guard try store.isUnder(open(file.read().envelope).key) else {
            throw StorageError.rootKeyUnverified(path: path)
          }
        }
        return store
      }
      if try file.logNotice()?.meaning(at: path) == .otherLog { throw StorageError.usedUnderAnotherName(path: path) }
      let store = try Store(
        path: path, givenPath: givenPath, owner: owner, vfs: vfs, file: file, envelope: envelope, rootKey: rootKey,
        source: source, identity: identity, isReadOnly: isReadOnly,
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
      let identity = FileIdentity(status, isReadOnly: isReadOnly)
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
}
