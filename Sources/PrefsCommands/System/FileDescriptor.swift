import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Reading and writing whole file descriptors.
package enum FileDescriptor {
  /// The maximum size of a value read from a file or standard input.
  static let valueLimit = 1 << 30
  /// The maximum size of a key or passphrase: a key file has less than a hundred bytes, a passphrase seldom more.
  package static let secretLimit = 8 << 10
  /// The maximum size of a stored secret: a certificate with its key has some thousand bytes.
  static let secretValueLimit = 1 << 20

  // MARK: - Reading

  /// Everything up to the end of `descriptor`.
  package static func readAll(_ descriptor: Int32, named name: String) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = try chunk.withUnsafeMutableBytes { try readSome(descriptor, into: $0, named: name) }
      if count == 0 { return bytes }
      bytes.append(contentsOf: chunk[..<count])
      guard bytes.count <= valueLimit else {
        throw Failure(.format, "\(name) holds more than 1 GiB, the largest value.")
      }
    }
  }

  /// Everything in the file at `path`.
  static func readFile(_ path: String) throws -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure.system(path, errno: errno) }
    defer { close(descriptor) }
    return try readAll(descriptor, named: path)
  }

  /// Reads up to the end of `descriptor`, straight into protected memory.
  ///
  /// - Parameters:
  ///   - time: The time limit for all of it; nil for none.
  ///   - droppingNewline: Whether to drop one trailing newline, which `echo` and editors add to a passphrase.
  package static func readSecret(
    _ descriptor: Int32, named name: String, limit: Int = secretLimit, within time: Duration? = nil,
    droppingNewline: Bool
  ) throws -> SecretBytes {
    let deadline = time.map { ContinuousClock.now + $0 }
    return try secret(capacity: limit + 1) { buffer in
      var count = 0
      while count < buffer.count {
        if let deadline, let time, !KeySource.waitForInput(descriptor, until: deadline) {
          throw Failure(.keyUnavailable, "\(name) did not end within \(time).")
        }
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
        let read: Int
        do {
          read = try readSome(descriptor, into: part, named: name)
        } catch let failure as Failure {
          throw Failure(.keyUnavailable, failure.message)
        }
        if read == 0 { break }
        count += read
      }
      guard count <= limit else {
        throw Failure(.keyUnavailable, "\(name) holds more than \(limit >> 10) KiB, the largest secret possible.")
      }
      if droppingNewline, count > 0, buffer[count - 1] == UInt8(ascii: "\n") { count -= 1 }
      guard count > 0 else { throw Failure(.keyUnavailable, "\(name) is empty.") }
      return count
    }
  }

  /// Reads a random key, raw or as the text of a key file.
  static func readKey(_ descriptor: Int32) throws -> SecretBytes {
    try readSecret(
      descriptor, named: "file descriptor \(descriptor)", within: KeySource.timeLimit, droppingNewline: false)
  }

  /// Reads a passphrase or another typed secret.
  static func readTypedSecret(_ descriptor: Int32, within time: Duration = KeySource.timeLimit) throws -> SecretBytes {
    try readSecret(descriptor, named: "file descriptor \(descriptor)", within: time, droppingNewline: true)
  }

  /// The secret in the file at `path`.
  package static func readSecretFile(_ path: String, droppingNewline: Bool) throws -> SecretBytes {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure.system(path, errno: errno) }
    defer { close(descriptor) }
    return try readSecret(descriptor, named: path, limit: secretValueLimit, droppingNewline: droppingNewline)
  }

  /// A secret whose length is not known in advance: `fill` returns the number of bytes it wrote to its buffer.
  static func secret(
    capacity: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> SecretBytes {
    var count = 0
    let scratch = try SecretBytes(count: capacity) { buffer in count = try fill(buffer) }
    return scratch.slice(0..<count)
  }

  private static func readSome(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, named name: String
  ) throws -> Int {
    while true {
      let count = read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      let code = errno
      if code == EINTR { continue }
      throw Failure.system(name, errno: code)
    }
  }

  /// Keeps `descriptor` from being inherited by a program that replaces this one.
  package static func closeOnExecution(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }

  // MARK: - Writing

  /// Writes all of `bytes`.
  ///
  /// - Throws: ``ClosedPipe`` when the other end is closed.
  package static func writeAll(_ bytes: some Collection<UInt8>, to descriptor: Int32, named name: String) throws {
    let written: Void? = try bytes.withContiguousStorageIfAvailable {
      try writeAll(UnsafeRawBufferPointer($0), to: descriptor, named: name)
    }
    if written == nil {
      try Array(bytes).withUnsafeBytes { try writeAll($0, to: descriptor, named: name) }
    }
  }

  /// Writes all of `bytes`.
  ///
  /// - Throws: ``ClosedPipe`` when the other end is closed.
  package static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, named name: String) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest)
      let count = write(descriptor, part.baseAddress, part.count)
      if count >= 0 {
        rest = rest.dropFirst(count)
        continue
      }
      let code = errno
      switch code {
      case EINTR: continue
      // Another process that shares the terminal or pipe may have made it nonblocking.
      case EAGAIN: waitForOutput(descriptor)
      case EPIPE: throw ClosedPipe()
      default: throw Failure.system(name, errno: code)
      }
    }
  }

  private static func waitForOutput(_ descriptor: Int32) {
    var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    poll(&request, 1, -1)
  }

  /// Writes `bytes` to the file at `path`, created with mode 0600 if missing.
  static func writeFile(_ bytes: [UInt8], to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Failure.system(path, errno: errno) }
    try bytes.withUnsafeBytes { try finish(descriptor, named: path, with: $0) }
  }

  /// Writes `bytes` and closes `descriptor`.
  static func finish(_ descriptor: Int32, named path: String, with bytes: UnsafeRawBufferPointer) throws {
    var failure: (any Error)?
    do { try writeAll(bytes, to: descriptor, named: path) } catch { failure = error }
    // Some file systems report a full disk only at close.
    if close(descriptor) != 0, failure == nil { failure = Failure.system(path, errno: errno) }
    if let failure { throw failure }
  }

  /// Writes `bytes` to a new file with mode 0600, and syncs it to the disk.
  package static func writeNewFile(_ bytes: [UInt8], to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Failure.system(path, errno: errno) }
    defer { close(descriptor) }
    try writeAll(bytes, to: descriptor, named: path)
    guard fsync(descriptor) == 0 else { throw Failure.system(path, errno: errno) }
  }

  /// Syncs the folder at `path`, where the file system supports it.
  static func synchronizeFolder(_ path: String) {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}
