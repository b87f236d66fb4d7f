import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import CofferStorage

@Suite("The work of a salvage") struct SalvageBoundsTests {
  /// Adds a whole commit of one frame to a log, as someone with the key can.
  private func addFrame(ofPage page: UInt32, pageCount: UInt32, to store: SmallStore) throws {
    var log = try store.bytes("-wal")
    let codec = try PageCodec(keys: Store.open(at: store.path, key: store.key).keys.keys)
    let number = UInt32((log.count - Layout.logHeaderByteCount) / Layout.frameByteCount)
    var header = Array(log[..<Layout.logHeaderByteCount])
    _ = try header.withUnsafeMutableBytes { try codec.decipherLogHeader($0.baseAddress!) }
    let salts = header.withUnsafeBytes { $0.load(fromByteOffset: 16, as: UInt64.self) }
    var last = Array(log.suffix(Layout.frameByteCount))
    let before = try last.withUnsafeMutableBytes { bytes in
      let start = bytes.baseAddress!
      _ = try codec.decipherHeader(tail: start + 8, frame: number, sealedPage: start + Layout.frameHeaderByteCount)
      return LogChecksum(storedAt: start + 16)
    }
    var frame = [UInt8](repeating: 0, count: Layout.frameByteCount)
    let plain = [UInt8](repeating: 0, count: Layout.pageByteCount)
    try frame.withUnsafeMutableBytes { bytes in
      let start = bytes.baseAddress!
      start.storeBytes(of: page.bigEndian, as: UInt32.self)
      start.storeBytes(of: pageCount.bigEndian, toByteOffset: 4, as: UInt32.self)
      let sum = LogChecksum(
        ofFrameHeader: Array(bytes[..<8]), page: plain, after: before, isBigEndian: header[3] & 1 == 1)
      start.storeBytes(of: salts, toByteOffset: 8, as: UInt64.self)
      sum.store(at: start + 16)
      try plain.withUnsafeBytes {
        try codec.encrypt(
          $0.baseAddress!, at: .log(frame: number + 1, header: start, salts: salts),
          into: start + Layout.frameHeaderByteCount)
      }
      try codec.encipherHeader(tail: start + 8, frame: number + 1)
    }
    log += frame
    try store.overwrite(log, suffix: "-wal")
  }

  @Test("depends on the sizes of file and log, and not on the page numbers in a frame")
  func pageNumbers() throws {
    let store = try SmallStore(rows: 100)
    let connection = try store.connect()
    try connection.write { try connection.set("a", "1") }
    let copy = try store.copyAsAfterCrash()
    try connection.close()
    try addFrame(ofPage: 4_000_000_000, pageCount: 4_100_000_000, to: copy)
    let pages = try PageReader(Store.open(at: copy.path, key: copy.key, isReadOnly: true))
    #expect(pages.pageCount == 4_100_000_000 && pages.log.committedFrameCount == 2)
    #expect(pages.pagesAfterGap == [4_000_000_000] && pages.presentCount < 100)
    var steps = 0
    let tables = TableSalvage(pages) { _ in steps += 1 }
    var rowCount = 0
    try tables.run { row in
      rowCount += 1
      return row.table
    }
    #expect(rowCount == 101 && steps < 10)
    // Missing pages are listed as ranges, around the one that is present.
    let missing = tables.damagedPages.filter { $0.damage == .missing }.map(\.numbers)
    #expect(missing == [pages.presentCount + 1...3_999_999_999, 4_000_000_001...4_100_000_000])
    #expect(
      try Store.open(at: copy.path, key: copy.key, isReadOnly: true).verifyPages { _ in }.missing.count > 4_000_000_000)
  }
}
