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
/// The names are those of Foundation's `UserDefaults`. What differs: whatever can fail says so. Opening, setting and
/// removing throw; a getter of UserDefaults' name cannot, and so returns the registered default when the setting cannot
/// be read, and reports why to the logger and to ``errors``. ``throwing`` has the same getters in a form that throws.
///
/// A setting is looked for in these places, and the first one that has it answers:
///
/// 1. what an administrator has locked, see ``ManagedSettings``; what is forced, the arguments of the program, its environment: the ``Layer``s given when it was opened,
/// 2. the collection of the application, ``collection``; in an ``environment`` the collection of that, then the application's,
/// 3. the suites that were added with ``addSuite(named:)``, in that order,
/// 4. the collection ``globalCollection``, which all applications of a store share,
/// 5. the defaults that an administrator gives,
/// 6. the defaults that were registered with ``register(defaults:)``.
///
/// Settings are written to the collection of the application. Keys may be any string, and compare by their UTF-8 bytes.
public final class Preferences: Sendable {
  /// The collection that every `Preferences` of a store searches after its own.
  public static let globalCollection = "global"

  /// What the settings are read and written through.
  public let proxy: ConnectionProxy
  /// The collection that settings are written to: an application's identifier, or the name of a suite.
  public let collection: String
  /// The environment that settings are read and written in, see ``CollectionEnvironment``; nil for none.
  public let environment: String?
  /// The collection without the environment.
  let parent: String
  /// The store that the settings are in: for its keys, its vault, a backup, transactions.
  ///
  /// ```swift
  /// try preferences.database.makeConnection().readWrite { try $0.setObject(1, forKey: "launches") }
  /// ```
  public var database: Database { proxy.database }
  /// Whether these are the settings of a suite, to which the collections of typed keys are relative.
  let isSuite: Bool
  let overrides: Overrides
  let registered: RegisteredDefaults
  let suites: SuiteList
  /// The items of typed keys that nothing overrides.
  let places = KeyPlaces()
  /// What stands for values that are bad now; suites share it, which a program may ask for anew at each use.
  let lastGood: LastGoodValues
  /// Whether there is another place behind the collection that a typed key names.
  var searchesBehindKeys: Bool { environment != nil || overrides.hasManagedDefaults }
  /// The collections that all applications share.
  let globalCollections: [String]

  /// Settings in a collection of a store that is open already.
  ///
  /// - Parameter layers: What goes before the stored settings; nothing unless it is named here.
  public convenience init(proxy: ConnectionProxy, collection: String, layers: [Layer] = []) {
    self.init(
      proxy: proxy, collection: collection, overrides: Overrides(layers), registered: RegisteredDefaults.ofProcess)
  }

