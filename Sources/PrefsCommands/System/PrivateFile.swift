#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A file for its owner's eyes.
enum PrivateFile {
  /// Writes `bytes` to the file at `path`, with mode 0600 before the first of them, also when it was there with another mode.
  static func write(_ bytes: [UInt8], to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Failure.system(path, errno: errno) }
    var failure: (any Error)?
    do {
      try makePrivate(descriptor, path)
      try FileDescriptor.writeAll(bytes, to: descriptor, named: path)
    } catch { failure = error }
    // Some file systems report a full disk only at close.
    if close(descriptor) != 0, failure == nil { failure = Failure.system(path, errno: errno) }
    if let failure { throw failure }
  }

  /// Terminals, pipes and devices are left as they are.
  private static func makePrivate(_ descriptor: Int32, _ path: String) throws {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Failure.system(path, errno: errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { return }
    guard fchmod(descriptor, 0o600) == 0, ftruncate(descriptor, 0) == 0 else {
      throw Failure.system(path, errno: errno)
    }
  }
}
