extension Database {
  // MARK: Sealed collections

  /// Declares a collection sealed, for every process: its values are encrypted under the vault's key from now on, one by one,
  /// on top of what protects the store.
  ///
  /// ```swift
  /// try database.vault.unlock(.passphrase(passphrase))
  /// try database.seal(collection: "tokens")
  /// ```
  ///
  /// What is in the collection is sealed, with its metadata, and its history dropped: it was in clear, and none is kept
  /// unless that is asked for anew. Then the store is vacuumed and its log cleared, so that nothing in clear is left in its
  /// files. The names of the collection and its keys stay readable to anyone who opens the store, and so do the sizes of values,
  /// versions and times.
  ///
  /// Who listens hears that the keys of the collection were updated.
  ///
  /// The declaration also stands in a list that the vault's key authenticates. Where somebody without that key took it from the
  /// collection, each use of the collection with the vault unlocked throws `.damaged`; sealing it again mends that: what was
  /// set there in clear meanwhile is sealed, too, whoever set it.
  ///
  /// - Throws: `CofferError.locked` while the vault is locked, `.vaultNotFound`; what a write transaction throws. Nothing was
  ///   changed then. `.busy` may also say that the log could not be cleared, because someone still reads an older snapshot:
  ///   the collection is sealed then, and calling this again clears the log.
  public func seal(collection: String) throws {
    try requireUnlockedVault(collection)
    try write { try $0.setSealed(true, collection) }
    try clearTraces()
  }

  /// Takes back that a collection is sealed: its values lie in the store as all others from now on.
  ///
  /// Does nothing where the collection is not sealed.
  ///
  /// - Throws: `CofferError.locked` while the vault is locked, `.vaultNotFound`; `.damaged` when a value does not open; what a
  ///   write transaction throws. Nothing was changed then.
  public func unseal(collection: String) throws {
    try requireUnlockedVault(collection)
    try write { try $0.setSealed(false, collection) }
  }

  private func requireUnlockedVault(_ collection: String) throws {
    guard try vault.exists() else { throw CofferError.vaultNotFound }
    guard vault.isUnlocked else { throw CofferError.locked(collection: collection) }
  }

  /// Sees to it that nothing of what was overwritten is left in the store's files.
  func clearTraces() throws {
    try makeConnection().perform { try $0.clearTraces() }
  }
}

extension Reading where Self: ~Copyable {
  // MARK: Sealed collections

  /// Whether a collection is sealed; an environment that is not there yet is where its parent is.
  public borrowing func isSealed(collection: String) throws -> Bool {
    try session.isSealed(collection)
  }

  /// The names of the sealed collections, in the order of their UTF-8 bytes, those that hold nothing included.
  public borrowing func sealedCollections() throws -> [String] {
    try session.sealedCollections()
  }
}
