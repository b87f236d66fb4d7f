/// Where things lie in a store file; `FORMAT.md` is the specification.
package enum Layout {
  /// The format version this code writes, and the newest it reads.
  package static let formatVersion: UInt16 = 1
  /// The one suite: XAES-256-GCM, HKDF-SHA256, HMAC-SHA256.
  package static let suite: UInt16 = 1

  /// One copy of the envelope; two stand at the start of the file.
  package static let envelopeCopyByteCount = 8192
  package static let envelopeByteCount = 2 * envelopeCopyByteCount

  package static let pageByteCount = 4096
  /// The end of each page, which SQLite leaves alone: nonce (24), tag (16), epoch (4), zero (4).
  package static let reserveByteCount = 48
  package static let payloadByteCount = pageByteCount - reserveByteCount

  /// The write-ahead log, as https://www.sqlite.org/walformat.html has it.
  package static let logHeaderByteCount = 32
  package static let frameHeaderByteCount = 24
  package static let frameByteCount = frameHeaderByteCount + pageByteCount
}

extension Layout {
  /// Where page `page`, from 1, lies in the store.
  static func offset(ofPage page: Int) -> Int64 {
    Int64(envelopeByteCount) + (Int64(page) - 1) * Int64(pageByteCount)
  }

  /// How many whole pages a store of this size holds; of one that is larger than SQLite allows, as many as it does.
  static func pageCount(inFileOf byteCount: Int64) -> Int {
    Int(pageNumber: UInt32(clamping: (byteCount - Int64(envelopeByteCount)) / Int64(pageByteCount)))
  }
}

extension Int {
  /// A number of pages or frames as a file has it, which may not fit here, and leaves room for one more.
  init(pageNumber: UInt32) {
    self = Swift.min(Int(clamping: pageNumber), Int(clamping: UInt32.max - 1), Int.max - 1)
  }
}
