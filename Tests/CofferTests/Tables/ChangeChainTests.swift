import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("The chain of the change log") struct ChangeChainTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
  }

  /// Changes by an attacker with the store's key and another program.
  private func execute(_ sql: String...) throws {
    try connection.perform { session in
      try session.connection.beginWrite(.full)
      for statement in sql { try session.connection.execute(statement) }
      try session.connection.commit()
    }
  }

  private func problems(of database: Database? = nil) throws -> [String] {
    try (database ?? self.database).verifyChangeLog().problems.map(\.description)
  }

  private func commit(_ count: Int, in collection: String = "c") throws {
    for number in 0..<count {
      try connection.readWrite { try $0.setObject(number, forKey: "k", inCollection: collection) }
    }
  }

  /// Appends rows as commits do, and faster.
  private func append(_ count: Int64) throws {
    try connection.perform { session in
      try session.connection.beginWrite(.normal)
      for _ in 0..<count { try session.changeLog.append(ChangeSet(), time: 0, writer: 0) }
      try session.connection.commit()
    }
  }

  // MARK: In good order

  @Test("7.4 is intact after all operations of a store: commits, forgotten collections, new keys, vacuum, backup")
  func whole() throws {
    try commit(3)
    try commit(2, in: "other")
    try connection.readWrite { transaction in
      transaction.actor = "Ada"
      try transaction.removeAllObjects(inCollection: "other")
    }
    try database.rotate()
    try database.rotate(newRootKeyFor: [store.key])
    try connection.vacuum()
    try commit(1)
    let report = try database.verifyChangeLog()
    #expect(report.problems.isEmpty && report.isChained && report.commits?.lowerBound == 0)
    #expect(report.count == (report.commits?.count ?? 0))
    #expect(try database.verify().problems.isEmpty)
    let copy = store.folder + "/copy.coffer"
    try database.backup(to: copy, key: store.key)
    #expect(try problems(of: Database.open(at: copy, key: store.key)).isEmpty)
    try connection.erase()
    #expect(try problems().isEmpty)
  }

  @Test("7.4 is intact after the oldest commits were dropped, because of number or size")
  func pruned() throws {
    try append(ChangeLog.maximumRowCount + 200)
    let report = try database.verifyChangeLog()
    #expect(report.problems.isEmpty && (report.commits?.lowerBound ?? 0) > 100)
    try connection.perform { session in
      var changes = ChangeSet()
      let key = String(repeating: "k", count: 100_000)
      changes.record(key, in: 1, .init(kind: .inserted, changesObject: true, changesMetadata: false))
      try session.connection.beginWrite(.normal)
      for _ in 0..<256 { try session.changeLog.append(changes, time: 0, writer: 0) }
      try session.connection.commit()
    }
    let later = try database.verifyChangeLog()
    #expect(later.problems.isEmpty && later.count < 1000)
  }

  @Test("7.4 is intact in an in-memory store, and after a salvage")
  func elsewhere() throws {
    let memory = try Database.inMemory()
    for number in 0..<3 { try memory.makeConnection().readWrite { try $0.setObject(number, forKey: "n") } }
    #expect(try memory.verifyChangeLog().isChained && problems(of: memory).isEmpty)
    try commit(3)
    try database.close()
    let saved = store.folder + "/saved.coffer"
    _ = try Database.salvage(at: store.path, key: store.key, to: saved, newKey: store.key)
    let salvaged = try Database.open(at: saved, key: store.key)
    try salvaged.makeConnection().readWrite { try $0.setObject(9, forKey: "n") }
    #expect(try problems(of: salvaged).isEmpty)
  }

  // MARK: Attacked

  @Test("7.4 detects commits removed from the middle, and names them")
  func takenOut() throws {
    try commit(8)
    try execute("DELETE FROM changes WHERE sequence = 4")
    #expect(try problems() == ["Commit 4 is missing from the change log."])
    try execute("DELETE FROM changes WHERE sequence = 5")
    #expect(try problems() == ["Commits 4 to 5 are missing from the change log."])
    #expect(try database.verify().problems.map(\.description) == ["Commits 4 to 5 are missing from the change log."])
    // The others moved up, so that no number is missing.
    try execute("UPDATE changes SET sequence = sequence - 2 WHERE sequence > 5")
    let count = try problems().count
    #expect(count == 4)
  }

  @Test(
    "7.4 detects any change in a commit",
    arguments: [
      "noise = zeroblob(16)", "time = time + 1", "writer = writer + 1", "author = 'somebody'", "author = NULL",
      "total = total + 1", "keys = x'00'", "link = zeroblob(16)", "rewritten = zeroblob(16)",
      "keys = x'00', rewritten = x''",
    ])
  func changed(_ change: String) throws {
    try commit(8)
    try execute("UPDATE changes SET \(change) WHERE sequence = 4")
    #expect(try problems().contains("Commit 4 in the change log, or one before it, was changed."))
  }

  @Test("7.4 detects commits removed from the beginning too early")
  func beginning() throws {
    try commit(8)
    try execute("DELETE FROM changes WHERE sequence < 4")
    #expect(try problems() == ["Commit 4 in the change log, or one before it, was changed."])
    // As dropping them would have it.
    try connection.perform { session in
      try session.connection.beginWrite(.full)
      let link = try session.connection.statement("SELECT link FROM changes WHERE sequence = 4").first { $0.bytes(0) }
      try Metadata(connection: session.connection).setLogStart(
        ChangeLog.End(sequence: 4, total: 0, link: try #require(link?.withUnsafeBytes(ChangeLink.init))))
      try session.connection.execute("DELETE FROM changes WHERE sequence = 4")
      try session.connection.commit()
    }
    #expect(
      try problems() == ["The commits up to 4 were removed from the change log too early."])
    try execute("UPDATE meta SET value = x'00' WHERE name = 'log_start'")
    #expect(throws: CofferError.damaged(part: "change log", reason: "its header does not parse")) {
      try problems()
    }
    #expect(try !database.verify().problems.isEmpty)
    try execute("DELETE FROM meta WHERE name = 'log_start'", "DELETE FROM changes")
    #expect(try problems() == ["The change log is empty."])
  }

  @Test("does not detect that a collection's list of keys was emptied: a limit that SECURITY.md names")
  func emptied() throws {
    try commit(8)
    func hasKeys() throws -> Bool {
      try connection.perform { session in
        try session.read { try session.connection.text(ofAllRowsIn: "changes").contains("k") }
      }
    }
    #expect(try hasKeys())
    // As removing the collection does; its item stays here.
    try connection.perform { session in
      try session.connection.beginWrite(.full)
      try session.changeLog.forget(session.collectionID("c"))
      try session.connection.commit()
    }
    #expect(try !hasKeys() && problems().isEmpty)
    #expect(try connection.read { try $0.object(forKey: "k", inCollection: "c", as: Int.self) } == 7)
  }

  @Test("7.4 detects a missing end of the log, and a rebuilt chain, if the newest link is remembered")
  func remembered() throws {
    let anchor = RecordedAnchor()
    let options = Database.Options.quiet.anchored(anchor)
    try database.close()
    let watched = try Database.open(at: store.path, key: store.key, options: options)
    for number in 0..<8 { try watched.makeConnection().readWrite { try $0.setObject(number, forKey: "n") } }
    try watched.close()
    func attack(_ body: (SQLiteConnection, ChangeLog) throws -> Void) throws {
      let attacker = try Database.open(at: store.path, key: store.key)
      try attacker.makeConnection().perform { session in
        try session.connection.beginWrite(.full)
        try body(session.connection, session.changeLog)
        try session.connection.commit()
      }
      #expect(try attacker.verifyChangeLog().problems.isEmpty)
      try attacker.close()
      #expect { try Database.open(at: store.path, key: store.key, options: options) } throws: {
        if case CofferError.rolledBack = $0 { true } else { false }
      }
    }
    let record = try #require(anchor.record)
    try attack { connection, _ in
      try connection.execute("DELETE FROM changes WHERE sequence = (SELECT max(sequence) FROM changes)")
    }
    // One commit is removed, and replaced by an invented one.
    try attack { connection, log in
      try connection.execute("DELETE FROM changes WHERE sequence > 5")
      for _ in 0..<8 { try log.append(ChangeSet(), time: 0, writer: 0, author: "nobody") }
    }
    #expect(anchor.record == record)
  }

  // MARK: Former versions

  /// Makes the tables those of the version before, which had no chain.
  private func makeFormer() throws {
    try connection.perform { session in
      try session.connection.beginWrite(.full)
      let number = try Schema.version(session.connection).number
      for sql in [
        "CREATE TEMP TABLE kept AS SELECT sequence, noise, time, writer, author, total, keys FROM changes",
        "DROP TABLE changes",
        """
        CREATE TABLE changes(
          sequence INTEGER PRIMARY KEY, noise BLOB NOT NULL, time INTEGER NOT NULL, writer INTEGER NOT NULL,
          author TEXT, total INTEGER NOT NULL, keys BLOB NOT NULL) STRICT
        """,
        "INSERT INTO changes SELECT * FROM kept", "DROP TABLE kept", "PRAGMA user_version = \(number - 3)",
      ] { try session.connection.execute(sql) }
      try session.connection.commit()
    }
  }

  private func version(_ database: Database) throws -> Int {
    try database.makeConnection().perform { try Schema.version($0.connection).number }
  }

  @Test("7.5 starts with the first write to a store of the previous version, which is readable until then")
  func former() throws {
    let settings = Settings(version: "1.0") { Key("port", default: 8080) }
    try Preferences(database: database, collection: "shop").declare(settings)
    try commit(8)
    let commits = try connection.read { try $0.rememberedCommits().map(\.snapshot) }
    try makeFormer()
    try database.close()
    let reader = try Database.open(at: store.path, key: store.key, options: .init(isReadOnly: true))
    #expect(try reader.makeConnection().read { try $0.rememberedCommits().map(\.snapshot) } == commits)
    #expect(try !reader.verifyChangeLog().isChained && problems(of: reader).isEmpty && version(reader) == 6)
    #expect(try reader.verify().problems.isEmpty)
    try reader.close()
    let (first, second) = (try store.open(), try store.open())
    let other = try second.makeConnection()
    #expect(try other.read { try $0.object(forKey: "k", inCollection: "c", as: Int.self) } == 7)
    // Nothing to commit, and so nothing changed.
    try first.makeConnection().readWrite { _ in }
    #expect(try version(first) == 6)
    try first.makeConnection().readWrite { try $0.setObject(8, forKey: "k", inCollection: "c") }
    try other.readWrite { try $0.setObject(9, forKey: "k", inCollection: "c") }
    for database in [first, second] {
      #expect(try database.verifyChangeLog().isChained && database.verify().problems.isEmpty && version(database) == 9)
    }
    #expect(try other.read { try $0.rememberedCommits().map(\.snapshot) }.prefix(commits.count) == commits[...])
    #expect(try other.read { try $0.declaredSettings() }.count == 1)
  }

  @Test("7.5 starts with a backup, a rotation, and a salvage of a store of the previous version")
  func formerCopied() throws {
    try commit(3)
    try makeFormer()
    try database.close()
    let old = try store.bytes()
    let saved = store.folder + "/saved.coffer"
    let report = try Database.salvage(at: store.path, key: store.key, to: saved, newKey: store.key)
    #expect(report.lostItems.isEmpty && report.damagedPages.isEmpty)
    let former = try store.open()
    let copy = store.folder + "/copy.coffer"
    try former.backup(to: copy, key: store.key)
    #expect(try version(former) == 5)
    try former.close()
    #expect(try store.bytes() == old)
    let rotated = try store.open()
    try rotated.rotate()
    for database in [
      rotated, try Database.open(at: copy, key: store.key), try Database.open(at: saved, key: store.key),
    ] {
      #expect(try version(database) == 8 && database.verify().problems.isEmpty)
    }
  }
}
