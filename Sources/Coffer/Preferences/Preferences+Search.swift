extension Preferences {
  /// Which place of the search list answers for a key, from the first to be asked to the last.
  public enum Origin: Hashable, Sendable {
    /// ``ManagedSettings``: an administrator has locked it, here.
    case locked(ManagedSettings.Place)
    /// ``Layer/forced(_:)``.
    case forced
    /// ``Layer/arguments(_:)``.
    case arguments
    /// ``Layer/environment(prefix:_:)``.
    case environment
    /// The collection of the application, in an environment that of the environment.
    case application
    /// The collection that the environment is one of.
    case parent(String)
    /// A suite that was added, or the collection that a typed key names.
    case suite(String)
    /// The collection ``Preferences/globalCollection``.
    case global
    /// ``ManagedSettings``: a default of this host, given here.
    case managed(ManagedSettings.Place)
    /// ``Preferences/register(defaults:)``.
    case registered
  }

  /// A value, and where it was found.
  struct Finding<Object> {
    let object: Object
    let origin: Origin
  }

  /// Finds what the search list has for a key, as the value it is.
  func find(_ key: String) throws -> Finding<Value>? {
    try find(key, overrideName: key, as: Value.self) { try proxy.heldValue(forKey: key, inCollection: $0) }
  }

  /// Finds what the search list has for a key, as an object of some type.
  ///
  /// - Parameters:
  ///   - overrideName: What the key is called in the layers above the store.
  ///   - read: Reads it from a collection.
  func find<Object: Decodable>(
    _ key: String, overrideName: String, as type: Object.Type, reading read: (_ collection: String) throws -> Object?
  ) throws -> Finding<Object>? {
    if let override = overrides.find(overrideName) {
      return Finding(
        object: try override.decoded(as: type, key, in: collection), origin: override.origin)
    }
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
    if let managed = overrides.managedDefault(overrideName) {
      return Finding(object: try managed.decoded(as: type, key, in: collection), origin: managed.origin)
    }
    return try registered.value(forKey: key).map {
      Finding(object: try $0.decoded(as: type, key, in: collection), origin: .registered)
    }
  }

  /// The collections that are searched, in their order, each once.
  var searchedCollections: [(name: String, origin: Origin)] {
    var seen: Set<ByteString> = []
    let all =
      [(collection, Origin.application), (parent, .parent(parent))]
      + suites.names.flatMap { Self.names($0, in: environment).map { ($0, .suite($0)) } }
      + globalCollections.map { ($0, .global) }
    return all.filter { seen.insert(ByteString($0.0)).inserted }
  }

  /// What the search list has for every key.
  func findAll() throws -> [ByteString: Value] {
    var values = registered.all
    overrides.replaceDefaults(in: &values)
    for (name, _) in searchedCollections.reversed() {
      values.merge(try proxy.values(inCollection: name)) { $1 }
    }
    overrides.replace(in: &values)
    return values
  }
}

// MARK: - Typed keys

extension Preferences {
  /// What the search list has for a typed key: the first good value, and the bad ones that were passed over for it.
  struct Search<Object> {
    fileprivate(set) var finding: Finding<Object>?
    fileprivate(set) var problems: [SettingProblem] = []
    /// That of the first bad value.
    fileprivate(set) var firstError: (any Error)?

    /// Whether there is another bad value than those that the last good one was found behind: in a variable for instance, which stays
    /// as it is and must not hide what changes below it.
    func hasProblems(besides known: [SettingProblem]) -> Bool { problems.contains { !known.contains($0) } }
  }

  /// The collection of a typed key: its own one, under a suite that of the suite, or the one of these settings.
  func place(of key: Keys) -> String {
    guard let named = key.collection else { return collection }
    return isSuite || environment != nil ? places(of: key)[0] : named
  }

  /// The collections of a typed key: its own one, in an environment behind the environment's; search lists go on behind those of a
  /// key that names none.
  func places(of key: Keys) -> [String] {
    placement(key)
  }

  /// What ``places(of:)`` does, without a hold on the proxy.
  var placement: @Sendable (Keys) -> [String] {
    { [parent, isSuite, environment] key in
      Self.names(Self.place(of: key, parent: parent, isSuite: isSuite), in: environment)
    }
  }

