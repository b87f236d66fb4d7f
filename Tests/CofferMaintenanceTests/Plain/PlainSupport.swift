import CSQLite
import Foundation
import TestSupport
import Testing

@testable import Coffer

/// A plain SQLite file in a folder of its own.
struct PlainFile {
  let store: TemporaryStore
  let path: String

  init(_ store: TemporaryStore, _ name: String = "plain.sqlite", _ sql: String...) throws {
    self.store = store
    path = store.folder + "/" + name
    for statement in sql { try run(statement) }
  }

  /// Runs SQL, with `?` for each value in turn.
  func run(_ sql: String, _ values: [UInt8]?...) throws {
    var handle: OpaquePointer?
    try #require(sqlite3_open(path, &handle) == SQLITE_OK)
    defer { sqlite3_close(handle) }
    guard !values.isEmpty else {
      let message = { String(cString: sqlite3_errmsg(handle)) }
      try #require(sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK, "\(message())")
      return
    }
    var statement: OpaquePointer?
    try #require(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK)
    defer { sqlite3_finalize(statement) }
    for (index, value) in zip(Int32(1)..., values) {
      guard let value else { continue }
      _ = value.withUnsafeBytes { coffer_bind_blob(statement, index, $0.baseAddress, UInt64($0.count)) }
    }
    try #require(sqlite3_step(statement) == SQLITE_DONE)
  }

  /// What the `sqlite3` shell says.
  func shell(_ sql: String) throws -> String {
    let child = try Child.run("/usr/bin/env", ["sqlite3", path, sql])
    try #require(child.status == 0)
    return child.text.trimmingCharacters(in: .newlines)
  }
}

extension Database {
  /// All values and metadata as they are stored, bit for bit.
  func storedItems() throws -> [String: [StoredValue?]] {
    try makeConnection().perform { session in
      try session.read {
        var items: [String: [StoredValue?]] = [:]
        for collection in try session.collectionNames() {
          for key in try session.keys(in: collection, .all) {
            let item = try session.storedItem(key, in: collection)
            items["\(collection)\0\(key)"] = [item?.object.stored, item?.metadata]
          }
        }
        return items
      }
    }
  }
}
