import CSQLite
import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import CofferStorage

/// Someone without a key changes the shared memory of an open store.
///
/// Another program does it: closing a descriptor of it in this process would drop SQLite's locks.
@Suite("Shared memory that others changed") struct WalIndexTests {
  private let store: SmallStore
  private let connection: SQLiteConnection
  private let saved: String

  init() throws {
    store = try SmallStore()
    connection = try store.connect(timeout: .zero)
    saved = store.folder.file("saved")
    try set("a")
    try set("b")
  }

  private func set(_ key: String, _ value: String = "1") throws {
    try connection.write { try connection.set(key, value) }
  }

  private func save() throws {
    _ = try Child.run("/bin/dd", ["if=\(store.path)-shm", "of=\(saved)", "bs=136", "count=1", "status=none"])
  }

  private func putBack(_ count: Int = 136) throws {
    _ = try Child.run(
      "/bin/dd", ["if=\(saved)", "of=\(store.path)-shm", "bs=\(count)", "count=1", "conv=notrunc", "status=none"])
  }

  /// Changes both copies of the header, with the checksum that it has then, and the counters behind them.
  private func edit(_ change: (UnsafeMutableRawPointer, _ counters: UnsafeMutableRawPointer) -> Void) throws {
    try save()
    var bytes = try Array(Data(contentsOf: URL(fileURLWithPath: saved)))
    bytes.withUnsafeMutableBytes { bytes in
      let start = bytes.baseAddress!
      change(start, start + 96)
      start.storeBytes(of: LogChecksum.ofIndexHeader(start, byteCount: 40), toByteOffset: 40, as: UInt64.self)
      memcpy(start + 48, start, 48)
    }
    try Data(bytes).write(to: URL(fileURLWithPath: saved))
    try putBack()
  }

  /// Expects `keys` after the next write, after a crash, and after closing.
  ///
  /// - Parameter mayFail: Whether the next write may fail, because SQLite cannot read anything at all; closing mends that.
  private func expect(
    _ keys: [String], mayFail: Bool = false, _ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    var all = keys.map { "\($0)=1" }
    do {
      try set("z")
      all.append("z=1")
      #expect(try connection.contents() == all, comment, sourceLocation: sourceLocation)
      #expect(try store.copyAsAfterCrash().contents() == all, comment, sourceLocation: sourceLocation)
    } catch {
      #expect(mayFail, "\(error)", sourceLocation: sourceLocation)
    }
    try connection.close()
    #expect(try store.contents() == all, comment, sourceLocation: sourceLocation)
  }

  @Test("to an earlier state loses no commit: the next writer finds them in the log")
  func putBackBeforeWrite() throws {
    try save()
    for key in ["c", "d", "e"] { try set(key) }
    try putBack()
    // A reader cannot tell that from a writer in the midst of its commit: a limit that SECURITY.md names.
    #expect(try connection.contents() == ["a=1", "b=1"])
    try expect(["a", "b", "c", "d", "e"], "put back")
  }

  @Test("to an earlier state before the last program closes loses no commit")
  func putBackBeforeClose() throws {
    try save()
    for key in ["c", "d"] { try set(key) }
    try putBack()
    try connection.close()
    #expect(try store.contents() == ["a=1", "b=1", "c=1", "d=1"])
  }

  @Test(
    "to an earlier state before a checkpoint that truncates the log loses no commit", arguments: ["FULL", "TRUNCATE"])
  func putBackBeforeCheckpoint(_ mode: String) throws {
    try save()
    for key in ["c", "d"] { try set(key) }
    try putBack()
    for _ in 0..<2 { try? connection.execute("PRAGMA wal_checkpoint(\(mode))") }
    try expect(["a", "b", "c", "d"], "\(mode)")
  }

  @Test("to a state of an earlier log, or of an emptied one, loses no commit")
  func putBackOverRestart() throws {
    try save()
    try connection.execute("PRAGMA wal_checkpoint(RESTART)")
    try set("c")
    try putBack()
    let hasWritten = (try? set("d")) != nil
    // Emptied: as if everything were in the database.
    try edit { header, counters in
      header.storeBytes(of: 0, toByteOffset: 16, as: UInt32.self)
      header.storeBytes(of: UInt64.random(in: .min ... .max), toByteOffset: 32, as: UInt64.self)
      counters.storeBytes(of: 0, as: UInt32.self)
    }
    try expect(["a", "b", "c"] + (hasWritten ? ["d"] : []), mayFail: true, "restart")
  }

  @Test("in any field of the header loses no commit", arguments: [0, 13, 14, 16, 20, 24, 28, 32, 36])
  func field(_ offset: Int) throws {
    try set("c")
    try edit { header, _ in
      let byte = header.load(fromByteOffset: offset, as: UInt8.self)
      header.storeBytes(of: byte ^ 1, toByteOffset: offset, as: UInt8.self)
    }
    try expect(["a", "b", "c"], mayFail: true, "byte \(offset)")
  }

  @Test(
    "to say that frames were checkpointed which were not loses none of them", arguments: [1, 2, 3, 4, 1000] as [UInt32])
  func backfilled(_ count: UInt32) throws {
    try set("c")
    try edit { _, counters in counters.storeBytes(of: count, as: UInt32.self) }
    if count % 2 == 1 {
      try expect(["a", "b", "c"], "\(count) before a write")
    } else {
      try connection.close()
      #expect(try store.contents() == ["a=1", "b=1", "c=1"], "\(count) before closing")
    }
  }

  @Test("to show frames as other pages is an error, and no checkpoint seals them as those")
  func otherPage() throws {
    let numbers = store.folder.file("numbers")
    try set("c", String(repeating: "x", count: 20_000))
    // The page numbers of the first two frames of other pages, exchanged with page 1's.
    _ = try Child.run(
      "/bin/dd", ["if=\(store.path)-shm", "of=\(numbers)", "bs=1", "skip=136", "count=64", "status=none"])
    var pages = try Array(Data(contentsOf: URL(fileURLWithPath: numbers)))
    for offset in stride(from: 0, to: 32, by: 4) { pages[offset] ^= 3 }
    try Data(pages).write(to: URL(fileURLWithPath: numbers))
    _ = try Child.run(
      "/bin/dd", ["if=\(numbers)", "of=\(store.path)-shm", "bs=1", "seek=136", "conv=notrunc", "status=none"])
    #expect(throws: StorageError.self) { try connection.execute("PRAGMA wal_checkpoint(PASSIVE)") }
    // The log has everything.
    let copy = try store.copyAsAfterCrash()
    #expect(try copy.contents().map(\.first) == ["a", "b", "c"])
    try? connection.close()
    #expect(try store.contents().map(\.first) == ["a", "b", "c"])
  }

  @Test("by nobody is never recovered again: after checkpoints, restarts, and transactions that were rolled back")
  func unchanged() throws {
    for round in 0..<4 {
      for mode in ["PASSIVE", "FULL", "RESTART", "TRUNCATE"] {
        try set("k\(round)", "1")
        try connection.beginWrite(.normal)
        try connection.execute("PRAGMA cache_size=2")
        for number in 0..<20 { try connection.set("s\(number)", String(repeating: "s", count: 3000)) }
        try connection.rollback()
        try connection.execute("PRAGMA wal_checkpoint(\(mode))")
      }
    }
    try set("z")
    #expect(connection.context?.outdatedIndexCount == 0)
    #expect(try connection.contents() == ["a=1", "b=1", "k0=1", "k1=1", "k2=1", "k3=1", "z=1"])
    try connection.close()
  }
}
