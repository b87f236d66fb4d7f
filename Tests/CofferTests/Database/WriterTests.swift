import CofferCompat
import CofferCrypto
import CofferStorage
import Dispatch
import Foundation
import Testing

@testable import Coffer

private func notToRun() {
  Issue.record("This must not run.")
}

@Suite("Writers") struct WriterTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection
  private let other: Connection
  private let journal = Journal()

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    other = try database.makeConnection()
  }

  private func keys() throws -> [String] {
    try other.read { try $0.allKeys() }
  }

  // MARK: 1.11, 1.13

  @Test("1.13 find a write inside a write on any connection, and a read inside the transaction of its connection")
  func nested() throws {
    let proxy = try ConnectionProxy(database: database)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k")
      #expect(throws: CofferError.nestedTransaction) { try other.readWrite { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try other.unsafeReentrantWrite { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try other.writeWithoutTransaction { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try other.vacuum() }
      #expect(throws: CofferError.nestedTransaction) { try other.erase() }
      #expect(throws: CofferError.nestedTransaction) { try connection.writeWithoutTransaction { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try proxy.flushAndWait() }
      #expect(throws: CofferError.nestedTransaction) { try proxy.setObject(1, forKey: "p", durability: .synced) }
      #expect(throws: CofferError.nestedTransaction) { try connection.concurrentRead { _ in }.wait() }
      #expect(proxy.pendingChangeCount == 0)
      #expect(try keys().isEmpty)
    }
    try connection.read { _ in
      #expect(throws: CofferError.nestedTransaction) { try connection.readWrite { _ in } }
      #expect(throws: CofferError.nestedTransaction) { try connection.unsafeReentrantWrite { _ in } }
      try other.readWrite { try $0.setObject(2, forKey: "l") }
    }
    #expect(try keys() == ["k", "l"])
  }

  @Test("1.13 read inside a write on another connection, also on one whose own thread waits for this write")
  func readOnWaitingConnection() throws {
    let isDone = DispatchSemaphore(value: 0)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "first")
      other.asyncWrite({ try $0.setObject(2, forKey: "second") }, completion: { _, _ in isDone.signal() })
      while !other.lending.isParked { sched_yield() }
      #expect(try keys().isEmpty)
      #expect(throws: CofferError.nestedTransaction) { try other.readWrite { _ in } }
    }
    isDone.wait()
    #expect(try keys() == ["first", "second"])
  }

  @Test("1.13 that give up waiting do not take a connection from the one who has borrowed it")
  func timeoutDuringLoan() throws {
    let impatient = try store.open(busyTimeout: .milliseconds(1))
    let (connection, other) = (try impatient.makeConnection(), try impatient.makeConnection())
    let result = Lock<Result<Void, any Error>?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k")
      var hasBorrowed = false
      while !hasBorrowed {
        other.asyncWrite(
          { _ in },
          completion: { _, outcome in
            result.withLock { $0 = outcome }
            isDone.signal()
          })
        try other.read { inner in
          // Either the other thread waits for the gate now, and gives up; or it has not begun, or given up before.
          hasBorrowed = other.lending.isParked
          while other.lending.isParked { sched_yield() }
          let keys = try inner.allKeys()
          #expect(keys.isEmpty)
        }
        isDone.wait()
      }
    }
    #expect(throws: CofferError.busy) { try result.withLock { $0 }?.get() }
    try other.readWrite { try $0.setObject(2, forKey: "l") }
    #expect(try keys() == ["k", "l"])
  }

  // MARK: 1.14

  @Test("1.14 leave a reader the snapshot of its first read, however much is written meanwhile")
  func readerDuringWrite() throws {
    try connection.readWrite { try $0.setObject("old", forKey: "k") }
    try connection.readWrite { transaction in
      try transaction.setObject("new", forKey: "k")
      #expect(try other.read { try $0.object(forKey: "k") } == "old")
    }
    try other.read { reader in
      #expect(try reader.object(forKey: "k") == "new")
      for number in 0..<10 {
        try connection.readWrite { try $0.setObject("later", forKey: "\(number)") }
        try connection.readWrite { try $0.setObject("later", forKey: "k") }
        #expect(try reader.numberOfKeys() == 1)
        #expect(try reader.object(forKey: "k") == "new")
        #expect(try !reader.hasObject(forKey: "\(number)"))
      }
    }
    #expect(try other.read { try $0.object(forKey: "k") } == "later")
  }

  // MARK: 5.9

  @Test("5.9 commit each operation by itself without a transaction, and keep what was committed when an error comes")
  func withoutTransaction() throws {
    #expect(throws: Refusal.self) {
      try connection.writeWithoutTransaction { transaction in
        for key in ["a", "b"] {
          try transaction.setObject(1, forKey: key)
          let keys = try keys()
          #expect(keys.last == key)
          #expect(try transaction.snapshot() == UInt64(keys.count + 1))
        }
        try other.readWrite { try $0.setObject(1, forKey: "c") }
        #expect(try transaction.allKeys() == ["a", "b", "c"])
        throw Refusal()
      }
    }
    #expect(try keys() == ["a", "b", "c"])
    #expect(try connection.read { try $0.snapshot() } == 4)
  }

  @Test("5.9 make one transaction of a savepoint, and of a reentrant write, where there is none")
  func savepointWithoutTransaction() throws {
    try connection.writeWithoutTransaction { transaction in
      try transaction.inSavepoint {
        try transaction.setObject(1, forKey: "a")
        try transaction.setObject(1, forKey: "b")
        #expect(try keys().isEmpty)
        return .commit
      }
      #expect(try keys() == ["a", "b"])
      try transaction.inSavepoint {
        try transaction.setObject(1, forKey: "c")
        return .rollback
      }
      #expect(throws: Refusal.self) {
        try transaction.inSavepoint {
          try transaction.removeAllObjects()
          throw Refusal()
        }
      }
      #expect(throws: Refusal.self) {
        try connection.unsafeReentrantWrite { transaction in
          try transaction.setObject(1, forKey: "d")
          throw Refusal()
        }
      }
      try connection.unsafeReentrantWrite { transaction in
        try transaction.setObject(1, forKey: "e")
        #expect(try keys() == ["a", "b"])
      }
      // Each of them is over.
      try other.readWrite { _ in }
    }
    #expect(try keys() == ["a", "b", "e"])
  }

  @Test("5.9 enumerate without a transaction as of the start, whatever is written meanwhile, also nested")
  func enumerationWithoutTransaction() throws {
    try connection.readWrite { transaction in
      for key in ["a", "b"] {
        try transaction.setObject(1, forKey: key)
        try transaction.setObject(1, forKey: key, inCollection: "c")
      }
    }
    var visited: [String] = []
    try connection.writeWithoutTransaction { transaction in
      try transaction.enumerateKeys { outer, _ in
        try transaction.setObject(1, forKey: "new \(outer)")
        try transaction.enumerateKeysInAllCollections { collection, inner, _ in
          try transaction.removeObject(forKey: inner, inCollection: "c")
          visited.append("\(outer) \(collection)/\(inner)")
        }
      }
    }
    #expect(
      visited == [
        "a /a", "a /b", "a /new a", "a c/a", "a c/b", "b /a", "b /b", "b /new a", "b /new b",
      ])
  }

  @Test("1.15 run sanitizers inside the transaction of the operation, also without a transaction")
  func sanitizersWithoutTransaction() throws {
    let other = other
    var rules = CollectionRules()
    rules.objectSanitizer = { _, _, value in
      #expect(throws: CofferError.nestedTransaction) { try other.readWrite { _ in } }
      return value
    }
    rules.objectPostSanitizer = { _, _, _ in
      // It is stored, and not committed.
      #expect(try! other.read { try $0.numberOfKeys(inCollection: "c") } == 0)
      #expect(throws: CofferError.nestedTransaction) { try other.readWrite { _ in } }
    }
    database.setRules(rules, forCollection: "c")
    try connection.writeWithoutTransaction { try $0.setObject(1, forKey: "k", inCollection: "c") }
    #expect(try other.read { try $0.numberOfKeys(inCollection: "c") } == 1)
  }

  @Test("1.11 run added blocks after the end, in order, told how it ended, before the completion and behind observers")
  func completions() throws {
    let queue = DispatchQueue(label: "completions")
    let isDone = DispatchSemaphore(value: 0)
    let observer = TestObserver("a", journal)
    database.add(transactionObserver: observer, extent: .databaseLifetime)
    for isCommitted in [true, false] {
      connection.asyncWrite(
        { [connection, journal] transaction in
          transaction.addCompletion { first in
            // It is over: the connection is free, for writing, too.
            #expect(throws: Never.self) { try connection.readWrite { try $0.setObject(1, forKey: "\(first)") } }
            journal.note("first: \(first)")
          }
          transaction.addCompletion(on: queue) { journal.note("on a queue: \($0)") }
          transaction.addCompletion { second in
            queue.sync {}
            journal.note("second: \(second)")
          }
          #expect(journal.take().isEmpty)
          if !isCommitted { transaction.rollback() }
        },
        completion: { [journal] _, _ in
          journal.note("completion")
          isDone.signal()
        })
      isDone.wait()
      let heard = journal.takeWithoutValues()
      let end = isCommitted ? ["a willCommit", "a didCommit"] : ["a didRollback"]
      #expect(Array(heard.prefix(end.count)) == end)
      // The write of the first block waits until the others have run.
      #expect(
        heard.filter { !$0.hasPrefix("a ") } == [
          "on a queue: \(isCommitted)", "second: \(isCommitted)", "first: \(isCommitted)", "completion",
        ])
    }
    #expect(throws: Refusal.self) {
      try connection.readWrite { [journal] transaction in
        transaction.addCompletion { journal.note("thrown: \($0)") }
        throw Refusal()
      }
    }
    #expect(journal.take() == ["a didRollback", "thrown: false"])
  }

  @Test("1.11 run a block that waits for the end at once where there is no transaction")
  func completionWithoutTransaction() throws {
    try connection.writeWithoutTransaction { [journal] transaction in
      transaction.addCompletion { journal.note("\($0)") }
      #expect(journal.take() == ["true"])
    }
  }

  @Test("5.9 call the completion in any case, on the writer, which waits for it, and let it write")
  func asyncWrite() throws {
    let isDone = DispatchSemaphore(value: 0)
    connection.asyncWrite(
      { transaction in
        try transaction.setObject(1, forKey: "a")
        return "result"
      },
      completion: { [journal, other] connection, result in
        journal.note("\((try? result.get()) ?? "-")")
        do {
          #expect(try other.read { try $0.allKeys() } == ["a"])
          try connection.readWrite { try $0.setObject(2, forKey: "b") }
        } catch {
          Issue.record(error)
        }
      })
    connection.asyncWrite(
      { transaction in
        #expect(try transaction.allKeys() == ["a", "b"])
        try transaction.setObject(1, forKey: "lost")
        throw Refusal()
      },
      completion: { [journal] (_, result: Result<Void, any Error>) in
        #expect(throws: Refusal.self) { try result.get() }
        journal.note("failed")
      })
    connection.asyncWriteWithoutTransaction { transaction in
      try transaction.setObject(3, forKey: "c")
      throw Refusal()
    } onError: { [connection, journal] error in
      journal.note("\(error is Refusal)")
      #expect(throws: Never.self) { try connection.readWrite { try $0.setObject(4, forKey: "d") } }
      isDone.signal()
    }
    isDone.wait()
    // Behind all that was queued before.
    #expect(try connection.read { try $0.allKeys() } == ["a", "b", "c", "d"])
    #expect(journal.take() == ["result", "failed", "true"])
  }

  @Test("5.9 call the completion also when the database is closed, or what was set before cannot be flushed")
  func asyncWriteFailing() throws {
    let isDone = DispatchSemaphore(value: 0)
    let proxy = try ConnectionProxy(database: database, readOnlyConnection: other, readWriteConnection: connection)
    try other.poison(for: connection)
    try proxy.setObject(1, forKey: "poison")
    connection.asyncWrite(
      { _ in notToRun() },
      completion: { connection, result in
        #expect(throws: CofferError.self) { try result.get() }
        #expect(throws: Never.self) { _ = try connection.read { try $0.allKeys() } }
        isDone.signal()
      })
    isDone.wait()
    try other.perform { try $0.connection.execute("DROP TRIGGER poison") }
    try proxy.close()
    try database.close()
    for queue in [nil, DispatchQueue.global()] {
      connection.asyncReadWrite(
        { _ in }, on: queue,
        completion: { [connection] result in
          #expect(throws: CofferError.closed) { try result.get() }
          #expect(throws: CofferError.closed) { try connection.readWrite { _ in } }
          isDone.signal()
        })
      isDone.wait()
    }
    connection.asyncWriteWithoutTransaction { _ in
    } onError: { error in
      #expect(error as? CofferError == .closed)
      isDone.signal()
    }
    isDone.wait()
  }

  @Test("5.9 take part in the write of this thread when they are reentrant, and begin one outside of it")
  func reentrantWrite() throws {
    let observer = TestObserver("a", journal)
    database.add(transactionObserver: observer, extent: .databaseLifetime)
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "a")
      try connection.unsafeReentrantWrite { inner in
        #expect(try inner.allKeys() == ["a"])
        try inner.setObject(1, forKey: "b")
        try connection.unsafeReentrantWrite { try $0.setObject(1, forKey: "c") }
      }
      #expect(try transaction.allKeys() == ["a", "b", "c"])
      #expect(throws: CofferError.nestedTransaction) { try other.unsafeReentrantWrite { _ in } }
      #expect(try keys().isEmpty)
    }
    #expect(
      journal.takeWithoutValues() == [
        "a did insertion a", "a did insertion b", "a did insertion c", "a willCommit", "a didCommit",
      ])
    try connection.unsafeReentrantWrite { try $0.setObject(1, forKey: "d") }
    #expect(journal.takeWithoutValues() == ["a did insertion d", "a willCommit", "a didCommit"])
    #expect(throws: Refusal.self) {
      try connection.unsafeReentrantWrite { transaction in
        try transaction.removeAllObjects()
        throw Refusal()
      }
    }
    #expect(try keys() == ["a", "b", "c", "d"])
  }

  @Test("5.9 let a concurrent read see what is committed at the call, while the writer goes on")
  func concurrentRead() throws {
    let mayRead = DispatchSemaphore(value: 0)
    let future = try connection.writeWithoutTransaction { transaction in
      try transaction.setObject(1, forKey: "a")
      let future = connection.concurrentRead { reader in
        mayRead.wait()
        return try reader.allKeys()
      }
      try transaction.setObject(1, forKey: "b")
      try transaction.removeObject(forKey: "a")
      mayRead.signal()
      // From inside of the writer, too.
      #expect(try future.wait() == ["a"])
      return future
    }
    #expect(try future.wait() == ["a"])
    try connection.readWrite { transaction in
      #expect(throws: CofferError.nestedTransaction) { try connection.concurrentRead { _ in }.wait() }
      let keys = try other.concurrentRead { try $0.allKeys() }.wait()
      #expect(keys == ["b"])
    }
    let failing: DatabaseFuture<Void> = connection.concurrentRead { _ in throw Refusal() }
    for _ in 0..<2 { #expect(throws: Refusal.self) { try failing.wait() } }
    // Readers are used again, and what they had pinned is let go of.
    let futures = (0..<20).map { _ in connection.concurrentRead { try $0.allKeys() } }
    for future in futures { #expect(try future.wait() == ["b"]) }
    try database.close()
    #expect(throws: CofferError.closed) { try connection.concurrentRead { _ in }.wait() }
  }

  @Test("5.9 erase everything")
  func erase() throws {
    try connection.readWrite { transaction in
      for collection in ["", "c"] { try transaction.setObject(1, forKey: "k", inCollection: collection) }
    }
    let snapshot = try connection.read { try $0.snapshot() }
    try connection.erase()
    try connection.erase()
    try other.read { transaction in
      let count = try transaction.numberOfKeysInAllCollections()
      #expect(count == 0)
      #expect(try transaction.allCollections().isEmpty)
      #expect(try transaction.snapshot() == snapshot + 1)
    }
    try connection.vacuum()
    try connection.beginLongLivedReadTransaction()
    #expect(throws: CofferError.longLivedReadTransaction) { try connection.erase() }
    #expect(throws: CofferError.longLivedReadTransaction) { try connection.vacuum() }
    #expect(throws: CofferError.longLivedReadTransaction) { try connection.writeWithoutTransaction { _ in } }
  }

  @Test("5.10 erase everything and rebuild the file from a task, and not from one that was cancelled")
  func eraseFromTask() async throws {
    let writer: any DatabaseWriter = connection
    try await writer.write { try $0.setObject(String(repeating: "x", count: 100_000), forKey: "k") }
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      await #expect(throws: CancellationError.self) { try await writer.erase() }
      await #expect(throws: CancellationError.self) { try await writer.vacuum() }
    }
    await cancelled.value
    #expect(try await writer.read { try $0.numberOfKeys() } == 1)
    try await writer.erase()
    #expect(try await writer.read { try $0.numberOfKeys() } == 0)
    func freePageCount() async throws -> Int64 {
      try await connection.performing { session, _ in
        try session.read {
          var count: Int64 = 0
          try session.connection.statement("PRAGMA freelist_count").query { count = $0.integer(0) }
          return count
        }
      }
    }
    #expect(try await freePageCount() > 0)
    try await writer.vacuum()
    #expect(try await freePageCount() == 0)
  }

  // MARK: 5.10

  /// Runs `body` in a task that can be cancelled from inside of it.
  private func cancellable(
    _ body: @escaping @Sendable (_ cancel: @escaping @Sendable () -> Void) async throws -> Void
  ) async -> Result<Void, any Error> {
    let task = Lock<Task<Void, any Error>?>(nil)
    let (start, mayStart) = AsyncStream<Void>.makeStream()
    let new = Task {
      for await _ in start { break }
      try await body { task.withLock { $0 }?.cancel() }
    }
    task.withLock { $0 = new }
    mayStart.yield()
    return await new.result
  }

  @Test("5.10 that are cancelled roll back at whatever operation it comes, and say so", arguments: 0...8)
  func cancelledWrite(_ moment: Int) async throws {
    try await connection.readWrite { try $0.setObject("old", forKey: "k") }
    let snapshot = try await connection.read { try $0.snapshot() }
    let observer = TestObserver("a", journal)
    database.add(transactionObserver: observer, extent: .databaseLifetime)
    let isComplete = Lock<[Bool]>([])
    let result = await cancellable { [connection] cancel in
      try await connection.write { transaction in
        let operation = Lock(0)
        func step() {
          let number = operation.withLock { number in
            defer { number += 1 }
            return number
          }
          if number == moment { cancel() }
        }
        transaction.addCompletion { isCommitted in isComplete.withLock { $0.append(isCommitted) } }
        step()
        try transaction.setObject("new", forKey: "k")
        step()
        try transaction.inSavepoint {
          step()
          try transaction.setObject(1, forKey: "l", inCollection: "c")
          return .commit
        }
        step()
        _ = try transaction.allKeys()
        step()
        try transaction.enumerateKeys { _, _ in
          step()
          try transaction.touchObject(forKey: "k")
        }
        step()
        // An error that is caught does not help.
        try? transaction.removeAllObjects()
        step()
        try? transaction.setObject(2, forKey: "m")
        step()
      }
    }
    #expect(throws: CancellationError.self) { try result.get() }
    #expect(journal.take().filter { $0.hasPrefix("a didC") || $0.hasPrefix("a didR") } == ["a didRollback"])
    #expect(isComplete.withLock { $0 } == [false])
    let (value, collections, now) = try await other.read { transaction in
      (
        try transaction.object(forKey: "k", as: String.self), try transaction.allCollections(),
        try transaction.snapshot()
      )
    }
    #expect(value == "old")
    #expect(collections == [""])
    #expect(now == snapshot)
    try await connection.write { try $0.setObject("later", forKey: "k") }
    let later: String? = try await other.read { try $0.object(forKey: "k") }
    #expect(later == "later")
  }

  @Test("5.10 that are cancelled while observers are asked roll back, and after the commit no more")
  func cancelledAtCommit() async throws {
    for isTooLate in [false, true] {
      let cancellation = Lock<@Sendable () -> Void>({})
      let observer = TestObserver("a", journal) { actions in
        let cancel: @Sendable () -> Void = { cancellation.withLock { $0 }() }
        if isTooLate { actions.didCommit = { _ in cancel() } } else { actions.willCommit = cancel }
      }
      database.add(transactionObserver: observer, extent: .nextTransaction)
      let result = await cancellable { [connection] cancel in
        cancellation.withLock { $0 = cancel }
        try await connection.write { try $0.setObject(1, forKey: "k") }
      }
      #expect(((try? result.get()) != nil) == isTooLate)
      #expect(try keys() == (isTooLate ? ["k"] : []))
      #expect(journal.take().last == (isTooLate ? "a didCommit" : "a didRollback"))
    }
  }

  @Test("5.10 that are cancelled before their turn do not run, whatever they wait for")
  func cancelledBeforeStart() async throws {
    let observer = TestObserver("a", journal)
    database.add(transactionObserver: observer, extent: .databaseLifetime)
    // Before the call; behind another call of the connection; waiting for another connection's write.
    for wait in 0..<3 {
      let mayGoOn = DispatchSemaphore(value: 0)
      let holder = wait == 1 ? connection : other
      if wait > 0 {
        await withCheckedContinuation { isHeld in
          holder.asyncReadWrite(
            { _ in
              isHeld.resume()
              mayGoOn.wait()
            }, completion: { _ in })
        }
      }
      let result = await cancellable { [connection] cancel in
        if wait == 0 { cancel() }
        if wait > 0 {
          Thread.detachNewThread {
            if wait == 2 { while !connection.lending.isParked { sched_yield() } }
            cancel()
            mayGoOn.signal()
          }
        }
        try await connection.write { _ in notToRun() }
      }
      #expect(throws: CancellationError.self) { try result.get() }
      try await holder.read { _ in }
      #expect(journal.take() == (wait == 0 ? [] : ["a willCommit", "a didCommit"]))
    }
    let result = await cancellable { [connection] cancel in
      cancel()
      await #expect(throws: CancellationError.self) {
        try await connection.read { _ in notToRun() }
      }
      try await connection.writeWithoutTransaction { _ in notToRun() }
    }
    #expect(throws: CancellationError.self) { try result.get() }
    #expect(journal.take().isEmpty)
  }

  @Test("5.10 that are cancelled without a transaction end with the next operation, and keep what was committed")
  func cancelledWithoutTransaction() async throws {
    let result = await cancellable { [connection] cancel in
      try await connection.writeWithoutTransaction { transaction in
        try transaction.setObject(1, forKey: "a")
        cancel()
        #expect(throws: CancellationError.self) { try transaction.setObject(1, forKey: "b") }
        #expect(throws: CancellationError.self) { _ = try transaction.allKeys() }
        try transaction.inSavepoint {
          notToRun()
          return .commit
        }
      }
    }
    #expect(throws: CancellationError.self) { try result.get() }
    #expect(try keys() == ["a"])
    try await connection.writeWithoutTransaction { try $0.setObject(1, forKey: "c") }
    #expect(try keys() == ["a", "c"])
  }

  @Test("5.10 give back what they return, and throw what they throw")
  func asyncForms() async throws {
    let firstCount = try await connection.write { transaction in
      try transaction.setObject(1, forKey: "a")
      return try transaction.numberOfKeys()
    }
    #expect(firstCount == 1)
    await #expect(throws: Refusal.self) {
      try await connection.readWrite { transaction in
        try transaction.setObject(1, forKey: "b")
        throw Refusal()
      }
    }
    let keys = try await connection.writeWithoutTransaction { transaction in
      try transaction.setObject(1, forKey: "c")
      return try transaction.allKeys()
    }
    #expect(keys == ["a", "c"])
    let count = try await connection.concurrentRead { try $0.numberOfKeys() }.value
    #expect(count == 2)
  }
}
