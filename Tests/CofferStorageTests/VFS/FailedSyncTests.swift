import CofferStorage
import Foundation
import TestSupport
import Testing

/// A store on a disk of which a sync fails.
@Suite("A failed sync") struct FailedSyncTests {
  private let recorder = RecordingVFS()
  private let store: SmallStore
  private let connection: SQLiteConnection

  init() throws {
    store = try SmallStore(vfs: recorder.encrypting())
    connection = try store.connect()
  }

  private func failSyncs(of suffix: String, count: Int, _ body: () throws -> Void) rethrows {
    let injector = FaultInjector(in: recorder, count: count) { call in
      call.kind == .sync && call.path.hasSuffix(suffix) ? .error(errno: ENOSPC) : nil
    }
    try body()
    injector.stop()
    #expect(!injector.failedCalls.isEmpty)
  }

  /// What is on the disk whatever happens, as another store.
  private func contentsOnDisk() throws -> [String] {
    let place = try ScratchFolder()
    try Disk.write(Disk(recorder).surely, of: store.folder, to: place.path)
    let opened = try Store.open(at: place.file("test.coffer"), key: store.key)
    let connection = try SQLiteConnection(store: opened, busyTimeout: .zero)
    defer { try? connection.close() }
    return try connection.contents()
  }

  /// Together with a row: a commit of the envelope alone writes no log.
  private func addSlot() throws {
    let opened = try Store.open(at: store.path, key: store.key, vfs: store.vfs)
    let secret = try PreparedSecret(.key(.random(count: 32)), owner: opened.storeID)
    try connection.write {
      _ = try connection.changeEnvelope { try $0.apply(.add(secret)) }
      try connection.set("slots", "2")
    }
  }

  @Test("is reported as a full disk", arguments: ["-wal", "test.coffer"])
  func error(_ suffix: String) throws {
    let full = StorageError.diskFull(path: store.path)
    failSyncs(of: suffix, count: 1) {
      #expect(throws: full) { try addSlot() }
    }
    try addSlot()
    try connection.close()
  }

  @Test("of the log is not hidden by the next one, which also syncs what only an earlier commit wrote")
  func earlierCommits() throws {
    // More syncs fail than the system has errors to report, and another connection makes the one that succeeds.
    for (number, writer) in [connection, try store.connect()].enumerated() {
      try connection.write(.normal) { try connection.set("committed \(number)", "\(number)") }
      failSyncs(of: "-wal", count: number + 1) {
        for _ in 0...number {
          #expect(throws: StorageError.self) { try connection.write { try connection.set("failed", "0") } }
        }
      }
      try writer.write { try writer.set("synced \(number)", "\(number)") }
      let contents = try contentsOnDisk()
      #expect(contents.contains("committed \(number)=\(number)"))
      #expect(contents.contains("synced \(number)=\(number)"))
    }
    try connection.close()
  }

  @Test("of the log is not hidden from a caller who asks for a sync")
  func synced() throws {
    try connection.write(.normal) { try connection.set("key", "value") }
    failSyncs(of: "-wal", count: 2) {
      for _ in 0..<2 {
        #expect(throws: StorageError.self) { try connection.synchronizeLog() }
      }
    }
    try connection.synchronizeLog()
    #expect(try contentsOnDisk() == ["key=value"])
    try connection.close()
  }

  /// Fails writes or syncs of the store's file: the second ones of the two that write the two copies of the envelope.
  private func failSecondCopy(_ kind: RecordingVFS.Call.Kind, _ body: () throws -> Void) rethrows {
    let injector = FaultInjector(in: recorder, from: 2, count: 1) { call in
      call.kind == kind && call.path.hasSuffix("test.coffer") ? .error(errno: ENOSPC) : nil
    }
    try body()
    injector.stop()
    #expect(!injector.failedCalls.isEmpty)
  }

  private func slots() throws -> [UInt8] { try Store.peekEnvelope(at: store.path).slots.map(\.id) }

  @Test("of a commit that could not be revoked either is made good by the next sync: a recovery has found it meanwhile")
  func unrevoked() throws {
    // The log has its header then.
    try connection.write(.full) { try connection.set("z", "1") }
    let injector = FaultInjector(in: recorder, count: .max) { call in
      let revokes = call.kind == .write && call.byteCount == Layout.frameHeaderByteCount
      return call.path.hasSuffix("-wal") && (call.kind == .sync || revokes) ? .error(errno: ENOSPC) : nil
    }
    #expect(throws: StorageError.self) { try connection.write(.full) { try connection.set("a", "1") } }
    injector.stop()
    let other = try store.connect()
    #expect(try other.contents() == ["z=1"])
    // Finds it as it takes the write lock.
    try other.write(.full) { try other.set("b", "2") }
    #expect(try contentsOnDisk() == other.contents())
    try other.close()
  }

  @Test("of the envelope's first copy changes nothing: what is reported as failed does not show to the next opening")
  func firstCopy() throws {
    try addSlot()
    failSyncs(of: "test.coffer", count: 1) {
      #expect(throws: StorageError.self) {
        try connection.write { _ = try connection.changeEnvelope { try $0.apply(.remove(1)) } }
      }
    }
    #expect(try slots() == [0, 1])
    try connection.write { _ = try connection.changeEnvelope { try $0.apply(.remove(1)) } }
    #expect(try slots() == [0])
    try connection.close()
  }

  @Test(
    "or a full disk at the envelope's second copy leaves the change in force, and nothing of a removed slot after the next write",
    arguments: [RecordingVFS.Call.Kind.write, .sync])
  func envelope(_ kind: RecordingVFS.Call.Kind) throws {
    try addSlot()
    try failSecondCopy(kind) {
      try connection.write { _ = try connection.changeEnvelope { try $0.apply(.remove(1)) } }
    }
    #expect(try slots() == [0])
    let other = try Store.open(at: store.path, key: store.key, vfs: store.vfs)
    #expect(other.envelope.slots.map(\.id) == [0])
    try connection.write { try connection.set("key", "1") }
    var bytes = try #require(Disk(recorder).surely[store.path])
    bytes.replaceSubrange(LogNotice.range, with: repeatElement(0, count: LogNotice.range.count))
    let half = Layout.envelopeCopyByteCount
    #expect(bytes[..<half].elementsEqual(bytes[half..<2 * half]))
    let place = try ScratchFolder()
    try Disk.write([store.path: bytes], of: store.folder, to: place.path)
    #expect(try Store.peekEnvelope(at: place.file("test.coffer")).slots.map(\.id) == [0])
    try connection.close()
  }
}
