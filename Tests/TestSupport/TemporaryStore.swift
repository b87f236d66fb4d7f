import Coffer
import CofferStorage
import Foundation
import Logging

/// A folder that is removed with this object, with a key file and a store in it.
package final class TemporaryStore: Sendable {
  package let folder: String
  package var path: String { "\(folder)/settings.coffer" }
  package var keyFile: String { "\(folder)/key" }
  package var key: KeySource { .keyFile(keyFile) }

  package init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try KeyFile.create(at: keyFile)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: folder)
  }

  package func open(busyTimeout: Duration = .seconds(120)) throws -> Database {
    try Database.openOrCreate(
      at: path, key: key,
      options: .init(busyTimeout: busyTimeout, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
  }

  /// Makes the store on a VFS of a test.
  package func create(vfs: EncryptingVFS) throws -> Database {
    try Database.create(at: path, key: key, options: .quiet, vfs: vfs)
  }

  /// The bytes of a file, read by another program: closing a descriptor of the store in this process would drop SQLite's
  /// locks on it.
  package func bytes(_ suffix: String = "") throws -> Data {
    try Child.run("/bin/cat", [path + suffix]).output
  }

  /// Copies the store as a crash would leave it now, log included.
  package func copyAsAfterCrash(to other: TemporaryStore) throws {
    for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path + suffix) {
      let child = try Child.run("/bin/cp", [path + suffix, other.path + suffix])
      guard child.status == 0 else { throw CocoaError(.fileReadUnknown) }
    }
    try? FileManager.default.removeItem(atPath: other.keyFile)
    try FileManager.default.copyItem(atPath: keyFile, toPath: other.keyFile)
  }
}

extension TemporaryStore {
  package static var worker: String { Child.products.appendingPathComponent("StoreWorker").path }

  package func worker(_ command: String, _ arguments: String...) throws -> Child {
    try Child.run(Self.worker, [command, path, keyFile] + arguments)
  }

  package func startWorker(_ command: String, _ arguments: String...) throws -> RunningChild {
    try Child.start(Self.worker, [command, path, keyFile] + arguments)
  }
}
