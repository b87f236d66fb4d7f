import CofferStorage

extension Database {
  /// Copies the current state of the database into a new store at `path`, which `key` opens.
  ///
  /// Writers and readers continue meanwhile. The copy is a separate store, with its own ID and its own internal keys, even
  /// if the same key opens it. It appears complete and durable, or not at all.
  ///
  /// ```swift
  /// try database.backup(to: "settings.backup.coffer", key: .keyFile(keyPath)) { print("\(Int($0 * 100)) %") }
  /// ```
  ///
  /// - Parameter progress: Called with the fraction done, from 0 to 1; an error that it throws ends the backup, and leaves
  ///   nothing behind.
  /// - Throws: `CofferError.storeExists` when there is already a file; `.keyUnavailable`, `.diskFull`, `.permissionDenied`,
  ///   `.damaged` or `.inputOutput`; `.storeReplaced` when something has written into the file meanwhile, or touched it; the errors of
  ///   `progress`.
  public func backup(to path: String, key: KeySource, progress: (Double) throws -> Void = { _ in }) throws {
    let place = BackupPlace(path: path, group: sharedGroup, vfs: vfs, freshness: options.freshness)
    try makeConnection().perform { try Self.backup($0, to: place, key: key, cancellation: nil, progress) }
  }

  /// Copies the database, as the synchronous form does, without blocking a thread.
  ///
  /// - Throws: The errors of the synchronous form; `CancellationError` when the task was cancelled; no part of the copy is
  ///   left.
  public func backup(
    to path: String, key: KeySource, progress: @escaping @Sendable (Double) throws -> Void = { _ in }
  ) async throws {
    let place = BackupPlace(path: path, group: sharedGroup, vfs: vfs, freshness: options.freshness)
    try await makeConnection().performing { session, cancellation in
      try Self.backup(session, to: place, key: key, cancellation: cancellation, progress)
    }
  }

  /// The file system layer that this store was opened with; the copy uses it too.
  private var vfs: EncryptingVFS {
    switch backing {
    case .file(let store): store.vfs
    case .memory, .closed: .standard
    }
  }

  /// The group that shares the store, and therefore the copy.
  private var sharedGroup: gid_t? {
    guard case .file(let store) = backing, store.owner.isShared else { return nil }
    return store.owner.group
  }

  /// Where a backup is created, and what remembers stores there.
  private struct BackupPlace {
    let path: String
    let group: gid_t?
    let vfs: EncryptingVFS
    let freshness: Freshness
  }

  private static func backup(
    _ session: Session, to place: BackupPlace, key: KeySource, cancellation: Cancellation?,
    _ progress: (Double) throws -> Void
  ) throws {
    try session.read(cancellation: cancellation) {
      try CofferError.translating {
        // The first read takes the snapshot.
        _ = try session.commitNumber()
        try createUnopened(
          at: place.path, key: key, group: place.group, vfs: place.vfs, freshness: place.freshness
        ) { copy, store in
          try session.connection.copyPages(to: copy) { share in
            try cancellation?.check()
            try progress(share)
          }
          // Otherwise the copy may be a mixture.
          if let source = session.connection.store, !session.connection.hasItsContents {
            throw StorageError.replaced(path: source.path)
          }
          try Metadata(connection: copy).bind(to: store)
        }
      }
    }
  }

  /// Creates a store that is not opened here: nothing is remembered of it, nor of an earlier one of its name.
  package static func createUnopened(
    at path: String, key: KeySource, group: gid_t? = nil, vfs: EncryptingVFS = .standard,
    freshness: Freshness = .automatic,
    fill: (SQLiteConnection, Store) throws -> Void
  ) throws {
    let record = NewStoreRecord(freshness)
    try Store.create(
      at: path, key: key, group: group, vfs: vfs, fill: fill, naming: { try record.keep(ofStoreAt: $0, $1, $2) })
  }
}
