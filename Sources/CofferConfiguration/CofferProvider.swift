#if Configuration
  import Coffer
  public import Configuration

  /// A provider for swift-configuration: settings that any process sets, by `prefs` for instance, and that a running service
  /// hears of at once.
  ///
  /// ```swift
  /// let settings = try ConnectionProxy(database: database)
  /// let config = ConfigReader(providers: [
  ///   EnvironmentVariablesProvider(),
  ///   try CofferProvider(settings, collections: ["web@staging", "web"]),
  /// ])
  /// let port = config.int(forKey: "http.port", default: 8080)  // prefs set web/http.port --int 8080
  /// ```
  ///
  /// The parts of a key are joined by dots, and looked for in the collections in their order. A read is answered from the proxy's
  /// memory and is the newest commit of all processes; nothing is polled, and to fetch is to read.
  ///
  /// Numbers and truth values of the store are converted as in swift-configuration's provider for JSON, texts as in that for
  /// environment variables: numbers as Swift reads them; `true`, `yes`, `1` and their opposites; bytes as base64; lists with
  /// commas between. A value that is not of the type that is asked for is an error of its key (`CofferError.notDecodable`), and so
  /// is one of a sealed collection while the vault is locked (`.locked`). Values of type `Secret` and those of sealed collections are
  /// secrets of swift-configuration's, too: they are in no log of accesses.
  ///
  /// Declared settings are held to their declarations, as they are when the provider is made. A value of another type than
  /// declared, or outside its limits, does not hide a good one in a later collection; without one, it is an error of its key
  /// (`CofferError.invalidValue`). Declared defaults are not given: providers behind this one, and the default that a reader
  /// names, would never be asked.
  public struct CofferProvider: ConfigProvider, CustomStringConvertible {
    private let proxy: ConnectionProxy
    private let places: [Place]

    // Kept, since a reader asks for it with each value.
    /// What messages call it: the store's path and the collections.
    public let providerName: String

    /// The same as ``providerName``.
    public var description: String { providerName }

    /// - Parameters:
    ///   - proxy: What is read; its pending changes count.
    ///   - collections: Where keys are looked for; the first collection that has one counts.
    /// - Throws: `CofferError.damaged` when a declaration does not parse; `.closed`, `.inputOutput`.
    public init(_ proxy: ConnectionProxy, collections: [String] = [""]) throws {
      precondition(!collections.isEmpty, "A provider needs a collection.")
      self.proxy = proxy
      providerName = "CofferProvider[\(proxy.database.path): \(collections.joined(separator: ", "))]"
      places = try proxy.database.makeConnection().read { transaction in
        let names = Set(try transaction.declaredSettings().map(\.declaration.name))
        return try collections.map { collection in
          var declarations: [String: Declaration] = [:]
          for name in names {
            declarations[name] = try transaction.declaration(forKey: name, inCollection: collection)
          }
          return Place(collection: collection, declarations: declarations)
        }
      }
    }

    private var collections: [String] { places.map(\.collection) }

    // MARK: - Single values

    /// The value for a key, as it is now.
    ///
    /// - Throws: `CofferError.notDecodable`, `.invalidValue`, `.locked`, `.closed`, `.damaged` or `.inputOutput`.
    public func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
      try key.lookUp(in: places, type) { name, collection in
        try proxy.openedValue(forKey: name, inCollection: collection)
      }
    }

    /// The same: there is nothing fresher than what ``value(forKey:type:)`` returns.
    ///
    /// - Throws: As ``value(forKey:type:)``.
    nonisolated(nonsending) public func fetchValue(
      forKey key: AbsoluteConfigKey, type: ConfigType
    ) async throws -> LookupResult {
      try value(forKey: key, type: type)
    }

    /// The value for a key, now and whenever it has become another, by any process.
    ///
    /// - Throws: What the handler throws; `CofferError.closed`, `.inputOutput` and their like.
    nonisolated(nonsending) public func watchValue<Return: ~Copyable>(
      forKey key: AbsoluteConfigKey, type: ConfigType,
      updatesHandler:
        nonisolated(nonsending) (
          ConfigUpdatesAsyncSequence<Result<LookupResult, any Error>, Never>
        ) async throws -> Return
    ) async throws -> Return {
      let updates = try Updates(of: collections, proxy) {
        Result { try value(forKey: key, type: type) }
      } isSame: { earlier, later in
        // An error may be another one each time.
        guard let earlier = try? earlier.get(), let later = try? later.get() else { return false }
        return earlier == later
      }
      return try await updatesHandler(ConfigUpdatesAsyncSequence(updates))
    }

    // MARK: - Snapshots

    /// All values of the collections, as of one moment.
    ///
    /// One that cannot be made has the error for every key.
    public func snapshot() -> any ConfigSnapshot {
      CofferSnapshot(
        providerName: providerName, places: places,
        content: Result { try proxy.snapshot(ofCollections: collections) })
    }

    /// The values as of one moment, now and whenever something has changed.
    ///
    /// - Throws: As ``watchValue(forKey:type:updatesHandler:)``.
    nonisolated(nonsending) public func watchSnapshot<Return: ~Copyable>(
      updatesHandler:
        nonisolated(nonsending) (
          ConfigUpdatesAsyncSequence<any ConfigSnapshot, Never>
        ) async throws -> Return
    ) async throws -> Return {
      let updates = try Updates(of: collections, proxy, current: snapshot)
      return try await updatesHandler(ConfigUpdatesAsyncSequence(updates))
    }
  }

  private struct CofferSnapshot: ConfigSnapshot {
    let providerName: String
    let places: [Place]
    let content: Result<ConnectionProxy.Snapshot, any Error>

    func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
      let content = try content.get()
      return try key.lookUp(in: places, type) { name, collection in
        try content.item(forKey: name, inCollection: collection)?.openedValue()
      }
    }
  }

  /// A collection that a provider looks in, and the settings that are declared for it, by name.
  private struct Place: Sendable {
    let collection: String
    let declarations: [String: Declaration]
  }

  extension AbsoluteConfigKey {
    /// The first good value that the collections have.
    ///
    /// - Parameter find: Gives the value of a key in a collection, and whether it is sealed there.
    fileprivate func lookUp(
      in places: [Place], _ type: ConfigType,
      _ find: (_ name: String, _ collection: String) throws -> (value: Value, isSealed: Bool)?
    ) throws -> LookupResult {
      let name = components.joined(separator: ".")
      var firstProblem: CofferError?
      for place in places {
        guard let (value, isSealed) = try find(name, place.collection) else { continue }
        let declaration = place.declarations.isEmpty ? nil : place.declarations[name]
        if let problem = declaration?.problem(of: value, showsValue: !isSealed) {
          firstProblem =
            firstProblem ?? .invalidValue(collection: place.collection, key: name, reason: problem)
          continue
        }
        guard let content = ConfigContent(value, as: type) else {
          throw CofferError.notDecodable(
            collection: place.collection, key: name, storedType: value.kind.name, requestedType: type.rawValue,
            reason: "it cannot be converted")
        }
        return LookupResult(
          encodedKey: Self.path(name, place.collection),
          value: ConfigValue(content, isSecret: isSealed || value.kind == .secret))
      }
      if let firstProblem { throw firstProblem }
      return LookupResult(encodedKey: Self.path(name, places[0].collection), value: nil)
    }

    /// The key as `prefs` takes it.
    private static func path(_ name: String, _ collection: String) -> String {
      collection.isEmpty ? name : "\(collection)/\(name)"
    }
  }
#endif
