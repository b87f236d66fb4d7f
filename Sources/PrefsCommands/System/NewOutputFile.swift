#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A file that is made for a secret: mode 0600, and never in the place of another one.
struct NewOutputFile {
  private let path: String
  private let descriptor: Int32

  /// - Throws: ``Failure`` with the status `conflict` when there is a file already.
  init(path: String) throws {
    self.path = path
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      let code = errno
      throw code == EEXIST
        ? Failure(.conflict, "\(path) exists already, and is not replaced. Name another file.")
        : Failure.system(path, errno: code)
    }
  }

  /// Writes `bytes` and closes the file.
  func finish(with bytes: UnsafeRawBufferPointer) throws {
    try FileDescriptor.finish(descriptor, named: path, with: bytes)
  }

  /// Takes the file away again.
  func remove() {
    unlink(path)
  }
}
