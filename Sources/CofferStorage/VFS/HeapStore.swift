import Synchronization

/// A store that lives in memory: a database file and a log that connections of this process share, and that are gone
/// with the last reference to this object.
///
/// SQLite's own `:memory:` has no write-ahead log, and so no snapshots beside a writer.
package final class HeapStore: Sendable {
  package let path: String
  private static let count = Atomic<UInt64>(0)

  package init() {
    path = "/coffer-\(Self.count.wrappingAdd(1, ordering: .relaxed).newValue)"
    HeapVFS.register()
  }

  deinit {
    HeapVFS.removeFiles(of: path)
  }
}
