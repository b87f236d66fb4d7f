import CofferCrypto

extension Preferences {
  // MARK: Opening

  /// Opens the settings of an application, creating its store if there is none.
  ///
  /// ```swift
  /// let preferences = try Preferences.open(application: "org.example.editor")
  /// ```
  ///
  /// The settings are the collection named `identifier` in the store. By default, the store is
  /// `$XDG_DATA_HOME/IDENTIFIER/settings.coffer` (in Application Support on Apple systems), and opens with the key file
  /// `$XDG_CONFIG_HOME/IDENTIFIER/key`. A new store gets a new key file if there is none. An administrator's defaults and
  /// locks on this host apply; see ``ManagedSettings``.
  ///
  /// - Parameters:
  ///   - identifier: A name like `org.example.editor`.
  ///   - path: The store; nil for the application's default.
  ///   - key: The key that opens it; nil for the application's key file.
  ///   - layers: The layers that override stored settings; by default the arguments of the program, as with UserDefaults.
  ///   - environment: The environment to read and write settings in; it has to exist, see <doc:DeclaringSettings>.
  ///   - settings: The settings of the application to declare; see `declare(_:strict:)`.
  ///   - mode: What to do if there is no store; nil for what `options` says.
  ///   - strict: Whether to throw if a value does not match its declaration.
  /// - Throws: The errors of `Database.openOrCreate(at:key:options:)`: a store that is damaged, locked, or has another key
  ///   is an error, and is left as it is. The errors of `declare(_:strict:)`. `CofferError.environmentNotFound`;
  ///   `.unsupported` when no home folder is known, or the identifier is not a valid file name.
  public static func open(
    application identifier: String, at path: String? = nil, key: KeySource? = nil, layers: [Layer] = [.arguments()],
    environment: String? = nil, declaring settings: Settings? = nil, strict: Bool = false,
    mode: Database.OpeningMode? = nil,
    options: Database.Options = Database.Options()
  ) throws -> Preferences {
    var options = options
    options.mode = mode ?? options.mode
    // Before a store is created.
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

  /// The key file of an application; a new one if the store does not exist yet.
  private static func keyFile(
    of identifier: String, store: String, _ options: Database.Options
  ) throws -> KeySource {
    let keyFile = try StandardLocation.keyFile(ofApplication: identifier)
    do {
      // An existing store opens with the key it was created with; never with a new one.
      _ = try Database.slots(at: store)
    } catch CofferError.storeNotFound where options.mode == .createIfMissing {
      try KeyFile.create(at: keyFile, group: options.group)
    }
    return .keyFile(keyFile)
  }

  /// In-memory settings, for a test.
  ///
  /// They are isolated from all others: they have no store, no layers, and no registered defaults.
  ///
  /// - Parameters:
  ///   - clock: The clock by which values expire; nil for the system's.
  ///   - faults: Lets reads and writes of the store fail.
  /// - Throws: The errors of `Database.inMemory()`.
  public static func inMemory(clock: TestClock? = nil, faults: StoreFaults? = nil) throws -> Preferences {
    let database = try Database.inMemory(faults: faults)
    clock?.drive(database)
    return Preferences(
      proxy: try ConnectionProxy(database: database), collection: "application", overrides: Overrides([]),
      registered: RegisteredDefaults())
  }

  /// Flushes and closes the proxy; afterwards, these settings and their suites throw `CofferError.closed`.
  ///
  /// You need not call it before the process exits normally: that flushes too.
  ///
  /// - Throws: The errors of a flush; the settings then stay open, and nothing is lost.
  public func close() throws {
    try proxy.close()
  }

  // MARK: Standard

  private static let processStandard = Lock<Preferences?>(nil)
  @TaskLocal private static var taskStandard: Preferences?

  /// The settings of this program, which it assigns once, when it starts.
  ///
  /// ```swift
  /// Preferences.standard = try Preferences.open(application: "org.example.editor")
  /// ```
  ///
  /// Opening can fail, so nothing is opened implicitly: reading this before it is assigned is a programming error, and
  /// traps. In a test it gives settings of which nothing can be read or set, with the error
  /// ``CofferError/standardNotSet``: a detached task, where ``withStandard(_:_:)`` does not apply, must not end all tests.
  public static var standard: Preferences {
    get {
      if let standard = taskStandard ?? processStandard.withLock({ $0 }) { return standard }
      guard TestProcess.isThis, let unset else { preconditionFailure("\(CofferError.standardNotSet)") }
      return unset
    }
    set { processStandard.withLock { $0 = newValue } }
  }

  /// What ``standard`` is in a test that does not set it.
  private static let unset: Preferences? = {
    let faults = StoreFaults()
    guard let preferences = try? Preferences.inMemory(faults: faults) else { return nil }
    faults.setAll(.standardNotSet)
    preferences.proxy.writtenCollectionsFilter = .only([])
    return preferences
  }()

  /// Runs `body` with other standard settings, which apply to its task and child tasks, not to detached ones: for tests.
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

  /// Runs `body` with other standard settings, which apply to its task and child tasks: for tests.
  public static func withStandard<Result>(
    _ preferences: Preferences, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
  ) async rethrows -> Result {
    try await $taskStandard.withValue(preferences, operation: body, isolation: isolation)
  }
}
