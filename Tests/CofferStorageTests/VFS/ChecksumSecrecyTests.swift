import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import CofferStorage

@Suite("SQLite's checksums over plaintext") struct ChecksumSecrecyTests {
  /// The checksum of the log, https://www.sqlite.org/fileformat2.html#checksum_algorithm, big-endian or little-endian.
  private func checksum(_ bytes: [UInt8], from start: (UInt32, UInt32), bigEndian: Bool) -> (UInt32, UInt32) {
    var sum = start
    bytes.withUnsafeBytes { buffer in
      for offset in stride(from: 0, to: bytes.count, by: 8) {
        let words = (
          buffer.loadUnaligned(fromByteOffset: offset, as: UInt32.self),
          buffer.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
        )
        sum.0 &+= (bigEndian ? words.0.bigEndian : words.0.littleEndian) &+ sum.1
        sum.1 &+= (bigEndian ? words.1.bigEndian : words.1.littleEndian) &+ sum.0
      }
    }
    return sum
  }

  @Test("are never written: not one of those of the log's frames")
  func notWritten() throws {
    let recorder = RecordingVFS()
    let vfs = EncryptingVFS(name: "coffer on \(recorder.name)", below: recorder.name)
    let store = try SmallStore(vfs: vfs)
    let connection = try store.connect()
    for number in 0..<20 {
      try connection.beginWrite(.normal)
      try connection.set("key \(number)", "value")
      try connection.commit()
    }
    // The log as SQLite knows it: opened with the keys, checksums recomputed from the plaintext.
    var log = try store.copyAsAfterCrash().bytes("-wal")
    let codec = try PageCodec(keys: Store.open(at: store.path, key: store.key, vfs: vfs).keys.keys)
    var checksums: [[UInt8]] = []
    try log.withUnsafeMutableBytes { bytes in
      let header = try #require(bytes.baseAddress)
      #expect(try codec.decipherLogHeader(header) != nil)
      let isBigEndian = bytes[3] & 1 == 1
      let salts = header.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
      var sum = checksum(Array(bytes[..<24]), from: (0, 0), bigEndian: isBigEndian)
      for frame in 0..<(bytes.count - Layout.logHeaderByteCount) / Layout.frameByteCount {
        let start = header + Layout.logHeaderByteCount + frame * Layout.frameByteCount
        let page = start + Layout.frameHeaderByteCount
        #expect(try codec.decipherHeader(tail: start + 8, frame: UInt32(frame + 1), sealedPage: page))
        try codec.open(page, at: .log(frame: UInt32(frame + 1), header: start, salts: salts), into: page)
        let plain = UnsafeRawBufferPointer(start: start, count: Layout.frameByteCount)
        sum = checksum(Array(plain[..<8]), from: sum, bigEndian: isBigEndian)
        sum = checksum(Array(plain[24...]), from: sum, bigEndian: isBigEndian)
        let stored = Array(plain[16..<24])
        let computed = withUnsafeBytes(of: (sum.0.bigEndian, sum.1.bigEndian), Array.init)
        #expect(stored == computed, "frame \(frame + 1)")
        checksums.append(stored)
      }
    }
    #expect(checksums.count >= 20)

    // In files, none of them, in either byte order.
    let files = recorder.events.reduce(into: Data()) { bytes, event in
      if case .write(_, _, let written) = event { bytes.append(written) }
    }
    for checksum in checksums {
      #expect(files.range(of: Data(checksum)) == nil)
      let swapped = checksum[..<4].reversed() + checksum[4...].reversed()
      #expect(files.range(of: Data(swapped)) == nil)
    }
    try connection.close()
  }
}
