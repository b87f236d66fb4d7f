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

extension WriterTests {
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

  @Test("5.10 that are cancelled roll back at any operation, and throw", arguments: 0...8)
  func cancelledWrite(_ moment: Int) async throws {
    try await connection.readWrite { try $0.setObject("old", forKey: "k") }
    let snapshot = try await connection.read { try $0.commitNumber() }
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
        try transaction.commitNumber()
      )
    }
    #expect(value == "old")
    #expect(collections == [""])
    #expect(now == snapshot)
    try await connection.write { try $0.setObject("later", forKey: "k") }
    let later: String? = try await other.read { try $0.object(forKey: "k") }
    #expect(later == "later")
  }

  @Test("5.10 that are cancelled while observers are called roll back, but not after the commit")
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

  @Test("5.10 that are cancelled before their turn do not run")
  func cancelledBeforeStart() async throws {
    let observer = TestObserver("a", journal)
    database.add(transactionObserver: observer, extent: .databaseLifetime)
    // Before the call; behind another call of the connection; waiting for another connection's write.
    for wait in 0..<3 {
      let mayContinue = DispatchSemaphore(value: 0)
      let holder = wait == 1 ? connection : other
      if wait > 0 {
        await withCheckedContinuation { isHeld in
          holder.asyncReadWrite(
            { _ in
              isHeld.resume()
              mayContinue.wait()
            }, completion: { _ in })
        }
      }
      let result = await cancellable { [connection] cancel in
        if wait == 0 { cancel() }
        if wait > 0 {
          Thread.detachNewThread {
            if wait == 2 { while !connection.lending.isParked { sched_yield() } }
            cancel()
            mayContinue.signal()
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

  @Test("5.10 that are cancelled without a transaction end at the next operation, and keep what was committed")
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

  @Test("5.10 return results and rethrow errors")
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
