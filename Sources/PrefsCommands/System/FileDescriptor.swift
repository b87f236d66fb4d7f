import CSystemCalls
import Coffer
import Synchronization

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
  ///
  /// - Parameter time: The time limit for all of it; nil for none.
  package static func readAll(
    _ descriptor: Int32, named name: String, within time: Duration? = nil
  ) throws -> [UInt8] {
    let end = time.map { ContinuousClock.now + $0 }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      if let end { try waitForInput(descriptor, named: name, until: end) }
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
    let descriptor = try openForReading(path)
    defer { close(descriptor) }
    return try readAll(descriptor, named: path)
  }

  /// Opens a file that a command was given.
  ///
  /// Root opens it with the rights of the user who decides what is at that path.
  private static func openForReading(_ path: String) throws -> Int32 {
    let descriptor = try FileHand(path).acting { open(path, O_RDONLY | O_CLOEXEC) }
    guard descriptor >= 0 else { throw Failure.system(path, errno: errno) }
    return descriptor
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
    do {
      return try SecretBytes.read(
        descriptor, limit: limit, until: time.map { ContinuousClock.now + $0 }, droppingNewline: droppingNewline)
    } catch {
      let problem =
        switch error {
        case .system(let code): Failure.system(name, errno: code).message
        case .timeout: "\(name) did not end within \(time ?? .zero)."
        case .tooLong: "\(name) holds more than \(limit >> 10) KiB, the largest secret possible."
        case .empty: "\(name) is empty."
        }
      throw Failure(.keyUnavailable, problem)
    }
  }

  /// The descriptors that this process was started with, of the first hundred; nil if no option names one.
  private static let passed = Mutex<Set<Int32>?>(nil)

  /// Remembers which descriptors are open, if an argument names one, before the process opens files of its own.
  package static func rememberPassed() {
    guard CommandLine.arguments.contains(where: { $0.contains("-fd") }) else { return }
    passed.withLock { $0 = Set((0..<100).filter { fcntl($0, F_GETFD) >= 0 }) }
  }

  /// Takes the places of the standard descriptors that this process was started without, before a file of its own gets them.
  ///
  /// SQLite would open `/dev/null` there, and `prefs set KEY -` would read an empty value. Reading what this opens is an error.
  package static func reserveStandard() {
    for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) < 0 { _ = coffer_open_nothing() }
  }

  /// Refuses a descriptor of this process itself, such as the store's.
  private static func checkPassed(_ descriptor: Int32) throws {
    guard let passed = passed.withLock({ $0 }), descriptor < 100, !passed.contains(descriptor) else { return }
    throw Failure(.keyUnavailable, "file descriptor \(descriptor) is not open. Pass it as in: \(descriptor)< FILE")
  }

  /// Reads a random key, raw or as the text of a key file.
  ///
  /// - Parameter passphraseOption: Where a passphrase is to be given instead.
  static func readKey(_ descriptor: Int32, passphraseOption: String) throws -> SecretBytes {
    try checkPassed(descriptor)
    let name = "file descriptor \(descriptor)"
    let key = try readSecret(descriptor, named: name, within: KeySource.timeLimit, droppingNewline: false)
    guard KeyFile.isKey(key) else {
      throw Failure(
        .keyUnavailable,
        "\(name) has neither 32 bytes nor the text of a key file. Give a passphrase with \(passphraseOption).")
    }
    return key
  }

  /// Reads a passphrase or another typed secret.
  static func readTypedSecret(_ descriptor: Int32, within time: Duration = KeySource.timeLimit) throws -> SecretBytes {
    try checkPassed(descriptor)
    return try readSecret(descriptor, named: "file descriptor \(descriptor)", within: time, droppingNewline: true)
  }

  /// The secret in the file at `path`.
  package static func readSecretFile(_ path: String, droppingNewline: Bool) throws -> SecretBytes {
    let descriptor = try openForReading(path)
    defer { close(descriptor) }
    return try readSecret(descriptor, named: path, limit: secretValueLimit, droppingNewline: droppingNewline)
  }

  /// A secret whose length is not known in advance: `fill` returns the number of bytes it wrote to its buffer.
  package static func secret(
    capacity: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> SecretBytes {
    var count = 0
    let scratch = try SecretBytes(count: capacity) { buffer in count = try fill(buffer) }
    return scratch.slice(0..<count)
  }

  private static func waitForInput(_ descriptor: Int32, named name: String, until end: ContinuousClock.Instant) throws {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while true {
      let rest = Int32(clamping: Int(max(.zero, ContinuousClock.now.duration(to: end)) / .milliseconds(1)))
      let count = poll(&request, 1, rest)
      if count > 0 { return }
      guard count < 0, errno == EINTR else { throw Failure(.other, "\(name) did not end in time.") }
    }
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
      // A socket whose other end has closed with something unread, and may be a program's standard output.
      case EPIPE, ECONNRESET: throw ClosedPipe()
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
  ///
  /// - Parameter name: What errors call it, if `path` is a temporary name.
  package static func writeNewFile(_ bytes: [UInt8], to path: String, named name: String? = nil) throws {
    let name = name ?? path
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Failure.system(name, errno: errno) }
    defer { close(descriptor) }
    try writeAll(bytes, to: descriptor, named: name)
    guard fsync(descriptor) == 0 else { throw Failure.system(name, errno: errno) }
  }

  /// Syncs the folder at `path`, where the file system supports it.
  static func synchronizeFolder(_ path: String) {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}
