import CofferCompat
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Rows") struct RowTests {
  let store: TemporaryStore
  let database: Database
  let connection: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
  }

  @Test("1.3 are replaced in part: the other part stays, an absent row stays absent")
  func replace() throws {
    try connection.readWrite { transaction in
      try transaction.setObject("object", forKey: "k", withMetadata: "metadata")
      try transaction.replaceObject("new", forKey: "k")
      var row = try transaction.row(forKey: "k", as: String.self, metadata: String.self)
      #expect(row?.object == "new" && row?.metadata == "metadata")
      try transaction.replaceMetadata("newer", forKey: "k")
      row = try transaction.row(forKey: "k", as: String.self, metadata: String.self)
      #expect(row?.object == "new" && row?.metadata == "newer")
      try transaction.replaceMetadata(nil, forKey: "k")
      row = try transaction.row(forKey: "k", as: String.self, metadata: String.self)
      #expect(row?.object == "new" && row?.metadata == nil)
      try transaction.replaceObject(nil as String?, forKey: "k")
      #expect(try !transaction.hasObject(forKey: "k"))
      try transaction.replaceObject("x", forKey: "absent")
      try transaction.replaceMetadata("x", forKey: "absent")
      #expect(try transaction.allKeys().isEmpty)
    }
  }

  @Test(
    "1.3 become what they are set to, whatever happened to the previous value",
    arguments: [ChangeKind.inserted, .updated, nil])
  func setAfterAnother(_ earlier: ChangeKind?) throws {
    let expiry = Date(timeIntervalSinceNow: 3600)
    try connection.readWrite { transaction in
      try transaction.setObject("x", forKey: "equal")
      try transaction.setObject("y", forKey: "other")
      try transaction.setObject("x", forKey: "expiring", expires: expiry)
      try transaction.setObject("y", forKey: "expiring other", expires: expiry)
      try transaction.setObject("y", forKey: "with metadata", withMetadata: 1)
      try transaction.setObject("same", forKey: "before")
    }
    var kinds: [String: ChangeKind] = [:]
    for key in ["absent", "equal", "other", "expiring", "expiring other", "with metadata"] {
      try connection.readWrite { transaction in
        let before = earlier == .inserted ? "before \(key)" : "before"
        try transaction.setObject(earlier == .updated ? key : "same", forKey: before)
        try transaction.setObject("x", forKey: key)
      }
      try connection.read { transaction in
        kinds[key] = try transaction.rememberedCommits().last?.kind(forKey: key)
        let item = try #require(try transaction.item(forKey: key))
        #expect(item.value == "x" && item.metadata == nil && item.expires == nil, "\(key)")
      }
    }
    #expect(
      kinds == [
        "absent": .inserted, "other": .updated, "expiring": .updated, "expiring other": .updated,
        "with metadata": .updated,
      ])
  }

  @Test("1.3 are copied in their stored form")
  func serialized() throws {
    try connection.readWrite { transaction in
      try transaction.setObject(["a": [1, 2]], forKey: "k", withMetadata: 1.5)
      let row = try #require(try transaction.serializedRow(forKey: "k"))
      #expect(row.object.kind == .dictionary && row.metadata?.kind == .double)
      try transaction.setSerializedObject(row.object, forKey: "copy", withMetadata: row.metadata)
      #expect(try transaction.object(forKey: "copy") == ["a": [1, 2]])
      #expect(try transaction.metadata(forKey: "copy") == 1.5)
      try transaction.setObject("s", forKey: "other")
      let other = try #require(try transaction.serializedObject(forKey: "other"))
      try transaction.replaceSerializedObject(other, forKey: "copy")
      try transaction.replaceSerializedMetadata(other, forKey: "copy")
      #expect(try transaction.row(forKey: "copy", as: String.self, metadata: String.self)?.metadata == "s")
      #expect(try transaction.serializedMetadata(forKey: "copy") == other)
    }
    #expect(throws: CofferError.self) { try SerializedValue(kind: .int, bytes: Data([1, 2])) }
  }

  @Test(
    "accept only valid JSON as JSON",
    arguments: ["", "{", "[1,]", "{\"a\":1,\"a\":2}", "1 2", "nul"])
  func json(_ text: String) throws {
    #expect(throws: CofferError.unsupported(reason: "the bytes are not a serialized json")) {
      try SerializedValue(kind: .json, bytes: Data(text.utf8))
    }
    let right = try SerializedValue(kind: .json, bytes: Data("[1, {\"a\": 1.0}]".utf8))
    func isNamed(_ error: any Error) -> Bool {
      guard case CofferError.notEncodable("c", "k", let reason) = error else { return false }
      return reason.hasPrefix("the text is not JSON: ")
    }
    try connection.readWrite { transaction in
      try transaction.setSerializedObject(right, forKey: "k", inCollection: "c", withMetadata: right)
      for value in [Value.json(text), [.json(text)]] {
        #expect { try transaction.setObject(value, forKey: "k", inCollection: "c") } throws: { isNamed($0) }
        #expect { try transaction.replaceMetadata(value, forKey: "k", inCollection: "c") } throws: { isNamed($0) }
      }
      #expect(try transaction.serializedObject(forKey: "k", inCollection: "c") == right)
      #expect(try transaction.value(forKey: "k", inCollection: "c") == .json("[1, {\"a\": 1.0}]"))
    }
    let proxy = try ConnectionProxy(database: database)
    #expect { try proxy.setObject(Value.json(text), forKey: "k", inCollection: "c") } throws: { isNamed($0) }
  }

  @Test("1.3 lose their metadata, or are removed, if a literal nil is given")
  func literalNil() throws {
    try connection.readWrite { transaction in
      for key in ["a", "b", "c", "d"] { try transaction.setObject(1, forKey: key, withMetadata: 2) }
      try transaction.setObject(1, forKey: "a", withMetadata: nil)
      try transaction.setObject(1, forKey: "b", withMetadata: nil, ifVersion: transaction.version(forKey: "b"))
      try transaction.replaceObject(nil, forKey: "c")
      try transaction.replaceMetadata(nil, forKey: "d")
      try transaction.setObjectIfAbsent(1, forKey: "e", withMetadata: nil)
      #expect(try transaction.allKeys() == ["a", "b", "d", "e"])
      for key in ["a", "b", "d", "e"] { #expect(try transaction.metadata(forKey: key, as: Int.self) == nil) }
      try transaction.setObject(1, forKey: "d", withMetadata: 2)
    }
    let proxy = try ConnectionProxy(database: database)
    try proxy.setObject(1, forKey: "a", withMetadata: 2)
    try proxy.setObject(1, forKey: "a", withMetadata: nil)
    try proxy.replaceObject(nil, forKey: "b")
    try proxy.performBatch { batch in
      try batch.setObject(1, forKey: "d", withMetadata: nil)
      try batch.setObject(nil, forKey: "e")
    }
    #expect(try proxy.allKeys() == ["a", "d"])
    for key in ["a", "d"] { #expect(try proxy.metadata(forKey: key, as: Int.self) == nil) }
  }

  @Test("1.4 are touched without being rewritten, and only if they exist")
  func touch() throws {
    try connection.readWrite { try $0.setObject(1, forKey: "k", withMetadata: 2) }
    let before = try connection.read { try $0.item(forKey: "k") }
    try connection.beginLongLivedReadTransaction()
    let writer = try database.makeConnection()
    try writer.readWrite { transaction in
      try transaction.touchObject(forKey: "k")
      try transaction.touchMetadata(forKey: "absent")
    }
    try writer.readWrite { try $0.touchMetadata(forKey: "k") }
    try writer.readWrite { try $0.touchRow(forKey: "k") }
    let notifications = try connection.endLongLivedReadTransaction()
    #expect(notifications.map { $0.hasChange(forKey: "k", of: .object) } == [true, false, true])
    #expect(notifications.map { $0.hasChange(forKey: "k", of: .metadata) } == [false, true, true])
    #expect(notifications.map { $0.hasChange(forKey: "absent") } == [false, false, false])
    #expect(try connection.read { try $0.item(forKey: "k") } == before)
    // Also during an enumeration.
    try connection.readWrite { transaction in
      try transaction.enumerateKeys { key, _ in try transaction.touchRow(forKey: key) }
    }
  }

  @Test("1.9 are correct in the cache after a rollback, a savepoint's rollback, and others' commits")
  func cache() throws {
    func read(_ key: String) throws -> Int? { try connection.read { try $0.object(forKey: key) } }
    try connection.readWrite { try $0.setObject(1, forKey: "k") }
    #expect(try read("k") == 1)
    #expect(try read("absent") == nil)
    struct Mine: Error {}
    #expect(throws: Mine.self) {
      try connection.readWrite { transaction in
        try transaction.setObject(2, forKey: "k")
        try transaction.setObject(2, forKey: "absent")
        let seen: Int? = try transaction.object(forKey: "k")
        #expect(seen == 2)
        throw Mine()
      }
    }
    #expect(try read("k") == 1)
    #expect(try read("absent") == nil)
    try connection.readWrite { transaction in
      try transaction.inSavepoint {
        try transaction.setObject(3, forKey: "k")
        #expect(try transaction.object(forKey: "k") == 3)
        return .rollback
      }
      #expect(try transaction.object(forKey: "k") == 1)
    }
    #expect(try read("k") == 1)
    // Another connection, another process, a removed collection, and so much that the keys are not listed.
    try database.makeConnection().readWrite { try $0.setObject(4, forKey: "k") }
    #expect(try read("k") == 4)
    #expect(try connection.read { try $0.object(forKey: "x0", inCollection: "numbers", as: Int.self) } == nil)
    #expect(try store.worker("insert", "x", "1").status == 0)
    #expect(try connection.read { try $0.object(forKey: "x0", inCollection: "numbers") } == 0)
    #expect(try store.worker("clear", "numbers").status == 0)
    #expect(try connection.read { try $0.hasObject(forKey: "x0", inCollection: "numbers") } == false)
    #expect(try connection.read { try $0.object(forKey: "x0", inCollection: "numbers", as: Int.self) } == nil)
    try database.makeConnection().readWrite { transaction in
      for number in 0..<1100 { try transaction.setObject(5, forKey: number == 0 ? "k" : "\(number)") }
    }
    #expect(try read("k") == 5)
    // What the rollback undid can be set again, durably.
    try connection.readWrite { try $0.setObject(6, forKey: "absent") }
    #expect(try database.makeConnection().read { try $0.object(forKey: "absent") } == 6)
  }

  @Test("1.12 changed in a savepoint are undone exactly, also in the change set, however deep")
  func savepoints() throws {
    struct Mine: Error {}
    try connection.beginLongLivedReadTransaction()
    try database.makeConnection().readWrite { transaction in
      try transaction.setObject(1, forKey: "kept")
      try transaction.inSavepoint {
        try transaction.setObject(1, forKey: "outer")
        try transaction.inSavepoint {
          try transaction.setObject(1, forKey: "inner", inCollection: "new")
          try transaction.removeObject(forKey: "kept")
          return .rollback
        }
        #expect(throws: Mine.self) {
          try transaction.inSavepoint {
            try transaction.setObject(1, forKey: "thrown")
            throw Mine()
          }
        }
        try transaction.setObject(2, forKey: "outer")
        return .commit
      }
      #expect(try transaction.allKeys() == ["kept", "outer"])
      #expect(try transaction.allCollections() == [""])
      try transaction.setObject(1, forKey: "inner", inCollection: "new")
    }
    let notifications = try connection.endLongLivedReadTransaction()
    #expect(notifications.changedKeys() == ["kept", "outer"])
    #expect(notifications.changedKeys(inCollection: "new") == ["inner"])
    #expect(try connection.read { try $0.object(forKey: "outer") } == 2)
  }

  @Test("1.3 are removed with their collection, or all together")
  func removal() throws {
    try connection.readWrite { transaction in
      for collection in ["", "a", "b"] { try transaction.setObject(1, forKey: "k", inCollection: collection) }
      try transaction.removeObjects(forKeys: ["none", "k"], inCollection: "a")
      #expect(try transaction.allCollections() == ["", "b"])
      try transaction.removeAllObjectsInAllCollections()
      #expect(try transaction.numberOfKeysInAllCollections() == 0)
      try transaction.setObject(2, forKey: "k", inCollection: "b")
    }
    #expect(try connection.read { try $0.allCollections() } == ["b"])
  }

  @Test("1.16 are on disk when a write returns; a proxy's flush commits, and syncs on request")
  func durability() throws {
    let store = try TemporaryStore()
    let recorder = RecordingVFS()
    let vfs = EncryptingVFS(name: "coffer-on-\(recorder.name)", below: recorder.name)
    let database = try Database.create(at: store.path, key: store.key, options: .init(), vfs: vfs)
    let connection = try database.makeConnection()
    let proxy = try ConnectionProxy(database: database)
    /// Whether the log was synced after the last write to it that `body` made.
    func isSynced(_ body: () throws -> Void) rethrows -> Bool {
      let start = recorder.events.count
      try body()
      var isSynced: Bool?
      for event in recorder.events[start...] {
        switch event {
        case .write(let path, _, _) where path.hasSuffix("-wal"): isSynced = false
        case .sync(let path) where path.hasSuffix("-wal"): isSynced = true
        default: break
        }
      }
      return isSynced ?? false
    }
    // The first commit of a log is synced anyway.
    try connection.readWrite { try $0.setObject(0, forKey: "k") }
    #expect(try isSynced { try connection.readWrite { try $0.setObject(1, forKey: "k") } })
    #expect(try !isSynced { try proxy.setObject(2, forKey: "k", durability: .committed) })
    #expect(try isSynced { try proxy.setObject(3, forKey: "k", durability: .synced) })
    #expect(try isSynced { try connection.writeWithoutTransaction { try $0.setObject(4, forKey: "k") } })
  }
}
