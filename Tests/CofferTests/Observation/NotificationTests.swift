import CofferCompat
import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import Coffer

/// What a handler heard, for a test that waits for it.
final class Heard: Sendable {
  private let notifications = Lock<[Commit]>([])
  private let arrivals = DispatchSemaphore(value: 0)

  func add(_ notification: Commit) {
    notifications.withLock { $0.append(notification) }
    arrivals.signal()
  }

  /// The first `count` notifications; fewer when they do not come within half a minute.
  func first(_ count: Int) -> [Commit] {
    for _ in 0..<count { if arrivals.wait(timeout: .now() + 30) == .timedOut { break } }
    return all
  }

  var all: [Commit] { notifications.withLock { $0 } }
}

@Suite("Notifications of commits") struct NotificationTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection
  private let heard = Heard()

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
  }

  private func listen() throws -> CommitRegistration {
    try database.onCommit { [heard] in heard.add($0) }
  }

  @Test("2.1 come once for each commit, in order, with snapshot, origin, changed keys and custom object")
  func contents() throws {
    try connection.readWrite { transaction in
      for key in ["updated", "removed", "touched"] { try transaction.setObject(1, forKey: key, inCollection: "c") }
    }
    let registration = try listen()
    defer { registration.cancel() }
    let other = try database.makeConnection()
    try connection.readWrite { transaction in
      try transaction.setObject(2, forKey: "inserted", inCollection: "c")
      try transaction.setObject(2, forKey: "updated", inCollection: "c")
      try transaction.removeObject(forKey: "removed", inCollection: "c")
      try transaction.touchRow(forKey: "touched", inCollection: "c")
      transaction.notificationCustomObject = "because"
    }
    try other.readWrite { try $0.setObject(3, forKey: "k") }
    #expect(try store.worker("insert", "x", "2").status == 0)

    let notifications = heard.first(4)
    #expect(notifications.map(\.number) == [2, 3, 4, 5].map { $0 + notifications[0].number - 2 })
    #expect(notifications.map(\.origin) == [.connection(connection.id), .connection(other.id), .elsewhere, .elsewhere])
    #expect(notifications[0].changedKeys(inCollection: "c") == ["inserted", "removed", "touched", "updated"])
    #expect(notifications[0].kind(forKey: "inserted", inCollection: "c") == .inserted)
    #expect(notifications[0].kind(forKey: "updated", inCollection: "c") == .updated)
    #expect(notifications[0].kind(forKey: "removed", inCollection: "c") == .removed)
    #expect(notifications[0].kind(forKey: "touched", inCollection: "c") == .touched)
    #expect(notifications[0].customObjects as? [String] == ["because"])
    #expect(notifications[1].changedCollections == [""])
    #expect(notifications[3].changedKeys(inCollection: "numbers") == ["x1"])
  }

  @Test("2.2 do not come for commits without effect, for rollbacks, or for removing absent keys")
  func withoutEffect() throws {
    try connection.readWrite { try $0.setObject(1, forKey: "k") }
    let registration = try listen()
    defer { registration.cancel() }
    let snapshot = try connection.read { try $0.commitNumber() }
    try connection.readWrite { try $0.setObject(1, forKey: "k") }
    try connection.readWrite { transaction in
      try transaction.setObject(2, forKey: "k")
      transaction.rollback()
    }
    try connection.readWrite { try $0.removeObject(forKey: "none") }
    try connection.readWrite { try $0.removeAllObjects(inCollection: "none") }
    try connection.readWrite { try $0.touchObject(forKey: "none") }
    try connection.readWrite { try $0.setObject(3, forKey: "k") }
    #expect(heard.first(1).map(\.number) == [snapshot + 1])
  }

  @Test("2.3 report what changed: collections, keys, objects, metadata, and what was cleared")
  func questions() throws {
    try connection.readWrite { transaction in
      for key in ["a", "b"] { try transaction.setObject(1, forKey: key, inCollection: "cleared", withMetadata: 1) }
      try transaction.setObject(1, forKey: "k", withMetadata: 1)
      try transaction.setObject(1, forKey: "gone")
    }
    let registration = try listen()
    defer { registration.cancel() }
    try connection.readWrite { try $0.replaceMetadata(2, forKey: "k") }
    try connection.readWrite { try $0.replaceObject(2, forKey: "k") }
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "c", inCollection: "cleared")
      try transaction.removeAllObjects(inCollection: "cleared")
      try transaction.setObject(1, forKey: "d", inCollection: "cleared")
      try transaction.removeObject(forKey: "gone")
    }
    try connection.readWrite { try $0.removeAllObjectsInAllCollections() }
    let notifications = heard.first(4)
    let (metadata, object, clearing, all) = (notifications[0], notifications[1], notifications[2], notifications[3])

    #expect(metadata.hasChange(forKey: "k", of: .metadata) && !metadata.hasChange(forKey: "k", of: .object))
    #expect(object.hasChange(forKey: "k", of: .object) && !object.hasChange(forKey: "k", of: .metadata))
    #expect(!metadata.hasChange(inCollection: "cleared") && metadata.hasChange(inCollection: "", of: .metadata))
    #expect(clearing.hasChange(forKey: "gone", of: .object) && clearing.hasChange(forKey: "gone", of: .metadata))
    #expect(clearing.hasChange(forAnyOf: ["none", "gone"]) && !clearing.hasChange(forAnyOf: ["none", "k"]))
    // Cleared: each key that was in it, listed or not.
    #expect(clearing.didClear(collection: "cleared") && !clearing.didClear(collection: ""))
    #expect(clearing.scope == .collections(["cleared"]) && metadata.scope == .keys && all.scope == .everything)
    #expect(clearing.hasChange(forKey: "a", inCollection: "cleared"))
    #expect(clearing.changedKeys(inCollection: "cleared") == ["a", "b", "c", "d"])
    #expect(clearing.kind(forKey: "b", inCollection: "cleared") == .removed)
    #expect(clearing.kind(forKey: "d", inCollection: "cleared") == .inserted)
    #expect(all.didClearAllCollections && all.didClear(collection: "any") && all.hasChange(forKey: "any"))
    #expect(all.changedKeys() == ["k"])
    #expect(notifications.didClear(collection: "cleared") && notifications.hasChange(inCollection: "cleared"))
  }

  @Test("2.3 of another process name the collection that was cleared")
  func clearedElsewhere() throws {
    try connection.readWrite { try $0.setObject(1, forKey: "k", inCollection: "numbers") }
    let registration = try listen()
    defer { registration.cancel() }
    #expect(try store.worker("clear", "numbers").status == 0)
    let notification = try #require(heard.first(1).first)
    #expect(notification.didClear(collection: "numbers"))
    #expect(notification.hasChange(forKey: "k", inCollection: "numbers"))
    #expect(notification.origin == .elsewhere)
  }

  @Test("2.4 list each changed key once across several")
  func once() throws {
    let registration = try listen()
    defer { registration.cancel() }
    for number in 0..<3 {
      try connection.readWrite { transaction in
        try transaction.setObject(number, forKey: "same")
        try transaction.setObject(number, forKey: "\(number)")
      }
    }
    #expect(heard.first(3).changedKeys() == ["0", "1", "2", "same"])
  }

  @Test("2.5 are a sequence too, filtered by collection, key or prefix")
  func sequence() async throws {
    var all = try database.commits().makeAsyncIterator()
    var collection = try database.commits(inCollection: "c").makeAsyncIterator()
    var key = try database.commits(inCollection: "c", key: "a.1").makeAsyncIterator()
    var prefix = try database.commits(inCollection: "c", prefix: "a.").makeAsyncIterator()
    for (name, item) in [("other", "x"), ("c", "b"), ("c", "a.2"), ("c", "a.1")] {
      try await connection.readWrite { try $0.setObject(1, forKey: item, inCollection: name) }
    }
    #expect(await all.next()?.changedCollections == ["other"])
    #expect(await collection.next()?.changedKeys(inCollection: "c") == ["b"])
    #expect(await key.next()?.changedKeys(inCollection: "c") == ["a.1"])
    #expect(await prefix.next()?.changedKeys(inCollection: "c") == ["a.2"])
    #expect(await prefix.next()?.changedKeys(inCollection: "c") == ["a.1"])
    try await database.close()
    #expect(await key.next() == nil)
  }

  @Test("2.5 for a key or a prefix without a collection are those of the default collection")
  func sequenceOfDefaultCollection() async throws {
    var key = try database.commits(key: "a.1").makeAsyncIterator()
    var prefix = try database.commits(prefix: "a.").makeAsyncIterator()
    for (name, item) in [("other", "a.1"), ("", "b"), ("", "a.1")] {
      try await connection.readWrite { try $0.setObject(1, forKey: item, inCollection: name) }
    }
    #expect(await key.next()?.changedKeys() == ["a.1"])
    #expect(await prefix.next()?.changedKeys() == ["a.1"])
  }

  @Test("2.5 are merged for a slow consumer, which misses no key")
  func slowConsumer() async throws {
    let commits = try database.commits()
    let registration = try listen()
    for number in 0..<300 { try await connection.readWrite { try $0.setObject(number, forKey: "\(number)") } }
    // All have been handed out, and the consumer took none.
    #expect(heard.first(300).count == 300)
    registration.cancel()
    var keys = Set<String>()
    var count = 0
    for await notification in commits {
      count += 1
      keys.formUnion(notification.changedKeys())
      if keys.count == 300 { break }
    }
    #expect(keys.count == 300)
    #expect(count < 100)
  }

  @Test("2.5 end for a consumer whose task is cancelled")
  func cancelledConsumer() async throws {
    let commits = try database.commits()
    let task = Task {
      for await _ in commits {}
      return true
    }
    task.cancel()
    #expect(await task.value)
  }

  @Test("2.6 of other processes arrive without polling, and none is lost")
  func otherProcesses() throws {
    let registration = try listen()
    defer { registration.cancel() }
    let workers = try ["a", "b"].map { try store.startWorker("insert", $0, "100") }
    for worker in workers { worker.end() }
    let notifications = heard.first(200)
    #expect(notifications.changedKeys(inCollection: "numbers").count == 200)
    let snapshots = notifications.map(\.number)
    #expect(snapshots == Array(snapshots[0]..<snapshots[0] + 200))
  }

  @Test("2.6 say that anything may have changed if the change log is no longer complete")
  func trimmed() throws {
    let registration = try listen()
    defer { registration.cancel() }
    try connection.perform { session in
      try session.connection.beginWrite(.normal)
      for _ in 0..<3 { try ChangeLog(connection: session.connection).append(ChangeSet(), time: 0, writer: 0) }
      let last = try ChangeLog(connection: session.connection).lastNumber()
      let statement = try session.connection.statement("DELETE FROM changes WHERE sequence < ?")
      statement.bind(last, at: 1)
      try statement.run()
      try session.connection.commit()
      session.connection.announceCommit()
    }
    #expect(heard.first(1).map(\.scope) == [.everything])
  }

  @Test("also arrive in memory")
  func inMemory() throws {
    let database = try Database.inMemory()
    let registration = try database.onCommit { [heard] in heard.add($0) }
    defer { registration.cancel() }
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "k") }
    #expect(heard.first(1).changedKeys() == ["k"])
  }

  @Test("end with their registration, and a handler may close the database")
  func ending() throws {
    let registration = try listen()
    try connection.readWrite { try $0.setObject(1, forKey: "k") }
    #expect(heard.first(1).count == 1)
    registration.cancel()
    let closed = DispatchSemaphore(value: 0)
    let closing = try database.onCommit { [database] _ in
      try? database.close()
      closed.signal()
    }
    defer { closing.cancel() }
    try connection.readWrite { try $0.setObject(2, forKey: "k") }
    #expect(closed.wait(timeout: .now() + 30) == .success)
    #expect(throws: CofferError.closed) { try connection.read { _ in } }
    #expect(heard.all.count == 1)
  }
}
