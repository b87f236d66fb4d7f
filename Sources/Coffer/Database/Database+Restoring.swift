import CofferStorage

extension Database {
  /// Replaces the store at `path` by a copy of the one at `backup`, and keeps the old store beside it.
  ///
  /// ```swift
  /// let earlier = try Database.restore(at: "settings.coffer", from: "settings.backup.coffer", key: .keyFile(keyPath))
  /// ```
  ///
  /// The backup may be older than the last state used here. It is left unchanged, and opens with the same keys as its copy.
  /// The restored store begins without a log. The old store is renamed to `-replaced-1`, or the next free number, together
  /// with its log.
  ///
  /// With `force`, programs may have the store open. Those that opened it with a key file, a key, a command or a credential
  /// switch to the restored store by themselves, and are notified that everything may have changed; those that opened it
  /// with a passphrase get `CofferError.storeReplaced`. Their commits up to then are in the old store, which gets no further
  /// commits; changes that a proxy has not flushed yet go into the restored one.
  ///
  /// - Parameter force: Whether to proceed if other programs have the store open.
  /// - Returns: The path of the old store; nil if there was none.
  /// - Throws: `CofferError.busy` when the store is open and `force` is false, or when the backup is open in this process;
  ///   `.unsupported` when the backup has a log beside it; the errors of opening the backup. Nothing is changed then.
  @discardableResult
  public static func restore(
    at path: String, from backup: String, key: KeySource, force: Bool = false, options: Options = Options()
  ) throws -> String? {
    var options = options
    options.acceptsOlderStore = true
    return try CofferError.translating {
      let replacement = try Store.Replacement(of: backup, at: path)
      try open(at: replacement.temporaryPath, key: key, options: options).close()
      // Programs that switch to the restored store check the record too.
      forgetWitness(of: path, options)
      let earlier = try place(replacement, at: path, key: key, force: force, options: options)
      let database = try open(at: path, key: key, options: options)
      Store.announce(path)
      try database.close()
      return earlier
    }
  }

  /// Removes the record of the store that is being replaced.
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
    // Programs waiting for this lock find the new store once they get it; programs that read from memory see that there was
    // a commit.
    let earlier = try database.makeConnection().perform { session in
      let connection = session.connection
      try connection.beginWrite(.full)
      // Writes its page even though the value stays the same.
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
