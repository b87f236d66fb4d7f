import CofferCrypto
import Foundation

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

extension FuzzTarget {
  /// What reads the files of a store.
  static let storage = [
    FuzzTarget("envelope", envelope), FuzzTarget("vault-record", vaultRecord), FuzzTarget("key-text", keyText),
    FuzzTarget("page", page), FuzzTarget("log", log), FuzzTarget("tree-page", treePage),
    FuzzTarget("record", record), FuzzTarget("salvage", salvage),
  ]

  /// One copy of the envelope: unchanged, and with the magic and the checksum corrected.
  private static func envelope(_ bytes: [UInt8]) throws {
    _ = try? Envelope(copy: bytes[...])
    var copy = FuzzStore.padded(bytes[...], to: Envelope.checkedByteCount)
    copy.replaceSubrange(0..<Envelope.magic.count, with: Envelope.magic)
    copy = try Envelope.checksummed(copy)
    let envelope = try Envelope(copy: copy[...])
    _ = envelope.currentEpoch
    // A passphrase would be stretched for as long as the slot says.
    _ = try envelope.keys(rootKey: envelope.open(.key(FuzzStore.rootKey)).key)
  }

  private static func vaultRecord(_ bytes: [UInt8]) throws {
    // How long the list of what is sealed is, the MAC, the list, the slots.
    guard let count = bytes.first.map(Int.init), bytes.count > 32 + count else { return }
    let (list, slots) = (Array(bytes[33..<33 + count]), Array(bytes[(33 + count)...]))
    let record = try VaultRecord(
      id: FuzzStore.storeID, generation: 1, mac: Array(bytes[1..<33]), sealedCollections: list, slots: slots,
      succession: [UInt8](repeating: 0, count: SHA256.byteCount))
    try promise(
      record.encodedSealedCollections == list && record.encodedSlots == slots,
      "a vault's record is written as it was read")
    _ = try record.open(.key(FuzzStore.rootKey))
  }

  /// The texts of key files and recovery keys.
  private static func keyText(_ bytes: [UInt8]) throws {
    let text = bytes.withUnsafeBytes(SecretBytes.init(copying:))
    _ = try? KeyFile.decode(text)
    let key = try RecoveryKey.decode(text)
    let again = try RecoveryKey.decode(RecoveryKey.text(of: key))
    try promise(again.isEqual(to: key), "a recovery key is written as it was read")
  }

  /// A sealed page, of the file or with the header of a frame before it.
  private static func page(_ bytes: [UInt8]) throws {
    let codec = try PageCodec(keys: [FuzzStore.epochKeys()])
    let isFrame = bytes.first == 1
    var frame = FuzzStore.padded(bytes.dropFirst(), to: Layout.frameByteCount)
    try frame.withUnsafeMutableBytes { frame in
      guard let start = frame.baseAddress else { return }
      let page = start + Layout.frameHeaderByteCount
      _ = PageCodec.hasReserve(page, number: 1)
      _ = try codec.decipherLogHeader(start)
      _ = try codec.headerTail(start + 8, ofFrame: 1, hasSalts: 1)
      _ = try codec.decipherHeader(tail: start + 8, frame: 1, sealedPage: page)
      let salts = start.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
      let place: PageCodec.Place = isFrame ? .log(frame: 1, header: start, salts: salts) : .database(page: 1)
      try codec.decrypt(page, at: place, into: page)
    }
  }

  /// A log beside a store: read without SQLite, and by SQLite.
  ///
  /// The first byte says whether the log is sealed here (bit 0), whether its sums are made right (bit 1), and whether a
  /// byte of it is damaged afterwards (bit 2), which one, the last four bytes say.
  private static func log(_ bytes: [UInt8]) throws {
    guard let form = bytes.first else { return }
    try FuzzStore.with { files in
      var log = Array(bytes.dropFirst())
      if form & 1 != 0 { log = try files.sealed(log: log, isSummed: form & 2 != 0) }
      if form & 4 != 0, !log.isEmpty {
        let place = bytes.suffix(4).reduce(0) { $0 << 8 | Int($1) } % log.count
        log[place] ^= 1
      }
      try files.write(log: log)
      try readWithoutSQLite(files.path)
      try readBySQLite(files.path)
    }
  }

  private static func readWithoutSQLite(_ path: String) throws {
    let pages = try PageReader(Store.open(at: path, key: .key(FuzzStore.rootKey), isReadOnly: true))
    // A log may claim billions of pages, and each is checked once.
    guard pages.pageCount < 10_000 else { return }
    try TableSalvage(pages) { _ in }.run { $0.table }
  }

  private static func readBySQLite(_ path: String) throws {
    let connection = try SQLiteConnection(
      store: Store.open(at: path, key: .key(FuzzStore.rootKey)), busyTimeout: .zero)
    defer { try? connection.close() }
    try connection.statement("SELECT count(*), total(length(v)) FROM kv").query { _ = $0.integer(0) }
  }

  /// A page of a B-tree, the first byte being its number, with the records in it.
  private static func treePage(_ bytes: [UInt8]) throws {
    guard let number = bytes.first else { return }
    let content = FuzzStore.padded(bytes.dropFirst().prefix(Layout.payloadByteCount), to: Layout.pageByteCount)
    guard let page = BTreePage(content, number: Int(number)) else { return }
    for row in page.rows {
      try promise(row.local.count <= row.byteCount, "no more of a row lies on its page than there is")
      _ = Record(payload: row.local, byteCount: row.byteCount)
    }
  }

  /// A record; the first two bytes say how much its claimed length exceeds the real one.
  private static func record(_ bytes: [UInt8]) throws {
    guard bytes.count >= 2 else { return }
    let payload = Array(bytes.dropFirst(2))
    let missing = Int(bytes[0]) << 8 | Int(bytes[1])
    guard let record = Record(payload: payload, byteCount: payload.count + missing) else { return }
    let row = SalvagedRow(table: nil, id: nil, record: record)
    _ = SalvagedTable(row)
  }

  /// The plaintext pages of a store in sequence, at most eight: salvaged together.
  private static func salvage(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
    var pages: [[UInt8]] = []
    while !rest.isEmpty, pages.count < 8 {
      pages.append(FuzzStore.padded(rest.prefix(Layout.payloadByteCount), to: Layout.pageByteCount))
      rest = rest.dropFirst(Layout.payloadByteCount)
    }
    try FuzzStore.with { files in
      try files.write(pages: pages)
      let reader = try PageReader(Store.open(at: files.path, key: .key(FuzzStore.rootKey), isReadOnly: true))
      let memory = HeapStore()
      defer { withExtendedLifetime(memory) {} }
      let connection = try SQLiteConnection(inMemory: memory, isCreating: true, busyTimeout: .zero)
      defer { try? connection.close() }
      try Schema.create(in: connection)
      var report = SalvageReport()
      try SalvageCopy(connection).fill(from: TableSalvage(reader) { _ in }, into: &report)
    }
  }
}
