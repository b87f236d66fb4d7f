import CofferCrypto
import CofferMaintenance
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("A store into whose file an older copy is written while it is open, as by cp") struct WrittenOverTests {
  private let store: TemporaryStore
  private let anchor = RecordedAnchor()
  private var older: String { store.path + "-older" }

  init() throws {
    store = try TemporaryStore()
    try Database.create(at: store.path, key: store.key, options: options).close()
    try commit(["first"])
    try copy(store.path, over: older)
    try commit(["second", "third"])
  }

  private var options: Database.Options { .quiet.anchored(anchor) }

  /// As another program, which ends.
  private func commit(_ keys: [String]) throws {
    let database = try Database.open(at: store.path, key: store.key, options: options)
    for key in keys { try set(key, database.makeConnection()) }
    try database.close()
  }

  private func set(_ key: String, _ connection: Connection) throws {
    try connection.readWrite { try $0.setObject(true, forKey: key, inCollection: "") }
  }

  private func keys(_ connection: Connection) throws -> [String] {
    try connection.read { try $0.allKeys(inCollection: "").sorted() }
  }

  /// By another program: closing a descriptor of these files here would drop SQLite's locks.
  private func copy(_ file: String, over other: String) throws {
    try #require(Child.run("/bin/cp", [file, other]).status == 0)
  }

  private func expectRefusal(_ body: () throws -> Void) {
    #expect(throws: CofferError.storeReplaced(path: store.path), performing: body)
  }

  @Test("is neither changed nor vouched for, where a record knows later commits")
  func refused() throws {
    let database = try Database.open(at: store.path, key: store.key, options: options)
    let (reader, writer) = (try database.makeConnection(), try database.makeConnection())
    for connection in [reader, writer] { #expect(try keys(connection) == ["first", "second", "third"]) }
    let record = anchor.record
    try copy(older, over: store.path)
    for _ in 1...5 { expectRefusal { try set("later", writer) } }
    expectRefusal { _ = try keys(reader) }
    try database.close()
    #expect(anchor.record == record)
    #expect(try Data(contentsOf: URL(fileURLWithPath: store.path)) == Data(contentsOf: URL(fileURLWithPath: older)))
    #expect { try Database.open(at: store.path, key: store.key, options: options) } throws: {
      if case CofferError.rolledBack = $0 { true } else { false }
    }
  }

  @Test("is read and changed as it is then, where nothing knows later commits")
  func followed() throws {
    let database = try store.open()
    let (reader, writer) = (try database.makeConnection(), try database.makeConnection())
    for connection in [reader, writer] { #expect(try keys(connection) == ["first", "second", "third"]) }
    try copy(older, over: store.path)
    try set("later", writer)
    #expect(try keys(reader) == ["first", "later"])
    #expect(try store.worker("set", "theirs", "1").status == 0)
    #expect(try keys(reader) == ["first", "later", "theirs"])
    #expect(try database.verify().problems.isEmpty)
    try database.close()
    #expect(try keys(store.open().makeConnection()) == ["first", "later", "theirs"])
  }

  @Test("is not changed while its log has commits that do not belong to the copy")
  func withLog() throws {
    let database = try store.open()
    let connection = try database.makeConnection()
    try set("fourth", connection)
    try copy(older, over: store.path)
    for _ in 1...2 { expectRefusal { try set("later", connection) } }
    expectRefusal { _ = try keys(connection) }
    try database.close()
    #expect(try Data(contentsOf: URL(fileURLWithPath: store.path)) == Data(contentsOf: URL(fileURLWithPath: older)))
  }

  @Test("tells those who listen")
  func listeners() throws {
    let database = try Database.open(at: store.path, key: store.key, options: options)
    let isRefused = DispatchSemaphore(value: 0)
    let registration = try CommitRegistration(
      database.core.feed, { _ in }, onTrouble: { if $0 == .storeReplaced(path: store.path) { isRefused.signal() } },
      onClose: {})
    try copy(older, over: store.path)
    isRefused.wait()
    withExtendedLifetime(registration) {}
    try database.close()
  }

  @Test("is refused by what the record knows, too, where the file looks the same")
  func sameTimes() throws {
    let database = try Database.open(at: store.path, key: store.key, options: options)
    let reader = try database.makeConnection()
    #expect(try keys(reader) == ["first", "second", "third"])
    let record = anchor.record
    // As a carrier of files with the times of the original.
    try #require(Child.run("/usr/bin/touch", ["-r", store.path, older + "-times"]).status == 0)
    try copy(older, over: store.path)
    try #require(Child.run("/usr/bin/touch", ["-r", older + "-times", store.path]).status == 0)
    for _ in 1...3 {
      #expect { try set("later", try database.makeConnection()) } throws: {
        if case CofferError.rolledBack = $0 { true } else { false }
      }
    }
    try database.close()
    #expect(anchor.record == record)
  }

  @Test(
    "is not read where the program knows a later envelope, with a record of that or without", arguments: [true, false])
  func olderEnvelope(isRecorded: Bool) throws {
    let options = isRecorded ? options : .quiet
    let other = try Database.open(at: store.path, key: store.key, options: options)
    try other.addSlot(.key(.random(count: 32)))
    try other.close()
    let database = try Database.open(at: store.path, key: store.key, options: options)
    let (reader, writer) = (try database.makeConnection(), try database.makeConnection())
    #expect(try keys(reader) == ["first", "second", "third"])
    try copy(older, over: store.path)
    for _ in 1...2 {
      expectRefusal { _ = try keys(reader) }
      expectRefusal { try set("later", writer) }
    }
    try database.close()
    #expect(try Data(contentsOf: URL(fileURLWithPath: store.path)) == Data(contentsOf: URL(fileURLWithPath: older)))
  }

  @Test("is not noticed if it was made while the store was open: a limit that SECURITY.md names")
  func copyOfOpenStore() throws {
    let database = try Database.open(at: store.path, key: store.key, options: options)
    let connection = try database.makeConnection()
    try set("fourth", connection)
    try copy(store.path, over: older)
    try set("fifth", connection)
    #expect(try connection.perform { try $0.connection.checkpointAndTruncate {} })
    try copy(older, over: store.path)
    try set("sixth", connection)
    try database.close()
  }

  @Test("locks the vault, which it does not have, and is read")
  func withoutVault() throws {
    let setUp = try store.open()
    try setUp.vault.create(key: store.key)
    try setUp.close()
    let database = try store.open()
    try database.vault.unlock(store.key)
    let reader = try database.makeConnection()
    #expect(try keys(reader) == ["first", "second", "third"])
    try copy(older, over: store.path)
    #expect(try keys(reader) == ["first"])
    #expect(!database.vault.isUnlocked)
    try database.close()
  }

  @Test("does not keep a restored store from being followed, which has an older envelope, too")
  func restored() throws {
    try store.open().addSlot(.key(.random(count: 32)))
    let backup = store.path + "-backup"
    try copy(older, over: backup)
    let other = try store.open()
    for _ in 1...3 { try other.addSlot(.key(.random(count: 32))) }
    try other.close()
    let database = try store.open()
    let reader = try database.makeConnection()
    #expect(try keys(reader) == ["first", "second", "third"])
    try copy(older, over: store.path)
    expectRefusal { _ = try keys(reader) }
    #expect(try store.worker("restore", backup, "force").status == 0)
    #expect(try keys(reader) == ["first"])
    try database.close()
  }

  @Test("ends a backup that may be a mixture")
  func backup() throws {
    let database = try store.open()
    let place = store.path + "-backup"
    expectRefusal {
      try database.backup(to: place, key: store.key) { share in
        guard share == 1 else { return }
        // In place, so that no page is missing.
        try #require(
          Child.run("/bin/dd", ["if=\(older)", "of=\(store.path)", "conv=notrunc", "status=none"]).status == 0)
      }
    }
    #expect(!FileManager.default.fileExists(atPath: place))
    try database.close()
  }

  @Test(
    "is not what it looks like while another connection notes its log: the file's time changes before that can be read")
  func beingNoted() throws {
    let recorder = RecordingVFS()
    let place = store.path + "-noted"
    let database = try Database.create(at: place, key: store.key, options: .quiet, vfs: recorder.encrypting())
    let (reader, writer) = (try database.makeConnection(), try database.makeConnection())
    #expect(try keys(reader).isEmpty)
    let found = Lock<[String]?>(nil)
    recorder.failCalls { [self] call in
      guard call.kind == .write, call.offset == LogNotice.range.lowerBound else { return nil }
      try? FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: place)
      found.withLock { $0 = try? keys(reader) }
      return nil
    }
    try set("first", writer)
    recorder.failCalls { _ in nil }
    // Nothing was opened again.
    #expect(found.withLock { $0 } == [] && database.core.generation.load(ordering: .acquiring) == 0)
    #expect(try keys(reader) == ["first"])
    try database.close()
  }

  private func touch() throws { try #require(Child.run("/usr/bin/touch", [store.path]).status == 0) }

  @Test(
    "A file that was only touched is read and changed at once, with a key that was typed, and its vault stays unlocked")
  func touched() throws {
    let key = KeySource.key(try .random(count: 32))
    let setUp = try Database.open(at: store.path, key: store.key, options: options)
    try setUp.addSlot(key)
    try setUp.vault.create(key: key)
    try setUp.seal(collection: "sealed")
    try setUp.makeConnection().readWrite { try $0.setObject("secret", forKey: "s", inCollection: "sealed") }
    try setUp.close()
    let database = try Database.open(at: store.path, key: key, options: options)
    try database.vault.unlock(key)
    let (reader, writer) = (try database.makeConnection(), try database.makeConnection())
    for connection in [reader, writer] { #expect(try keys(connection) == ["first", "second", "third"]) }
    try touch()
    #expect(try keys(reader) == ["first", "second", "third"])
    #expect(try reader.read { try $0.object(forKey: "s", inCollection: "sealed", as: String.self) } == "secret")
    try touch()
    try set("fourth", writer)
    try touch()
    try set("fifth", writer)
    #expect(try keys(reader) == ["fifth", "first", "fourth", "second", "third"])
    try database.close()
    #expect(try keys(store.open().makeConnection()) == ["fifth", "first", "fourth", "second", "third"])
  }
}
