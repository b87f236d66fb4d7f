#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Preferences {
  // MARK: Opening without blocking

  /// Opens the settings of an application, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// ```swift
  /// Preferences.standard = try await Preferences.open(application: "org.example.editor")
  /// ```
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled before the call.
  public static func open(
    application identifier: String, at path: String? = nil, key: KeySource? = nil, layers: [Layer] = [.arguments()],
    environment: String? = nil, declaring settings: Settings? = nil, strict: Bool = false,
    mode: Database.OpeningMode? = nil, options: Database.Options = Database.Options()
  ) async throws -> Preferences {
    try await withoutBlocking {
      try open(
        application: identifier, at: path, key: key, layers: layers, environment: environment, declaring: settings,
        strict: strict, mode: mode, options: options)
    }
  }

  /// Declares the settings of this program, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled before the call.
  public func declare(_ settings: Settings, strict: Bool = false) async throws {
    try await withoutBlocking { try self.declare(settings, strict: strict) }
  }

  /// Flushes and closes the proxy, as the synchronous form does, without blocking a thread that runs tasks; a cancelled task
  /// does so, too.
  ///
  /// - Throws: As the synchronous form.
  public func close() async throws {
    try await proxy.close()
  }

  // MARK: Setting without blocking

  /// Sets the value of a typed key, as the synchronous form does, and waits for its flush without blocking a thread.
  ///
  /// ```swift
  /// try await preferences.set(5, for: .retries, durability: .synced)
  /// ```
  ///
  /// Without a durability there is nothing to wait for, and no `await`: `try preferences.set(5, for: .retries)`.
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled before the call, with nothing changed.
  ///   Afterwards, cancellation has no effect.
  public func set<Object>(
    _ object: Object, for key: Key<Object>, durability: ConnectionProxy.Durability
  ) async throws {
    try await set(object, for: key, dates: .none, durability)
  }

  /// Sets the value of a typed key, with an expiry, without blocking a thread; for an optional type, nil removes it.
  ///
  /// - Throws: As `set(_:for:durability:)`.
  public func set<Object>(
    _ object: Object, for key: Key<Object>, expires: Date?, due: Date? = nil, durability: ConnectionProxy.Durability
  ) async throws {
    try await set(object, for: key, dates: ItemDates(expires: expires, due: due), durability)
  }

  private func set<Object>(
    _ object: Object, for key: Key<Object>, dates: ItemDates, _ durability: ConnectionProxy.Durability
  ) async throws {
    let collection = place(of: key)
    try overrides.requireUnlocked(key.overrideName, key: key.name, in: collection)
    try await proxy.set(object, for: key, inCollection: collection, dates: dates, durability: durability)
  }

  /// Removes the stored value of a typed key without blocking a thread.
  ///
  /// - Throws: As `set(_:for:durability:)`.
  public func reset<Object>(_ key: Key<Object>, durability: ConnectionProxy.Durability) async throws {
    try await proxy.removeObject(forKey: key.name, inCollection: place(of: key), durability: durability)
  }

  /// Makes several changes in one step, as the synchronous form does, and waits for their flush without blocking a thread.
  ///
  /// ```swift
  /// try await preferences.performBatch(durability: .committed) { batch in
  ///   try batch.set(.light, for: .theme)
  ///   try batch.set(80, forKey: "width")
  /// }
  /// ```
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled before the call, with nothing changed.
  nonisolated(nonsending) public func performBatch(
    durability: ConnectionProxy.Durability, _ body: (inout Batch) throws -> Void
  ) async throws {
    try await proxy.performBatch(durability: durability) { try batch(&$0, body) }
  }

  // MARK: Updating without blocking

  /// Atomically updates a typed key from its current value, as the synchronous form does, without blocking a thread.
  ///
  /// ```swift
  /// try await preferences.update(.launches) { $0 += 1 }
  /// ```
  ///
  /// - Returns: The new value.
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled, with nothing changed.
  @discardableResult
  public func update<Object>(
    _ key: Key<Object>, durability: ConnectionProxy.Durability = .committed,
    _ body: @escaping @Sendable (inout Object) throws -> Void
  ) async throws -> Object {
    try await update(key, durability: durability) { object in
      var object = object
      try body(&object)
      return object
    }
  }

  /// Atomically updates a typed key to the value that `body` returns, without blocking a thread.
  ///
  /// - Returns: The new value.
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled, with nothing changed.
  @discardableResult
  public func update<Object>(
    _ key: Key<Object>, durability: ConnectionProxy.Durability = .committed,
    _ body: @escaping @Sendable (Object) throws -> Object
  ) async throws -> Object {
    let collection = place(of: key)
    try overrides.requireUnlocked(key.overrideName, key: key.name, in: collection)
    return try await proxy.update(key, in: collection, shown: try value(of: key), durability, body)
  }
}
