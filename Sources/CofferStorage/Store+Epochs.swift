import CSQLite
import CofferCrypto

extension Store {
  /// Whether a page of the database file is sealed under another epoch than the newest.
  ///
  /// The caller holds SQLite's write lock and keeps checkpoints away, so that nothing is being sealed.
  func pagesNeedOldEpochs() throws -> Bool {
    let current = envelope.currentEpoch
    var epoch = [UInt8](repeating: 0, count: 4)
    return try pageOffsets().contains { offset in
      try readRaw(&epoch, at: offset + PageCodec.epochOffset)
      return Self.number(epoch) != current
    }
  }

  private func pageOffsets() throws -> [Int] {
    let count = max(0, (try fileByteCount() - Layout.envelopeByteCount) / Layout.pageByteCount)
    return stride(from: 1, through: count, by: 1).filter { $0 != Self.lockPage }
      .map { Layout.envelopeByteCount + ($0 - 1) * Layout.pageByteCount }
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
    var header = [UInt8](repeating: 0, count: Layout.logHeaderByteCount)
    guard pread(descriptor, &header, header.count, 0) == header.count else { return false }
    let codec = try PageCodec(keys: keys.keys)
    let headerEpoch = try header.withUnsafeMutableBytes { try codec.decipherLogHeader($0.baseAddress!) }
    if let headerEpoch, headerEpoch != current { return true }
    var epoch = [UInt8](repeating: 0, count: 4)
    var offset = Layout.logHeaderByteCount + Layout.frameHeaderByteCount + PageCodec.epochOffset
    while pread(descriptor, &epoch, epoch.count, off_t(offset)) == epoch.count {
      if Self.number(epoch) != current { return true }
      offset += Layout.frameByteCount
    }
    return false
  }

  private static func number(_ bytes: [UInt8]) -> UInt32 {
    bytes.reduce(0) { $0 << 8 | UInt32($1) }
  }
}
