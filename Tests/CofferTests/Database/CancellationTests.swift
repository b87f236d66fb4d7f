import CofferCompat
import CofferCrypto
import Dispatch
import TestSupport
import Testing

@testable import Coffer

@Suite("A write whose task is cancelled while it waits for a lock") struct CancellationTests {
  /// Cancels a write that waits for the lock that `holder` has, and expects it to end before that is given back.
  private func expectEnd(of waiting: Connection, whileHeldBy holder: Connection) async throws {
    let isHeld = DispatchSemaphore(value: 0)
    let mayEnd = DispatchSemaphore(value: 0)
    holder.asyncReadWrite { _ in
      isHeld.signal()
      mayEnd.wait()
    } completion: { _ in
      isHeld.signal()
    }
    await Self.wait(for: isHeld)
    let isWaiting = DispatchSemaphore(value: 0)
    let write = Cancellation.$onWait.withValue({ isWaiting.signal() }) {
      Task { try await waiting.readWrite { try $0.setObject(1, forKey: "never") } }
    }
    await Self.wait(for: isWaiting)
    write.cancel()
    await #expect(throws: CancellationError.self) { try await write.value }
    // Only now.
    mayEnd.signal()
    await Self.wait(for: isHeld)
    #expect(try await waiting.read { try $0.hasObject(forKey: "never") } == false)
    try await waiting.readWrite { try $0.setObject(1, forKey: "next") }
  }

  private static func wait(for semaphore: DispatchSemaphore) async {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        semaphore.wait()
        continuation.resume()
      }
    }
  }

  @Test("has its turn before later ones: none gets ahead of it in line")
  func turn() async throws {
    let gate = WriterGate()
    let (isInLine, hasTurn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let (mayEnd, hasEnded) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let cancellation = Cancellation.$onWait.withValue({ isInLine.signal() }) { Cancellation() }
    try gate.pass(timeout: .zero, lending: nil) {
      DispatchQueue.global().async {
        #expect(throws: Never.self) {
          try gate.pass(timeout: .seconds(100_000), lending: nil, cancellation: cancellation) {
            hasTurn.signal()
            mayEnd.wait()
          }
        }
        hasEnded.signal()
      }
      isInLine.wait()
    }
    // The gate is the other's from this moment, whether its thread runs already or not.
    #expect(throws: CofferError.busy) { try gate.pass(timeout: .zero, lending: nil) {} }
    await Self.wait(for: hasTurn)
    mayEnd.signal()
    await Self.wait(for: hasEnded)
    #expect(throws: Never.self) { try gate.pass(timeout: .zero, lending: nil) {} }
  }

  @Test("of another connection of its database ends at once, and writes nothing")
  func gate() async throws {
    let store = try TemporaryStore()
    let database = try store.open(busyTimeout: .seconds(100_000))
    try await expectEnd(of: database.makeConnection(), whileHeldBy: database.makeConnection())
  }

  @Test("of another database, as in another process, ends at once, and writes nothing")
  func lock() async throws {
    let store = try TemporaryStore()
    let database = try store.open(busyTimeout: .seconds(Int64.max))
    try await expectEnd(of: database.makeConnection(), whileHeldBy: store.open().makeConnection())
  }
}
