import CSQLite

/// A new, unencrypted SQLite database for other programs.
package enum PlainDatabase {
  /// Creates one at `path` and fills it in one transaction.
  ///
  /// It appears whole and durable, with mode 0600, or not at all; an existing file is never replaced.
  package static func create(at path: String, fill: (SQLiteConnection) throws -> Void) throws {
    guard access(path, F_OK) != 0 else { throw StorageError.exists(path: path) }
    let file = try NewFile(besides: path, owner: FileOwner(ofNewFileAt: path))
    // SQLite opens it here, by its name, and nothing later.
    let connection = try FileOwner(ofHandAt: path).acting {
      try SQLiteConnection(fillingPlainFileAt: file.temporaryPath)
    }
    do {
      try connection.beginWrite(.full)
      try fill(connection)
      try connection.commit()
      try connection.close()
    } catch {
      try? connection.rollback()
      try? connection.close()
      throw error
    }
    try file.publish()
  }
}
