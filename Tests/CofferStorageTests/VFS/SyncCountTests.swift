import CofferStorage
import Foundation
import TestSupport
import Testing

/// How often a store waits for the disk.
@Suite("Syncs") struct SyncCountTests {
  private let recorder = RecordingVFS()
  private let store: SmallStore

  init() throws {
    store = try SmallStore(vfs: recorder.encrypting())
    recorder.forgetEvents()
  }

  /// The suffixes of the files that were synced, in order, and `/` for the folder.
  private func syncs(_ body: () throws -> Void) rethrows -> [String] {
    recorder.forgetEvents()
    try body()
    return recorder.events.compactMap { event in
      switch event {
      case .sync(let path): String(path.dropFirst(store.path.count))
      case .syncFolder: "/"
      default: nil
      }
    }
  }

  @Test("of the log are not repeated by the checkpoint after a commit that was synced")
  func closing() throws {
    let connection = try store.connect()
    try connection.write { try connection.set("a", "1") }
    #expect(try syncs { try connection.close() } == [""])
    #expect(try store.contents() == ["a=1"])
  }

  @Test("of the log are made for commits that were not synced, by whichever connection")
  func unsynced() throws {
    let (first, second) = (try store.connect(), try store.connect())
    try first.write { try first.set("a", "1") }
    #expect(try syncs { try first.synchronizeLog() } == [])
    try first.write(.normal) { try first.set("b", "1") }
    #expect(try syncs { try first.synchronizeLog() } == ["-wal"])
    #expect(try syncs { try first.synchronizeLog() } == [])
    try second.write(.normal) { try second.set("c", "1") }
    #expect(try syncs { try first.execute("PRAGMA wal_checkpoint(PASSIVE)") } == ["-wal", ""])
    // Another generation of the same length.
    try second.write(.normal) { try second.set("d", "1") }
    #expect(try syncs { try first.synchronizeLog() } == ["-wal"])
    try first.close()
    try second.close()
  }

  @Test("of the first commit of a program that runs alone are three: its log, the name of that, and the store")
  func alone() throws {
    let syncs = try syncs {
      let connection = try store.connect()
      try connection.write { try connection.set("a", "1") }
      try connection.close()
    }
    #expect(syncs == ["-wal", "/", ""])
    #expect(try store.contents() == ["a=1"])
  }

  @Test("of the header come before the frames of a log that starts over, and before one that is emptied")
  func headers() throws {
    let connection = try store.connect()
    try connection.write { try connection.set("a", "1") }
    try connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    #expect(try syncs { try connection.write { try connection.set("b", "1") } } == ["-wal", "-wal"])
    #expect(try syncs { try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)") } == ["", "-wal"])
    #expect(try store.bytes("-wal").isEmpty)
    #expect(try syncs { try connection.write(.normal) { try connection.set("c", "1") } } == [])
    try connection.close()
    #expect(try store.contents() == ["a=1", "b=1", "c=1"])
  }

  @Test("of the log are repeated after one that failed")
  func failed() throws {
    let connection = try store.connect()
    try connection.write { try connection.set("a", "1") }
    try connection.write(.normal) { try connection.set("b", "1") }
    let injector = FaultInjector(in: recorder, count: 1) { call in
      call.kind == .sync && call.path.hasSuffix("-wal") ? .error(errno: EIO) : nil
    }
    #expect(throws: StorageError.self) { try connection.synchronizeLog() }
    injector.stop()
    #expect(try syncs { try connection.synchronizeLog() } == ["-wal"])
    #expect(try syncs { try connection.synchronizeLog() } == [])
    try connection.close()
  }
}
