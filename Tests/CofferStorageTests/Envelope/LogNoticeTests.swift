import CSQLite
import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import CofferStorage

@Suite("The log notice") struct LogNoticeTests {
  private let store: SmallStore

  init() throws {
    store = try SmallStore()
  }

  private func notice(_ path: String? = nil) throws -> LogNotice? {
    try EnvelopeFile(path: path ?? store.path, below: store.vfs.below, isReadOnly: true).logNotice()
  }

  private func open(_ path: String, isReadOnly: Bool = false) throws -> [String] {
    let opened = try Store.open(at: path, key: store.key, isReadOnly: isReadOnly)
    let connection = try SQLiteConnection(store: opened, busyTimeout: .zero)
    defer { try? connection.closeUntouched() }
    return try connection.contents()
  }

  /// Commits one key, and ends like a killed program: the log stays.
  private func crash(setting key: String = "a") throws {
    let connection = try store.connect()
    try connection.write { try connection.set(key, "1") }
    try connection.closeUntouched()
  }

  private func move(_ path: String, to new: String) throws {
    for suffix in ["", "-wal"] where access(path + suffix, F_OK) == 0 {
      try #require(rename(path + suffix, new + suffix) == 0)
    }
    unlink(path + "-shm")
  }

  @Test("is made before the first commit, kept by a change of the envelope, and cleared when the log is removed")
  func lifetime() throws {
    let original = try store.bytes()
    let connection = try store.connect()
    #expect(try connection.contents().isEmpty)
    #expect(try notice() == nil)
    try connection.write { try connection.set("a", "1") }
    #expect(try notice() == LogNotice(storeAt: store.path))
    try connection.write { _ = try connection.changeEnvelope { try $0.apply(.label(0, "new")) } }
    #expect(try notice() == LogNotice(storeAt: store.path))
    #expect(try connection.store?.damagedEnvelopeCopies() == [])
    try connection.close()
    #expect(try notice() == nil)
    #expect(try store.bytes()[LogNotice.range] == original[LogNotice.range])
    // Reading alone changes nothing.
    let written = try store.bytes()
    #expect(try store.contents() == ["a=1"])
    #expect(try store.bytes() == written)
  }

  @Test("refuses the store under another name while the log of the first one has commits, for reading and writing")
  func otherName() throws {
    let other = store.folder.file("other.coffer")
    try #require(link(store.path, other) == 0)
    // A second name by itself is no reason.
    #expect(try open(other) == [])
    try crash()
    for isReadOnly in [false, true] {
      #expect(throws: StorageError.usedUnderAnotherName(path: other)) { try open(other, isReadOnly: isReadOnly) }
    }
    #expect(try store.contents() == ["a=1"])
    // Closed properly: both names again.
    #expect(try open(other) == ["a=1"])
  }

  @Test("refuses an open reader under another name once the first one has changes")
  func openReader() throws {
    let other = store.folder.file("other.coffer")
    try #require(link(store.path, other) == 0)
    let reader = try SQLiteConnection(
      store: Store.open(at: other, key: store.key, isReadOnly: true), busyTimeout: .zero)
    #expect(try reader.contents() == [])
    let connection = try store.connect()
    try connection.write { try connection.set("a", "1") }
    #expect(throws: StorageError.usedUnderAnotherName(path: other)) { try reader.contents() }
    try connection.close()
    try reader.close()
  }

  @Test("follows store and log that are moved together, a moved folder, and a log that was removed by hand")
  func moved() throws {
    try crash(setting: "a")
    let renamed = store.folder.file("renamed.coffer")
    try move(store.path, to: renamed)
    #expect(try open(renamed) == ["a=1"])
    try move(renamed, to: store.path)
    try crash(setting: "b")
    let folder = try ScratchFolder()
    let inside = folder.file("inside")
    try #require(mkdir(inside, 0o700) == 0)
    try move(store.path, to: inside + "/x.coffer")
    #expect(try open(inside + "/x.coffer") == ["a=1", "b=1"])
    try #require(rename(inside, folder.file("elsewhere")) == 0)
    #expect(try open(folder.file("elsewhere/x.coffer")) == ["a=1", "b=1"])
    try move(folder.file("elsewhere/x.coffer"), to: store.path)
    #expect(try store.contents() == ["a=1", "b=1"])
    try crash(setting: "c")
    unlink(store.path + "-wal")
    unlink(store.path + "-shm")
    #expect(try open(store.path) == ["a=1", "b=1"])
    try crash(setting: "d")
    #expect(try store.contents() == ["a=1", "b=1", "d=1"])
  }

  @Test("means nothing in a copy, which is the way out when the log is lost")
  func copied() throws {
    let other = store.folder.file("other.coffer")
    try #require(link(store.path, other) == 0)
    try crash()
    let copy = store.folder.file("copy.coffer")
    _ = try Child.run("/bin/cp", [other, copy])
    #expect(throws: StorageError.usedUnderAnotherName(path: other)) { try open(other) }
    #expect(try open(copy) == [])
    // With the log: as by a backup of the folder.
    _ = try Child.run("/bin/cp", [store.path, copy])
    _ = try Child.run("/bin/cp", [store.path + "-wal", copy + "-wal"])
    #expect(try open(copy) == ["a=1"])
  }

  @Test("does not accept the log's other name, and leaves nothing in it that could be replayed")
  func linkedLog() throws {
    try crash()
    let other = store.folder.file("other.coffer")
    for suffix in ["", "-wal"] { try #require(link(store.path + suffix, other + suffix) == 0) }
    #expect(throws: StorageError.usedUnderAnotherName(path: other)) { try open(other) }
    let connection = try store.connect()
    try connection.write { try connection.set("a", "2") }
    try connection.close()
    #expect(try open(other) == ["a=2"])
  }

  @Test("refuses the second name in the same process, too")
  func oneProcess() throws {
    let other = store.folder.file("other.coffer")
    try #require(link(store.path, other) == 0)
    let first = try store.connect()
    let second = try SQLiteConnection(store: Store.open(at: other, key: store.key), busyTimeout: .zero)
    #expect(try second.contents() == [])
    try first.write { try first.set("a", "1") }
    #expect(throws: StorageError.usedUnderAnotherName(path: other)) { try second.beginWrite(.full) }
    try first.close()
    // The last connection to the file, but not to the log with the commit, which stays.
    try second.close()
    #expect(throws: StorageError.usedUnderAnotherName(path: other)) { try open(other) }
    #expect(try store.contents() == ["a=1"])
    #expect(try open(other) == ["a=1"])
  }

  @Test("reports a second name, and a file that is mounted by itself")
  func names() throws {
    let opened = try Store.open(at: store.path, key: store.key)
    #expect(opened.linkCount == 1 && !opened.isMountPoint)
    try #require(link(store.path, store.folder.file("other.coffer")) == 0)
    #expect(opened.linkCount == 2)
  }
}
