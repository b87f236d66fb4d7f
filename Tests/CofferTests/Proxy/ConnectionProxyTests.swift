import CofferCompat
import CofferStorage
import Dispatch
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("A connection proxy") struct ConnectionProxyTests {
  private let store: TemporaryStore
  private let database: Database
  private let proxy: ConnectionProxy
  /// Connections that have nothing to do with the proxy: one to hold the write lock, one to look.
  private let other: Connection
  private let reader: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    proxy = try ConnectionProxy(database: database)
    other = try database.makeConnection()
    reader = try database.makeConnection()
  }

  /// Runs `body` while another connection holds the write lock, so that no flush can get it.
  private func withWriteLockHeld(_ body: () throws -> Void) throws {
    try other.readWrite { _ in try body() }
  }

  private func committed<T: Decodable>(_ key: String, as type: T.Type = T.self) throws -> T? {
    try reader.read { try $0.object(forKey: key) }
  }

  private func commitNumber() throws -> CommitNumber {
    try reader.read { try $0.commitNumber() }
  }

  // MARK: 4.1

  @Test("4.1 reads back a set value immediately, before and after the flush, and never an older one")
  func readYourWrites() throws {
    try withWriteLockHeld {
      for number in 1...3 {
        try proxy.setObject(number, forKey: "k", withMetadata: "m\(number)")
        #expect(try proxy.object(forKey: "k") == number)
        #expect(try proxy.metadata(forKey: "k") == "m\(number)")
        #expect(try proxy.hasObject(forKey: "k"))
      }
      #expect(try committed("k", as: Int.self) == nil)
    }
    try proxy.flushAndWait()
    #expect(try proxy.object(forKey: "k") == 3)
    #expect(try committed("k") == 3)
    try withWriteLockHeld {
      try proxy.removeObject(forKey: "k")
      #expect(try proxy.value(forKey: "k") == nil)
      #expect(try !proxy.hasObject(forKey: "k"))
      #expect(try proxy.metadata(forKey: "k", as: String.self) == nil)
      try proxy.setObject(nil, forKey: "k")
      try proxy.setObject(4, forKey: "k")
      #expect(try proxy.object(forKey: "k") == 4)
    }
    try proxy.flushAndWait()
    #expect(try committed("k") == 4)
  }

  @Test("4.1 reads back a key that is set again during its own flush")
  func setDuringFlush() throws {
    // The flush of 1 stands between its last statement and its commit when 2 is set.
    let isInFlush = DispatchSemaphore(value: 0)
    let mayCommit = DispatchSemaphore(value: 0)
    try proxy.writer.perform { session in
      session.connection.onCommit {
        isInFlush.signal()
        mayCommit.wait()
      }
    }
    try proxy.setObject(1, forKey: "k")
    isInFlush.wait()
    try proxy.setObject(2, forKey: "k")
    #expect(try proxy.object(forKey: "k") == 2)
    #expect(try committed("k", as: Int.self) == nil)
    mayCommit.signal()
    isInFlush.wait()
    #expect(try proxy.object(forKey: "k") == 2)
    #expect(try committed("k") == 1)
    mayCommit.signal()
    try proxy.flushAndWait()
    #expect(try proxy.object(forKey: "k") == 2)
    #expect(try committed("k") == 2)
  }

  // MARK: 4.2, 4.3

  @Test("4.2 takes its batch once it has the write lock, including all changes made meanwhile")
  func naturalBatch() throws {
    let before = try commitNumber()
    try withWriteLockHeld {
      for number in 0..<100 { try proxy.setObject(number, forKey: "\(number)") }
      #expect(proxy.pendingChangeCount == 100)
    }
    try proxy.flushAndWait()
    #expect(proxy.pendingChangeCount == 0)
    #expect(try commitNumber() == before + 1)
    #expect(try reader.read { try $0.numberOfKeys() } == 100)
  }

  @Test("4.2 flushes by itself")
  func flushesAlone() throws {
    try proxy.setObject("v", forKey: "k")
    // An empty transaction of the proxy's connection is queued after the flush.
    try proxy.writer.perform { _ in }
    #expect(proxy.pendingChangeCount == 0)
    #expect(try committed("k") == "v")
  }

  @Test("4.2 flushes earlier changes before a write on its connection, and later ones after it")
  func orderWithWrites() throws {
    let connection = proxy.writer
    let written = DispatchSemaphore(value: 0)
    try withWriteLockHeld {
      try proxy.setObject("proxy 1", forKey: "a")
      try proxy.setObject("proxy 1", forKey: "b")
      connection.asyncReadWrite { transaction in
        let seen: String? = try transaction.object(forKey: "a")
        try transaction.setObject(seen.map { "\($0), then transaction" }, forKey: "a")
        try transaction.setObject("transaction", forKey: "b")
      } completion: { _ in
        written.signal()
      }
      try proxy.setObject("proxy 2", forKey: "b")
      // The write has closed the batch.
      #expect(proxy.pendingChangeCount == 3)
    }
    written.wait()
    try proxy.flushAndWait()
    #expect(try committed("a") == "proxy 1, then transaction")
    #expect(try committed("b") == "proxy 2")
  }

  /// Makes every write of the key `poison` fail.
  private func poison(_ isPoisoned: Bool) throws {
    try proxy.writer.runTriggers()
    try other.perform { session in
      try session.connection.execute(
        isPoisoned
          ? "CREATE TRIGGER poison BEFORE INSERT ON items WHEN new.key = 'poison' BEGIN SELECT raise(ABORT, 'no'); END"
          : "DROP TRIGGER poison")
    }
  }

  @Test("4.3, 4.8 writes a batch completely or not at all; a failed one stays pending and readable, and is retried")
  func failedFlush() async throws {
    let failures = proxy.flushFailures
    try poison(true)
    try withWriteLockHeld {
      try proxy.setObject(1, forKey: "good")
      try proxy.setObject(2, forKey: "poison")
      try proxy.setObject(3, forKey: "better")
    }
    #expect(throws: CofferError.self) { try proxy.flushAndWait() }
    #expect(try await reader.read { try $0.numberOfKeys() } == 0)
    #expect(proxy.pendingChangeCount == 3)
    #expect(try proxy.object(forKey: "poison") == 2)
    try proxy.setObject(4, forKey: "good")
    let failure = try #require(await failures.first { _ in true })
    #expect(failure.pendingChangeCount >= 3)

    try poison(false)
    // No flush is asked for: the retry comes by itself, and the newer value wins.
    while proxy.pendingChangeCount > 0 { await Task.yield() }
    #expect(try committed("good") == 4)
    #expect(try committed("poison") == 2)
    #expect(try await reader.read { try $0.numberOfKeys() } == 3)
  }

  @Test("4.8 retries with what was set after the failure, too")
  func retryTakesNewerBatches() async throws {
    try poison(true)
    try proxy.setObject(1, forKey: "poison")
    #expect(throws: CofferError.self) { try proxy.flushAndWait() }
    // The retry is queued; this batch follows it, fails by itself, and is not retried.
    try proxy.setObject(2, forKey: "newer")
    #expect(throws: CofferError.self) { try proxy.flushAndWait() }
    try poison(false)
    while proxy.pendingChangeCount > 0 { await Task.yield() }
    #expect(try committed("newer") == 2)
  }

  @Test("4.2, 4.8 never writes a failed batch over a write that came after it")
  func failedBatchBeforeWrite() throws {
    let impatient = try store.open(busyTimeout: .zero)
    let proxy = try ConnectionProxy(database: impatient)
    try withWriteLockHeld {
      try proxy.setObject("old", forKey: "k")
      try proxy.setObject("kept", forKey: "other")
      #expect(throws: CofferError.busy) { try proxy.flushAndWait() }
    }
    try proxy.writer.readWrite { transaction in
      let seen: String? = try transaction.object(forKey: "k")
      #expect(seen == "old")
      try transaction.setObject("new", forKey: "k")
    }
    try proxy.close()
    #expect(try committed("k") == "new")
    #expect(try committed("other") == "kept")
  }

  @Test("4.8 keeps its changes while the store is busy, and reports it")
  func busy() throws {
    let impatient = try store.open(busyTimeout: .zero)
    let proxy = try ConnectionProxy(database: impatient)
    try withWriteLockHeld {
      try proxy.setObject(1, forKey: "k")
      #expect(throws: CofferError.busy) { try proxy.flushAndWait() }
      #expect(throws: CofferError.busy) { try proxy.setObject(2, forKey: "k", durability: .committed) }
      #expect(throws: CofferError.busy) { try proxy.close() }
      #expect(try proxy.object(forKey: "k") == 2)
    }
    try proxy.close()
    #expect(try committed("k") == 2)
  }

  // MARK: 4.9, 4.10

  @Test("4.9 has committed everything set before when a flush of either form returns")
  func flush() async throws {
    for number in 1...50 {
      try proxy.setObject(number, forKey: "sync")
      try proxy.flushAndWait()
      #expect(try committed("sync") == number)
      try proxy.setObject(number, forKey: "async")
      try await proxy.flush()
      #expect(try committed("async") == number)
    }
  }

  @Test(
    "4.9 returns from a set once it is as durable as requested",
    arguments: [
      ConnectionProxy.Durability.committed, .synced,
    ])
  func durability(_ durability: ConnectionProxy.Durability) throws {
    try proxy.setObject(1, forKey: "k", durability: durability)
    #expect(try committed("k") == 1)
    try proxy.removeObject(forKey: "k", durability: durability)
    #expect(try committed("k", as: Int.self) == nil)
  }

  @Test("4.9 syncs a value to disk, also one that was committed before without a sync")
  func syncedEqualValue() throws {
    let recorder = RecordingVFS()
    let vfs = EncryptingVFS(name: "coffer on \(recorder.name)", below: recorder.name)
    let store = try TemporaryStore()
    let proxy = try ConnectionProxy(
      database: Database.create(at: store.path, key: store.key, options: .init(), vfs: vfs))
    func syncCount() -> Int {
      recorder.events.count { if case .sync(let path) = $0 { path.hasSuffix("-wal") } else { false } }
    }
    try proxy.setObject(1, forKey: "k", durability: .committed)
    let before = syncCount()
    try proxy.setObject(1, forKey: "k", durability: .committed)
    #expect(syncCount() == before)
    try proxy.setObject(1, forKey: "k", durability: .synced)
    #expect(syncCount() == before + 1)
    try proxy.setObject(2, forKey: "k", durability: .synced)
    #expect(syncCount() == before + 2)
  }

  @Test("1.13 refuses a flush or a committed set inside a write of its own connection, and accepts a plain set there")
  func insideWrite() throws {
    try proxy.writer.readWrite { transaction in
      try transaction.setObject(1, forKey: "k")
      try proxy.setObject(2, forKey: "k")
      #expect(throws: CofferError.nestedTransaction) { try proxy.flushAndWait() }
      #expect(throws: CofferError.nestedTransaction) { try proxy.setObject(3, forKey: "k", durability: .committed) }
      #expect(throws: CofferError.nestedTransaction) { try proxy.close() }
      #expect(try proxy.object(forKey: "k") == 2)
    }
    try proxy.flushAndWait()
    #expect(try committed("k") == 2)
  }

  @Test("closes without opening a write connection if nothing was ever written")
  func closeUnused() throws {
    #expect(try proxy.value(forKey: "k") == nil)
    try proxy.close()
    #expect(proxy.writer.isForLater)
    #expect(throws: CofferError.closed) { try proxy.setObject(1, forKey: "k") }
  }

  @Test("4.10 flushes when it is closed, and then refuses everything")
  func close() throws {
    try withWriteLockHeld { try proxy.setObject("v", forKey: "k") }
    try proxy.close()
    try proxy.close()
    #expect(try committed("k") == "v")
    #expect(throws: CofferError.closed) { try proxy.setObject(1, forKey: "k") }
    #expect(throws: CofferError.closed) { try proxy.value(forKey: "k") }
  }

  @Test("uses the given connections, and its own by default")
  func connections() throws {
    let shared = try database.makeConnection()
    let reading = try ConnectionProxy(database: database, reader: shared)
    let writing = try ConnectionProxy(database: database, writer: shared)
    #expect(reading.reader === shared && reading.writer !== shared)
    #expect(writing.writer === shared && writing.reader !== shared)
    for proxy in [reading, writing] {
      try proxy.update("k", as: Int.self) { ($0 ?? 0) + 1 }
      let committed: Int? = try proxy.reader.read { try $0.object(forKey: "k") }
      #expect(try proxy.object(forKey: "k") == committed)
    }
    #expect(try reader.read { try $0.object(forKey: "k") } == 2)
    try database.close()
    #expect(throws: CofferError.closed) { try ConnectionProxy(database: database, writer: shared) }
  }

  @Test("4.10 flushes after its release")
  func release() throws {
    let connection = try database.makeConnection()
    try withWriteLockHeld {
      let proxy = try ConnectionProxy(
        database: database, reader: connection, writer: connection)
      for number in 0..<10 { try proxy.setObject(number, forKey: "\(number)") }
    }
    try connection.perform { _ in }
    #expect(try reader.read { try $0.numberOfKeys() } == 10)
  }

  // MARK: Values

  @Test("4.11 writes nothing for a value already stored")
  func equalValue() throws {
    try proxy.setObject(["a": 1], forKey: "k", durability: .committed)
    let before = try commitNumber()
    try proxy.setObject(["a": 1], forKey: "k", durability: .committed)
    #expect(try commitNumber() == before)
  }

  @Test("4.12 keeps a value as it was set, even if the caller changes it later, pending and committed")
  func isolation() throws {
    final class Document: Codable {
      var lines = ["first"]
    }
    let document = Document()
    try withWriteLockHeld {
      try proxy.setObject(document, forKey: "document", withMetadata: document)
      document.lines.append("second")
      let pending = try proxy.row(forKey: "document", as: Document.self, metadata: Document.self)
      #expect(pending?.object.lines == ["first"] && pending?.metadata?.lines == ["first"])
      // Nor does what was read.
      pending?.object.lines = []
    }
    try proxy.flushAndWait()
    let visible: Document? = try proxy.object(forKey: "document")
    #expect(visible?.lines == ["first"])
    let stored: Document? = try committed("document")
    #expect(stored?.lines == ["first"])
  }

  @Test("1.6 refuses a value that cannot be encoded when it is set, and keeps the old one")
  func unencodable() throws {
    try proxy.setObject(1, forKey: "k")
    #expect(throws: CofferError.self) { try proxy.setObject(Value.null, forKey: "k") }
    #expect(try proxy.object(forKey: "k") == 1)
    #expect(throws: CofferError.self) { try proxy.object(forKey: "k", as: String.self) }
  }

  @Test("serves many threads at once without losing a change")
  func threads() throws {
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      for number in 0..<200 {
        do {
          try proxy.setObject(number, forKey: "\(thread).\(number % 20)")
          let found: Int? = try proxy.object(forKey: "\(thread).\(number % 20)")
          #expect(found == number)
        } catch {
          Issue.record(error)
        }
      }
    }
    try proxy.flushAndWait()
    for thread in 0..<8 {
      for key in 0..<20 { #expect(try committed("\(thread).\(key)") == 180 + key) }
    }
  }
}
