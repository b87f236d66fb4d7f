#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A `UserDefaults`-style interface to a store: settings by name, with defaults, suites and a search list.
///
/// ```swift
/// Preferences.standard = try Preferences.open(application: "org.example.editor")
///
/// let preferences = Preferences.standard
/// try preferences.register(defaults: ["fontSize": 12])
/// try preferences.set(14, forKey: "fontSize")
/// preferences.integer(forKey: "fontSize")  // 14, at once; the disk has it soon after
/// preferences.string(forKey: "fontSize")   // "14"
/// ```
///
/// The names are those of Foundation's `UserDefaults`, but errors are reported. Opening, setting and removing throw. A
/// getter with a name of UserDefaults cannot throw: if the setting cannot be read, it returns the registered default, and
/// reports why to the logger and to ``errors``. ``throwing`` reads with errors.
///
/// A setting is looked up in these places, in this order; the first that has it wins:
///
/// 1. what an administrator has locked, see ``ManagedSettings``; the ``Layer``s given when it was opened: forced values, the
///    arguments of the program, its environment variables,
/// 2. the collection of the application, ``collection``; in an ``environment``, the environment's collection, then the
///    application's,
/// 3. the suites added with ``addSuite(named:)``, in that order,
/// 4. the collection ``globalCollection``, shared by all applications of a store,
/// 5. the administrator's defaults,
/// 6. the defaults registered with ``register(defaults:)``.
///
/// Settings are written to the collection of the application. Keys can be any string, and are compared by their UTF-8 bytes.
public final class Preferences: Sendable {
  /// The collection that every `Preferences` of a store searches after its own.
  public static let globalCollection = "global"

  /// The proxy that reads and writes the settings.
  public let proxy: ConnectionProxy
  /// The collection that settings are written to: the application's identifier, or the name of a suite.
  public let collection: String
  /// The environment in which settings are read and written, see <doc:DeclaringSettings>; nil for none.
  public let environment: String?
  /// The collection without the environment.
  let parent: String
  /// The store of the settings: use it for keys, the vault, a backup or transactions.
  ///
  /// ```swift
  /// try preferences.database.makeConnection().readWrite { try $0.setObject(1, forKey: "launches") }
  /// ```
  public var database: Database { proxy.database }
  /// The application's own collection, if these are the settings of a suite of it, to which the collections of typed keys are
  /// relative.
  let suiteOf: String?
  let overrides: Overrides
  let registered: RegisteredDefaults
  let suites: SuiteList
  /// The items of typed keys that no layer overrides.
  let places = KeyPlaces()
  /// Replacements for values that are bad now; shared by suites, which a program may create for each use.
  let lastGood: LastGoodValues
  /// Whether a typed key with a collection has further places to search behind it.
  var searchesBehindKeys: Bool { environment != nil || overrides.hasManagedDefaults }
  /// The collections that all applications share.
  let globalCollections: [String]

  /// Creates settings for a collection of a store that is already open.
  ///
  /// - Parameter layers: The layers that override stored settings; none by default.
  public convenience init(proxy: ConnectionProxy, collection: String, layers: [Layer] = []) {
    self.init(
      proxy: proxy, collection: collection, overrides: Overrides(layers), registered: RegisteredDefaults.ofProcess)
  }

  /// Creates settings for a collection of a store that is already open, with a proxy of their own.
  ///
  /// - Parameter environment: The environment of the collection, which has to exist; see <doc:DeclaringSettings>.
  /// - Throws: The errors of `Database.makeConnection()`; `CofferError.environmentNotFound`, `.unsupported` for an invalid
  ///   environment name.
  public convenience init(
    database: Database, collection: String, environment: String? = nil, layers: [Layer] = []
  ) throws {
    self.init(
      proxy: try ConnectionProxy(database: database), collection: collection, overrides: Overrides(layers),
      registered: RegisteredDefaults.ofProcess, environment: environment)
    try requireEnvironment()
  }

  init(
    proxy: ConnectionProxy, collection: String, overrides: Overrides, registered: RegisteredDefaults,
    suites: SuiteList = SuiteList(), suiteOf: String? = nil, environment: String? = nil,
    lastGood: LastGoodValues = LastGoodValues()
  ) {
    self.proxy = proxy
    self.environment = environment
    parent = collection
    self.collection = Self.names(collection, in: environment)[0]
    globalCollections = Self.names(Self.globalCollection, in: environment)
    self.lastGood = lastGood
    self.suiteOf = suiteOf
    self.overrides = overrides
    self.registered = registered
    self.suites = suites
  }

  /// The collections to search for one: the environment's comes first.
  static func names(_ collection: String, in environment: String?) -> [String] {
    environment.map { ["\(collection)@\($0)", collection] } ?? [collection]
  }

  /// Throws if the environment does not exist: a misspelt one would silently show only its parent.
  func requireEnvironment() throws {
    guard let environment else { return }
    let own = try CollectionEnvironment(environment, of: parent)
    guard try proxy.state.reader.read({ try $0.hasEnvironment(own) }) else {
      throw CofferError.environmentNotFound(environment: environment, collection: parent)
    }
  }

  // MARK: Setting

  /// Sets the value of a key; nil removes it.
  ///
  /// The new value can be read at once, and is written to the store soon. A value that is forced, or given as an argument or
  /// an environment variable, still overrides it.
  ///
  /// - Throws: `CofferError.lockedByAdministrator`; `.notEncodable` when the value cannot be encoded;
  ///   `.collectionNotAllowed`, `.readOnly` or `.closed`; the errors of a sanitizer. Nothing is changed then.
  public func set<Object: Encodable>(_ value: Object?, forKey key: String) throws {
    try overrides.requireUnlocked(managedName(ofKey: key), key: key, in: collection)
    try proxy.setObject(value, forKey: key, inCollection: collection)
  }

