extension Store {
  /// Whether anything exists at `path`.
  private static func isPresent(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// A copy of the store at `backup` that will replace the one at `path`.
  package final class Replacement {
    private let path: String
    private let owner: FileOwner
    private let file: NewFile
    /// The path of the copy until it is renamed.
    package var temporaryPath: String { file.temporaryPath }

    /// Copies the backup beside the file that it will replace, for the same owner.
    ///
    /// - Throws: `StorageError.unsupported` if the backup has a log.
    package init(of backup: String, at path: String) throws {
      let owner = try FileOwner(ofStoreAt: path) ?? FileOwner(ofNewFileAt: path)
      var status = stat()
      if lstat(backup + "-wal", &status) == 0, status.st_size > 0 {
        throw StorageError.unsupported(
          reason:
            "\(backup) has a log beside it: a program has it open, or ended without closing it; copy it with a backup")
      }
      // Closing a descriptor of an open store would drop its locks.
      guard try !Store.isOpenHere(Store.checkFile(at: backup, isReadOnly: true).identity) else {
        throw StorageError.busy
      }
      let source = Platform.openForReading(backup)
      guard source >= 0 else { throw StorageError(errno: errno, path: backup) }
      defer { close(source) }
      file = try NewFile(besides: path, owner: owner)
      self.owner = owner
      self.path = try FilePath.resolved(path)
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
      defer { buffer.deallocate() }
      while true {
        let count = Platform.read(source, buffer.baseAddress!, buffer.count)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw StorageError(errno: errno, path: backup) }
        if count == 0 { return }
        try file.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    }

    /// Moves the copy into place.
    ///
    /// The old store and its log are kept under another name; a power cut at any moment leaves it whole under one of
    /// the two.
    ///
    /// - Returns: The old store's new name; nil if there was none.
    package func place() throws -> String? {
      try owner.acting {
        guard Store.isPresent(path) else {
          try removeIndexAndLog()
          try file.publish()
          return nil
        }
        let aside = try keepAside()
        if rename(path + "-wal", aside + "-wal") != 0, errno != ENOENT { throw StorageError(errno: errno, path: path) }
        try removeIndexAndLog()
        try file.replace()
        return aside
      }
    }

    private func keepAside() throws -> String {
      for number in 1... {
        let aside = "\(path)-replaced-\(number)"
        if Store.isPresent(aside + "-wal") { continue }
        if link(path, aside) == 0 { return aside }
        guard errno == EEXIST else { throw StorageError(errno: errno, path: path) }
      }
      throw StorageError.exists(path: path)
    }

    /// They belong to the old store.
    private func removeIndexAndLog() throws {
      for suffix in ["-shm", "-wal"] where unlink(path + suffix) != 0 && errno != ENOENT {
        throw StorageError(errno: errno, path: path + suffix)
      }
    }
  }

  /// Runs `body` while no program has the store at `path` open, or can open it.
  ///
  /// - Returns: nil when a program has it open.
  package static func whileUnused<Result>(_ path: String, _ body: () throws -> Result) throws -> Result? {
    let (path, identity, owner) = try checkFile(at: path, isReadOnly: false)
    guard !isOpenHere(identity) else { return nil }
    let descriptor = try owner.acting { openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
    guard descriptor >= 0 else { throw StorageError(errno: errno, path: path) }
    defer { close(descriptor) }
    // Every connection holds a lock on some of these bytes: https://www.sqlite.org/src/file/src/os.h, PENDING_BYTE.
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = 0x4000_0000
    lock.l_len = 512
    guard fcntl(descriptor, F_SETLK, &lock) == 0 else {
      guard errno == EAGAIN || errno == EACCES else { throw StorageError(errno: errno, path: path) }
      return nil
    }
    return try body()
  }

  /// Makes programs that have a store of this name open check whether it was replaced.
  package static func announce(_ path: String) { FileWatcher.announce(path) }
}
