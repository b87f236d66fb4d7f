/// How a read-only connection accesses a store, determined once when it opens the file.
struct ReadOnlyAccess {
  /// Whether it may create a missing log and shared memory, and there is room for them.
  ///
  /// SQLite creates them with the store's mode, owned by the creating user: in another user's folder, or for a
  /// read-only store, they would lock out later writers.
  let makesFiles: Bool
  /// The version of the file if it is read alone, as an image; nil if the log is read, too, or locks exclude writers.
  let image: FileVersion?

  /// - Parameter hasRoom: Whether there may be room for these files.
  /// - Throws: `StorageError.permissionDenied` when there is an unreadable log; without it the store would appear in
  ///   an older state.
  init(path: String, hasRoom: Bool) throws(StorageError) {
    // Read the version before checking for a log: a writer that comes in between changes it.
    var status = stat()
    guard lstat(path, &status) == 0 else { throw StorageError(errno: errno, path: path) }
    let isOwn =
      status.st_uid == geteuid() || geteuid() == 0
      || FileOwner(status).isShared && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0
    makesFiles =
      hasRoom && isOwn && status.st_mode & S_IWUSR != 0
      && faccessat(AT_FDCWD, FilePath.folder(above: path), W_OK, AT_EACCESS) == 0
    let logByteCount = try Self.readableByteCount(path + "-wal")
    // An active writer has both files, and perhaps an empty log.
    let hasWriter = logByteCount == nil ? false : try Self.hasSharedMemory(besides: path)
    image = makesFiles || hasWriter || logByteCount ?? 0 > 0 ? nil : FileVersion(status)
  }

  /// Whether there is non-empty shared memory: a full disk may have prevented its first region.
  static func hasSharedMemory(besides path: String) throws(StorageError) -> Bool {
    try readableByteCount(path + "-shm") ?? 0 >= 32_768
  }

  /// The size of a file, nil when there is none.
  private static func readableByteCount(_ path: String) throws(StorageError) -> Int? {
    var status = stat()
    // Between the two, the last writer may have removed it: in either there is none then.
    guard lstat(path, &status) == 0, faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0 else {
      guard errno == ENOENT else { throw StorageError(errno: errno, path: path) }
      return nil
    }
    return Int(status.st_size)
  }
}

/// Changes whenever a file is written to or replaced.
struct FileVersion: Equatable {
  private let inode: UInt64
  private let byteCount: Int64
  private let seconds: Int
  private let nanoseconds: Int

  init?(ofFileAt path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    self.init(status)
  }

  /// Whether both were last modified at the same time.
  static func isSameTime(_ a: stat, _ b: stat) -> Bool {
    a.modificationTime.tv_sec == b.modificationTime.tv_sec && a.modificationTime.tv_nsec == b.modificationTime.tv_nsec
  }

  init(_ status: stat) {
    inode = UInt64(status.st_ino)
    byteCount = Int64(status.st_size)
    seconds = Int(status.modificationTime.tv_sec)
    nanoseconds = Int(status.modificationTime.tv_nsec)
  }
}
