import CofferCompat
import CofferStorage
import TestSupport
import Testing

@testable import Coffer

@Suite("The commits since a snapshot") struct ChangesSinceTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
  }

  private func commitNumber() throws -> CommitNumber {
    try connection.read { try $0.commitNumber() }
  }

  private func changes(since number: CommitNumber) throws -> [Commit]? {
    try connection.read { try $0.changes(since: number) }
  }

  private func changes(since position: CommitPosition) throws -> [Commit]? {
    try connection.read { try $0.changes(since: position) }
  }

  @Test("are listed in order, of every origin")
  func order() throws {
    let start = try commitNumber()
    #expect(try changes(since: start)?.count == 0)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "a\0", inCollection: "c")
      try transaction.setObject(1, forKey: "")
    }
    try connection.readWrite { try $0.removeObject(forKey: "a\0", inCollection: "c") }
    #expect(try store.worker("insert", "x", "2").status == 0)
    try connection.readWrite { try $0.touchRow(forKey: "") }
    let commits = try #require(try changes(since: start))
    #expect(commits.map(\.number) == Array(start + 1...start + 5))
    #expect(commits.map(\.origin) == [.thisDatabase, .thisDatabase, .elsewhere, .elsewhere, .thisDatabase])
    #expect(commits.map(\.changedCollections) == [["", "c"], ["c"], ["numbers"], ["numbers"], [""]])
    #expect(commits[0].kind(forKey: "a\0", inCollection: "c") == .inserted)
    #expect(commits[1].kind(forKey: "a\0", inCollection: "c") == .removed)
    #expect(commits[3].changedKeys(inCollection: "numbers") == ["x1"])
    #expect(commits[4].kind(forKey: "") == .touched)
    #expect(try changes(since: start + 4)?.map(\.number) == [start + 5])
    #expect(try changes(since: start + 5)?.count == 0)
  }

  @Test("are unknown for a snapshot older than the log, or that never existed")
  func unknown() throws {
    let start = try commitNumber()
    #expect(try changes(since: start + 1) == nil)
    #expect(try changes(since: .max) == nil)
    try connection.perform { session in
      try session.connection.beginWrite(.normal)
      for _ in 0..<ChangeLog.maximumRowCount + 200 { try session.changeLog.append(ChangeSet(), time: 0, writer: 0) }
      try session.connection.commit()
    }
    #expect(try changes(since: start) == nil)
    let last = try commitNumber()
    #expect(try changes(since: last - 100)?.count == 100)
    // The log was written outside the connection's transactions, which continue from it.
    try connection.readWrite { try $0.setObject(1, forKey: "k") }
    #expect(try changes(since: last)?.changedKeys() == ["k"])
  }

  @Test("2.7 are unknown for a position in another history, and known as long as the log goes on from it")
  func otherHistory() throws {
    let backup = store.path + "-backup"
    try connection.readWrite { try $0.setObject(1, forKey: "kept") }
    let common = try connection.read { try $0.position() }
    try database.backup(to: backup, key: store.key)
    for value in 0..<3 { try connection.readWrite { try $0.setObject(value, forKey: "gone") } }
    let last = try connection.read { try $0.position() }
    #expect(try connection.read { try $0.changes(since: common)?.map(\.position).last } == last)
    try Database.restore(at: store.path, from: backup, key: store.key, force: true)
    for value in 0..<5 { try connection.readWrite { try $0.setObject(value, forKey: "new") } }
    #expect(try commitNumber() > last.number)
    #expect(try changes(since: last) == nil)
    let known = try #require(try changes(since: common))
    #expect(known.first?.number == common.number + 1 && known.contains { $0.actions == [.restored] })
    #expect(known.suffix(5).allSatisfy { $0.changedKeys() == ["new"] })
    #expect(try changes(since: .beginning)?.isEmpty == false)
    try connection.perform { session in
      try session.connection.beginWrite(.normal)
      for _ in 0..<ChangeLog.maximumRowCount + 200 { try session.changeLog.append(ChangeSet(), time: 0, writer: 0) }
      try session.connection.commit()
    }
    let start = try #require(try connection.perform { try Metadata(connection: $0.connection).logStart() })
    let dropped = CommitPosition(start.number, start.link)
    #expect(try changes(since: dropped)?.first?.number == dropped.number + 1)
    for passed in [common, .beginning] { #expect(try changes(since: passed) == nil) }
  }

  @Test("2.7 are asked for with a position that is written as text")
  func positionText() throws {
    try connection.readWrite { try $0.setObject(1, forKey: "k") }
    let position = try connection.read { try $0.position() }
    #expect(CommitPosition(position.description) == position && CommitPosition("0") == .beginning)
    let number = try #require(CommitPosition("\(position.number)"))
    #expect(try connection.read { try $0.changes(since: number) } == nil)
    for text in [
      "", "-", "x", "+7", "-7", " 7", "7 ", "7-", "-00000000", "7-0000000", "7-000000000", "7-0000000g", "7-0000000A",
      "7-+0000000", "7-00000000-", "18446744073709551616", "7\n",
    ] {
      #expect(CommitPosition(text) == nil, "\(text)")
    }
  }

  @Test("end with the snapshot being read, without the changes of the transaction")
  func ownSnapshot() throws {
    let start = try commitNumber()
    let other = try database.makeConnection()
    try connection.beginLongLivedReadTransaction()
    try other.readWrite { try $0.setObject(1, forKey: "k") }
    #expect(try changes(since: start)?.count == 0)
    #expect(try changes(since: start + 1) == nil)
    let jumped = try connection.endLongLivedReadTransaction()
    #expect(try changes(since: start)?.map(\.number) == jumped.map(\.number))
    try connection.readWrite { transaction in
      try transaction.setObject(2, forKey: "k")
      #expect(try transaction.changes(since: start)?.count == 1)
    }
    try connection.writeWithoutTransaction { transaction in
      try transaction.setObject(3, forKey: "k")
      #expect(try transaction.changes(since: start)?.count == 3)
    }
  }

  @Test("name a removed collection, and an erased one")
  func clearedCollections() throws {
    for erases in [false, true] {
      try connection.readWrite { try $0.setObject(1, forKey: "k", inCollection: "gone") }
      let start = try commitNumber()
      try connection.readWrite { transaction in
        if erases {
          try transaction.erase(collection: "gone")
        } else {
          try transaction.removeAllObjects(inCollection: "gone")
        }
      }
      let commits = try #require(try changes(since: start))
      #expect(commits.map(\.scope) == [.collections(["gone"])])
      #expect(commits[0].actions.map(\.description) == (erases ? ["erased gone"] : []))
    }
  }

  @Test("say that any key may have changed if a collection is gone whose name is no longer known")
  func removedCollection() throws {
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k", inCollection: "gone")
      try transaction.setObject(1, forKey: "k", inCollection: "gone as well")
      try transaction.setObject(1, forKey: "k", inCollection: "kept")
    }
    let start = try commitNumber()
    try connection.readWrite { transaction in
      try transaction.setObject(2, forKey: "k", inCollection: "gone")
      try transaction.setObject(2, forKey: "k", inCollection: "kept")
    }
    try connection.readWrite { transaction in
      try transaction.erase(collection: "gone")
      // With two, the log does not say which is which.
      try transaction.erase(collection: "gone as well")
    }
    try connection.readWrite { try $0.setObject(3, forKey: "k", inCollection: "kept") }
    let commits = try #require(try changes(since: start))
    #expect(commits.map(\.scope) == [.keys, .everything, .keys])
    #expect(commits.map { $0.hasChange(forKey: "k", inCollection: "kept") } == [true, true, true])
    #expect(commits.hasChange(forKey: "k", inCollection: "gone"))
    #expect(commits.changedKeys(inCollection: "kept") == ["k"])

    let before = try commitNumber()
    try connection.readWrite { try $0.removeAllObjectsInAllCollections() }
    #expect(try changes(since: before)?.map(\.scope) == [.everything])
  }
}
