import CSQLite
import CofferCrypto

extension Store {
  /// Whether a page of the database file is sealed under another epoch than the newest.
  ///
  /// The caller holds SQLite's write lock and keeps checkpoints away, so that nothing is being sealed.
  func pagesNeedOldEpochs() throws -> Bool {
    let current = envelope.currentEpoch
    var epoch = [UInt8](repeating: 0, count: 4)
    return try stride(from: 1, through: Layout.pageCount(inFileOf: fileByteCount()), by: 1).contains { page in
      guard page != Self.lockPage else { return false }
      try readRaw(&epoch, at: Layout.offset(ofPage: page) + Int64(PageCodec.epochOffset))
      return Self.number(epoch) != current
    }
  }

  /// Whether anything in the log is; the caller as before.
  func logNeedsOldEpochs() throws -> Bool {
    let current = envelope.currentEpoch
    // No locks lie on the log: closing a descriptor of it drops none.
    let descriptor = Platform.openForReading(path + "-wal")
    guard descriptor >= 0 else {
      guard errno == ENOENT else { throw StorageError(errno: errno, path: path + "-wal") }
      return false
    }
    defer { close(descriptor) }
    /// Whether there is as much as `bytes` has room for.
    func read(_ bytes: inout [UInt8], at offset: off_t) throws -> Bool {
      while true {
        let count = pread(descriptor, &bytes, bytes.count, offset)
        if count >= 0 { return count == bytes.count }
        guard errno == EINTR else { throw StorageError(errno: errno, path: path + "-wal") }
      }
    }
    var header = [UInt8](repeating: 0, count: Layout.logHeaderByteCount)
    guard try read(&header, at: 0) else { return false }
    let codec = try PageCodec(keys: keys.keys)
    let headerEpoch = try header.withUnsafeMutableBytes { try codec.decipherLogHeader($0.baseAddress!) }
    if let headerEpoch, headerEpoch != current { return true }
    var epoch = [UInt8](repeating: 0, count: 4)
    var offset = off_t(Layout.logHeaderByteCount + Layout.frameHeaderByteCount + PageCodec.epochOffset)
    while try read(&epoch, at: offset) {
      if Self.number(epoch) != current { return true }
      offset += off_t(Layout.frameByteCount)
    }
    return false
  }

  private static func number(_ bytes: [UInt8]) -> UInt32 {
    bytes.reduce(0) { $0 << 8 | UInt32($1) }
  }
}
