extension Store {
  /// Whether anything exists at `path`.
  package static func isPresent(at path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// A copy of the store at `backup` that will replace the one at `path`.
  ///
  /// The log and the index of a store are found by their names, and a name cannot be changed together with another one.
  /// So the copy says in its envelope that it was put in its place, `markPlaced`, and replaces the old file in one
  /// rename: before that, the old store has its log and its index; after that, the new one has neither, whatever has
  /// their names. The first to open the new store removes those, `settle`, while no other can open it.
  package final class Replacement {
    private let path: String
    private let owner: FileOwner
    private let file: NewFile
    private let observer: FileCall.Observer?
    /// The path of the copy until it is renamed.
    package var temporaryPath: String { file.temporaryPath }

    /// Copies the backup beside the file that it will replace, for the same owner, and makes the copy durable.
    ///
    /// - Throws: `StorageError.unsupported` if the backup has a log, or is changed while it is read, or the file to replace has
    ///   other names.
    package init(of backup: String, at path: String, vfs: EncryptingVFS = .standard) throws {
      let owner = try FileOwner(ofStoreAt: path) ?? FileOwner(ofNewFileAt: path)
      try owner.acting {
        try Store.checkOnlyName(
          path,
          otherwise:
            "programs that use the others would go on with the old store. Remove those, or move a copy of the file to "
            + "the place of this one while no program has it open; nothing was changed")
      }
      let hand = FileOwner(ofHandAt: backup)
      var status = stat()
      if try hand.acting({ lstat(backup + "-wal", &status) }) == 0, status.st_size > 0 {
        throw StorageError.unsupported(
          reason:
            "\(backup) has a log beside it: a program has it open, or ended without closing it; copy it with a backup")
      }
      // What cannot be removed would be found only once the store is replaced.
      for name in ["-wal", "-shm"].map({ path + $0 }) {
        guard try owner.acting({ lstat(name, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR else { continue }
        throw StorageError.inputOutput(
          path: name, reason: "it is a folder, where a file of the store belongs; move it away. Nothing was changed")
      }
      // Closing a descriptor of an open store would drop its locks.
      guard try !Store.isOpenHere(Store.checkFile(at: backup, isReadOnly: true).identity) else {
        throw StorageError.busy
      }
      let source = try hand.acting { Platform.openForReading(backup) }
      guard source >= 0 else { throw StorageError(errno: errno, path: backup) }
      defer { close(source) }
      observer = vfs.fileCallObserver
      file = try NewFile(besides: path, owner: owner, observer: observer)
      self.owner = owner
      self.path = try FilePath.resolved(path)
      guard fstat(source, &status) == 0 else { throw StorageError(errno: errno, path: backup) }
      let version = FileVersion(status)
      try file.append(contentsOf: source, path: backup)
      guard fstat(source, &status) == 0, FileVersion(status) == version else {
        throw StorageError.unsupported(
          reason: "\(backup) was changed while it was read: a program has it open, or writes it; copy it with a backup")
      }
      try file.finish()
    }

    deinit {
      // What opening the copy has made, and a full disk did not let it close.
      for suffix in ["-wal", "-shm"] { _ = try? owner.acting { unlink(temporaryPath + suffix) } }
    }

    /// Puts the copy where no store is.
    ///
    /// - Throws: `StorageError.exists` if there is one by now.
    package func place() throws {
      try file.publish()
      file.removeTemporaryName()
    }

    /// Puts the copy in place of the store that `connection` has open, while other programs may have it open, too.
    ///
    /// Programs that wait for the write lock find the new store once they get it; those that read from memory see that
    /// there was a commit.
    ///
    /// Modelled in `Documentation/Models/StoreRestore.pml`.
    ///
    /// - Parameters:
    ///   - check: Called once no other program can write any more; an error that it throws ends this, and nothing is changed.
    ///   - replacing: Runs its argument, the rename.
    /// - Returns: The path of a copy of the old store, without a log unless a reader kept that from being checkpointed.
    package func place(
      over connection: SQLiteConnection, busyTimeout: Duration, check: () throws -> Void,
      replacing: (() throws -> Void) throws -> Void
    ) throws -> String {
      guard let store = connection.store, let database = connection.databaseFile else { throw StorageError.closed }
      try Self.lockCheckpointed(connection, busyTimeout)
      do {
        try check()
        // Writes its page even though the value stays the same.
        try connection.setTableVersion(connection.tableVersion())
        let aside = try Self.whileWithoutCheckpoints(database, busyTimeout) {
          let aside = try keepAside { try $0.append(contentsOf: store) }
          try replace(replacing)
          return aside
        }
        // It tells others that the store was replaced, and is nothing to keep.
        try? connection.commit()
        return aside
      } catch {
        try? connection.rollback()
        throw error
      }
    }

    /// Takes the write lock once everything is checkpointed and the log is empty, or cannot be.
    private static func lockCheckpointed(_ connection: SQLiteConnection, _ busyTimeout: Duration) throws {
      var attempt = 0
      while true {
        attempt += 1
        // A reader may keep its snapshot for long.
        connection.setBusyTimeout(min(busyTimeout, .milliseconds(200)))
        let isCheckpointed = (try? connection.checkpoint()) != nil
        connection.setBusyTimeout(busyTimeout)
        try connection.beginWrite(.full)
        // Others may have committed in between.
        if try !isCheckpointed || connection.logByteCount == 0 || attempt == 20 { return }
        try connection.rollback()
      }
    }

    private static func whileWithoutCheckpoints<Result>(
      _ database: DatabaseFile, _ busyTimeout: Duration, _ body: () throws -> Result
    ) throws -> Result {
      let deadline = ContinuousClock.now + busyTimeout
      while true {
        if let result = try database.withoutCheckpoints(body) { return result }
        guard ContinuousClock.now < deadline else { throw StorageError.busy }
        usleep(1000)
      }
    }

    /// Puts the copy in place of a store that its key does not open.
    ///
    /// - Parameters:
    ///   - force: Whether to proceed if programs have it open, once none of them writes.
    ///   - check: As above; gets the envelope, nil if it cannot be read.
    /// - Returns: The path of a copy of the old store, with a copy of its log.
    package func placeOverUnreadable(
      force: Bool, check: (Envelope?) throws -> Void, replacing: (() throws -> Void) throws -> Void
    ) throws -> String {
      let aside = try Store.whileLocked(path, force: force) { descriptor in
        try check(EnvelopeFile.envelope(in: descriptor, path: path))
        let aside = try keepAside { try $0.append(contentsOf: descriptor, path: path) }
        try replace(replacing)
        return aside
      }
      guard let aside else { throw StorageError.busy }
      return aside
    }

    private func replace(_ replacing: (() throws -> Void) throws -> Void) throws {
      try replacing { try file.replace() }
      // The new store has the name, whatever happens now.
      try? file.syncFolder()
    }

    /// Copies the old store and its log, which are locked meanwhile, to a free name.
    ///
    /// It is no second name of the file: programs may still have that open, and opening it by another name would make
    /// another log for it.
    private func keepAside(_ copyFile: (NewFile) throws -> Void) throws -> String {
      for number in 1... {
        let aside = "\(path)-replaced-\(number)"
        if Store.isPresent(at: aside) || Store.isPresent(at: aside + "-wal") { continue }
        do {
          // The log first: without it, the file would be an earlier state.
          try keepLog(at: aside + "-wal")
          let copy = try NewFile(besides: aside, owner: owner, observer: observer)
          try copyFile(copy)
          try copy.publish()
          return aside
        } catch StorageError.exists {
          // Another restore has just taken the name.
        }
      }
      throw StorageError.exists(path: path)
    }

    private func keepLog(at aside: String) throws {
      let log = try owner.acting { Platform.openForReading(path + "-wal") }
      guard log >= 0 else {
        if errno == ENOENT { return }
        throw StorageError(errno: errno, path: path + "-wal")
      }
      defer { close(log) }
      var status = stat()
      guard fstat(log, &status) == 0 else { throw StorageError(errno: errno, path: path + "-wal") }
      guard status.st_size > 0 else { return }
      let copy = try NewFile(besides: aside, owner: owner, observer: observer)
      try copy.append(contentsOf: log, path: path + "-wal")
      try copy.publish()
    }
  }

  /// Says in the envelope of a copy that it is about to replace a store.
  ///
  /// From then on it must not be opened under its temporary name.
  package func markPlaced() throws {
    try changeEnvelope { $0.setPlaced(true) }
  }

  /// Completes a restore that put this file in its place: removes the log and the index of the store it replaced.
  ///
  /// Modelled in `Documentation/Models/StoreRestore.pml`.
  ///
  /// - Throws: `StorageError.replaced`; `.busy` when another process does the same for too long.
  func settle() throws {
    guard !isReadOnly else { return try awaitSettled() }
    func isUnsettled() throws -> Bool {
      try refresh()
      return envelope.isPlaced
    }
    try whileAlone(if: isUnsettled) {
      // Another restore waits for the lock, so the names are not another store's by now.
      guard !isReplaced else { throw StorageError.replaced(path: path) }
      // Otherwise a power cut could bring back the old store without its log.
      try syncFolder()
      for suffix in ["-shm", "-wal"] {
        try announce(.remove(path: path + suffix))
        guard try owner.acting({ unlink(path + suffix) }) == 0 || errno == ENOENT else {
          throw StorageError(errno: errno, path: path + suffix)
        }
      }
      try syncFolder()
      try changeEnvelope { $0.setPlaced(false) }
    }
  }

  private func syncFolder() throws {
    try announce(.syncFolder(path: FilePath.folder(above: path)))
    try owner.acting { try FilePath.syncFolder(above: path) }
  }

  /// The process that restored the store is about to complete that.
  private func awaitSettled() throws {
    for _ in 0..<200 {
      try refresh()
      if !envelope.isPlaced { return }
      usleep(10_000)
    }
    throw StorageError.inputOutput(
      path: path, reason: "a restore of it was interrupted; open it once for writing, for instance with prefs doctor")
  }

  private func announce(_ call: FileCall) throws {
    guard let code = vfs.fileCallObserver?(call) else { return }
    throw StorageError(errno: code, path: path)
  }

  /// Whether no program has the store at `path` open.
  ///
  /// - Parameter patience: How long to wait for connections of this process to close.
  package static func isUnused(_ path: String, patience: Duration = .zero) throws -> Bool {
    try whileLocked(path, force: false, patience: patience) { _ in true } ?? false
  }

  /// Runs `body` with a descriptor of the store at `path` while no program has it open, or can open it; with `force`,
  /// while none writes.
  ///
  /// - Returns: nil when a program has it open, or writes.
  private static func whileLocked<Result>(
    _ path: String, force: Bool, patience: Duration = .seconds(1), _ body: (Int32) throws -> Result
  ) throws -> Result? {
    let (path, identity, owner) = try checkFile(at: path, isReadOnly: false)
    let deadline = ContinuousClock.now + patience
    while isOpenHere(identity) {
      guard ContinuousClock.now < deadline else { return nil }
      usleep(1000)
    }
    let flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    let descriptor = try owner.acting { openat(AT_FDCWD, path, flags) }
    guard descriptor >= 0 else { throw StorageError(errno: errno, path: path) }
    defer { close(descriptor) }
    // Every connection holds a lock on some of these bytes: https://www.sqlite.org/src/file/src/os.h, PENDING_BYTE.
    let bytes = (start: off_t(0x4000_0000), count: off_t(512))
    if try lock(descriptor, F_WRLCK, bytes, path) { return try body(descriptor) }
    guard force, try lock(descriptor, F_RDLCK, bytes, path) else { return nil }
    let index = try owner.acting { openat(AT_FDCWD, path + "-shm", flags) }
    guard index >= 0 else { throw StorageError(errno: errno, path: path + "-shm") }
    defer { close(index) }
    // The locks for writing, checkpoints and recovery: https://www.sqlite.org/walformat.html#wal_locks.
    for _ in 0..<500 {
      if try lock(index, F_WRLCK, (120, 3), path) { return try body(descriptor) }
      usleep(10_000)
    }
    return nil
  }

  private static func lock(
    _ descriptor: Int32, _ kind: CInt, _ bytes: (start: off_t, count: off_t), _ path: String
  ) throws -> Bool {
    var lock = flock()
    lock.l_type = Int16(kind)
    lock.l_whence = Int16(SEEK_SET)
    (lock.l_start, lock.l_len) = bytes
    if fcntl(descriptor, F_SETLK, &lock) == 0 { return true }
    guard errno == EAGAIN || errno == EACCES else { throw StorageError(errno: errno, path: path) }
    return false
  }

  /// Makes programs that have a store of this name open check whether it was replaced.
  package static func announce(_ path: String) { FileWatcher.announce(path) }
}

extension NewFile {
  private static let pieceByteCount = 1 << 20

  /// Appends the rest of an open file.
  fileprivate func append(contentsOf source: Int32, path: String) throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceByteCount, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = Platform.read(source, buffer.baseAddress!, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw StorageError(errno: errno, path: path) }
      if count == 0 { return }
      try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  /// Appends the file of an open store, without opening it again.
  fileprivate func append(contentsOf store: Store) throws {
    var rest = try store.fileByteCount()
    var offset: Int64 = 0
    while rest > 0 {
      var piece = [UInt8](repeating: 0, count: Int(min(rest, Int64(Self.pieceByteCount))))
      try store.readRaw(&piece, at: offset)
      try piece.withUnsafeBytes { try write($0) }
      offset += Int64(piece.count)
      rest -= Int64(piece.count)
    }
  }
}
