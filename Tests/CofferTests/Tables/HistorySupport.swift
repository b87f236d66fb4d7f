import Foundation
import TestSupport
import Testing

@testable import Coffer

/// A store with a collection `kept` that keeps history, and a connection whose clock stands at second 1,000.
final class HistoryFixture: Sendable {
  let store: TemporaryStore
  let database: Database
  let connection: Connection

  init(_ limits: HistoryLimits? = HistoryLimits()) throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    try connection.setTime(1000)
    if let limits { try connection.readWrite { try $0.setHistoryLimits(limits, forCollection: "kept") } }
  }

  /// Sets an object in a transaction of its own; nil removes it.
  ///
  /// - Returns: The commit's number.
  @discardableResult
  func set(_ object: String?, _ metadata: String? = nil, forKey key: String = "k") throws -> Int64 {
    try connection.readWrite { try $0.setObject(object, forKey: key, inCollection: "kept", withMetadata: metadata) }
    return try connection.read { try $0.commitNumber() }
  }

  func history(forKey key: String = "k") throws -> [HistoricItem] {
    try connection.read { try $0.history(forKey: key, inCollection: "kept") }
  }

  /// The earlier objects, newest first.
  func objects(forKey key: String = "k") throws -> [String] { try history(forKey: key).map(\.text) }

  /// How many rows the table has, of whatever collection.
  func rowCount() throws -> Int64? {
    try connection.perform { session in
      try session.connection.statement("SELECT count(*) FROM history").first { $0.integer(0) }
    }
  }
}

extension HistoricItem {
  /// The object of an item that is a string.
  var text: String { if case .string(let text) = value { text } else { "\(value)" } }
}
