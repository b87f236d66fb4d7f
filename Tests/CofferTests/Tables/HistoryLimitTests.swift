import CofferCompat
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Collections that keep history") struct HistoryLimitTests {
  private let fixture: HistoryFixture
  private var connection: Connection { fixture.connection }

  init() throws {
    fixture = try HistoryFixture(nil)
  }

  private func limits(_ connection: Connection? = nil) throws -> HistoryLimits? {
    try (connection ?? self.connection).read { try $0.historyLimits(forCollection: "kept") }
  }

  private func setLimits(_ limits: HistoryLimits?) throws {
    try connection.readWrite { try $0.setHistoryLimits(limits, forCollection: "kept") }
  }

  @Test("are known to other connections and processes, and after reopening")
  func stored() throws {
    let exact = HistoryLimits(maximumCount: 3, maximumAge: .milliseconds(86_400_001))
    for limits in [HistoryLimits(), exact, HistoryLimits(maximumCount: .max, maximumAge: nil)] {
      try setLimits(limits)
      #expect(try self.limits() == limits)
      #expect(try self.limits(fixture.database.makeConnection()) == limits)
    }
    #expect(exact.maximumAge == .milliseconds(86_400_001) && HistoryLimits(maximumAge: nil).maximumAge == nil)
    #expect(HistoryLimits(maximumAge: .nanoseconds(1)).maximumAge == .milliseconds(1))
    try setLimits(HistoryLimits(maximumCount: .max, maximumAge: .seconds(Int64.max)))
    for object in ["a", "b", "c"] { try fixture.set(object) }
    #expect(try fixture.objects() == ["b", "a"])

    // This process says it, the other one keeps it; and the other way round.
    try connection.readWrite { try $0.setHistoryLimits(exact, forCollection: "counters") }
    #expect(try fixture.store.worker("increment", "n", "5").status == 0)
    let values = try connection.read { try $0.history(forKey: "n", inCollection: "counters") }.map(\.value)
    #expect(values == [.int(4), .int(3), .int(2)])
    #expect(try fixture.store.worker("keep-history", "theirs", "2").status == 0)
    try connection.readWrite { try $0.setObject("third", forKey: "there", inCollection: "theirs") }
    #expect(try connection.read { try $0.historyLimits(forCollection: "theirs") } == HistoryLimits())
    #expect(try connection.read { try $0.allKeysWithHistory(inCollection: "theirs") } == ["gone", "there"])
    let theirs = try connection.read { try $0.history(forKey: "there", inCollection: "theirs") }
    #expect(theirs.map(\.text) == ["second", "first"])
    try fixture.database.close()
    let again = try fixture.store.open().makeConnection()
    #expect(try again.read { try $0.historyLimits(forCollection: "counters") } == exact)
    #expect(try again.read { try $0.history(forKey: "n", inCollection: "counters") }.count == 3)
  }

  @Test("are declared by a separate commit that changes no key; repeating it is not a commit")
  func commits() throws {
    let heard = Journal()
    let isHeard = DispatchSemaphore(value: 0)
    let registration = try fixture.database.onCommit { commit in
      heard.note("\(commit.changedCollections)")
      if commit.hasChange(forKey: "last") { isHeard.signal() }
    }
    let start = try connection.read { try $0.commitNumber() }
    try setLimits(HistoryLimits())
    #expect(try connection.read { try $0.commitNumber() } == start + 1)
    try setLimits(HistoryLimits())
    try connection.readWrite { try $0.setHistoryLimits(nil, forCollection: "none") }
    #expect(try connection.read { try $0.commitNumber() } == start + 1)
    let commit = try #require(try connection.read { try $0.changes(since: start) }?.first)
    #expect(commit.changedCollections.isEmpty && !commit.hasChange(inCollection: "kept"))
    #expect(try connection.read { try $0.allCollections() }.isEmpty)

    try connection.readWrite { transaction in
      try transaction.inSavepoint {
        try transaction.setHistoryLimits(HistoryLimits(), forCollection: "other")
        #expect(try transaction.historyLimits(forCollection: "other") != nil)
        return .rollback
      }
      #expect(try transaction.historyLimits(forCollection: "other") == nil)
    }
    #expect(try connection.read { try $0.commitNumber() } == start + 1)
    try setLimits(nil)
    #expect(try connection.read { try $0.commitNumber() } == start + 2)
    try connection.readWrite { try $0.setObject(1, forKey: "last") }
    isHeard.wait()
    registration.cancel()
    #expect(heard.take() == ["[]", "[]", #"[""]"#])
  }

  @Test("immediately drop what lower limits do not allow, and nothing when turned off")
  func lowered() throws {
    try setLimits(HistoryLimits(maximumCount: 10, maximumAge: nil))
    for (time, number) in zip([1000, 2000, 3000, 4000, 5000] as [Int64], 0...) {
      try connection.setTime(time)
      for key in ["k", "l"] { try fixture.set("\(number)", forKey: key) }
    }
    try setLimits(HistoryLimits(maximumCount: 3, maximumAge: nil))
    for key in ["k", "l"] { #expect(try fixture.objects(forKey: key) == ["3", "2", "1"]) }
    try setLimits(HistoryLimits(maximumCount: 3, maximumAge: .seconds(1000)))
    for key in ["k", "l"] { #expect(try fixture.objects(forKey: key) == ["3", "2"]) }
    try setLimits(nil)
    for key in ["k", "l"] { #expect(try fixture.objects(forKey: key) == ["3", "2"]) }
    try fixture.set("x")
    #expect(try fixture.objects() == ["3", "2"])
    #expect(try limits() == nil)
    // Erasing is another word, and is in the log.
    let start = try connection.read { try $0.commitNumber() }
    for _ in 0..<2 { try connection.readWrite { try $0.eraseHistory(ofCollection: "kept") } }
    #expect(try fixture.rowCount() == 0)
    let commits = try #require(try connection.read { try $0.changes(since: start) })
    #expect(commits.map { $0.actions.map(\.description) } == [["erased the history of kept"]])
    // Begun again, it starts with what is there then.
    try setLimits(HistoryLimits())
    try fixture.set("y")
    #expect(try fixture.objects() == ["x"])
  }

  @Test("leave no trace when their collection is erased, their limits included", arguments: [true, false])
  func erased(_ isAlone: Bool) throws {
    try connection.readWrite { transaction in
      try transaction.setHistoryLimits(HistoryLimits(), forCollection: "its name")
      try transaction.setObject("forgotten value", forKey: "forgotten key", inCollection: "its name")
    }
    try connection.readWrite { transaction in
      try transaction.setObject("x", forKey: "forgotten key", inCollection: "its name")
      #expect(try transaction.history(forKey: "forgotten key", inCollection: "its name").count == 1)
    }
    if isAlone {
      try connection.readWrite { try $0.erase(collection: "its name") }
    } else {
      try connection.erase()
    }
    try connection.perform { session in
      for table in ["collections", "items", "history", "changes", "meta"] {
        let found = try session.connection.text(ofAllRowsIn: table)
        #expect(!found.contains("forgotten"), "\(table) still holds it")
      }
    }
    #expect(try fixture.rowCount() == 0)
    #expect(try connection.read { try $0.historyLimits(forCollection: "its name") } == nil)
  }

  @Test("stay when all keys of their collection are removed, of which the last values are kept", arguments: 0..<3)
  func removedTogether(_ way: Int) throws {
    try setLimits(HistoryLimits(maximumCount: 2))
    for (key, values) in [("a", ["1", "2", "3"]), ("b", ["x"]), ("c", [])] {
      for value in values { try fixture.set(value, forKey: key) }
    }
    try connection.readWrite { transaction in
      transaction.actor = "Ada"
      // Never seen by anyone else, and so not kept.
      try transaction.setObject("c", forKey: "c", inCollection: "kept")
      switch way {
      case 0: try transaction.removeAllObjects(inCollection: "kept")
      case 1: try transaction.removeAllObjectsInAllCollections()
      default: try transaction.removeObjects(forKeys: ["a", "b", "c"], inCollection: "kept")
      }
    }
    #expect(try limits() == HistoryLimits(maximumCount: 2))
    #expect(try fixture.objects(forKey: "a") == ["3", "2"] && fixture.objects(forKey: "b") == ["x"])
    #expect(try fixture.objects(forKey: "c").isEmpty)
    let last = try #require(try connection.read { try $0.history(forKey: "a", inCollection: "kept").first })
    #expect(last.endedBy?.actor == "Ada")
    #expect(try connection.read { try $0.allCollections() }.isEmpty)
    #expect(try fixture.database.verify().problems.isEmpty)
  }

  @Test("are known in a read-only store, and included in a backup")
  func readOnlyAndBackup() throws {
    try setLimits(HistoryLimits())
    try fixture.set("a")
    try fixture.set("b")
    let path = "\(fixture.store.folder)/copy"
    try fixture.database.backup(to: path, key: fixture.store.key)
    try fixture.database.close()
    for path in [fixture.store.path, path] {
      let reader = try Database.open(at: path, key: fixture.store.key, options: .init(isReadOnly: true))
        .makeConnection()
      #expect(try reader.read { try $0.history(forKey: "k", inCollection: "kept") }.map(\.text) == ["a"])
      #expect(try limits(reader) == HistoryLimits())
      #expect(throws: CofferError.readOnly) {
        try reader.readWrite { try $0.setHistoryLimits(nil, forCollection: "kept") }
      }
    }
  }

  @Test("work in memory as on disk")
  func inMemory() throws {
    let connection = try Database.inMemory().makeConnection()
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(maximumCount: 2), forCollection: "kept") }
    for object in ["a", "b", nil, "c", "d"] {
      try connection.readWrite { try $0.setObject(object, forKey: "", inCollection: "kept") }
    }
    #expect(try connection.read { try $0.history(forKey: "", inCollection: "kept") }.map(\.text) == ["c", "b"])
    try connection.readWrite { transaction in
      let oldest = try #require(try transaction.history(forKey: "", inCollection: "kept").last)
      try transaction.restoreObject(forKey: "", inCollection: "kept", version: oldest.version)
    }
    #expect(try connection.read { try $0.object(forKey: "", inCollection: "kept") } == "b")
  }

  @Test("with invalid limits are damaged")
  func damaged() throws {
    try setLimits(HistoryLimits())
    try connection.perform { try $0.connection.execute("UPDATE collections SET history_count = 0") }
    #expect {
      try fixture.set("a")
    } throws: { error in
      if case CofferError.damaged("collections", _) = error { true } else { false }
    }
  }
}
