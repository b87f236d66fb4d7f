#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What a file is, by its first bytes.
package enum FileKind {
  case store, keyFile

  /// nil for a file that is neither, a key file of raw bytes, a link, and what is no regular file or cannot be read.
  package init?(ofFileAt path: String) {
    let descriptor = Platform.openForReading(path)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    var start = [UInt8](repeating: 0, count: 16)
    let count = read(descriptor, &start, start.count)
    func begins(with mark: [UInt8]) -> Bool { count >= mark.count && start.starts(with: mark) }
    if begins(with: Envelope.magic) {
      self = .store
    } else if begins(with: KeyFile.prefix) {
      self = .keyFile
    } else {
      return nil
    }
  }
}
