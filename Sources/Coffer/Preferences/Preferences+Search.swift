extension Preferences {
  /// The place in the search list that has a key's value, from the first searched to the last.
  public enum Origin: Hashable, Sendable {
    /// ``ManagedSettings``: locked by an administrator, at this place.
    case lockedByAdministrator(ManagedSettings.Place)
    /// ``Layer/forced(_:)``.
    case forced
    /// ``Layer/arguments(_:)``.
    case arguments
    /// ``Layer/variables(prefix:_:)``.
    case variables
    /// The collection of the application, or of its environment.
    case application
    /// The parent collection of the environment.
    case parent(String)
    /// An added suite, or the collection that a typed key names.
    case suite(String)
    /// The collection ``Preferences/globalCollection``.
    case global
    /// ``ManagedSettings``: a default of this host, at this place.
    case managed(ManagedSettings.Place)
    /// ``Preferences/register(defaults:)``.
    case registered
  }

  /// A value, and where it was found.
  struct Finding<Object> {
    let object: Object
    let origin: Origin
  }

  /// Finds the value of a key in the search list, as a ``Value``.
  func find(_ key: String) throws -> Finding<Value>? {
    try find(key, as: Value.self) { try proxy.heldValue(forKey: key, inCollection: $0) }
  }

  /// Finds the value of a key in the search list, decoded as a type.
  ///
  /// - Parameters:
  ///   - read: Reads it from a collection.
  func find<Object: Decodable>(
    _ key: String, as type: Object.Type, reading read: (_ collection: String) throws -> Object?
  ) throws -> Finding<Object>? {
    try EffectiveSettings.first(
      above: {
        try overrides.find(key, managedName(ofKey: key)).map { override in
          Finding(object: try override.decoded(as: type, key, in: collection), origin: override.origin)
        }
      },
      stored: { try findStored(read) },
      managed: {
        try overrides.managedDefaults(managedName(ofKey: key)).first.map { managed in
          Finding(object: try managed.decoded(as: type, key, in: collection), origin: managed.origin)
        }
      },
      fallback: {
        try registered.value(forKey: key).map {
          Finding(object: try $0.decoded(as: type, key, in: collection), origin: .registered)
        }
      })
  }

  private func findStored<Object>(_ read: (_ collection: String) throws -> Object?) throws -> Finding<Object>? {
    if let object = try read(collection) { return Finding(object: object, origin: .application) }
    if environment != nil, let object = try read(parent) { return Finding(object: object, origin: .parent(parent)) }
    for suite in suites.names {
      for name in Self.names(suite, in: environment) {
        if let object = try read(name) { return Finding(object: object, origin: .suite(name)) }
      }
    }
    for name in globalCollections {
      if let object = try read(name) { return Finding(object: object, origin: .global) }
    }
    return nil
  }

  /// The collections to search, in order, without duplicates.
  var searchedCollections: [(name: String, origin: Origin)] {
    var seen: Set<ByteString> = []
    let all =
      [(collection, Origin.application), (parent, .parent(parent))]
      + suites.names.flatMap { Self.names($0, in: environment).map { ($0, .suite($0)) } }
      + globalCollections.map { ($0, .global) }
    return all.filter { seen.insert(ByteString($0.0)).inserted }
  }

  /// The effective values of all keys in the search list.
  func findAll() throws -> [ByteString: Value] {
    var values = registered.all
    overrides.replaceDefaults(in: &values, ofSuite: suite)
    for (name, _) in searchedCollections.reversed() {
      values.merge(try proxy.values(inCollection: name)) { $1 }
    }
    overrides.replace(in: &values, ofSuite: suite)
    return values
  }
}

// MARK: - Typed keys

extension Preferences {
  /// The result of a search for a typed key: the first good value, and the bad values skipped before it.
  struct Search<Object> {
    fileprivate(set) var finding: Finding<Object>?
    fileprivate(set) var problems: [SettingProblem] = []
    /// The error of the first bad value.
    fileprivate(set) var firstError: (any Error)?
  }

  /// The collection of a typed key: its own, under a suite the suite's part of it, or the collection of these settings.
  func place(of key: Keys) -> String {
    guard let named = key.collection else { return collection }
    return isSuite || environment != nil ? places(of: key)[0] : named
  }

  /// The collections of a typed key: in an environment, the environment's collection comes first.
  ///
  /// For a key that names no collection, the search list goes on after these.
  func places(of key: Keys) -> [String] {
    Self.names(placeWithoutEnvironment(of: key), in: environment)
  }

  /// ``places(of:)``, without a reference to the proxy.
  var placement: @Sendable (Keys) -> [String] {
    { [parent, suiteOf, environment] key in
      Self.names(Self.place(of: key, parent: parent, suiteOf: suiteOf), in: environment)
    }
  }

  func placeWithoutEnvironment(of key: Keys) -> String {
    Self.place(of: key, parent: parent, suiteOf: suiteOf)
  }