  /// Sets the value of a key, of a type known only at run time; nil removes it.
  ///
  /// ```swift
  /// try preferences.set(["name": "x", "sizes": [1, 2.5]] as [String: Any], forKey: "shape")
  /// ```
  ///
  /// - Throws: `CofferError.notEncodable` when the value, or one inside it, is neither `Codable` nor a property list type;
  ///   otherwise as the form for `Encodable` types.
  public func set(_ value: Any?, forKey key: String) throws {
    let value = try value.flatMap { try Value.of($0, key, in: collection) }
    try overrides.requireUnlocked(managedName(ofKey: key), key: key, in: collection)
    try proxy.setObject(value, forKey: key, inCollection: collection)
  }

  /// Sets the value of a key, with an expiry.
  ///
  /// ```swift
  /// try preferences.set(true, forKey: "maintenance", expires: Date(timeIntervalSinceNow: 7200))
  /// ```
  ///
  /// At `expires` the value is gone, in every process at once, and the next value in the search list shows again;
  /// ``changes()`` reports that soon after. Setting the key again without dates clears both; `update(_:_:)` keeps them.
  ///
  /// - Parameters:
  ///   - expires: By the clock of each host, to the millisecond; a time in the past removes the key. nil for a value that
  ///     stays.
  ///   - due: When the value should be renewed, for a secret that has to be rotated, for instance. Nothing happens then,
  ///     except that ``ItemInfo/due`` and `prefs list --due` show it. nil for never.
  /// - Throws: As ``set(_:forKey:)-(Object?,_)``.
  public func set<Object: Encodable>(
    _ value: Object, forKey key: String, expires: Date?, due: Date? = nil
  ) throws {
    try overrides.requireUnlocked(managedName(ofKey: key), key: key, in: collection)
    try proxy.setObject(value, forKey: key, inCollection: collection, expires: expires, due: due)
  }

  /// Removes the value of a key; the next one in the search list shows again, a registered default for instance.
  ///
  /// - Throws: `CofferError.collectionNotAllowed`, `.readOnly` or `.closed`.
  public func removeObject(forKey key: String) throws {
    try proxy.removeObject(forKey: key, inCollection: collection)
  }

  // MARK: Defaults

  /// Registers defaults, for keys that are set nowhere else.
  ///
  /// ```swift
  /// try preferences.register(defaults: ["fontSize": 12, "recentFiles": [String]()])
  /// ```
  ///
  /// They are added to the defaults registered before, and replace those of the same keys. They are never written to the
  /// store, and apply to every `Preferences` of the process, except one made by ``inMemory(clock:faults:)`` and its suites, which have
  /// their own.
  ///
  /// - Throws: `CofferError.notEncodable` when a value is nil, or neither `Codable` nor a property list type; nothing is
  ///   registered then.
  public func register(defaults: [String: Any]) throws {
    try registered.add(
      defaults.map { key, object in
        guard let value = try Value.of(object, key, in: collection) else {
          throw CofferError.notEncodable(
            collection: collection, key: key, reason: "nil cannot be registered as a default")
        }
        // Fail now rather than at every read.
        _ = try StoredValue(encoding: value, key, in: collection)
        return (ByteString(key), value)
      })
  }

  // MARK: Suites

  /// The settings of a suite: the collection with its name in the same store.
  ///
  /// Layers, registered defaults and the environment are the same as here; suites added here are not. A typed key with a
  /// collection is stored in the suite's own part of it, `SUITE/COLLECTION`, unless it is shared, or the application's own:
  ///
  /// ```swift
  /// extension Keys {
  ///   static let rate = Key("rate", in: "billing", default: 100)
  /// }
  /// preferences.suite(named: "acme")[.rate] = 80  // "rate" in "acme/billing"; everyone else's stays 100
  /// ```
  public func suite(named name: String) -> Preferences {
    Preferences(
      proxy: proxy, collection: name, overrides: overrides, registered: registered, suiteOf: suiteOf ?? parent,
      environment: environment, lastGood: lastGood)
  }

  /// Adds a suite to the search list, after the application's collection and the suites added before.
  ///
  /// Adding a suite again has no effect.
  public func addSuite(named name: String) {
    suites.add(name)
  }

  /// Removes a suite from the search list.
  public func removeSuite(named name: String) {
    suites.remove(name)
  }

  // MARK: Flushing

  /// Writes pending changes to the store, as `flushAndWait()`; you need not call it.
  ///
  /// - Returns: Whether that succeeded. If not, ``errors`` and the logger report why, and nothing is lost.
  @discardableResult
  public func synchronize() -> Bool {
    do {
      try flushAndWait()
      return true
    } catch {
      proxy.database.report(error, forKey: nil, inCollection: collection)
      return false
    }
  }

  /// Commits the pending changes of all collections.
  ///
  /// When this returns, all changes made before the call are visible to all processes.
  ///
  /// - Throws: As `ConnectionProxy.flush()`.
  public func flush() async throws {
    try await proxy.flush()
  }

  /// Commits the pending changes, as `flush()`, blocking the calling thread.
  ///
  /// - Throws: As `ConnectionProxy.flush()`.
  public func flushAndWait() throws {
    try proxy.flushAndWait()
  }

  // MARK: Errors

  /// Failures to read or set settings from now on that could not be thrown to a caller.
  ///
  /// It covers all settings of the database, through any `Preferences` or proxy. Each call returns a new stream, which ends
  /// when the database is released.
  public var errors: AsyncStream<Failure> { proxy.errors }
}
