import CofferStorage

extension SecretBytes {
  /// Reads a passphrase or another secret from an open file, pipe or terminal, up to its end, without a final newline.
  ///
  /// ```swift
  /// let passphrase = try SecretBytes(readingFrom: 0)  // standard input
  /// ```
  ///
  /// The bytes go straight into protected memory. Check that a descriptor is open before you open a store: a store's files
  /// take the lowest free numbers.
  ///
  /// - Parameters:
  ///   - descriptor: A file descriptor. It stays open.
  ///   - limit: The largest number of bytes.
  /// - Throws: `CofferError.keyUnavailable` if it cannot be read, is empty, or has more than `limit` bytes.
  public convenience init(readingFrom descriptor: Int32, limit: Int = 8 << 10) throws {
    let secret: SecretBytes
    do {
      secret = try SecretBytes.read(descriptor, limit: limit)
    } catch {
      let name = "file descriptor \(descriptor)"
      let reason =
        switch error {
        case .system(let code): "\(name) cannot be read: \(String(cString: strerror(code)))"
        case .timeout: "\(name) did not end in time"
        case .tooLong: "\(name) has more than \(limit) bytes"
        case .empty: "\(name) is empty"
        }
      throw CofferError.keyUnavailable(reason: reason)
    }
    self.init(count: secret.count) { copy in secret.withUnsafeBytes { copy.copyMemory(from: $0) } }
  }

  /// Why a secret cannot be read.
  package enum ReadingFailure: Error {
    case system(errno: Int32)
    case timeout
    case tooLong
    case empty
  }

  /// Reads up to the end of `descriptor`.
  ///
  /// - Parameters:
  ///   - deadline: When to give up; nil for never.
  ///   - droppingNewline: Whether to drop one trailing newline, which `echo` and editors add to a passphrase.
  package static func read(
    _ descriptor: Int32, limit: Int, until deadline: ContinuousClock.Instant? = nil, droppingNewline: Bool = true
  ) throws(ReadingFailure) -> SecretBytes {
    var count = 0
    var failure: ReadingFailure?
    let buffer = SecretBytes(count: limit + 1) { buffer in
      while count < buffer.count {
        if let deadline, !KeySource.waitForInput(descriptor, until: deadline) { return failure = .timeout }
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
        let partCount = readSome(descriptor, part)
        if partCount < 0 {
          if errno == EINTR { continue }
          return failure = .system(errno: errno)
        }
        if partCount == 0 { break }
        count += partCount
      }
      if droppingNewline, count > 0, count <= limit, buffer[count - 1] == UInt8(ascii: "\n") { count -= 1 }
    }
    if let failure { throw failure }
    guard count <= limit else { throw .tooLong }
    guard count > 0 else { throw .empty }
    return buffer.slice(0..<count)
  }
}

// The method has the same name.
private func readSome(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
  read(descriptor, buffer.baseAddress, buffer.count)
}
