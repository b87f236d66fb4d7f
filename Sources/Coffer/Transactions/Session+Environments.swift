import CofferStorage

extension Session {
  /// All environments that are there, in the order of their collections.
  func environments() throws -> [CollectionEnvironment] {
    try reading { try collections.all().compactMap { CollectionEnvironment(collection: $0.name) } }
  }

  func makeEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    try changingTogether {
      guard try storedCollection(environment.collection) == nil else { return false }
      _ = try makeCollection(environment.collection)
      if let history = try storedCollection(environment.parent)?.history {
        try setHistoryLimits(history, of: environment.collection)
      }
      transaction.changesDeclarations = true
      return true
    }
  }

  func removeEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    let name = environment.collection
    return try changingTogether {
      guard let stored = try collections.collection(named: name) else { return false }
      try removeAll(in: name)
      // From the vault's list, too.
      if stored.isSealed { try setSealed(false, name) }
      try collections.remove(stored.id)
      knownCollections[name] = nil
      transaction.changesDeclarations = true
      return true
    }
  }
}

extension Reading where Self: ~Copyable {
  // MARK: Environments

  /// The environments of all collections, those that hold nothing included, in the order of their names' UTF-8 bytes.
  public borrowing func environments() throws -> [CollectionEnvironment] {
    try session.environments()
  }

  /// Whether an environment is there, even if it holds nothing.
  public borrowing func hasEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    let session = session
    return try session.reading { try session.storedCollection(environment.collection) != nil }
  }
}

extension ReadWriteTransaction {
  // MARK: Environments

  /// Makes an environment that holds nothing yet: everything shows from its parent.
  ///
  /// Where the parent is sealed, the environment is, too; where it keeps history, the environment does within the same limits.
  ///
  /// - Returns: Whether it was not there.
  /// - Throws: `CofferError.locked` where the parent is sealed and the vault locked.
  @discardableResult
  public borrowing func makeEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    try session.makeEnvironment(environment)
  }

  /// Removes an environment with all that is set in it.
  ///
  /// - Returns: Whether it was there.
  /// - Throws: `CofferError.locked` where it is sealed and the vault locked.
  @discardableResult
  public borrowing func removeEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    try session.removeEnvironment(environment)
  }
}
