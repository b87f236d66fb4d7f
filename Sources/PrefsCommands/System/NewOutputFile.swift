import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A new file for a secret: mode 0600, never replacing another file.
package struct NewOutputFile {
  private let path: String
  private let descriptor: Int32

  /// - Throws: ``Failure`` with the status `conflict` if the file exists.
  init(path: String) throws {
    self.path = path
    descriptor = try FileHand(path).acting { open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600) }
    guard descriptor >= 0 else {
      let code = errno
      throw code == EEXIST
        ? Failure(.conflict, "\(path) exists already and is not replaced. Name another file.")
        : Failure.system(path, errno: code)
    }
  }

  /// The file that an option names; nil for `-`, which stands for standard output.
  package static func named(_ option: String) throws -> NewOutputFile? {
    option == "-" ? nil : try NewOutputFile(path: option)
  }

  /// Writes a secret of one line to a file, or to standard output without one.
  package static func write(line secret: SecretBytes, to file: NewOutputFile?) throws {
    // Include the newline, so that the line is written in one piece.
    let line = SecretBytes(count: secret.count + 1) { buffer in
      secret.withUnsafeBytes { buffer.copyMemory(from: $0) }
      buffer[buffer.count - 1] = UInt8(ascii: "\n")
    }
    try line.withUnsafeBytes { bytes in
      if let file {
        try file.finish(with: bytes)
      } else {
        try FileDescriptor.writeAll(bytes, to: 1, named: "standard output")
      }
    }
  }

  /// Writes `bytes` and closes the file.
  private func finish(with bytes: UnsafeRawBufferPointer) throws {
    try FileDescriptor.finish(descriptor, named: path, with: bytes)
  }

  /// Removes the file again.
  package func remove() {
    _ = try? FileHand(path).acting { unlink(path) }
  }
}
