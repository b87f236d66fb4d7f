import CofferCompat
import CofferStorage
import Dispatch
import Foundation
import Testing

@testable import Coffer

private func notToRun() {
  Issue.record("This must not run.")
}

extension WriterTests {
  @Test("1.11 run added blocks after the end, in order, with the outcome, after observers and before the completion")
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

  @Test("1.11 run a block for the end immediately if there is no transaction")
  func completionWithoutTransaction() throws {
    try connection.writeWithoutTransaction { [journal] transaction in
      transaction.addCompletion { journal.note("\($0)") }
      #expect(journal.take() == ["true"])
    }
  }

  @Test("5.9 always call the completion, on the writer, which waits for it, and let it write")
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

  @Test("5.9 call the completion also if the database is closed, or earlier changes cannot be flushed")
  func asyncWriteFailing() throws {
    let isDone = DispatchSemaphore(value: 0)
    let proxy = try ConnectionProxy(database: database, reader: other, writer: connection)
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
}
