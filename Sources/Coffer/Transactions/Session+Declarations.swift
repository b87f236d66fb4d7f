extension Session {
  var declarations: DeclarationTable {
    DeclarationTable(connection: connection, isKnown: core.hasDeclarations.load(ordering: .relaxed))
  }

  /// Refuses a value that is not what its setting is declared to be.
  func checkDeclared(_ mutation: Mutation, _ key: String, in collection: String) throws {
    let object: HeldValue?
    switch mutation {
    case .set(let item): object = item.object
    case .replaced(let new): object = new.object
    case .removed: object = nil
    }
    guard let object, let declaration = try declarations.declaration(key, in: collection) else { return }
    let value = try core.value(object, key, in: collection)
    let isSealed = try storedCollection(collection)?.isSealed ?? false
    guard let reason = declaration.problem(of: value, showsValue: !isSealed) else { return }
    throw CofferError.invalidValue(collection: collection, key: key, reason: reason)
  }

  /// Puts an application's declarations in the place of those it made before.
  func declare(
    _ all: [Declaration], by application: String, version: String?, fingerprint: [UInt8]
  ) throws {
    try changingTogether {
      try declarations.replace(all, of: application, version: version, fingerprint: fingerprint)
      transaction.changesDeclarations = true
    }
  }
}

extension Reading where Self: ~Copyable {
  // MARK: Declared settings

  /// How a setting is declared in the store, nil when it is not.
  ///
  /// - Throws: `CofferError.damaged` when the declaration does not parse.
  public borrowing func declaration(forKey key: String, inCollection collection: String) throws -> Declaration? {
    let session = session
    return try session.reading { try session.declarations.declaration(key, in: collection) }
  }

  /// All declared settings, in the order of their collections and keys.
  ///
  /// - Throws: `CofferError.damaged` when a declaration does not parse.
  public borrowing func declaredSettings() throws -> [DeclaredSetting] {
    let session = session
    return try session.reading { try session.declarations.all() }
  }
}

extension ReadWriteTransaction {
  /// Declares an application's settings: those that it declared before, and not again, are declared no longer.
  ///
  /// A program does so by ``Preferences/declare(_:strict:)``; this is for tools, and programs in other languages.
  ///
  /// - Parameter application: The collection of the application's own settings.
  /// - Throws: `CofferError.conflictingDeclarations` where another application declares a setting in another way,
  ///   `.malformedSettings` where a declaration makes no sense; nothing was changed then.
  public borrowing func declare(
    _ declarations: [Declaration], by application: String, version: String? = nil
  ) throws {
    for declaration in declarations { try declaration.check() }
    // No program's fingerprint: a program that declares the same afterwards writes it once more.
    try session.declare(declarations, by: application, version: version, fingerprint: [])
  }

  /// Forgets what an application declared; its settings stay.
  ///
  /// - Returns: Whether it had declared anything.
  @discardableResult
  public borrowing func removeDeclarations(of application: String) throws -> Bool {
    let session = session
    return try session.changingTogether {
      let isRemoved = try session.declarations.remove(application)
      if isRemoved { session.transaction.changesDeclarations = true }
      return isRemoved
    }
  }
}
