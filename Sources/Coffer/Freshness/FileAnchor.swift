import CofferCrypto
import CofferStorage

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Keeps the records of stores as files in a folder, one for each store path.
///
/// The folder is created with mode 0700 if missing, the files with mode 0600. A file is overwritten in one write, and synced only
/// around a new root key, and in place of the record of another store: after a power failure it may hold an earlier record, and a
/// torn one counts as no record.
///
/// The kernel's keyring is not used as an anchor. Root has the same keyring in every container of a host, where a copy of a
/// store may have the same path and other commits, which would be a false alarm; and the keyring is empty after a reboot.
package struct FileAnchor: FreshnessAnchor, SynchronizedAnchor {
  private let folder: String

  /// - Parameter folder: The folder for the records.
  package init(folder: String) { self.folder = folder }

  /// Reads the record of the store at `path`.
  package func record(ofStoreAt path: String) -> [UInt8]? {
    guard let file = file(of: path) else { return nil }
    let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return Self.contents(descriptor)
  }

  /// Writes the record of the store at `path`, or removes it.
  package func keep(_ record: [UInt8]?, ofStoreAt path: String) { _ = tryToKeep(record, ofStoreAt: path) }

  /// The same.
  ///
  /// - Returns: Why that failed, as a sentence; nil if it did not.
  func tryToKeep(_ record: [UInt8]?, ofStoreAt path: String) -> String? {
    guard let file = file(of: path) else { return nil }
    guard let record else {
      // Durable, unlike a record: after a power failure the earlier one would speak of a store that was replaced.
      if unlink(file) == 0 { FilePath.syncFolder(of: file) }
      return nil
    }
    return change(file, of: path) { _ in record }
  }

  /// Replaces the record of the store at `path` by what `change` makes of it, opening its file once; nil leaves it.
  ///
  /// It stays, too, while a store in the folder is given to another file: the next commit keeps what is true then.
  ///
  /// - Returns: Why that failed, as a sentence; nil if it did not.
  func update(ofStoreAt path: String, _ change: ([UInt8]?) -> [UInt8]?) -> String? {
    guard let file = file(of: path) else { return nil }
    let lock = openFolder(above: file)
    defer { if let lock { close(lock) } }
    if let lock, flock(lock, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK { return nil }
    return self.change(file, of: path, change)
  }

  private func change(_ file: String, of path: String, _ change: ([UInt8]?) -> [UInt8]?) -> String? {
    do {
      let descriptor = open(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
      guard descriptor >= 0 else {
        guard errno == ENOENT else { throw SystemCallFailure() }
        if let record = change(nil) { try Self.make(record, file) }
        return nil
      }
      // A child that another thread has forked meanwhile would keep the lock.
      defer { _ = (flock(descriptor, LOCK_UN), close(descriptor)) }
      let isLocked = Self.lock(descriptor)
      guard !isLocked || Self.hasName(file, descriptor) else { return self.change(file, of: path, change) }
      let present = Self.contents(descriptor)
      guard let record = change(present) else { return nil }
      // What a suspended program writes into the present file once it goes on is then without a name.
      guard isLocked else {
        try Self.make(record, file)
        return nil
      }
      // Shorter than a sector, and overwritten in place: a half-written record is never valid.
      guard pwrite(descriptor, record, record.count, 0) == record.count else { throw SystemCallFailure() }
      // A longer file is no record.
      if present.map({ $0.count > record.count }) ?? false { _ = ftruncate(descriptor, off_t(record.count)) }
      return nil
    } catch {
      return problem(ofStoreAt: path) ?? Self.sentence(file, "cannot be written (\(error))")
    }
  }

  package func replacing<Result>(storeAt path: String, _ body: () throws -> Result) rethrows -> Result {
    guard let file = file(of: path) else { return try body() }
    // A program that keeps the first record must find the lock, too.
    if let folder = openFolder(above: file) { close(folder) }
    return try FilePath.takingTurns(above: file, body)
  }

  /// Opens the folder of the records, which is made if it is missing.
  private func openFolder(above file: String) -> Int32? {
    func opened() -> Int32? {
      let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      return descriptor >= 0 ? descriptor : nil
    }
    if let descriptor = opened() { return descriptor }
    guard errno == ENOENT, (try? FilePath.makeOwnFolder(above: file)) != nil else { return nil }
    return opened()
  }

  /// Locks the file of a record, so that no program puts back what another one has just replaced.
  ///
  /// - Returns: false after a tenth of a second: the program that has it locked may be suspended.
  private static func lock(_ descriptor: Int32) -> Bool {
    for _ in 0..<100 {
      // Where files cannot be locked, there is nothing to wait for.
      if flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK { return true }
      usleep(1000)
    }
    return false
  }

  /// Whether no other file has been put in the place of the open one.
  private static func hasName(_ file: String, _ descriptor: Int32) -> Bool {
    var (named, opened) = (stat(), stat())
    return lstat(file, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_ino == opened.st_ino
      && named.st_dev == opened.st_dev
  }

  private static func contents(_ descriptor: Int32) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: maximumByteCount)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    return count > 0 ? Array(bytes[..<count]) : nil
  }

  /// Makes a file with a record: it is never seen empty, and a full disk leaves none.
  private static func make(_ record: [UInt8], _ file: String) throws(SystemCallFailure) {
    _ = try? FilePath.makeOwnFolder(above: file)
    let new = "\(file).\(UInt32.random(in: .min ... .max)).new"
    let descriptor = open(new, writing | O_CREAT | O_EXCL, 0o600)
    guard descriptor >= 0 else { throw SystemCallFailure() }
    defer { close(descriptor) }
    guard pwrite(descriptor, record, record.count, 0) == record.count, rename(new, file) == 0 else {
      let failure = SystemCallFailure()
      unlink(new)
      throw failure
    }
  }

  /// The error that a system call has left in `errno`.
  private struct SystemCallFailure: Error, CustomStringConvertible {
    let description = String(cString: strerror(errno))
  }

  /// Why the record of the store at `path` cannot be read or kept, as a sentence; nil if there is none yet, and could be one.
  func problem(ofStoreAt path: String) -> String? {
    guard let file = file(of: path), let obstacle = Self.obstacle(at: file) else { return nil }
    return Self.sentence(file, obstacle)
  }

  private static func sentence(_ file: String, _ obstacle: String) -> String {
    "The record of the newest state, \(file), \(obstacle): an older copy of the store would not be noticed."
  }

  /// Whether there is a file in the place of the record of the store at `path`, or anything else.
  func hasFile(ofStoreAt path: String) -> Bool {
    var status = stat()
    return file(of: path).map { lstat($0, &status) == 0 } ?? false
  }

  /// Why no file can be made in the folder above `path`, which may be missing.
  private static func obstacleToMaking(_ path: String) -> String? {
    guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return nil }
    let folder = String(path[..<slash])
    var status = stat()
    guard stat(folder, &status) == 0 else {
      let code = errno
      if code == ENOENT {
        guard lstat(folder, &status) == 0 else { return obstacleToMaking(folder) }
        return "cannot be made: \(folder) is a symbolic link that leads nowhere"
      }
      if code == ENOTDIR { return obstacleToMaking(folder) ?? "cannot be made: \(folder) is not a folder" }
      return "cannot be made: \(folder) cannot be examined (\(String(cString: strerror(code))))"
    }
    guard status.st_mode & S_IFMT == S_IFDIR else { return "cannot be made: \(folder) is not a folder" }
    guard faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0 else {
      return "cannot be made: \(folder) cannot be written (\(String(cString: strerror(errno))))"
    }
    return nil
  }

  private static func obstacle(at file: String) -> String? {
    var status = stat()
    guard lstat(file, &status) == 0 else {
      if errno == ENOENT || errno == ENOTDIR { return obstacleToMaking(file) }
      return "cannot be examined (\(String(cString: strerror(errno))))"
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFDIR: return "is a folder"
    case S_IFLNK: return "is a symbolic link"
    default: return "is not a regular file"
    }
    if status.st_size == 0 { return "is empty" }
    if status.st_size > off_t(maximumByteCount) { return "is too long for a record" }
    guard faccessat(AT_FDCWD, file, R_OK | W_OK, AT_EACCESS) == 0 else { return "cannot be read and written" }
    return nil
  }

  /// Removes what is in the place of the record of the store at `path` and cannot be used, if it is this user's own; the
  /// next commit makes a new record.
  ///
  /// A folder that is not empty gets another name instead. What is wrong with the folder of the records is left as it is.
  ///
  /// - Returns: Whether nothing is in the way any more.
  func removeObstacle(ofStoreAt path: String) -> Bool {
    guard let file = file(of: path) else { return false }
    var status = stat()
    if lstat(file, &status) == 0 {
      guard status.st_uid == geteuid() else { return false }
      if status.st_mode & S_IFMT == S_IFDIR {
        guard rmdir(file) == 0 || rename(file, "\(file)-removed-\(UInt32.random(in: .min ... .max))") == 0 else {
          return false
        }
      } else if unlink(file) != 0 {
        return false
      }
    }
    return problem(ofStoreAt: path) == nil
  }

  /// Writes the record of the store at `path` to disk.
  package func synchronizeRecord(ofStoreAt path: String) {
    guard let file = file(of: path) else { return }
    let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    _ = fsync(descriptor)
  }

  /// Larger than any record.
  private static let maximumByteCount = 512

  private static let writing = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK

  private func file(of path: String) -> String? {
    var path = path
    let digest = try? path.withUTF8 { try SHA256.digest(UnsafeRawBufferPointer($0)) }
    return digest.map { "\(folder)/\(HexText.text($0.prefix(16)))" }
  }

  // MARK: Standard

  /// `coffer` in the user's state folder, for a store that this user owns in the user's data folder; nil for any other
  /// store.
  ///
  /// The two folders are moved together, and a copy elsewhere has another path.
  static func standard(forStoreAt path: String, user: uid_t) -> FileAnchor? {
    guard user == geteuid(), let data = StandardLocation.dataHome, let state = StandardLocation.stateHome,
      isInside(path, data) || resolved(data).map({ isInside(path, $0) }) ?? false
    else { return nil }
    return FileAnchor(folder: state + "/coffer")
  }

  private static func isInside(_ path: String, _ folder: String) -> Bool {
    path.hasPrefix(folder) && path.utf8.dropFirst(folder.utf8.count).first == UInt8(ascii: "/")
  }

  private static func resolved(_ folder: String) -> String? {
    guard let path = realpath(folder, nil) else { return nil }
    defer { free(path) }
    return String(cString: path)
  }
}
