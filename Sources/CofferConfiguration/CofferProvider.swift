#if Configuration
  import Coffer
  public import Configuration

  /// A provider for swift-configuration, backed by a store: any process can change its settings, for instance with `prefs`,
  /// and a running service sees the changes at once.
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
  /// The parts of a key are joined by dots, and looked up in the collections in order. Reads are served from the proxy's
  /// memory, and include the newest commit of all processes; nothing is polled, and fetching is the same as reading.
  ///
  /// Numbers and Booleans of the store are converted as in swift-configuration's JSON provider, texts as in its provider for
  /// environment variables: numbers as Swift parses them; `true`, `yes`, `1` and their opposites; bytes as base64; lists
  /// separated by commas. Values of type `Secret` and of sealed collections are marked as secrets in swift-configuration too, so
  /// that access logs do not show them. A value of a sealed collection is an error of its key while the vault is locked
  /// (`CofferError.vaultLocked`).
  ///
  /// What an administrator of this host has locked for the collections comes before their values, and an administrator's defaults
  /// after them; see `ManagedSettings`. The files are those of the applications that the collections are named after, and of those
  /// that declare settings there.
  ///
  /// Declared settings are checked against their declarations as of the creation of the provider. A bad value, which does not
  /// have the requested type, or violates its declaration, does not hide a good one in a later collection. It does not reset a
  /// running service either: the last good value that the provider has read stays in effect, as with `Preferences`, and the
  /// bad one is reported once, to the logger of the database and to `ConnectionProxy.errors`. Only a key that never had a good
  /// value has an error (`CofferError.notDecodable`, `.invalidValue`). Nothing is remembered of sealed collections.
  ///
  /// Declared defaults are not returned: otherwise, later providers and the reader's own default would never be used.
  public struct CofferProvider: ConfigProvider, CustomStringConvertible {
    private let proxy: ConnectionProxy
    private let lookup: Lookup
    private let inForce: FollowedSettings

    // Stored, since a reader asks for it with each value.
    /// The name in messages: the store's path and the collections.
    public let providerName: String

    /// The same as ``providerName``.
    public var description: String { providerName }

    /// - Parameters:
    ///   - proxy: The proxy to read through, including its pending changes.
    ///   - collections: The collections to search; the first one that has a key wins.
    /// - Throws: `CofferError.damaged` when a declaration does not parse; `.closed`, `.inputOutput`;
    ///   `.malformedSettings`, `.permissionDenied` where an administrator's files cannot be read.
    public init(_ proxy: ConnectionProxy, collections: [String] = [""]) throws {
      precondition(!collections.isEmpty, "A provider needs at least one collection.")
      self.proxy = proxy
      providerName = "CofferProvider[\(proxy.database.path): \(collections.joined(separator: ", "))]"
      inForce = try FollowedSettings(of: collections, in: proxy.database)
      let places = try proxy.database.makeConnection().read { transaction in
        let names = Set(try transaction.declaredSettings().map(\.declaration.name))
        return try collections.map { collection in
          var declarations: [String: Declaration] = [:]
          for name in names {
            declarations[name] = try transaction.declaration(forKey: name, inCollection: collection)
          }
          return Place(collection: collection, declarations: declarations)
        }
      }
      lookup = Lookup(places, proxy.database)
    }

    private var collections: [String] { lookup.places.map(\.collection) }

    // MARK: - Single values

    /// The current value of a key.
    ///
    /// - Throws: `CofferError.notDecodable`, `.invalidValue`, `.vaultLocked`, `.closed`, `.damaged` or `.inputOutput`.
    public func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
      try lookup.value(of: key, type, at: lookup.now) { name, collection, isGood in
        try inForce.find(name, in: collection) {
          try proxy.openedValue(forKey: name, inCollection: collection)
        } managed: {
          (value: $0, isSealed: false)
        } isGood: {
          isGood($0, $1)
        }
      }
    }

    /// The same as ``value(forKey:type:)``, which is always up to date.
    ///
    /// - Throws: As ``value(forKey:type:)``.
    nonisolated(nonsending) public func fetchValue(
      forKey key: AbsoluteConfigKey, type: ConfigType
    ) async throws -> LookupResult {
      try value(forKey: key, type: type)
    }

    /// Observes the value of a key: the current one, then each change by any process.
    ///
    /// - Throws: The errors of the handler; `CofferError.closed`, `.inputOutput` and similar errors.
    nonisolated(nonsending) public func watchValue<Return: ~Copyable>(
      forKey key: AbsoluteConfigKey, type: ConfigType,
      updatesHandler:
        nonisolated(nonsending) (
          ConfigUpdatesAsyncSequence<Result<LookupResult, any Error>, Never>
        ) async throws -> Return
    ) async throws -> Return {
      let updates = try Updates(of: collections, proxy, inForce.changes()) {
        Result { try value(forKey: key, type: type) }
      } isSame: { earlier, later in
        // Errors may differ each time.
        guard let earlier = try? earlier.get(), let later = try? later.get() else { return false }
        return earlier == later
      }
      return try await updatesHandler(ConfigUpdatesAsyncSequence(updates))
    }

    // MARK: - Snapshots

    /// All values of the collections, as of one moment; the last good value in place of a bad one.
    ///
    /// If no snapshot can be taken, the result has that error for every key.
    public func snapshot() -> any ConfigSnapshot {
      CofferSnapshot(
        providerName: providerName, lookup: lookup, moment: lookup.nextMoment(), inForce: inForce,
        content: Result { try proxy.snapshot(ofCollections: collections) })
    }

    /// Observes all values, as of one moment: now, then after each change.
    ///
    /// - Throws: As ``watchValue(forKey:type:updatesHandler:)``.
    nonisolated(nonsending) public func watchSnapshot<Return: ~Copyable>(
      updatesHandler:
        nonisolated(nonsending) (
          ConfigUpdatesAsyncSequence<any ConfigSnapshot, Never>
        ) async throws -> Return
    ) async throws -> Return {
      let updates = try Updates(of: collections, proxy, inForce.changes(), current: snapshot)
      return try await updatesHandler(ConfigUpdatesAsyncSequence(updates))
    }
  }

  private struct CofferSnapshot: ConfigSnapshot {
    let providerName: String
    let lookup: Lookup
    let moment: Int
    let inForce: FollowedSettings
    let content: Result<ConnectionProxy.Snapshot, any Error>

    func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
      let content = try content.get()
      return try lookup.value(of: key, type, at: moment) { name, collection, isGood in
        try inForce.find(name, in: collection) {
          try content.item(forKey: name, inCollection: collection)?.openedValue()
        } managed: {
          (value: $0, isSealed: false)
        } isGood: {
          isGood($0, $1)
        }
      }
    }
  }
#else
  public import Coffer

  /// Not built: the package's trait `Configuration` is not enabled.
  @available(
    *, unavailable,
    message: "enable the trait \"Configuration\" in your Package.swift, as in .package(…, traits: [\"Configuration\"])"
  )
  public struct CofferProvider {
    /// Not built.
    public init(_ proxy: ConnectionProxy, collections: [String] = [""]) throws { fatalError() }
  }
#endif
