/// What a connection that never writes can do beside a store: found out once, when it opens the file.
struct ReadOnlyAccess {
  /// Whether a log and shared memory may be made where they are missing, and there is room for them.
  ///
  /// SQLite gives them the store's mode, and the user that makes them: in another user's folder, or with a store that
  /// nobody may write, they would lock out whoever writes later.
  let makesFiles: Bool
  /// The version of the file whose bytes are all there is to read; nil where the log counts, or locks keep writers in
  /// step.
  let image: FileVersion?

  /// - Parameter hasRoom: Whether there may be room for these files.
  /// - Throws: `StorageError.permissionDenied` when there is a log that cannot be read; without it the store would look
  ///   older than it is.
  init(path: String, hasRoom: Bool) throws(StorageError) {
    // Before the log is looked for: a writer that comes in between changes the version.
    var status = stat()
    guard lstat(path, &status) == 0 else { throw StorageError(errno: errno, path: path) }
    let isOwn =
      status.st_uid == geteuid() || geteuid() == 0
      || FileOwner(status).isShared && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0
    makesFiles =
      hasRoom && isOwn && status.st_mode & S_IWUSR != 0
      && faccessat(AT_FDCWD, FilePath.folder(above: path), W_OK, AT_EACCESS) == 0
    let logByteCount = try Self.readableByteCount(path + "-wal")
    // A writer at work has both files, and perhaps nothing in the log yet.
    let hasWriter = logByteCount == nil ? false : try Self.hasSharedMemory(besides: path)
    image = makesFiles || hasWriter || logByteCount ?? 0 > 0 ? nil : FileVersion(status)
  }

  /// Whether there is shared memory with something in it: its first region, which a full disk may have refused.
  static func hasSharedMemory(besides path: String) throws(StorageError) -> Bool {
    try readableByteCount(path + "-shm") ?? 0 >= 32_768
  }

  /// The size of a file, nil when there is none.
  private static func readableByteCount(_ path: String) throws(StorageError) -> Int? {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      guard errno == ENOENT else { throw StorageError(errno: errno, path: path) }
      return nil
    }
    guard faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0 else { throw StorageError(errno: errno, path: path) }
    return Int(status.st_size)
  }
}

/// What changes about a file when anybody writes to it, or puts another one in its place.
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

  /// Whether both were written last at the same time.
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
