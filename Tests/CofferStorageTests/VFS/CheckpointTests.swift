import CSQLite
import CofferCrypto
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CofferStorage

@Suite("A checkpoint") struct CheckpointTests {
  /// Makes a writer restart the log just after a checkpoint has read the wal-index header.
  ///
  /// Between that and its use, SQLite makes no VFS calls. But if the two copies of the header differ, it reads
  /// them again with the write lock held, which it then releases: so they are made to differ.
  private final class Interleaving: Sendable {
    private enum Step { case reading, readingAgain, hasRead, done }

    private let step = Lock(Step.reading)
    private let write: @Sendable () -> Void
    private static let secondCopy = 48
    var isDone: Bool { step.withLock { $0 == .done } }

    init(in recorder: RecordingVFS, write: @escaping @Sendable () -> Void) {
      self.write = write
      recorder.onIndexAccess { [self] access, index in meet(access, index) }
    }

    private func meet(_ access: RecordingVFS.IndexAccess, _ index: UnsafeMutableRawPointer) {
      let byte = (index + Self.secondCopy + 40).assumingMemoryBound(to: UInt8.self)
      switch (step.withLock { $0 }, access) {
      case (.reading, .barrier):
        byte.pointee ^= 1
        step.withLock { $0 = .readingAgain }
      case (.readingAgain, .lock(first: 0, flags: SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE)):
        byte.pointee ^= 1
        step.withLock { $0 = .hasRead }
      case (.hasRead, .lock(first: 0, flags: SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)):
        step.withLock { $0 = .done }
        write()
      default: break
      }
    }
  }

  /// Unchecked: the test's one thread uses it, from the calls that it makes.
  private struct Writer: @unchecked Sendable {
    let connection: SQLiteConnection

    func commit(_ key: String, _ value: String = "1") throws {
      try connection.beginWrite(.normal)
      try connection.set(key, value)
      try connection.commit()
    }

    func checkpoint() throws { try connection.execute("PRAGMA wal_checkpoint(PASSIVE)") }
  }

  private func interleave(in recorder: RecordingVFS, connect: () throws -> SQLiteConnection) throws {
    let writer = Writer(connection: try connect())
    let other = try connect()
    for number in 10..<30 { try writer.commit("\(number)") }
    try writer.checkpoint()
    #expect(try other.contents().count == 20)
    let interleaving = Interleaving(in: recorder) {
      do { try writer.commit("30") } catch { Issue.record(error) }
    }
    try other.execute("PRAGMA wal_checkpoint(PASSIVE)")
    #expect(interleaving.isDone)
    for number in 31..<40 { try writer.commit("\(number)") }
    #expect(try connect().contents() == (10..<40).map { "\($0)=1" })
    // The next one continues as usual.
    try other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    #expect(try connect().contents().count == 30)
    #expect(try writer.connection.logByteCount == 0)
  }

  @Test("loses no commit if a writer restarts the log after it has read the header")
  func reset() throws {
    let recorder = RecordingVFS()
    let store = try SmallStore(vfs: recorder.encrypting())
    try interleave(in: recorder) { try store.connect() }
  }

  @Test("loses no commit in memory either")
  func resetInMemory() throws {
    let store = HeapStore()
    let recorder = RecordingVFS(below: HeapVFS.name)
    let first = try SQLiteConnection(inMemory: store, isCreating: true, busyTimeout: .zero, vfs: recorder.name)
    try first.execute("CREATE TABLE kv(k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID")
    try first.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    try interleave(in: recorder) { try SQLiteConnection(inMemory: store, busyTimeout: .zero, vfs: recorder.name) }
  }

  @Test("that writes a page a second time has its readers wait until the page is whole")
  func writtenAgain() throws {
    let recorder = RecordingVFS()
    let store = try SmallStore(vfs: recorder.encrypting())
    let writer = Writer(connection: try store.connect())
    let (first, reader) = (try store.connect(), try store.connect())
    let value = String(repeating: "x", count: 3000)
    for number in 10..<30 { try writer.commit("\(number)", value) }
    // With this snapshot, only a part of the log can be checkpointed; the next reader has that part from the file.
    try first.execute("BEGIN; SELECT count(*) FROM kv")
    try writer.commit("30")
    try writer.checkpoint()
    try reader.execute("BEGIN; SELECT count(*) FROM sqlite_schema")
    try first.execute("COMMIT")

    let page = Layout.offset(ofPage: 8)
    let (isTorn, mayWrite) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isDone = DispatchSemaphore(value: 0)
    let readCount = Atomic(0)
    recorder.failCalls { call in
      guard call.path == store.path, call.offset == page else { return nil }
      switch call.kind {
      case .write:
        // Another program, because closing a descriptor of the store in this one would drop SQLite's locks.
        let half = ["if=/dev/urandom", "of=\(store.path)", "bs=2048", "seek=\(page / 2048)", "count=1", "conv=notrunc"]
        #expect(throws: Never.self) { try Child.run("/bin/dd", half + ["status=none"]) }
        isTorn.signal()
        #expect(mayWrite.wait(timeout: .now() + 60) == .success)
      case .read:
        if readCount.add(1, ordering: .relaxed).newValue == 2 { mayWrite.signal() }
      default: break
      }
      return nil
    }
    Thread.detachNewThread {
      #expect(throws: Never.self) { try writer.checkpoint() }
      isDone.signal()
    }
    isTorn.wait()
    #expect(try reader.contents().count == 21)
    #expect(readCount.load(ordering: .relaxed) > 1)
    isDone.wait()
  }

  @Test("is known to be unsafe in SQLite itself up to 3.51.2, except in the fixed versions")
  func versions() {
    for version: Int32 in [3_007_000, 3_040_001, 3_044_005, 3_045_000, 3_050_006, 3_051_002] {
      #expect(SQLiteDefects.losesCommitsAtReset(version: version), "\(version)")
    }
    for version: Int32 in [3_006_023, 3_044_006, 3_050_007, 3_051_003, 3_053_001] {
      #expect(!SQLiteDefects.losesCommitsAtReset(version: version), "\(version)")
    }
  }
}
