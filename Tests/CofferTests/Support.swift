import CofferStorage
import Foundation
import Logging
import TestSupport
import Testing

@testable import Coffer

/// A folder that is removed with this object, with a key file and a store in it.
final class TemporaryStore: Sendable {
  let folder: String
  var path: String { "\(folder)/settings.coffer" }
  var keyFile: String { "\(folder)/key" }
  var key: KeySource { .keyFile(keyFile) }

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try KeyFile.create(at: keyFile)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: folder)
  }

  func open(busyTimeout: Duration = .seconds(120)) throws -> Database {
    try Database.openOrCreate(
      at: path, key: key,
      options: .init(busyTimeout: busyTimeout, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
  }

  /// Makes the store on a VFS of a test.
  func create(vfs: EncryptingVFS) throws -> Database {
    try Database.create(at: path, key: key, options: .quiet, vfs: vfs)
  }

  /// The bytes of a file, read by another program: closing a descriptor of the store in this process would drop SQLite's
  /// locks on it.
  func bytes(_ suffix: String = "") throws -> Data {
    try Child.run("/bin/cat", [path + suffix]).output
  }

  /// Copies the store as a crash would leave it now, log included.
  func copyAsAfterCrash(to other: TemporaryStore) throws {
    for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path + suffix) {
      let child = try Child.run("/bin/cp", [path + suffix, other.path + suffix])
      try #require(child.status == 0)
    }
    try? FileManager.default.removeItem(atPath: other.keyFile)
    try FileManager.default.copyItem(atPath: keyFile, toPath: other.keyFile)
  }
}

extension TemporaryStore {
  static var worker: String { Child.products.appendingPathComponent("StoreWorker").path }

  func worker(_ command: String, _ arguments: String...) throws -> Child {
    try Child.run(Self.worker, [command, path, keyFile] + arguments)
  }

  func startWorker(_ command: String, _ arguments: String...) throws -> RunningChild {
    try Child.start(Self.worker, [command, path, keyFile] + arguments)
  }
}

extension Connection {
  /// Lets the transactions of this connection take place at a time, in seconds since 1970.
  func setTime(_ seconds: Int64) throws {
    try perform { $0.core.clock.stop(at: seconds * 1000) }
  }
}

extension SQLiteConnection {
  /// Everything in a table, as the lossy text of its rows.
  func text(ofAllRowsIn table: String) throws -> String {
    // The statement cache wants literals.
    let sql: StaticString =
      switch table {
      case "collections": "SELECT name FROM collections"
      case "items": "SELECT key, data, metadata FROM items"
      case "history": "SELECT key, data, metadata FROM history"
      case "changes": "SELECT keys, action FROM changes"
      default: "SELECT name, value FROM meta"
      }
    var text = ""
    try statement(sql).query { row in
      for column in 0..<row.columnCount { text += String(decoding: row.bytes(column), as: UTF8.self) }
    }
    return text
  }
}
