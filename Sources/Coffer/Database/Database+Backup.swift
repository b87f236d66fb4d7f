import CofferStorage

extension Database {
  /// Copies the database, as it is now, into a new store at `path`, which `key` opens.
  ///
  /// Writers and readers go on meanwhile. The copy is a store of its own: with another id and other keys beneath, also
  /// when the same key opens it. It appears whole and durable, or not at all.
  ///
  /// ```swift
  /// try database.backup(to: "settings.backup.coffer", key: .keyFile(keyPath)) { print("\(Int($0 * 100)) %") }
  /// ```
  ///
  /// - Parameter progress: Gets the share that is done, from 0 to 1; what it throws ends the backup, and leaves nothing.
  /// - Throws: `CofferError.storeExists` when there is a file already; `.keyUnavailable`, `.diskFull`, `.permissionDenied`,
  ///   `.damaged` or `.inputOutput`; what `progress` throws.
  public func backup(to path: String, key: KeySource, progress: (Double) throws -> Void = { _ in }) throws {
    let (vfs, group) = (vfs, sharedGroup)
    try makeConnection().perform {
      try Self.backup($0, to: path, key: key, vfs: vfs, group: group, cancellation: nil, progress)
    }
  }

  /// Copies the database, as the synchronous form does, without blocking a thread.
  ///
  /// - Throws: What the synchronous form throws; `CancellationError` when the task was cancelled, with nothing left of the
  ///   copy.
  public func backup(
    to path: String, key: KeySource, progress: @escaping @Sendable (Double) throws -> Void = { _ in }
  ) async throws {
    let (vfs, group) = (vfs, sharedGroup)
    try await makeConnection().performing { session, cancellation in
      try Self.backup(session, to: path, key: key, vfs: vfs, group: group, cancellation: cancellation, progress)
    }
  }

  /// The copy is made as this store was opened.
  private var vfs: EncryptingVFS {
    switch backing {
    case .file(let store): store.vfs
    case .memory: .standard
    }
  }

  /// The group that shares the store, and so the copy.
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
        // The snapshot is taken by the first read.
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
