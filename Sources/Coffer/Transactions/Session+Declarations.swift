extension Session {
  package var declarations: DeclarationTable {
    DeclarationTable(connection: connection, isKnown: core.hasDeclarations.load(ordering: .relaxed))
  }

  /// Replaces an application's earlier declarations.
  func declare(
    _ all: [Declaration], by application: String, version: String?, fingerprint: [UInt8]
  ) throws {
    try changingTogether {
      try declarations.replace(all, of: application, version: version, fingerprint: fingerprint)
      note(.declared(application))
      transaction.effective = [:]
    }
  }
}

extension Reading where Self: ~Copyable {
  // MARK: Declared settings

  /// The stored declaration of a setting, or nil.
  ///
  /// - Throws: `CofferError.damaged` when the declaration does not parse.
  package borrowing func declaration(forKey key: String, inCollection collection: String) throws -> Declaration? {
    let session = session
    return try session.reading { try session.declarations.declaration(key, in: collection) }
  }

  /// All declared settings, in the order of their collections and keys.
  ///
  /// - Throws: `CofferError.damaged` when a declaration does not parse.
  package borrowing func declaredSettings() throws -> [DeclaredSetting] {
    let session = session
    return try session.reading { try session.declarations.all() }
  }
}

extension ReadWriteTransaction {
  /// Declares an application's settings, replacing all of its earlier declarations.
  ///
  /// Programs use ``Preferences/declare(_:strict:)``; this is for tools, and for programs in other languages.
  ///
  /// - Parameter application: The collection of the application's own settings.
  /// - Throws: `CofferError.conflictingDeclarations` when another application declares a setting differently,
  ///   `.malformedSettings` when a declaration is invalid; nothing is changed then.
  package borrowing func declare(
    _ declarations: [Declaration], by application: String, version: String? = nil
  ) throws {
    for declaration in declarations { try declaration.check() }
    // Not a program's fingerprint: a program that declares the same settings afterwards writes them once more.
    try session.declare(declarations, by: application, version: version, fingerprint: [])
  }
}
