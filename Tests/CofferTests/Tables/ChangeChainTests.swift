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

  @Test("7.4 is intact after all operations of a store: commits, erased collections, new keys, vacuum, backup")
  func whole() throws {
    try commit(3)
    try commit(2, in: "other")
    try connection.readWrite { transaction in
      transaction.actor = "Ada"
      try transaction.removeAllObjects(inCollection: "other")
    }
    try commit(2, in: "erased")
    try connection.readWrite { try $0.erase(collection: "erased") }
    try database.rotate()
    try database.rotate(newRootKeyFor: [store.key])
    try connection.vacuum()
    try commit(1)
    let report = try database.verifyChangeLog()
    #expect(report.problems.isEmpty && report.emptiedCount == 2 && report.commits?.lowerBound == 0)
    #expect(report.count == (report.commits?.count ?? 0))
    #expect(try database.verify().problems.isEmpty)
    let copy = store.folder + "/copy.coffer"
    try database.backup(to: copy, key: store.key)
    #expect(try problems(of: Database.open(at: copy, key: store.key)).isEmpty)
    try connection.erase()
    let after = try database.verifyChangeLog()
    #expect(after.problems.isEmpty && after.emptiedCount == 8 && after.erasures.count == 2)
    #expect(after.recordedCommit == nil)
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
    #expect(try problems(of: memory).isEmpty)
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
      "total = total + 1", "keys = x'00'", "link = zeroblob(16)", "digest = zeroblob(16)", "digest = x''",
      "digest = zeroblob(32)", "action = 'slot 0 added'", "noise = zeroblob(17)", "keys = x''",
      // The list emptied, of another collection, or said to have been cleared.
      "keys = x'00020200'", "keys = x'00010300'", "keys = x'00010700'",
      // Another key; another kind of change to it; it expired.
      "keys = x'000100010d016c'", "keys = x'000100010c016b'", "keys = x'000100011e016b0000000000000000'",
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
    // As dropping them would have it: with the true total, and with one as if the rows had been too large.
    let end = try connection.perform { session in
      try session.connection.statement("SELECT total, link FROM changes WHERE sequence = 4").first { row in
        ChangeLog.End(number: 4, total: row.integer(0), link: try #require(row.withBytes(1) { ChangeLink($0) }))
      }
    }
    let dropped = try #require(end)
    try execute("DELETE FROM changes WHERE sequence = 4")
    func start(after end: ChangeLog.End) throws {
      try connection.perform { session in
        try session.connection.beginWrite(.full)
        try Metadata(connection: session.connection).setLogStart(end)
        try session.connection.commit()
      }
    }
    let tooEarly = "The commits up to 4 were removed from the change log too early."
    try start(after: dropped)
    #expect(try problems() == [tooEarly])
    try start(after: ChangeLog.End(number: 4, total: dropped.total - 5 << 20, link: dropped.link))
    #expect(try problems() == ["Commit 5 in the change log, or one before it, was changed.", tooEarly])
    try execute("UPDATE meta SET value = x'00' WHERE name = 'log_start'")
    #expect(throws: CofferError.damaged(part: "change log", reason: "its header does not parse")) {
      try problems()
    }
    #expect(try !database.verify().problems.isEmpty)
    try execute("DELETE FROM meta WHERE name = 'log_start'", "DELETE FROM changes")
    #expect(try problems() == ["The change log is empty."])
  }

  @Test("7.4 detects a commit that says it is larger than it is, as if the oldest had been dropped for their size")
  func forgedTotal() throws {
    try commit(8)
    /// A whole chain, as only the totals tell.
    func rebuild(_ totals: [Int64]) throws {
      try connection.perform { session in
        let (connection, chain) = (session.connection, ChangeChain())
        try connection.beginWrite(.full)
        try connection.execute("DELETE FROM changes")
        let link = try #require([UInt8](repeating: 7, count: 16).withUnsafeBytes { ChangeLink($0) })
        var end = ChangeLog.End(number: 64 - Int64(totals.count), total: totals[0] - 1, link: link)
        try Metadata(connection: connection).setLogStart(end)
        for total in totals {
          let noise = [UInt8](repeating: 1, count: 16)
          let row = ChangeChain.Row(
            number: end.number + 1, noise: noise, time: 1, writer: 1, author: nil, action: nil, total: total)
          let seal = try chain.seal(row, [0], after: end)
          try connection.execute(
            """
            INSERT INTO changes VALUES (\(row.number), x'\(HexText.text(row.noise))', 1, 1, NULL, \(total),
            x'', NULL, x'\(HexText.text(seal.link.bytes))', x'00')
            """)
          end = ChangeLog.End(number: row.number, total: total, link: seal.link)
        }
        try connection.commit()
      }
    }
    for total in [Int64(5) << 20, .max, 0, -1, .min] {
      try rebuild([1, 2, total])
      let problem = "Commit 64 in the change log says that it is larger or smaller than it is."
      #expect(try problems().contains(problem), "\(total)")
      #expect(try !database.verify().problems.isEmpty)
    }
    try rebuild([1, 2, 3])
    #expect(try problems() == ["The commits up to 61 were removed from the change log too early."])
  }

  @Test("7.4 detects that a collection's list of keys was emptied, unless a later commit erased the collection")
  func emptied() throws {
    try commit(8)
    try commit(2, in: "other")
    func hasKeys() throws -> Bool {
      try connection.perform { session in
        try session.read { try session.connection.text(ofAllRowsIn: "changes").contains("k") }
      }
    }
    // As erasing the collection does, without saying so.
    try connection.perform { session in
      try session.connection.beginWrite(.full)
      try session.changeLog.forget(session.collectionID("c"))
      try session.connection.commit()
    }
    let first = try connection.read { try $0.version(forKey: "k", inCollection: "c") } - 7
    let problem =
      "Keys were taken out of commit \(first) in the change log, and no later commit erased collection 1."
    #expect(try problems() == [problem])
    // The erasure of another collection does not explain it; its own does.
    try connection.readWrite { try $0.erase(collection: "other") }
    #expect(try problems() == [problem])
    try connection.readWrite { transaction in
      transaction.actor = "Mallory"
      try transaction.erase(collection: "c")
    }
    #expect(try problems().isEmpty && !hasKeys())
    let last = try #require(try connection.read { try $0.rememberedCommits() }.last)
    #expect(last.author?.actor == "Mallory" && last.actions.map(\.description) == ["erased c"])
    #expect(last.isCleared("c"))
    let report = try database.verifyChangeLog()
    #expect(report.emptiedCount == 10 && report.erasures.last == last.number && report.erasures.count == 2)
    // The commit that erased them cannot go either, nor lose what it says.
    try execute("UPDATE changes SET keys = x'00010300' WHERE sequence = \(last.number)")
    #expect(try !problems().isEmpty)
  }

  @Test("7.4 detects everything but an emptied list: the keys of other collections in the same commit stay as they are")
  func others() throws {
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "gone", inCollection: "a")
      try transaction.setObject(1, forKey: "stays", inCollection: "b")
    }
    try connection.readWrite { try $0.erase(collection: "a") }
    #expect(try problems().isEmpty)
    let hasKey = "instr(keys, CAST('stays' AS BLOB))"
    try execute("UPDATE changes SET keys = CAST(replace(keys, 'stays', 'faked') AS BLOB) WHERE \(hasKey)")
    #expect(try problems().count == 1)
  }

  @Test("7.4 is vouched for by nothing outside once the remembered commit has left the log, and says so")
  func passed() throws {
    let anchor = RecordedAnchor()
    let options = Database.Options.quiet.anchored(anchor)
    try database.close()
    let watched = try Database.open(at: store.path, key: store.key, options: options)
    try watched.makeConnection().readWrite { try $0.setObject(1, forKey: "n") }
    let known = try #require(try watched.verifyChangeLog().recordedCommit)
    try watched.close()
    let other = try store.open()
    try other.makeConnection().perform { session in
      try session.connection.beginWrite(.normal)
      for _ in 0..<(ChangeLog.maximumRowCount + 200) { try session.changeLog.append(ChangeSet(), time: 0, writer: 0) }
      try session.connection.commit()
    }
    try other.close()
    let again = try Database.open(at: store.path, key: store.key, options: options)
    let report = try again.verifyChangeLog()
    #expect(report.problems.isEmpty && report.recordedCommit == nil && report.passedCommit == known)
    // The next commit is remembered, with all before it.
    try again.makeConnection().readWrite { try $0.setObject(2, forKey: "n") }
    let later = try again.verifyChangeLog()
    #expect(later.recordedCommit == later.commits?.upperBound && later.passedCommit == nil)
    try again.close()
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
    let again = try Database.open(at: store.path, key: store.key, options: options)
    let report = try again.verifyChangeLog()
    #expect(report.recordedCommit == report.commits?.upperBound && report.problems.isEmpty)
    try again.close()
    try attack { connection, _ in
      try connection.execute("DELETE FROM changes WHERE sequence = (SELECT max(sequence) FROM changes)")
    }
    // One commit is removed, and replaced by an invented one.
    try attack { connection, log in
      try connection.execute("DELETE FROM changes WHERE sequence > 5")
      for _ in 0..<8 { try log.append(ChangeSet(), time: 0, writer: 0, author: "nobody") }
    }
    // The first commits are removed, up to the remembered one and beyond: the log begins like a salvaged one.
    try attack { _, log in try log.begin(after: log.lastNumber() + 100) }
    #expect(anchor.record == record)
  }
}
