extension EffectiveSettings {
  /// The item in force.
  package func item(
    _ key: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> Found<Item>? {
    try find(key) {
      try transaction.item(forKey: key, inCollection: $0)
    } declared: {
      try transaction.declaration(forKey: key, inCollection: collection)?.defaultValue
    }
  }

  /// The keys of all settings of the collection: stored, an administrator's, or declared, each once in this order.
  package func keys(
    _ declared: DeclaredKeys, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [String] {
    var keys: [String] = []
    for name in shown { keys += try transaction.allKeys(inCollection: name) }
    keys += try managedKeys(transaction) + declared.settings(in: collection).map(\.declaration.name)
    var seen: Set<ByteString> = []
    return keys.filter { seen.insert(ByteString($0)).inserted }
  }

  /// The keys of the collection with a lock or a default of an administrator.
  ///
  /// A name with slashes may be of several collections: it is listed for the one that the store knows.
  package func managedKeys(_ transaction: borrowing some Reading & ~Copyable) throws -> [String] {
    var keys: Set<ByteString> = []
    for file in files where !file.isEmpty {
      for key in file.keys(in: collection) where try !isOfAnother(key, file, transaction) {
        keys.insert(ByteString(key))
      }
    }
    return keys.sorted().map(\.string)
  }

  /// Whether a key's name in the files is rather that of a key in another collection.
  private func isOfAnother(
    _ key: String, _ file: ManagedSettings, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> Bool {
    let session = transaction.session
    for slash in key.utf8.indices where key.utf8[slash] == UInt8(ascii: "/") {
      let other = file.name(of: String(key[..<slash]), in: collection)
      let isKnown =
        try transaction.numberOfKeys(inCollection: other) > 0
        || !session.reading { try session.declarations.applications(in: other) }.isEmpty
      if isKnown { return true }
    }
    return false
  }
}

extension Reading where Self: ~Copyable {
  /// What is in force in a collection, by the files of the application that a tool names, or else that the collection is named
  /// after, and of those that declare settings there.
  ///
  /// - Parameter parent: The collection whose values show where the environment has none.
  /// - Throws: `CofferError.malformedSettings`, `.permissionDenied` or `.inputOutput` where an administrator's files cannot be read.
  package borrowing func effectiveSettings(
    of collection: String, parent: String? = nil
  ) throws -> EffectiveSettings {
    let session = session
    let files = session.settingRules?.files ?? AdministratorFiles()
    let declaring = try session.reading { try session.declarations.applications(in: collection) }
    return try EffectiveSettings(collection, parent, files, declaring: declaring)
  }
}
