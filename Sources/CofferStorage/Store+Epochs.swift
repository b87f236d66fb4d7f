import CSQLite
import CofferCrypto

extension Store {
  /// Whether a page of the database file is sealed under an epoch other than the newest.
  ///
  /// The caller holds SQLite's write lock and blocks checkpoints, so that no page is being sealed.
  func pagesNeedOldEpochs() throws -> Bool {
    let current = envelope.currentEpoch
    var epoch = [UInt8](repeating: 0, count: 4)
    return try stride(from: 1, through: Layout.pageCount(inFileOf: fileByteCount()), by: 1).contains { page in
      guard page != Self.lockPage else { return false }
      try readRaw(&epoch, at: Layout.offset(ofPage: page) + Int64(PageCodec.epochOffset))
      return Self.number(epoch) != current
    }
  }

  /// Whether the log contains a frame of an older epoch; same conditions for the caller.
  func logNeedsOldEpochs() throws -> Bool {
    let current = envelope.currentEpoch
    // The log has no locks that closing a descriptor could drop.
    let descriptor = Platform.openForReading(path + "-wal")
    guard descriptor >= 0 else {
      guard errno == ENOENT else { throw StorageError(errno: errno, path: path + "-wal") }
      return false
    }
    defer { close(descriptor) }
    /// Fills `bytes`; false when the file ends before that.
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
    var (page, epoch) = ([UInt8](repeating: 0, count: 4), [UInt8](repeating: 0, count: 4))
    var frame = off_t(Layout.logHeaderByteCount)
    let epochOffset = off_t(Layout.frameHeaderByteCount + PageCodec.epochOffset)
    while try read(&page, at: frame), try read(&epoch, at: frame + epochOffset) {
      // A frame of page 0 is room for later ones.
      if Self.number(page) != 0, Self.number(epoch) != current { return true }
      frame += off_t(Layout.frameByteCount)
    }
    return false
  }

  private static func number(_ bytes: [UInt8]) -> UInt32 {
    bytes.reduce(0) { $0 << 8 | UInt32($1) }
  }
}
