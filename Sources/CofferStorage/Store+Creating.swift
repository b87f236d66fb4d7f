import CSQLite

extension Store {
  /// Creates a store at `path` with one slot; `fill` gets a connection to the still unnamed store.
  ///
  /// The store appears whole and durable, or not at all; if two processes create it at once, one gets
  /// `StorageError.exists`.
  ///
  /// - Parameters:
  ///   - group: The group to share it with; nil for its owner alone.
  ///   - naming: Runs its last argument, which gives the store its name, while no other process creates a store in this folder;
  ///     gets the resolved path and the owner of the store.
  package static func create(
    at path: String, key: KeySource, label: String = "", stretching: Slot.Stretching = .standard, group: gid_t? = nil,
    vfs: EncryptingVFS = .standard, fill: (SQLiteConnection, Store) throws -> Void,
    naming: (_ path: String, _ user: uid_t, _ name: () throws -> Void) throws -> Void = { _, _, name in try name() }
  ) throws {
    let new = try NewEnvelope(key: key, label: label, stretching: stretching)
    guard access(path, F_OK) != 0 else { throw StorageError.exists(path: path) }

    let owner = try FileOwner(ofNewFileAt: path, sharedGroup: group)
    StoreCopies.removeAbandoned(besides: path, owner)
    let file = try NewFile(besides: path, owner: owner, observer: vfs.fileCallObserver)
    try new.bytes.withUnsafeBytes { try file.write($0) }
    do {
      // An error names the store.
      _ = try FilePath.resolved(path)
      let temporaryPath = try FilePath.resolved(file.temporaryPath)
      let envelopeFile = try owner.acting {
        try EnvelopeFile(path: temporaryPath, below: vfs.below, isReadOnly: false)
      }
      let store = try Store(
        path: temporaryPath, owner: owner, vfs: vfs, file: envelopeFile, envelope: new.envelope, rootKey: new.rootKey)
      let connection = try SQLiteConnection(creating: store)
      try fill(connection, store)
      try connection.checkpoint()
      try connection.close()
    } catch {
      for suffix in ["-wal", "-shm"] { _ = try? owner.acting { unlink(file.temporaryPath + suffix) } }
      throw error
    }
    try file.publish { name in
      try withoutActuallyEscaping(name) { name in
        try FilePath.takingTurns(above: path) {
          guard access(path, F_OK) != 0 else { throw StorageError.exists(path: path) }
          try naming(FilePath.resolved(path), owner.user, name)
        }
      }
    }
  }
}
