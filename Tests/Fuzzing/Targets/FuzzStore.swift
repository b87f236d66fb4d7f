import CofferCrypto
import Foundation

@testable import CofferStorage

/// A small store of fixed keys, whose pages and log are rewritten for each input.
///
/// The inputs are plaintext, and sealed here: a fuzzer that had to guess tags would never get past them.
struct FuzzStore {
  static let rootKey = SecretBytes(count: 32) { _ in }
  static let storeID = [UInt8](repeating: 7, count: 16)

  static func epochKeys() throws -> EpochKeys {
    try EpochKeys(number: 1, epochKey: rootKey, storeID: storeID)
  }

  /// A newly created store, and the keys of its pages.
  private struct Template {
    let bytes: [UInt8]
    let keys: [EpochKeys]
  }

  private static let template = Result { try makeTemplate() }
  private let folder: String
  private let original: [UInt8]
  private let codec: PageCodec
  var path: String { folder + "/store.coffer" }

  /// Lends a store in a folder of its own, which goes afterwards.
  static func with<Result>(_ body: (FuzzStore) throws -> Result) throws -> Result {
    let template = try template.get()
    let store = try FuzzStore(
      folder: makeFolder(), original: template.bytes, codec: PageCodec(keys: template.keys))
    defer { try? FileManager.default.removeItem(atPath: store.folder) }
    return try body(store)
  }

  private static func makeFolder() throws -> String {
    let folder = NSTemporaryDirectory() + "coffer-fuzz-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    return folder
  }

  private static func makeTemplate() throws -> Template {
    let folder = try makeFolder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/store.coffer"
    try Store.create(at: path, key: .key(rootKey)) { connection, _ in
      try connection.execute(
        "CREATE TABLE kv(k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID; INSERT INTO kv VALUES('a', 'b')")
    }
    let keys = try Store.open(at: path, key: .key(rootKey)).keys.keys
    return Template(bytes: try Array(Data(contentsOf: URL(fileURLWithPath: path))), keys: keys)
  }

  /// Restores the store as created, with another log.
  func write(log: [UInt8]) throws {
    try write(original, "")
    try write(log, "-wal")
  }

  /// Writes a store with these plaintext pages, and no log.
  func write(pages: [[UInt8]]) throws {
    var bytes = Array(original[..<Layout.envelopeByteCount])
    for (index, page) in pages.enumerated() {
      bytes += try sealed(page, at: .database(page: UInt32(index + 1)))
    }
    try write(bytes, "")
  }

  private func write(_ bytes: [UInt8], _ suffix: String) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path + suffix))
  }

  // MARK: Sealing

  private func sealed(_ page: [UInt8], at place: PageCodec.Place) throws -> [UInt8] {
    var sealed = [UInt8](repeating: 0, count: Layout.pageByteCount)
    try page.withUnsafeBytes { page in
      try sealed.withUnsafeMutableBytes { sealed in
        guard let page = page.baseAddress, let sealed = sealed.baseAddress else { return }
        try codec.seal(page, at: place, into: sealed)
      }
    }
    return sealed
  }

  /// A plaintext log, encrypted as on disk.
  ///
  /// - Parameter isSummed: Whether salts and checksums are made right, so that the frames count.
  func sealed(log clear: [UInt8], isSummed: Bool) throws -> [UInt8] {
    var header = Self.padded(clear.prefix(Layout.logHeaderByteCount), to: Layout.logHeaderByteCount)
    // Of today's machines, in SQLite's one version of the format.
    if isSummed { header.replaceSubrange(0..<12, with: [0x37, 0x7f, 6, 0x82, 0, 0x2d, 0xe2, 0x18, 0, 0, 0x10, 0]) }
    var sum = LogChecksum(ofFrameHeader: Array(header[..<24]), page: [], after: nil, isBigEndian: false)
    if isSummed { header.replaceSubrange(24..<32, with: sum.stored) }
    let salts = Array(header[16..<24])
    var log = try enciphered(header, frame: 0)
    var rest = clear.dropFirst(Layout.logHeaderByteCount)
    var number: UInt32 = 1
    while !rest.isEmpty {
      var header = Self.padded(rest.prefix(Layout.frameHeaderByteCount), to: Layout.frameHeaderByteCount)
      rest = rest.dropFirst(Layout.frameHeaderByteCount)
      let page = Self.padded(rest.prefix(Layout.payloadByteCount), to: Layout.pageByteCount)
      rest = rest.dropFirst(Layout.payloadByteCount)
      if isSummed {
        sum = LogChecksum(ofFrameHeader: Array(header[..<8]), page: page, after: sum, isBigEndian: false)
        header.replaceSubrange(8..<24, with: salts + sum.stored)
      }
      let boundSalts = header[8..<16].withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
      let sealedPage = try header.withUnsafeBytes { bytes -> [UInt8] in
        guard let start = bytes.baseAddress else { return [] }
        return try sealed(page, at: .log(frame: number, header: start, salts: boundSalts))
      }
      log += try enciphered(header, frame: number) + sealedPage
      number += 1
    }
    return log
  }

  /// A header with its last 16 bytes enciphered.
  private func enciphered(_ header: [UInt8], frame: UInt32) throws -> [UInt8] {
    var header = header
    try header.withUnsafeMutableBytes { bytes in
      guard let start = bytes.baseAddress else { return }
      try codec.encipherHeader(tail: start + bytes.count - 16, frame: frame)
    }
    return header
  }

  static func padded(_ bytes: ArraySlice<UInt8>, to count: Int) -> [UInt8] {
    bytes.prefix(count) + [UInt8](repeating: 0, count: max(0, count - bytes.count))
  }
}

extension LogChecksum {
  /// As in a header, in plaintext.
  fileprivate var stored: [UInt8] {
    withUnsafeBytes(of: self) { words in
      [0, 4].flatMap { offset in
        withUnsafeBytes(of: words.loadUnaligned(fromByteOffset: offset, as: UInt32.self).bigEndian, Array.init)
      }
    }
  }
}
