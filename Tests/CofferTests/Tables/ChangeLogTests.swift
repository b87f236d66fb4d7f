import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("The change log") struct ChangeLogTests {
  private let store: TemporaryStore
  private let connection: Connection

  init() throws {
    store = try TemporaryStore()
    connection = try store.open().makeConnection()
  }

  /// The rows of `changes` from a number on.
  private func rows(from number: CommitNumber) throws -> [(noise: [UInt8], changes: ChangeSet)] {
    try connection.perform { session in
      var rows: [(noise: [UInt8], changes: ChangeSet)] = []
      let statement = try session.connection.statement(
        "SELECT noise, keys FROM changes WHERE sequence >= ? ORDER BY sequence")
      statement.bind(number, at: 1)
      try statement.query { row in
        rows.append((row.bytes(0), try #require(ChangeSet(packed: row.bytes(1)))))
      }
      return rows
    }
  }

  @Test("has one row per commit, with 16 random bytes and the kind of each changed key")
  func oneRow() throws {
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "updated", inCollection: "c")
      try transaction.setObject(1, forKey: "removed", inCollection: "c")
      try transaction.setObject(1, forKey: "removed and set", inCollection: "c")
    }
    let start = try connection.read { try $0.commitNumber() } + 1
    try connection.readWrite { transaction in
      try transaction.setObject(2, forKey: "updated", inCollection: "c")
      try transaction.setObject(2, forKey: "inserted", inCollection: "c")
      try transaction.setObject(3, forKey: "inserted", inCollection: "c")
      try transaction.removeObject(forKey: "removed", inCollection: "c")
      try transaction.removeObject(forKey: "removed and set", inCollection: "c")
      try transaction.setObject(5, forKey: "removed and set", inCollection: "c")
      try transaction.setObject(4, forKey: "passing", inCollection: "c")
      try transaction.removeObject(forKey: "passing", inCollection: "c")
    }
    let rows = try rows(from: start)
    #expect(rows.count == 1)
    #expect(rows[0].noise.count == 16)
    let collection = try #require(rows[0].changes.collections.values.first)
    #expect(
      collection.keys.mapValues(\.kind) == [
        ByteString("updated"): .updated, ByteString("inserted"): .inserted, ByteString("removed"): .removed,
        ByteString("removed and set"): .updated,
      ])
  }

  @Test("lists a collection of which more than 1,000 keys changed only as changed")
  func unlisted() throws {
    let start = try connection.read { try $0.commitNumber() } + 1
    try connection.readWrite { transaction in
      for number in 0...ChangeSet.maximumKeyCount { try transaction.setObject(number, forKey: "\(number)") }
      try transaction.setObject(1, forKey: "k", inCollection: "other")
    }
    let changes = try #require(try rows(from: start).first?.changes)
    #expect(changes.collections.values.filter(\.isUnlisted).map(\.keys.count) == [0])
    #expect(changes.collections.values.filter { !$0.isUnlisted }.map(\.keys.count) == [1])
  }

  @Test("forgets the keys of an erased collection, of which only its name stays, in what the commit says")
  func erasedCollection() throws {
    try connection.readWrite { transaction in
      try transaction.setObject("forgotten value", forKey: "forgotten key", inCollection: "erased name")
      try transaction.setObject(1, forKey: "kept key", inCollection: "kept name")
    }
    try connection.readWrite { try $0.erase(collection: "erased name") }
    #expect(try connection.read { try $0.allCollections() } == ["kept name"])
    try connection.perform { session in
      for table in ["collections", "items", "history", "changes", "meta"] {
        let found = try session.connection.text(ofAllRowsIn: table)
        #expect(!found.contains("forgotten"), "\(table) still holds it")
        #expect(found.contains("erased") == (table == "changes"))
      }
    }
    let changes = try rows(from: 0).map(\.changes)
    #expect(changes.contains { $0.collections.values.contains { $0.keys[ByteString("kept key")] != nil } })
    #expect(changes.last?.collections.values.map(\.isCleared) == [true])
  }

  @Test("keeps what was done to a removed collection, with its name")
  func removedCollection() throws {
    try connection.readWrite { try $0.setObject(1, forKey: "k", inCollection: "web") }
    try connection.readWrite { try $0.removeAllObjects(inCollection: "web") }
    let commits = try connection.read { try $0.rememberedCommits() }.suffix(2)
    #expect(commits.map(\.changedCollections) == [["web"], ["web"]])
    #expect(commits.first?.changedKeys(inCollection: "web") == ["k"] && commits.last?.isCleared("web") ?? false)
    // Nothing is left to remove.
    let last = try connection.read { try $0.commitNumber() }
    try connection.readWrite { try $0.removeAllObjects(inCollection: "web") }
    #expect(try connection.read { try $0.commitNumber() } == last)
  }

  @Test("says what a commit did besides changing keys, in bounded lines without control characters")
  func actions() throws {
    let long = String(repeating: "n", count: 200)
    let actions =
      [CommitAction.erased("a\tb\nc\u{1b}"), .changed(.remove(2), 2), .historyOff(long)]
      + (0..<20).map { .sealed("\($0)") }
    let text = try #require(CommitAction.text(of: actions))
    let read = CommitAction.all(in: text)
    #expect(read.count == 16 && read.last?.description == "8 more" && text.utf8.count < 3000)
    #expect(read[0].description == "erased a?b?c?" && read[1].description == "slot 2 removed")
    #expect(read[2].isTruncated && !read[1].isTruncated)
    #expect(CommitAction.text(of: []) == nil)
    #expect(CommitAction.sealed("").description == "sealed the default collection")
  }

  @Test("stays within its bounds of rows and bytes")
  func retention() throws {
    try connection.perform { session in
      try session.connection.beginWrite(.normal)
      let log = ChangeLog(connection: session.connection)
      for _ in 0..<ChangeLog.maximumRowCount + 200 { try log.append(ChangeSet(), time: 0, writer: 0) }
      try session.connection.commit()
      let count = try session.connection.statement("SELECT count(*) FROM changes").first { $0.integer(0) }
      #expect(try #require(count) <= ChangeLog.maximumRowCount + 64)

      var changes = ChangeSet()
      let key = String(repeating: "k", count: 100_000)
      changes.record(key, in: 1, .init(kind: .inserted, changesObject: true, changesMetadata: false))
      try session.connection.beginWrite(.normal)
      for _ in 0..<256 { try log.append(changes, time: 0, writer: 0) }
      try session.connection.commit()
      let bytes = try session.connection.statement("SELECT sum(length(keys)) FROM changes").first { $0.integer(0) }
      #expect(try #require(bytes) <= ChangeLog.maximumByteCount + 64 * 100_100)
    }
  }

  @Test("packs collections in the order of their IDs, whatever the order of changes")
  func severalCollections() throws {
    let change = ChangeSet.Change(kind: .updated, changesObject: true, changesMetadata: true)
    let places: [(key: String, id: Int64)] = [("a", 300), ("b", 1), ("c", 300), ("d", 20), ("e", 1)]
    var changes = ChangeSet()
    var reversed = ChangeSet()
    for (key, id) in places { changes.record(key, in: id, change) }
    for (key, id) in places.reversed() { reversed.record(key, in: id, change) }
    #expect(changes == reversed)
    #expect(changes.collections.mapValues { $0.keys.count } == [300: 2, 1: 2, 20: 1])
    #expect(ChangeSet(packed: changes.packed) == changes && !changes.isEmpty)
    // The first bytes of the IDs as numbers of variable length, none of which occurs earlier.
    let starts = [1, 20, 0xac].compactMap { changes.packed.firstIndex(of: $0) }
    #expect(starts == starts.sorted() && starts.count == 3)

    changes.recordClearing(of: 20, keys: [ByteString("d")])
    changes.record("f", in: 300, change)
    changes.recordClearing(of: 20, keys: [ByteString("g")])
    #expect(changes.collections[20]?.clearedKeys == [ByteString("d"), ByteString("g")])
    #expect(changes.collections[300]?.keys.count == 3 && changes != reversed)
  }

  @Test("round-trips its packed keys, and refuses malformed lists")
  func packing() throws {
    var changes = ChangeSet()
    changes.record("", in: 1, .init(kind: .inserted, changesObject: true, changesMetadata: false))
    changes.record("a\0é", in: 1, .init(kind: .touched, changesObject: false, changesMetadata: true))
    changes.recordClearing(of: 300)
    changes.record("after", in: 300, .init(kind: .inserted, changesObject: true, changesMetadata: true))
    let packed = changes.packed
    #expect(ChangeSet(packed: packed) == changes)
    var generator = SplitMix64(state: 3)
    for _ in 0..<20_000 {
      var bytes = packed
      bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
      _ = ChangeSet(packed: Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator))))
    }
    #expect(ChangeSet(packed: []) == nil)
    #expect(ChangeSet(packed: [0, 1, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]) == nil)
  }
}
