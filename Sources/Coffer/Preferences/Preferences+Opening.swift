import CofferCrypto

extension Preferences {
  // MARK: Opening

  /// Opens the settings of an application, and makes its store first when there is none.
  ///
  /// ```swift
  /// let preferences = try Preferences.open(application: "org.example.editor")
  /// ```
  ///
  /// They are the collection of the store that is named by the identifier. The store is
  /// `$XDG_DATA_HOME/IDENTIFIER/settings.coffer`, on Apple systems in Application Support, unless another is named; it
  /// opens with the key file `$XDG_CONFIG_HOME/IDENTIFIER/key` unless another key is given. A new store gets a new key
  /// file, where that is missing. What an administrator gives or locks on this host holds, see ``ManagedSettings``.
  ///
  /// - Parameters:
  ///   - identifier: A name like `org.example.editor`.
  ///   - path: The store; nil for the one of the application.
  ///   - key: What opens it; nil for the key file of the application.
  ///   - layers: What goes before the stored settings: the arguments of the program, as with UserDefaults, unless others
  ///     are named.
  ///   - environment: The environment that settings are read and written in; it has to be there, see ``CollectionEnvironment``.
  ///   - settings: The settings of the application, which are declared, see ``declare(_:strict:)``.
  ///   - mode: What to do where there is no store; nil for what `options` says.
  ///   - strict: Whether to throw where a value is not what its setting is declared to be.
  /// - Throws: What `Database.openOrCreate(at:key:options:)` throws: a store that is damaged, locked, or opens with another
  ///   key is an error, and stays as it is. What ``declare(_:strict:)`` throws. `CofferError.environmentNotFound`; `.unsupported` when no home folder is
  ///   known, or the identifier is no file name.
  public static func open(
    application identifier: String, at path: String? = nil, key: KeySource? = nil, layers: [Layer] = [.arguments()],
    environment: String? = nil, declaring settings: Settings? = nil, strict: Bool = false,
    mode: Database.OpeningMode? = nil,
    options: Database.Options = Database.Options()
  ) throws -> Preferences {
    var options = options
    options.mode = mode ?? options.mode
    // Before a store is made.
    let managed = try ManagedSource(following: ManagedSettings.Folders(ofApplication: identifier))
    let path = try path ?? StandardLocation.store(ofApplication: identifier)
    let key = try key ?? keyFile(of: identifier, store: path, options)
    let database = try Database.openOrCreate(at: path, key: key, options: options)
    let preferences = Preferences(
      proxy: try ConnectionProxy(database: database), collection: identifier,
      overrides: Overrides(layers, managed: managed), registered: RegisteredDefaults.ofProcess, environment: environment
    )
    managed.start(for: preferences)
    try preferences.requireEnvironment()
    if let settings { try preferences.declare(settings, strict: strict) }
    return preferences
  }

  /// The key file of an application; a new one where the store is still to be made, too.
  private static func keyFile(
    of identifier: String, store: String, _ options: Database.Options
  ) throws -> KeySource {
    let keyFile = try StandardLocation.keyFile(ofApplication: identifier)
    do {
      // A store that is there opens with the key it was made with, and with no new one.
      _ = try Database.slotKinds(at: store)
    } catch CofferError.storeNotFound where options.mode == .createIfMissing {
      try KeyFile.create(at: keyFile, group: options.group)
    }
    return .keyFile(keyFile)
  }

  /// Settings of their own in memory, for a test.
  ///
  /// They share nothing with any other: no store, no layers, no registered defaults.
  ///
  /// - Throws: What `Database.inMemory()` throws.
  public static func inMemory() throws -> Preferences {
    Preferences(
      proxy: try ConnectionProxy(database: .inMemory()), collection: "application", overrides: Overrides([]),
      registered: RegisteredDefaults())
  }

  /// Flushes and ends the proxy; everything on these settings, and on suites of them, throws `CofferError.closed`
  /// afterwards.
  ///
  /// There is no need for it before the normal exit of the process, which flushes by itself.
  ///
  /// - Throws: What a flush throws; the settings are then still open, and nothing is lost.
  public func close() throws {
    try proxy.close()
  }

  // MARK: Standard

  private static let processStandard = Lock<Preferences?>(nil)
  @TaskLocal private static var taskStandard: Preferences?

  /// The settings of this program, which it sets once when it starts.
  ///
  /// ```swift
  /// Preferences.standard = try Preferences.open(application: "org.example.editor")
  /// ```
  ///
  /// Opening can fail, so nothing is opened by itself: reading this before it was set is a mistake, and traps.
  public static var standard: Preferences {
    get {
      guard let standard = standardIfSet else {
        preconditionFailure(
          "Set Preferences.standard before it is used: Preferences.standard = try Preferences.open(application: …)")
      }
      return standard
    }
    set { processStandard.withLock { $0 = newValue } }
  }

  static var standardIfSet: Preferences? {
    taskStandard ?? processStandard.withLock { $0 }
  }

  /// Runs `body` with other standard settings, which hold for its task and those inside it: for tests.
  ///
  /// ```swift
  /// try Preferences.withStandard(.inMemory()) {
  ///   // Whatever uses Preferences.standard, or @Preference, finds an empty store.
  /// }
  /// ```
  public static func withStandard<Result>(
    _ preferences: Preferences, _ body: () throws -> Result
  ) rethrows -> Result {
    try $taskStandard.withValue(preferences, operation: body)
  }

  /// Runs `body` with other standard settings, which hold for its task and those inside it: for tests.
  public static func withStandard<Result>(
    _ preferences: Preferences, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
  ) async rethrows -> Result {
    try await $taskStandard.withValue(preferences, operation: body, isolation: isolation)
  }
}