  private static func place(of key: Keys, parent: String, suiteOf application: String?) -> String {
    guard let named = key.collection else { return parent }
    guard let application, !key.isShared else { return named }
    // The application's own settings are in the suite itself, also where a key spells their collection out.
    return ByteString(named) == ByteString(application) ? parent : "\(parent)/\(named)"
  }

  /// The name of a typed key in an administrator's files: its place in the store.
  func managedName(of key: Keys) -> String {
    isSuite ? "\(placeWithoutEnvironment(of: key))/\(key.name)" : key.overrideName
  }

  /// The same for a key of these settings' own collection.
  func managedName(ofKey key: String) -> String { suite.map { "\($0)/\(key)" } ?? key }

  var isSuite: Bool { suiteOf != nil }

  /// The name of the suite that these settings are of; nil for the application's own.
  var suite: String? { isSuite ? parent : nil }

  func search<Object>(for key: Key<Object>) throws -> Search<Object> {
    let own = place(of: key)
    var search = Search<Object>()
    func look(
      _ origin: Origin, in collection: String? = nil, _ place: @autoclosure () -> String,
      _ value: @autoclosure () -> Value?, _ read: () throws -> Object?
    ) throws -> Void? {
      do {
        guard let found = try read() else { return nil }
        let object = try proxy.checked(found, for: key, in: collection ?? own)
        search.finding = Finding(object: object, origin: origin)
        return ()
      } catch {
        guard let problem = proxy.problem(error, of: key, in: collection ?? own, place(), value()) else { throw error }
        search.problems.append(problem)
        search.firstError = search.firstError ?? error
        return nil
      }
    }
    func lookAt(_ override: Overrides.Override) throws -> Void? {
      try look(override.origin, override.place, override.entry.value) {
        try override.decoded(as: Object.self, key.name, in: own)
      }
    }
    let collections = key.collection == nil ? searchedCollections : places(of: key).map { ($0, .suite($0)) }
    _ = try EffectiveSettings.first(
      above: {
        for override in overrides.all(key.overrideName, managedName(of: key)) {
          if let found: Void = try lookAt(override) { return found }
        }
        return nil
      },
      stored: {
        for (name, origin) in collections {
          let found: Void? = try look(
            origin, in: key.collection == nil ? nil : name, "collection \"\(name)\"",
            try? proxy.object(forKey: key.name, inCollection: name, as: Value.self)
          ) {
            try proxy.object(forKey: key.name, inCollection: name, as: Object.self)
          }
          if let found { return found }
        }
        return nil
      },
      managed: {
        for override in overrides.managedDefaults(managedName(of: key)) {
          if let found: Void = try lookAt(override) { return found }
        }
        return nil
      },
      fallback: { () throws -> Void? in
        guard key.collection == nil, let registered = registered.value(forKey: key.name) else { return nil }
        return try look(.registered, "the registered defaults", registered) {
          try registered.decoded(as: Object.self, key.name, in: own)
        }
      })
    return search
  }

  /// Reports the bad values that a search skipped, each once.
  func report<Object>(_ search: Search<Object>, for key: Key<Object>, instead: String? = nil) {
    guard !search.problems.isEmpty else { return }
    let instead = instead ?? search.finding.map { "the value of \($0.origin.place)" } ?? "the default"
    for problem in search.problems { proxy.database.report(problem, instead: instead) }
  }
}

extension Preferences.Origin {
  /// The place, in words.
  var place: String {
    switch self {
    case .lockedByAdministrator(let place), .managed(let place): place.description
    case .forced: "the forced settings"
    case .arguments: "the arguments"
    case .variables: "the environment variables"
    case .application: "the application's collection"
    case .suite(let name), .parent(let name): "collection \"\(name)\""
    case .global: "collection \"\(Preferences.globalCollection)\""
    case .registered: "the registered defaults"
    }
  }
}

extension ConnectionProxy {
  /// The value of a key, as a ``Value``, on the fastest path: every getter of UserDefaults uses it.
  fileprivate func heldValue(forKey key: String, inCollection collection: String) throws -> Value? {
    guard let held = try state.visible(key, in: collection, isCounted: true).item?.object else { return nil }
    return try state.core.value(held, key, in: collection)
  }

  /// All values in a collection, by the bytes of their keys.
  func values(inCollection collection: String) throws -> [ByteString: Value] {
    var values: [ByteString: Value] = [:]
    try enumerateKeysAndObjects(inCollection: collection, as: Value.self) { key, value, _ in
      values[ByteString(key)] = value
    }
    return values
  }
}

extension Value {
  /// The value, decoded as a type of the program.
  ///
  /// - Throws: `CofferError.notDecodable`.
  func decoded<Object: Decodable>(as type: Object.Type, _ key: String, in collection: String) throws -> Object {
    if let value = self as? Object { return value }
    return try StoredValue(encoding: self, key, in: collection).decoded(as: type, key, in: collection)
  }
}
