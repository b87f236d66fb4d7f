extension Database {
  // MARK: Sealed collections

  /// Seals a collection, for every process: from now on, its values are encrypted one by one under the vault's key, on top
  /// of the encryption of the store.
  ///
  /// ```swift
  /// try database.vault.unlock(.passphrase(passphrase))
  /// try database.seal(collection: "tokens")
  /// ```
  ///
  /// Its environments are sealed with it: a secret in one is a secret in all of them. Existing values are sealed, with their
  /// metadata. Their history is dropped, since it is plaintext; from then on history
  /// is kept only if limits are set again. Then the store is vacuumed and its log cleared, so that its files hold no
  /// plaintext of them. The names of the collection and its keys stay readable to anyone who opens the store, as do the
  /// sizes of values, versions and times.
  ///
  /// Listeners are notified that the keys of the collection were updated.
  ///
  /// The collection is also entered in a list that the vault's key authenticates. If someone without that key removes the
  /// collection's mark, each use of the collection with the vault unlocked throws `.damaged`. Sealing it again repairs that:
  /// plaintext values set meanwhile are sealed too, no matter who set them.
  ///
  /// - Throws: `CofferError.vaultLocked` while the vault is locked, `.vaultNotFound`; the errors of a write transaction. Nothing
  ///   is changed then; nor with `.damaged` when a page does not authenticate, and `.diskFull` when there is no room for the
  ///   log. `.unfinished` when the store's files could not be cleared afterwards, for instance because an older snapshot is
  ///   still being read: the collection is sealed then, and calling this again clears them.
  public func seal(collection: String) throws {
    try requireUnlockedVault(collection)
    try checkRewritable()
    try write { try $0.setSealed(true, collection) }
    try clearTraces(after: "The collection is sealed", next: "Seal it again to clear them.")
  }

  /// Unseals a collection and its environments: from now on, their values are stored like all others.
  ///
  /// Does nothing if none of them is sealed.
  ///
  /// - Throws: `CofferError.vaultLocked` while the vault is locked, `.vaultNotFound`; `.damaged` when a value cannot be opened;
  ///   the errors of a write transaction. Nothing is changed then.
  public func unseal(collection: String) throws {
    try requireUnlockedVault(collection)
    try write { try $0.setSealed(false, collection) }
  }

  private func requireUnlockedVault(_ collection: String) throws {
    guard try vault.exists() else { throw CofferError.vaultNotFound }
    guard vault.isUnlocked else { throw CofferError.vaultLocked(collection: collection) }
  }

  /// Makes sure that no overwritten data is left in the store's files.
  ///
  /// - Parameters:
  ///   - done: What is in force already.
  ///   - next: How to try again.
  /// - Throws: `CofferError.unfinished`.
  package func clearTraces(after done: String, next: String) throws {
    // An interrupted rotation that this database resumes takes the same locks, for the same work.
    resumption.wait()
    do {
      try makeConnection().perform { try $0.clearTraces() }
    } catch let error as CofferError {
      throw CofferError.unfinished(
        done: "\(done), but the files of the store may still have what was there before.", next: next, cause: error)
    }
  }
}

extension Reading where Self: ~Copyable {
  // MARK: Sealed collections

  /// Whether a collection is sealed; an environment that does not exist yet is sealed if its parent is.
  public borrowing func isSealed(collection: String) throws -> Bool {
    try session.isSealed(collection)
  }

  /// The names of the sealed collections, including empty ones, in the order of their UTF-8 bytes.
  public borrowing func sealedCollections() throws -> [String] {
    let session = session
    return try session.reading {
      try session.sealedCollections().filter { try !(session.collections.collection(named: $0)?.isRemoved ?? false) }
    }
  }
}
