import CofferStorage

extension Session {
  /// All existing environments, in the order of their collections; one that cannot be read is found when it is used.
  func environments() throws -> [CollectionEnvironment] {
    try reading { try collections.presentNames().compactMap(CollectionEnvironment.init(collection:)) }
  }

  func makeEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    try changingTogether {
      let earlier = try storedCollection(environment.collection)
      guard earlier?.isRemoved ?? true else { return false }
      _ = try makeCollection(environment.collection)
      if earlier == nil, let history = try storedCollection(environment.parent)?.history {
        try setHistoryLimits(history, of: environment.collection)
      }
      note(.environmentMade(environment.collection))
      return true
    }
  }

  /// Removes an environment; its row stays for the history of its items.
  func removeEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    let name = environment.collection
    return try changingTogether {
      guard let stored = try collections.collection(named: name), !stored.isRemoved else { return false }
      try removeAll(in: name)
      try collections.setRemoved(true, stored.id)
      knownCollections[name] = nil
      note(.environmentRemoved(name))
      return true
    }
  }

  /// Erases an environment, even one that was removed before.
  func eraseEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    let name = environment.collection
    return try changingTogether {
      guard let stored = try collections.collection(named: name) else { return false }
      try erase(name)
      if stored.isSealed { try unlist(name, stored) }
      try collections.remove(stored.id)
      knownCollections[name] = nil
      if !stored.isRemoved { note(.environmentRemoved(name)) }
      return true
    }
  }
}

extension Reading where Self: ~Copyable {
  // MARK: Environments

  /// The environments of all collections, including empty and unreadable ones, in the order of their names' UTF-8 bytes.
  package borrowing func environments() throws -> [CollectionEnvironment] {
    try session.environments()
  }

  /// The collections of the environments of one, as far as they are sealed, or not.
  package borrowing func environments(of parent: String, areSealed: Bool) throws -> [String] {
    let session = session
    return try session.environments().filter { $0.parent.utf8.elementsEqual(parent.utf8) }.map(\.collection).filter {
      try session.isSealed($0) == areSealed
    }
  }

  /// Whether an environment exists, even if it is empty.
  package borrowing func hasEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    try reading { try $0.storedCollection(environment.collection).map { !$0.isRemoved } ?? false }
  }

  /// Whether there is anything to erase of a collection: it has items, or had some before.
  package borrowing func hasTraces(ofCollection collection: String) throws -> Bool {
    try reading { try $0.storedCollection(collection) != nil }
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
  /// - Throws: `CofferError.unsupported` for a name that an environment cannot have; `.vaultLocked` when the parent is sealed and
  ///   the vault is locked.
  @discardableResult
  public borrowing func makeEnvironment(_ name: String, of parent: String) throws -> Bool {
    try session.makeEnvironment(CollectionEnvironment(name, of: parent))
  }

  /// Removes an environment with all values set in it, like removing its keys one by one: if it keeps history, that has
  /// the last values, and an environment of this name has it again.
  ///
  /// - Returns: Whether it existed.
  @discardableResult
  package borrowing func removeEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    try session.removeEnvironment(environment)
  }

  /// Erases an environment, as ``erase(collection:)`` does a collection; also one that was removed before.
  ///
  /// - Returns: Whether there was anything of it.
  /// - Throws: `CofferError.vaultLocked` when it is sealed and the vault is locked.
  @discardableResult
  package borrowing func eraseEnvironment(_ environment: CollectionEnvironment) throws -> Bool {
    try session.eraseEnvironment(environment)
  }
}
