#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A new file for a secret: mode 0600, never replacing another file.
struct NewOutputFile {
  private let path: String
  private let descriptor: Int32

  /// - Throws: ``Failure`` with the status `conflict` if the file exists.
  init(path: String) throws {
    self.path = path
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      let code = errno
      throw code == EEXIST
        ? Failure(.conflict, "\(path) exists already and is not replaced. Name another file.")
        : Failure.system(path, errno: code)
    }
  }

  /// Writes `bytes` and closes the file.
  func finish(with bytes: UnsafeRawBufferPointer) throws {
    try FileDescriptor.finish(descriptor, named: path, with: bytes)
  }

  /// Removes the file again.
  func remove() {
    unlink(path)
  }
}
