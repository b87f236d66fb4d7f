import CofferStorage

extension Database {
  /// Puts a copy of the store at `backup` in the place of the one at `path`, which is kept beside it.
  ///
  /// ```swift
  /// let earlier = try Database.restore(at: "settings.coffer", from: "settings.backup.coffer", key: .keyFile(keyPath))
  /// ```
  ///
  /// The backup stays as it is, may be older than what was used here last, and opens with the same keys as its copy. The store begins without a log. What was there is
  /// called `-replaced-1` then, or by the next number that is free, together with its log.
  ///
  /// With `force`, programs may have the store open. They go over to the other one by themselves where they opened it with a
  /// key file, a key, a command or a credential, and hear that everything may have changed; with a passphrase, they get
  /// `CofferError.storeReplaced`. What they had committed before is in the store that is kept, and nothing is committed there
  /// afterwards; what a proxy had not flushed goes into the new one.
  ///
  /// - Parameter force: Whether to go on where other programs have the store open.
  /// - Returns: The path of the store that was replaced; nil where there was none.
  /// - Throws: `CofferError.busy` when the store is open, without `force`, or when the backup is open in this process;
  ///   `.unsupported` where the backup has a log beside it; what opening the backup throws. In all cases nothing was changed.
  @discardableResult
  public static func restore(
    at path: String, from backup: String, key: KeySource, force: Bool = false, options: Options = Options()
  ) throws -> String? {
    var options = options
    options.acceptsOlderStore = true
    return try CofferError.translating {
      let replacement = try Store.Replacement(of: backup, at: path)
      try open(at: replacement.temporaryPath, key: key, options: options).close()
      // Programs that go over to it look there, too.
      forgetWitness(of: path, options)
      let earlier = try place(replacement, at: path, key: key, force: force, options: options)
      let database = try open(at: path, key: key, options: options)
      Store.announce(path)
      try database.close()
      return earlier
    }
  }

  /// Forgets what was remembered of the store that is being replaced.
  private static func forgetWitness(of path: String, _ options: Options) {
    guard let (path, user) = try? Store.owner(at: path) else { return }
    options.freshness.anchor(ofStoreAt: path, user: user)?.keep(nil, ofStoreAt: path)
  }

  private static func place(
    _ replacement: Store.Replacement, at path: String, key: KeySource, force: Bool, options: Options
  ) throws -> String? {
    do {
      if let earlier = try Store.whileUnused(path, { try replacement.place() }) { return earlier }
    } catch StorageError.notFound {
      return try replacement.place()
    }
    guard force else { throw StorageError.busy }
    guard let database = try? open(at: path, key: key, options: options) else { return try replacement.place() }
    defer { try? database.close() }
    // Programs that wait for this lock find another store when they have it; those that read what is in memory see that
    // there was a commit.
    let earlier = try database.makeConnection().perform { session in
      let connection = session.connection
      try connection.beginWrite(.full)
      // Writes the page that it stands on also where it stays the same.
      let version = try connection.statement("PRAGMA user_version").first { $0.integer(0) } ?? 0
      try connection.execute("PRAGMA user_version=\(version)")
      do {
        let earlier = try replacement.place()
        try connection.commit()
        return earlier
      } catch {
        try? connection.rollback()
        throw error
      }
    }
    return earlier
  }
}
