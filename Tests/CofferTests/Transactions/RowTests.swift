import CofferCompat
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

/// Lines 1.3 to 1.12 of the promises about transactions that concern rows and enumerations.
@Suite("Rows") struct RowTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection

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

  @Test("1.3 are copied as they are stored")
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
    "take JSON that is JSON, and no other text for it",
    arguments: ["", "{", "[1,]", "{\"a\":1,\"a\":2}", "1 2", "nul"])
  func json(_ text: String) throws {
    #expect(throws: CofferError.unsupported(reason: "the bytes are no serialized json")) {
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

  @Test("1.3 lose their metadata, or go, where a literal nil is given")
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

  @Test("1.4 are touched without being rewritten, and only where they are")
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

  @Test("1.7 may be changed while they are enumerated, which shows them as of the start")
  func changesDuringEnumeration() throws {
    try connection.readWrite { transaction in
      for number in 0..<600 { try transaction.setObject(number, forKey: "\(1000 + number)") }
    }
    try connection.readWrite { transaction in
      var seen: [Int] = []
      try transaction.enumerateKeysAndObjects(as: Int.self) { key, object, _ in
        seen.append(object)
        // Behind, here and ahead.
        try transaction.removeObject(forKey: "\(1000 + object - 1)")
        try transaction.setObject(-1, forKey: "\(1000 + object + 1)")
        try transaction.setObject(-2, forKey: "\(key).5")
      }
      #expect(seen == Array(0..<600))
      #expect(try transaction.object(forKey: "1600") == -1)
    }
    try connection.readWrite { transaction in
      var count = 0
      try transaction.enumerateKeysInAllCollections { collection, key, _ in
        count += 1
        try transaction.removeAllObjects(inCollection: collection)
        try transaction.setObject(1, forKey: key, inCollection: "z")
      }
      #expect(count == 602)
      #expect(try transaction.numberOfKeys(inCollection: "z") == 602)
    }
  }

  @Test("1.7 that cannot be read before a change end their enumeration with the error, not as if there were no more")
  func unreadableRest() throws {
    try connection.readWrite { transaction in
      for key in ["a", "b", "c"] { try transaction.setObject(1, forKey: key) }
    }
    try connection.perform { try $0.connection.execute("UPDATE items SET type = 99 WHERE key = 'c'") }
    var visited: [String] = []
    #expect(throws: CofferError.self) {
      try connection.readWrite { transaction in
        try transaction.enumerateKeysAndObjects(as: Int.self) { key, _, _ in
          visited.append(key)
          // Reads the rest first, and cannot.
          try? transaction.setObject(2, forKey: "d")
        }
      }
    }
    #expect(visited == ["a"])
    #expect(try connection.read { try $0.allKeys() } == ["a", "b", "c"])
  }

  @Test("1.6 that are damaged end an enumeration with an error that says so")
  func damagedRow() throws {
    try connection.readWrite { try $0.setObject(1, forKey: "k", withMetadata: 2) }
    for damage in ["type = 99", "type = 2, metadata = x''"] {
      try connection.perform { try $0.connection.execute("UPDATE items SET \(damage)") }
      let error = #expect(throws: CofferError.self) {
        try connection.read { transaction in
          try transaction.enumerateRows(as: Int.self, metadata: Int.self) { _, _, _, _ in }
        }
      }
      guard case .damaged? = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
    }
  }

  @Test("1.7 are enumerated inside an enumeration of the same kind, and may be changed in either, each as of its start")
  func nestedChanges() throws {
    try connection.readWrite { transaction in
      for key in ["a", "b", "c"] { try transaction.setObject(1, forKey: key, withMetadata: 1) }
      var visited: [String] = []
      try transaction.enumerateRows(as: Int.self, metadata: Int.self) { outer, object, metadata, _ in
        #expect(object == 1 && metadata == 1)
        try transaction.enumerateRows(as: Int.self, metadata: Int.self) { inner, object, metadata, _ in
          visited.append(outer + inner)
          try transaction.setObject(object + 1, forKey: inner, withMetadata: metadata)
          try transaction.setObject(0, forKey: inner + outer, inCollection: "other")
        }
      }
      #expect(visited == ["aa", "ab", "ac", "ba", "bb", "bc", "ca", "cb", "cc"])
      #expect(try transaction.object(forKey: "b") == 4)
    }
  }

  @Test("1.12 go on being enumerated as of the start when a savepoint inside is undone")
  func savepointInside() throws {
    struct Undo: Error {}
    try connection.readWrite { transaction in
      for key in ["a", "b", "c"] { try transaction.setObject(1, forKey: key) }
      var visited: [String] = []
      try transaction.enumerateKeysAndObjects(as: Int.self) { key, object, _ in
        visited.append("\(key)\(object)")
        #expect(throws: Undo.self) {
          try transaction.inSavepoint {
            try transaction.removeAllObjects(inCollection: "")
            throw Undo()
          }
        }
      }
      #expect(visited == ["a1", "b1", "c1"])
    }
  }

  @Test("1.8 are enumerated in the order of collection and key, nested, and until told to stop")
  func order() throws {
    try connection.readWrite { transaction in
      for collection in ["b", "a"] {
        for key in ["é", "z", "B", "a"] {
          try transaction.setObject("\(collection).\(key)", forKey: key, inCollection: collection, withMetadata: key)
        }
      }
      try transaction.setObject("none", forKey: "c", inCollection: "c")
    }
    let sorted = ["B", "a", "z", "é"]
    try connection.read { transaction in
      var visited: [String] = []
      try transaction.enumerateCollections { outer, _ in
        try transaction.enumerateKeysAndObjects(inCollection: outer, as: String.self) { key, object, _ in
          try transaction.enumerateKeysAndObjects(inCollection: outer, as: String.self) { inner, _, stop in
            visited.append("\(object)>\(inner)")
            stop = true
          }
        }
      }
      #expect(
        visited == ["a", "b"].flatMap { name in sorted.map { "\(name).\($0)>B" } } + ["c.c"].map { _ in "none>c" })

      var rows: [String] = []
      try transaction.enumerateRowsInAllCollections(as: String.self, metadata: String.self) {
        collection, key, object, metadata, stop in
        rows.append("\(collection)/\(key)/\(object)/\(metadata ?? "-")")
        stop = collection == "c"
      }
      #expect(rows.count == 9 && rows[0] == "a/B/a.B/B" && rows[8] == "c/c/none/-")

      var metadata: [String?] = []
      try transaction.enumerateKeysAndMetadataInAllCollections(as: String.self, where: { _, key in key != "z" }) {
        metadata.append($2)
        _ = ($0, $1, $3)
      }
      #expect(metadata == ["B", "a", "é", "B", "a", "é", nil])
      metadata = []
      try transaction.enumerateKeysAndMetadata(inCollection: "a", as: String.self) { _, value, _ in
        metadata.append(value)
      }
      #expect(metadata == ["B", "a", "z", "é"])
      var objects: [String] = []
      try transaction.enumerateKeysAndObjectsInAllCollections(as: String.self, where: { $1 == "z" && !$0.isEmpty }) {
        objects.append($2)
        _ = ($0, $1, $3)
      }
      #expect(objects == ["a.z", "b.z"])
    }
  }

  @Test("1.8 are enumerated by a list of keys: each once, in order, absent ones as nil")
  func keyLists() throws {
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "a", withMetadata: "m")
      try transaction.setObject(2, forKey: "b")
    }
    try connection.read { transaction in
      var visited: [String] = []
      try transaction.enumerateObjects(forKeys: ["b", "none", "a", "b"], as: Int.self) { key, object, _ in
        visited.append("\(key)=\(object.map(String.init) ?? "nil")")
      }
      #expect(visited == ["b=2", "none=nil", "a=1"])
      visited = []
      try transaction.enumerateMetadata(forKeys: ["a", "b", "c"], as: String.self) { key, metadata, _ in
        visited.append("\(key)=\(metadata ?? "nil")")
      }
      #expect(visited == ["a=m", "b=nil", "c=nil"])
      visited = []
      try transaction.enumerateRows(forKeys: ["c", "a", "b"], as: Int.self, metadata: String.self) {
        key, object, metadata, stop in
        visited.append("\(key)=\(object ?? 0),\(metadata ?? "nil")")
        stop = key == "a"
      }
      #expect(visited == ["c=0,nil", "a=1,m"])
    }
  }

  @Test("1.8 are listed by prefix and by range, by the bytes of their keys")
  func ranges() throws {
    let keys = ["", "a", "a.", "a.1", "a.1\0", "a.é", "a/", "b", "é", "\u{10ffff}", "\u{10ffff}x"]
    try connection.readWrite { transaction in
      for key in keys { try transaction.setObject(key, forKey: key) }
    }
    try connection.read { transaction in
      #expect(try transaction.allKeys(within: .prefix("a.")) == ["a.", "a.1", "a.1\0", "a.é"])
      #expect(try transaction.allKeys(within: .prefix("")) == keys)
      #expect(try transaction.allKeys(within: .prefix("\u{10ffff}")) == ["\u{10ffff}", "\u{10ffff}x"])
      #expect(try transaction.allKeys(within: .prefix("none")).isEmpty)
      #expect(try transaction.allKeys(within: .from("a.1", upTo: "b")) == ["a.1", "a.1\0", "a.é", "a/"])
      #expect(try transaction.allKeys(within: .from("b")) == ["b", "é", "\u{10ffff}", "\u{10ffff}x"])
      #expect(try transaction.allKeys(within: .from("b", upTo: "a")).isEmpty)
      var objects: [String] = []
      try transaction.enumerateKeysAndObjects(within: .prefix("a."), as: String.self, where: { $0 != "a.1" }) {
        _, object, _ in
        objects.append(object)
      }
      #expect(objects == ["a.", "a.1\0", "a.é"])
    }
  }

  @Test("1.6 that do not decode end an enumeration with an error that names them")
  func decoding() throws {
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "a", inCollection: "c", withMetadata: 1)
      try transaction.setObject("text", forKey: "b", inCollection: "c", withMetadata: 1)
    }
    try connection.read { transaction in
      var seen: [Int] = []
      #expect {
        try transaction.enumerateKeysAndObjects(inCollection: "c", as: Int.self) { _, object, _ in seen.append(object) }
      } throws: { error in
        if case CofferError.notDecodable("c", "b", "string", "Int", _) = error { true } else { false }
      }
      #expect(seen == [1])
      #expect(throws: CofferError.self) {
        _ = try transaction.metadata(forKey: "a", inCollection: "c", as: String.self)
      }
    }
  }

  @Test("1.9 are right in the cache after a rollback, a savepoint's rollback, and others' commits")
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

  @Test("1.3 go with their collection, or all together")
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

  @Test("1.16 are on the disk when a write returns; what a proxy flushes is committed, and synced when asked for")
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
