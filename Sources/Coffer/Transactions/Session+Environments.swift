import CofferStorage

extension Session {
  /// All existing environments, in the order of their collections.
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
      // Removes it from the vault's list too.
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

  /// The environments of all collections, including empty ones, in the order of their names' UTF-8 bytes.
  package borrowing func environments() throws -> [CollectionEnvironment] {
    try session.environments()
  }

  /// Whether an environment exists, even if it is empty.
  package borrowing func hasEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    let session = session
    return try session.reading { try session.storedCollection(environment.collection) != nil }
  }
}

extension ReadWriteTransaction {
  // MARK: Environments

  /// Creates an empty environment, in which all values of its parent show.
  ///
  /// If the parent is sealed, so is the environment; if it keeps history, the environment does so within the same limits.
  ///
  /// ```swift
  /// try connection.readWrite { try $0.makeEnvironment("staging", of: "org.example.shop") }
  /// ```
  ///
  /// - Returns: Whether it is new.
  /// - Throws: `CofferError.unsupported` for a name that an environment cannot have; `.locked` when the parent is sealed and
  ///   the vault is locked.
  @discardableResult
  public borrowing func makeEnvironment(_ name: String, of parent: String) throws -> Bool {
    try session.makeEnvironment(CollectionEnvironment(name, of: parent))
  }

  /// Removes an environment with all values set in it.
  ///
  /// - Returns: Whether it existed.
  /// - Throws: `CofferError.locked` when it is sealed and the vault is locked.
  @discardableResult
  package borrowing func removeEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    try session.removeEnvironment(environment)
  }
}
