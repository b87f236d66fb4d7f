import CofferCompat
import CofferStorage
import Foundation
import Testing

@testable import Coffer

@Suite("Restoring an earlier value") struct RestoreTests {
  private let fixture: HistoryFixture
  private var connection: Connection { fixture.connection }

  init() throws {
    fixture = try HistoryFixture()
  }

  private func restore(_ version: Int64, forKey key: String = "k") throws {
    try connection.readWrite { try $0.restoreObject(forKey: key, inCollection: "kept", version: version) }
  }

  private func row() throws -> [String]? {
    try connection.read { transaction in
      try transaction.row(forKey: "k", inCollection: "kept", as: String.self, metadata: String.self)
        .map { [$0.object, $0.metadata ?? "-"] }
    }
  }

  @Test("is a new change, which keeps the current value in history")
  func restores() throws {
    let first = try fixture.set("a", "m")
    try fixture.set("b")
    try restore(first)
    #expect(try row() == ["a", "m"])
    #expect(try fixture.objects() == ["b", "a"])
    let version = try connection.read { try $0.version(forKey: "k", inCollection: "kept") }
    #expect(version == first + 2)
    // The present one is there already.
    try restore(version)
    #expect(try fixture.objects() == ["b", "a"])
    #expect(try connection.read { try $0.commitNumber() } == version)
  }

  @Test("brings back a removed key, also the oldest value of a full history")
  func removed() throws {
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(maximumCount: 2), forCollection: "kept") }
    for object in ["a", "b", "c"] { try fixture.set(object, object) }
    try fixture.set(nil)
    #expect(try fixture.objects() == ["c", "b"])
    let oldest = try #require(try fixture.history().last)
    try restore(oldest.version)
    #expect(try row() == ["b", "b"])
    try fixture.set("d")
    #expect(try fixture.objects() == ["b", "c"])
  }

  @Test("restores a future expiry, and drops a past one")
  func expiry() throws {
    let clock = fixture.database.core.clock
    clock.stop(at: 1000)
    let expiry = Date(milliseconds: 2500)
    try connection.readWrite { try $0.setObject("a", forKey: "k", inCollection: "kept", expires: expiry, due: expiry) }
    func info() throws -> ItemInfo? { try connection.read { try $0.info(forKey: "k", inCollection: "kept") } }
    let first = try #require(try info()?.version)
    try fixture.set("b")
    try restore(first)
    #expect(try row() == ["a", "-"] && info()?.expires == expiry && info()?.due == nil)
    clock.stop(at: 2500)
    #expect(try row() == nil)
    try restore(first)
    #expect(try row() == ["a", "-"] && info()?.expires == nil)
  }

  @Test("of a missing version is an error, and changes nothing")
  func unknown() throws {
    let first = try fixture.set("a")
    let before = try connection.read { try $0.commitNumber() }
    for version in [0, -1, first - 1, first + 1, .max] {
      #expect(throws: CofferError.versionNotFound(collection: "kept", key: "k", version: version)) {
        try restore(version)
      }
    }
    #expect(throws: CofferError.versionNotFound(collection: "kept", key: "absent", version: 0)) {
      try restore(0, forKey: "absent")
    }
    #expect(throws: CofferError.versionNotFound(collection: "none", key: "k", version: first)) {
      try connection.readWrite { try $0.restoreObject(forKey: "k", inCollection: "none", version: first) }
    }
    // The error leaves the transaction as it was.
    try connection.readWrite { transaction in
      try transaction.setObject("b", forKey: "l", inCollection: "kept")
      #expect(throws: CofferError.self) {
        try transaction.restoreObject(forKey: "k", inCollection: "kept", version: 1)
      }
    }
    #expect(try connection.read { try $0.commitNumber() } == before + 1)
    #expect(try row() == ["a", "-"])
  }

  @Test("is reported to observers and listeners like any change, with the old and new values")
  func told() throws {
    let journal = Journal()
    let observer = TestObserver("o", journal)
    let first = try fixture.set("a", "m")
    try fixture.set("b")
    let start = try connection.read { try $0.commitNumber() }
    fixture.database.add(transactionObserver: observer)
    try restore(first)
    #expect(
      journal.take() == ["o will k: b a, - m", "o updated k", "o willCommit", "o didCommit"])
    try fixture.set(nil)
    #expect(
      journal.take() == ["o will k: a -, m -", "o removed k", "o willCommit", "o didCommit"])
    try restore(first)
    #expect(journal.takeWithoutValues() == ["o inserted k", "o willCommit", "o didCommit"])
    // A change without effect is not reported, even with history.
    try connection.readWrite { try $0.setObject("a", forKey: "k", inCollection: "kept", withMetadata: "m") }
    #expect(journal.takeWithoutValues() == ["o willCommit", "o didCommit"])
    let commits = try #require(try connection.read { try $0.changes(since: start) })
    #expect(commits.map { $0.kind(forKey: "k", inCollection: "kept") } == [.updated, .removed, .inserted])
  }

  @Test("runs the collection's sanitizer, like any serialized value")
  func sanitized() throws {
    let first = try fixture.set("a")
    try fixture.set("b")
    var rules = CollectionRules()
    rules.objectSanitizer = { _, _, value in
      if case .string("a") = value { throw Refusal() }
      return value
    }
    fixture.database.setRules(rules, forCollection: "kept")
    #expect(throws: Refusal.self) { try restore(first) }
    #expect(try row() == ["b", "-"])
    #expect(try fixture.objects() == ["a"])
  }

  @Test("commits by itself if operations do")
  func withoutTransaction() throws {
    let first = try fixture.set("a")
    try fixture.set("b")
    try connection.writeWithoutTransaction { transaction in
      try transaction.restoreObject(forKey: "k", inCollection: "kept", version: first)
    }
    #expect(try row() == ["a", "-"])
  }
}
