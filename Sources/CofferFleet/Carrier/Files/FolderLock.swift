#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The lock of a carrier's folder, flock(2), held until this object is released or the process ends.
final class FolderLock: Sendable {
  enum Kind { case shared, exclusive }

  private let descriptor: Int32

  /// Waits for the lock.
  ///
  /// - Returns: Nil if a reader has nothing to lock: there is no lock file, or the file system has no locks.
  /// - Throws: ``CarrierError``, also after 30 seconds; `CancellationError`.
  static func take(_ kind: Kind, of folder: CarrierFolder) async throws -> FolderLock? {
    let deadline = ContinuousClock.now + .seconds(30)
    var pause = Duration.milliseconds(1)
    // The one that waits keeps out those that come later: among reads that overlap, a writer would never get its turn.
    let door = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { if door >= 0 { close(door) } }
    while door >= 0, flock(door, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK || errno == EINTR {
      try await wait(&pause, until: deadline, folder)
    }
    while true {
      guard let lock = try FolderLock(folder, kind) else { return nil }
      if flock(lock.descriptor, (kind == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 {
        // A tool that copies files may have replaced it.
        if lock.isInPlace(folder) { return lock }
        continue
      }
      let code = errno
      if code != EWOULDBLOCK, code != EINTR {
        guard kind == .exclusive else { return nil }
        throw folder.failure(code, folder.lockPath)
      }
      try await wait(&pause, until: deadline, folder)
    }
  }

  private static func wait(
    _ pause: inout Duration, until deadline: ContinuousClock.Instant, _ folder: CarrierFolder
  ) async throws {
    guard ContinuousClock.now < deadline else {
      throw folder.unreachable("another program has kept \(folder.lockPath) locked for 30 seconds")
    }
    try await Task.sleep(for: pause)
    pause = min(pause * 2, .milliseconds(50))
  }

  private init?(_ folder: CarrierFolder, _ kind: Kind) throws(CarrierError) {
    let flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    let path = folder.lockPath
    // For writing, which NFS requires for exclusive locks. If another user's umask forbids that, reading suffices for a local
    // lock.
    var opened = kind == .exclusive ? open(path, O_RDWR | O_CREAT | flags, 0o660) : open(path, O_RDONLY | flags)
    if opened < 0, kind == .exclusive, errno == EACCES { opened = open(path, O_RDONLY | flags) }
    guard opened >= 0 else {
      if kind == .shared, errno == ENOENT { return nil }
      throw folder.failure(errno, path)
    }
    descriptor = opened
  }

  private func isInPlace(_ folder: CarrierFolder) -> Bool {
    var (there, opened) = (stat(), stat())
    return fstat(descriptor, &opened) == 0 && lstat(folder.lockPath, &there) == 0 && there.st_ino == opened.st_ino
      && there.st_dev == opened.st_dev
  }

  /// Releases the lock early.
  func release() { flock(descriptor, LOCK_UN) }

  deinit { close(descriptor) }
}
