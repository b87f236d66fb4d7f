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
  ///   `.damaged` or `.inputOutput`; the errors of `progress`.
  public func backup(to path: String, key: KeySource, progress: (Double) throws -> Void = { _ in }) throws {
    let (vfs, group) = (vfs, sharedGroup)
    try makeConnection().perform {
      try Self.backup($0, to: path, key: key, vfs: vfs, group: group, cancellation: nil, progress)
    }
  }

  /// Copies the database, as the synchronous form does, without blocking a thread.
  ///
  /// - Throws: The errors of the synchronous form; `CancellationError` when the task was cancelled; no part of the copy is
  ///   left.
  public func backup(
    to path: String, key: KeySource, progress: @escaping @Sendable (Double) throws -> Void = { _ in }
  ) async throws {
    let (vfs, group) = (vfs, sharedGroup)
    try await makeConnection().performing { session, cancellation in
      try Self.backup(session, to: path, key: key, vfs: vfs, group: group, cancellation: cancellation, progress)
    }
  }

  /// The file system layer that this store was opened with; the copy uses it too.
  private var vfs: EncryptingVFS {
    switch backing {
    case .file(let store): store.vfs
    case .memory: .standard
    }
  }

  /// The group that shares the store, and therefore the copy.
  private var sharedGroup: gid_t? {
    guard case .file(let store) = backing, store.owner.isShared else { return nil }
    return store.owner.group
  }

  private static func backup(
    _ session: Session, to path: String, key: KeySource, vfs: EncryptingVFS, group: gid_t?,
    cancellation: Cancellation?,
    _ progress: (Double) throws -> Void
  ) throws {
    try session.read(cancellation: cancellation) {
      try CofferError.translating {
        // The first read takes the snapshot.
        _ = try session.snapshot()
        try Store.create(at: path, key: key, group: group, vfs: vfs) { copy, store in
          try session.connection.copyPages(to: copy) { share in
            try cancellation?.check()
            try progress(share)
          }
          try Metadata(connection: copy).bind(to: store)
        }
      }
    }
  }
}
