/// Offsets and sizes in a store file; `FORMAT.md` is the specification.
package enum Layout {
  /// The format version that this code writes, and the newest that it reads.
  package static let formatVersion: UInt16 = 1
  /// The only cipher suite: XAES-256-GCM, HKDF-SHA256, HMAC-SHA256.
  package static let suite: UInt16 = 1

  /// One copy of the envelope; two stand at the start of the file.
  package static let envelopeCopyByteCount = 8192
  package static let envelopeByteCount = 2 * envelopeCopyByteCount

  package static let pageByteCount = 4096
  /// The end of each page, which SQLite does not use: nonce (24), tag (16), epoch (4), zero (4).
  package static let reserveByteCount = 48
  package static let payloadByteCount = pageByteCount - reserveByteCount

  /// The write-ahead log, as specified in https://www.sqlite.org/walformat.html.
  package static let logHeaderByteCount = 32
  /// The header of a log that was emptied, until the file is truncated; see `LogFile.truncate`.
  static let emptiedLogHeader = Array("coffer/1 log emptied".utf8) + [UInt8](repeating: 0, count: 12)
  package static let frameHeaderByteCount = 24
  package static let frameByteCount = frameHeaderByteCount + pageByteCount
}

extension Layout {
  /// The offset of page `page`, from 1, in the store.
  static func offset(ofPage page: Int) -> Int64 {
    Int64(envelopeByteCount) + (Int64(page) - 1) * Int64(pageByteCount)
  }

  /// The number of whole pages in a store of this size, at most as many as SQLite allows.
  static func pageCount(inFileOf byteCount: Int64) -> Int {
    Int(pageNumber: UInt32(clamping: (byteCount - Int64(envelopeByteCount)) / Int64(pageByteCount)))
  }
}

extension Int {
  /// A page or frame number read from a file, clamped so that adding 1 cannot overflow.
  init(pageNumber: UInt32) {
    self = Swift.min(Int(clamping: pageNumber), Int(clamping: UInt32.max - 1), Int.max - 1)
  }
}