  func placeWithoutEnvironment(of key: Keys) -> String {
    Self.place(of: key, parent: parent, isSuite: isSuite)
  }

  private static func place(of key: Keys, parent: String, isSuite: Bool) -> String {
    guard let named = key.collection else { return parent }
    return isSuite && !key.isShared ? "\(parent)/\(named)" : named
  }

  func search<Object>(for key: Key<Object>) throws -> Search<Object> {
    let own = place(of: key)
    var search = Search<Object>()
    func look(
      _ origin: Origin, in collection: String? = nil, _ place: @autoclosure () -> String,
      _ value: @autoclosure () -> Value?, _ read: () throws -> Object?
    ) throws -> Bool {
      do {
        guard let found = try read() else { return false }
        let object = try proxy.checked(found, for: key, in: collection ?? own)
        search.finding = Finding(object: object, origin: origin)
        return true
      } catch {
        guard let problem = proxy.problem(error, of: key, in: collection ?? own, place(), value()) else { throw error }
        search.problems.append(problem)
        search.firstError = search.firstError ?? error
        return false
      }
    }
    for override in overrides.all(key.overrideName) {
      let isFound = try look(override.origin, override.place, override.entry.value) {
        try override.decoded(as: Object.self, key.name, in: own)
      }
      if isFound { return search }
    }
    for (name, origin) in key.collection == nil ? searchedCollections : places(of: key).map({ ($0, .suite($0)) }) {
      let isFound = try look(
        origin, in: key.collection == nil ? nil : name, "collection \"\(name)\"",
        try? proxy.object(forKey: key.name, inCollection: name, as: Value.self)
      ) {
        try proxy.object(forKey: key.name, inCollection: name, as: Object.self)
      }
      if isFound { return search }
    }
    if let managed = overrides.managedDefault(key.overrideName) {
      let isFound = try look(managed.origin, managed.place, managed.entry.value) {
        try managed.decoded(as: Object.self, key.name, in: own)
      }
      if isFound { return search }
    }
    guard key.collection == nil, let registered = registered.value(forKey: key.name) else { return search }
    _ = try look(.registered, "the registered defaults", registered) {
      try registered.decoded(as: Object.self, key.name, in: own)
    }
    return search
  }

  /// Reports the bad values that a search passed over, each of them once.
  func report<Object>(_ search: Search<Object>, for key: Key<Object>, instead: String? = nil) {
    guard !search.problems.isEmpty else { return }
    let instead = instead ?? search.finding.map { "the value of \($0.origin.place)" } ?? "the default"
    for problem in search.problems { proxy.database.report(problem, instead: instead) }
  }
}

extension Preferences.Origin {
  /// The place in a sentence.
  var place: String {
    switch self {
    case .locked(let place), .managed(let place): place.description
    case .forced: "the forced settings"
    case .arguments: "the arguments"
    case .environment: "the environment"
    case .application: "the application's collection"
    case .suite(let name), .parent(let name): "collection \"\(name)\""
    case .global: "collection \"\(Preferences.globalCollection)\""
    case .registered: "the registered defaults"
    }
  }
}

extension ConnectionProxy {
  /// The object for a key as the value it is, by the shortest way: every getter of UserDefaults goes it.
  fileprivate func heldValue(forKey key: String, inCollection collection: String) throws -> Value? {
    guard let held = try state.visible(key, in: collection, isCounted: true).item?.object else { return nil }
    return try state.core.value(held, key, in: collection)
  }

  /// All that is in a collection, by the bytes of its keys.
  func values(inCollection collection: String) throws -> [ByteString: Value] {
    var values: [ByteString: Value] = [:]
    try enumerateKeysAndObjects(inCollection: collection, as: Value.self) { key, value, _ in
      values[ByteString(key)] = value
    }
    return values
  }
}

extension Value {
  /// The value as a type of the program.
  ///
  /// - Throws: `CofferError.notDecodable`.
  func decoded<Object: Decodable>(as type: Object.Type, _ key: String, in collection: String) throws -> Object {
    if let value = self as? Object { return value }
    return try StoredValue(encoding: self, key, in: collection).decoded(as: type, key, in: collection)
  }
}
