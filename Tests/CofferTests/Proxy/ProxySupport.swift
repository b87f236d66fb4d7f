import CofferCrypto
import CofferStorage
import Dispatch
import TestSupport

@testable import Coffer

/// A proxy, and connections that have nothing to do with it: one to hold the write lock, one to look.
final class ProxyFixture: Sendable {
  let store: TemporaryStore
  let database: Database
  let proxy: ConnectionProxy
  let other: Connection
  let reader: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    proxy = try ConnectionProxy(database: database)
    other = try database.makeConnection()
    reader = try database.makeConnection()
  }

  /// Runs `body` while another connection holds the write lock, so that no flush can get it.
  func withWriteLockHeld<Result>(_ body: () throws -> Result) throws -> Result {
    try other.readWrite { _ in try body() }
  }

  /// Runs `body` while the flush of `change` is between its last statement and its commit.
  func duringFlush(of change: () throws -> Void, _ body: () throws -> Void) throws {
    let isInFlush = DispatchSemaphore(value: 0)
    let mayCommit = DispatchSemaphore(value: 0)
    let isFirst = Lock(true)
    try proxy.writer.perform { session in
      session.connection.onCommit {
        guard
          isFirst.withLock({ first in
            defer { first = false }
            return first
          })
        else { return }
        isInFlush.signal()
        mayCommit.wait()
      }
    }
    try change()
    isInFlush.wait()
    defer { mayCommit.signal() }
    try body()
  }

  func committed<T: Decodable>(_ key: String, inCollection collection: String = "", as type: T.Type = T.self) throws
    -> T?
  {
    try reader.read { try $0.object(forKey: key, inCollection: collection) }
  }

  func commitNumber() throws -> CommitNumber {
    try reader.read { try $0.commitNumber() }
  }
}
