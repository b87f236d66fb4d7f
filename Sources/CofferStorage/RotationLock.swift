/// Held by whoever re-encrypts a store, so that nobody else goes on with what only looks cut short.
///
/// flock(2) on the log: SQLite has no locks there, and the system lets go of it when the process dies.
package final class RotationLock {
  private let descriptor: Int32

  /// Takes the lock of the store that `connection` has open; nil when somebody has it.
  package init?(_ connection: SQLiteConnection) throws {
    guard let path = connection.context?.store.path else {
      throw StorageError.unsupported(reason: "a store in memory has no keys")
    }
    let descriptor = Platform.openForReading(path + "-wal")
    guard descriptor >= 0 else { throw StorageError(errno: errno, path: path + "-wal") }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let error = errno
      close(descriptor)
      guard error == EWOULDBLOCK else { throw StorageError(errno: error, path: path + "-wal") }
      return nil
    }
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }
}