  /// Settings in a collection of a store that is open already, through a proxy of their own.
  ///
  /// - Parameter environment: The environment of the collection, which has to be there, see ``CollectionEnvironment``.
  /// - Throws: What `Database.makeConnection()` throws; `CofferError.environmentNotFound`, `.unsupported` for what is no name of
  ///   an environment.
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
    suites: SuiteList = SuiteList(), isSuite: Bool = false, environment: String? = nil,
    lastGood: LastGoodValues = LastGoodValues()
  ) {
    self.proxy = proxy
    self.environment = environment
    parent = collection
    self.collection = Self.names(collection, in: environment)[0]
    globalCollections = Self.names(Self.globalCollection, in: environment)
    self.lastGood = lastGood
    self.isSuite = isSuite
    self.overrides = overrides
    self.registered = registered
    self.suites = suites
  }

  /// The collections that stand for one: that of the environment goes before it.
  static func names(_ collection: String, in environment: String?) -> [String] {
    environment.map { ["\(collection)@\($0)", collection] } ?? [collection]
  }

  /// Refuses an environment that is not there: one that is misspelt would show its parent and nothing else.
  func requireEnvironment() throws {
    guard let environment else { return }
    let own = try CollectionEnvironment(environment, of: parent)
    guard try proxy.state.reader.read({ try $0.hasEnvironment(own) }) else {
      throw CofferError.environmentNotFound(environment: environment, collection: parent)
    }
  }

  // MARK: Setting

  /// Sets the value for a key; nil removes it.
  ///
  /// It is read back at once, and written to the store soon. A value that is forced, or given as an argument or in the
  /// environment, goes on to be what is read.
  ///
  /// - Throws: `CofferError.lockedByAdministrator`; `.notEncodable` when the value cannot be encoded; `.collectionNotAllowed`, `.readOnly` or
  ///   `.closed`; what a sanitizer throws. Nothing was changed then.
  public func set<Object: Encodable>(_ value: Object?, forKey key: String) throws {
    try overrides.requireUnlocked(key, key: key, in: collection)
    try proxy.setObject(value, forKey: key, inCollection: collection)
  }

  /// Sets the value for a key, of a type that the compiler does not know; nil removes it.
  ///
  /// ```swift
  /// try preferences.set(["name": "x", "sizes": [1, 2.5]] as [String: Any], forKey: "shape")
  /// ```
  ///
  /// - Throws: `CofferError.notEncodable` when the value, or one inside it, is neither `Codable` nor a type of property
  ///   lists; otherwise as the form for `Encodable` types.
  public func set(_ value: Any?, forKey key: String) throws {
    let value = try value.flatMap { try Value.of($0, key, in: collection) }
    try overrides.requireUnlocked(key, key: key, in: collection)
    try proxy.setObject(value, forKey: key, inCollection: collection)
  }

  /// Sets the value for a key for a time.
  ///
  /// ```swift
  /// try preferences.set(true, forKey: "maintenance", expires: Date(timeIntervalSinceNow: 7200))
  /// ```
  ///
  /// From `expires` on the value is gone, for every program at once, and what is behind it in the search list shows again;
  /// ``changes()`` tells soon after. Setting the key anew without a time clears both dates; ``update(_:_:)`` keeps them.
  ///
  /// - Parameters:
  ///   - expires: By the clock of each host, to the millisecond; a time that is past removes the key. nil for a value that
  ///     stays.
  ///   - due: From when on the value should be set anew, a secret that has to be renewed, say: nothing happens then, but
  ///     ``ItemInfo/due`` and `prefs list --due` tell. nil for never.
  /// - Throws: As ``set(_:forKey:)-(Object?,_)``.
  public func set<Object: Encodable>(
    _ value: Object, forKey key: String, expires: Date?, due: Date? = nil
  ) throws {
    try overrides.requireUnlocked(key, key: key, in: collection)
    try proxy.setObject(value, forKey: key, inCollection: collection, expires: expires, due: due)
  }

  /// Removes what is set for a key; what is behind it in the search list shows again, a registered default for instance.
  ///
  /// - Throws: `CofferError.collectionNotAllowed`, `.readOnly` or `.closed`.
  public func removeObject(forKey key: String) throws {
    try proxy.removeObject(forKey: key, inCollection: collection)
  }

  // MARK: Defaults

  /// Gives defaults, for keys that are set nowhere else.
  ///
  /// ```swift
  /// try preferences.register(defaults: ["fontSize": 12, "recentFiles": [String]()])
  /// ```
  ///
  /// They are added to those registered before; of two for one key the newer one counts. They are never written to the
  /// store, and every `Preferences` of the process sees them; only one made by ``inMemory()``, and its suites, have some
  /// of their own.
  ///
  /// - Throws: `CofferError.notEncodable` when a value is neither `Codable` nor a type of property lists, or is nil;
  ///   nothing was registered then.
  public func register(defaults: [String: Any]) throws {
    try registered.add(
      defaults.map { key, object in
        guard let value = try Value.of(object, key, in: collection) else {
          throw CofferError.notEncodable(collection: collection, key: key, reason: "nil is no default")
        }
        // Found out now rather than at every read.
        _ = try StoredValue(encoding: value, key, in: collection)
        return (ByteString(key), value)
      })
  }

  // MARK: Suites

  /// The settings of a suite: the collection of its name in the same store.
  ///
  /// Layers, registered defaults and the environment are the same as here; the suites that were added here are not. A typed key that names a
  /// collection is in the suite's own part of it, the collection `SUITE/COLLECTION`, unless it is shared:
  ///
  /// ```swift
  /// extension Keys {
  ///   static let rate = Key("rate", in: "billing", default: 100)
  /// }
  /// preferences.suite(named: "acme")[.rate] = 80  // "rate" in "acme/billing"; everyone else's stays 100
  /// ```
  public func suite(named name: String) -> Preferences {
    Preferences(
      proxy: proxy, collection: name, overrides: overrides, registered: registered, isSuite: true,
      environment: environment, lastGood: lastGood)
  }

  /// Searches a suite after the collection of the application, and after the suites that were added before.
  ///
  /// Adding one again changes nothing.
  public func addSuite(named name: String) {
    suites.add(name)
  }

  /// Searches a suite no longer.
  public func removeSuite(named name: String) {
    suites.remove(name)
  }

  // MARK: Flushing

  /// Writes what is pending to the store, as `flushAndWait()`; there is no need to call it.
  ///
  /// - Returns: Whether that went well; if not, ``errors`` and the logger have the reason, and nothing is lost.
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

  /// Commits what is pending, of all collections.
  ///
  /// When this returns, every change that was made before the call is visible to all processes.
  ///
  /// - Throws: As `ConnectionProxy.flush()`.
  public func flush() async throws {
    try await proxy.flush()
  }

  /// Commits what is pending, as `flush()`, and blocks the calling thread until then.
  ///
  /// - Throws: As `ConnectionProxy.flush()`.
  public func flushAndWait() throws {
    try proxy.flushAndWait()
  }

  // MARK: Errors

  /// What could not be read or set from now on, where the caller could not be told by a thrown error.
  ///
  /// All settings of the database are meant, whichever `Preferences` or proxy they were asked of. Each call gives a stream
  /// of its own, which ends when the database is gone.
  public var errors: AsyncStream<Failure> { proxy.errors }
}
