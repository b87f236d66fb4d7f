import Coffer
import Foundation
import Logging

/// All values of a store, by collection and key.
package typealias StoreValues = [String: [String: Value]]

extension Database {
  /// All values of the store; those of sealed collections only if the vault is unlocked.
  package func contents() throws -> StoreValues {
    try makeConnection().read { try $0.contents() }
  }
}

extension Reading where Self: ~Copyable {
  /// All values that the transaction sees.
  package borrowing func contents() throws -> StoreValues {
    var contents: StoreValues = [:]
    for collection in try allCollections() {
      for key in try allKeys(inCollection: collection) {
        contents[collection, default: [:]][key] = try value(forKey: key, inCollection: collection)
      }
    }
    return contents
  }
}

extension Database.Options {
  /// Logs nothing, and waits for no one: the store is used by one thread.
  package static var quiet: Database.Options {
    Database.Options(busyTimeout: .milliseconds(200), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }
}

/// A folder that is removed with this object; in memory where the system has room for files there, so that the many
/// stores of these tests wait for no disk.
package final class ScratchFolder: Sendable {
  package let path: String

  package init() throws {
    let memory = "/dev/shm"
    let root = access(memory, W_OK) == 0 ? memory : FileManager.default.temporaryDirectory.path
    path = "\(root)/coffer-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  package func file(_ name: String) -> String { "\(path)/\(name)" }
}
