import CofferCrypto
import CofferStorage
import Dispatch
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Closing a database") struct ClosingTests {
  private func reopened(_ store: TemporaryStore, _ key: String, in collection: String = "") throws -> Int? {
    let database = try store.open()
    defer { try? database.close() }
    return try database.makeConnection().read { try $0.object(forKey: key, inCollection: collection) }
  }

  @Test(
    "flushes the pending changes of its proxies, whatever their policy, including released ones",
    arguments: [ConnectionProxy.FlushPolicy.immediately, .after(.seconds(3600)), .manually])
  func flushes(_ policy: ConnectionProxy.FlushPolicy) throws {
    for round in 0..<20 {
      let store = try TemporaryStore()
      let database = try store.open()
      let proxy = try ConnectionProxy(database: database, flushPolicy: policy)
      try ConnectionProxy(database: database, flushPolicy: policy).setObject(round, forKey: "released")
      for key in 0..<50 { try proxy.setObject(round, forKey: "\(key)") }
      try database.close()
      #expect(try reopened(store, "49") == round)
      #expect(try reopened(store, "released") == round)
    }
  }

  @Test("makes everything on its proxies and preferences throw .closed, even for values in memory")
  func everythingThrows() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let proxy = try ConnectionProxy(database: database)
    let preferences = try Preferences(database: database, collection: "test")
    try proxy.setObject(1, forKey: "a")
    try preferences.set(1, forKey: "a")
    #expect(try proxy.object(forKey: "a") == 1)
    try database.close()
    #expect(throws: CofferError.closed) { try proxy.object(forKey: "a", as: Int.self) }
    #expect(throws: CofferError.closed) { try proxy.hasObject(forKey: "a") }
    #expect(throws: CofferError.closed) { try proxy.allKeys() }
    #expect(throws: CofferError.closed) { try proxy.setObject(2, forKey: "a") }
    #expect(throws: CofferError.closed) { try proxy.removeObject(forKey: "a") }
    #expect(throws: CofferError.closed) { try proxy.removeAllObjects(inCollection: "") }
    #expect(throws: CofferError.closed) { try proxy.discardPendingChanges() }
    #expect(throws: CofferError.closed) { try proxy.performBatch { try $0.setObject(2, forKey: "a") } }
    #expect(throws: CofferError.closed) { try preferences.set(2, forKey: "a") }
    #expect(throws: CofferError.closed) { try preferences.throwing.value(forKey: "a") }
    #expect(throws: CofferError.closed) { try ConnectionProxy(database: database) }
    try database.close()
    #expect(try reopened(store, "a") == 1)
  }

  @Test("leaves it open if a flush fails: nothing is lost, and closing works once the disk does")
  func failingFlush() throws {
    let store = try TemporaryStore()
    let database = try store.open(busyTimeout: .milliseconds(1))
    let first = try ConnectionProxy(database: database, flushPolicy: .manually)
    let second = try ConnectionProxy(database: database, flushPolicy: .manually)
    let other = try store.open()
    try other.makeConnection().readWrite { _ in
      try first.setObject(1, forKey: "first")
      try second.setObject(1, forKey: "second")
      #expect(throws: CofferError.busy) { try database.close() }
      #expect(try first.object(forKey: "first") == 1)
      try first.setObject(2, forKey: "first")
      try second.setObject(2, forKey: "second")
    }
    try database.close()
    #expect(try reopened(store, "first") == 2)
    #expect(try reopened(store, "second") == 2)
  }

  @Test("releases the store and its keys: while something refers to the database, it can be removed and restored")
  func releases() async throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let backup = "\(store.folder)/backup.coffer"
    try await database.backup(to: backup, key: store.key)
    let proxy = try ConnectionProxy(database: database)
    try proxy.setObject(1, forKey: "a")
    #expect(throws: CofferError.busy) { try Database.remove(at: store.path) }
    weak let keys = try database.storeOnDisk()
    try await database.close()
    #expect(keys == nil)
    #expect(throws: CofferError.closed) { try database.storeOnDisk() }
    #expect(throws: CofferError.closed) { try database.makeConnection() }
    try await Database.restore(at: store.path, from: backup, key: store.key)
    try Database.remove(at: store.path)
    withExtendedLifetime((database, proxy)) {}
  }

  @Test("stores each change accepted from another thread, and refuses the rest")
  func racingChanges() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let proxies = try (0..<2).map { _ in try ConnectionProxy(database: database, flushPolicy: .manually) }
    let accepted = Lock<[String]>([])
    let refusals = Lock(0)
    // While the flush of one is committed the other may be open, flushed or closed.
    for (index, proxy) in proxies.enumerated() {
      try proxy.setObject(1, forKey: "own \(index)")
      proxy.state.hooks.onCommit = {
        for (index, proxy) in proxies.enumerated() {
          do {
            try proxy.setObject(1, forKey: "late \(index)")
            accepted.withLock { $0.append("late \(index)") }
          } catch CofferError.closed {
            refusals.withLock { $0 += 1 }
          } catch {
            Issue.record(error)
          }
        }
      }
    }
    try database.close()
    #expect(refusals.withLock { $0 } > 0)
    #expect(accepted.withLock { !$0.isEmpty })
    for key in accepted.withLock({ $0 }) + ["own 0", "own 1"] { #expect(try reopened(store, key) == 1, "\(key)") }
  }

  @Test("inside a transaction is refused, and leaves the proxies open")
  func insideTransaction() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let proxy = try ConnectionProxy(database: database)
    try database.makeConnection().readWrite { _ in
      _ = #expect(throws: CofferError.nestedTransaction) { try database.close() }
    }
    try proxy.setObject(1, forKey: "a")
    try database.close()
    #expect(try reopened(store, "a") == 1)
  }

  @Test("twice at once waits for the flushes both times")
  func twice() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    try proxy.setObject(1, forKey: "a")
    let isDone = DispatchSemaphore(value: 0)
    let isCommitting = DispatchSemaphore(value: 0)
    let committed = Lock(false)
    proxy.state.hooks.onCommit = {
      isCommitting.signal()
      committed.withLock { $0 = true }
    }
    DispatchQueue.global().async {
      try? database.close()
      isDone.signal()
    }
    isCommitting.wait()
    try database.close()
    #expect(committed.withLock { $0 })
    isDone.wait()
    #expect(try reopened(store, "a") == 1)
  }

  @Test("in a commit handler, while another thread also closes it, ends both")
  func inHandler() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let (isHeard, mayClose) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isDone = DispatchSemaphore(value: 0)
    let observer = try database.onCommit { _ in
      isHeard.signal()
      mayClose.wait()
      #expect(throws: Never.self) { try database.close() }
      isDone.signal()
    }
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "a") }
    isHeard.wait()
    // Comes to the handlers' queue, which is busy, as soon as the database counts as closed.
    DispatchQueue.global().async {
      #expect(throws: Never.self) { try database.close() }
      isDone.signal()
    }
    while (try? database.checkUsable()) != nil { sched_yield() }
    mayClose.signal()
    for _ in 0..<2 { isDone.wait() }
    withExtendedLifetime(observer) {}
    #expect(try reopened(store, "a") == 1)
  }

  @Test("while closing a proxy fails leaves that proxy closed, and loses nothing it accepted")
  func besideFailingProxy() throws {
    let store = try TemporaryStore()
    let database = try store.open(busyTimeout: .milliseconds(1))
    let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    try proxy.setObject(1, forKey: "a")
    // The proxy's own call stops after its flush has failed, until the database is closed.
    let other = try store.open().makeConnection()
    let (hasFailed, mayContinue) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isDone = DispatchSemaphore(value: 0)
    proxy.state.hooks.onCloseFailure = {
      hasFailed.signal()
      mayContinue.wait()
    }
    try other.readWrite { _ in
      DispatchQueue.global().async {
        #expect(throws: CofferError.busy) { try proxy.close() }
        isDone.signal()
      }
      hasFailed.wait()
    }
    try database.close()
    mayContinue.signal()
    isDone.wait()
    #expect(throws: CofferError.closed) { try proxy.setObject(2, forKey: "a") }
    #expect(try reopened(store, "a") == 1)
  }
}

