import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CofferStorage

@Suite("How a read-only connection opens a store") struct ReadOnlyAccessTests {
  @Test("is decided also while a writer makes and removes the log, which may go between two looks at it")
  func vanishingLog() throws {
    let folder = try ScratchFolder()
    let path = folder.file("test.coffer")
    #expect(FileManager.default.createFile(atPath: path, contents: Data("store".utf8)))
    let end = End()
    let writer = Thread {
      while !end.hasCome.load(ordering: .relaxed) {
        _ = FileManager.default.createFile(atPath: path + "-wal", contents: nil)
        unlink(path + "-wal")
      }
    }
    writer.start()
    defer { end.hasCome.store(true, ordering: .relaxed) }
    for _ in 0..<20_000 { _ = try ReadOnlyAccess(path: path, hasRoom: true) }
  }

  @Test("is tried again if the log has gone when SQLite opens it; a store that has gone is an error")
  func vanishedLog() throws {
    let small = try SmallStore(rows: 1)
    let store = try Store.open(at: small.path, key: small.key, isReadOnly: true, vfs: small.vfs)
    var attempts = 0
    func open() throws {
      try SQLiteConnection.open(store, busyTimeout: .seconds(5)) { _ in
        attempts += 1
        // What a missing log is to SQLite.
        if attempts < 3 { throw StorageError.notFound(path: small.path) }
      }.close()
    }
    try open()
    #expect(attempts == 3)
    (attempts, _) = (0, unlink(small.path))
    #expect(throws: StorageError.self) { try open() }
    #expect(attempts <= 1)
  }

  private final class End: Sendable {
    let hasCome = Atomic(false)
  }
}