@Suite("A store that is rolled back under a program") struct RollbackTests {
  private struct Fixture {
    let store: TemporaryStore
    let database: Database
    let proxy: ConnectionProxy

    init() throws {
      store = try TemporaryStore()
      database = try store.open()
      proxy = try ConnectionProxy(database: database)
      for number in 1...5 {
        try database.makeConnection().readWrite { try $0.setObject(number, forKey: "n") }
      }
    }

    /// Replaces the newest state by an older one, as an attacker would.
    func rollBack() throws {
      let connection = try SQLiteConnection(
        store: Store.open(at: store.path, key: store.key), busyTimeout: .seconds(5))
      let third = try database.makeConnection().read { try $0.commitNumber() } - 2
      try connection.beginWrite(.full)
      try connection.execute("DELETE FROM changes WHERE sequence > \(third)")
      try connection.execute("UPDATE items SET data = x'0000000000000003', version = \(third) WHERE key = 'n'")
      try connection.commit()
      try connection.close()
    }
  }

  @Test("is read in its older state by a proxy, which continues and reports that everything may have changed")
  func proxy() async throws {
    let fixture = try Fixture()
    let proxy = fixture.proxy
    #expect(try proxy.object(forKey: "n") == 5)
    var events = try proxy.changes().makeAsyncIterator()
    try fixture.rollBack()
    #expect(try proxy.object(forKey: "n") == 3)
    #expect(await events.next()?.scope == .everything)
    try await proxy.setObject(6, forKey: "n", durability: .committed)
    #expect(try proxy.object(forKey: "n") == 6)
    #expect(try await fixture.database.makeConnection().read { try $0.object(forKey: "n") } == 6)
  }

  @Test("is reported to commit listeners as a change of everything, and later commits by key")
  func listeners() throws {
    let fixture = try Fixture()
    let notices = Lock<[Commit]>([])
    let told = DispatchSemaphore(value: 0)
    let observation = try fixture.database.onCommit { notification in
      notices.withLock { $0.append(notification) }
      told.signal()
    }
    let before = try fixture.database.makeConnection().read { try $0.commitNumber() }
    try fixture.rollBack()
    try fixture.database.makeConnection().readWrite { try $0.setObject(1, forKey: "other") }
    told.wait()
    #expect(notices.withLock { $0[0].scope == .everything && $0[0].number < before })
    #expect(try fixture.database.makeConnection().read { try $0.changes(since: before) } == nil)
    try fixture.database.makeConnection().readWrite { try $0.setObject(2, forKey: "other") }
    told.wait()
    #expect(notices.withLock { $0.last?.changedKeys(inCollection: "") == ["other"] })
    withExtendedLifetime(observation) {}
  }
}
