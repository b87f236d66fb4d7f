import Coffer

/// What the common options say of the collections and of the store, however they were parsed.
package protocol CommonArguments {
  var app: String? { get }
  /// The collections named by `-c`.
  var collection: [String] { get }
  var env: String? { get }
  /// The options for a session.
  var ofSession: SessionOptions { get }
}

extension CommonArguments {
  /// The collections named by `-c`, for commands that take several; the application's if there is no `-c`.
  package var namedCollections: [String] {
    collection.isEmpty ? [app].compactMap(\.self) : collection.map(CommandArguments.value)
  }

  /// The same for commands that take a single one.
  var namedCollection: String? { namedCollections.last }

  /// The options for a session.
  ///
  /// - Parameters:
  ///   - force: Whether to set values that violate their declarations.
  ///   - undeclared: Whether to set keys that are not declared.
  func ofSession(force: Bool, undeclared: Bool) -> SessionOptions {
    var options = ofSession
    (options.allowsBadValues, options.allowsUndeclared) = (force, undeclared)
    return options
  }
}

extension CommonArguments {
  /// The requested environment.
  private var environment: (name: String, isVariable: Bool)? {
    env.map { ($0, false) } ?? Environment.variable("PREFS_ENV").map { ($0, true) }
  }

  /// The collection in the requested environment.
  func inEnvironment(_ collection: String) throws -> NamedCollection {
    try NamedCollection(collection, environment: environment?.name, isVariable: environment?.isVariable ?? false)
  }

  /// The collection named by an argument, else by `-c`; nil if neither is given.
  ///
  /// - Throws: ``Failure`` if `--env` is given for all collections.
  func collection(_ argument: String?) throws -> NamedCollection? {
    if let name = argument.map(CommandArguments.value) ?? namedCollection { return try inEnvironment(name) }
    if env != nil { throw Failure(.usage, "--env is for one collection. Name it.") }
    return nil
  }

  /// The entry named by an argument.
  package func reference(_ argument: String) throws -> KeyReference {
    try KeyReference(argument, collection: namedCollection).inEnvironments(inEnvironment)
  }

  /// The entry that an argument names for a command that sets its value.
  ///
  /// - Throws: ``Failure`` with the status `usage` for an empty key, which an empty variable of a shell leaves.
  func referenceToSet(_ argument: String) throws -> KeyReference {
    let reference = try reference(argument)
    guard reference.key.isEmpty else { return reference }
    throw Failure(.usage, "the key is empty; nothing was changed. Name one, as COLLECTION/KEY.")
  }

  /// The session's options for these collections.
  ///
  /// - Parameter mayBeGone: Whether an environment that is named as a collection may have been removed.
  func ofSession(
    in collections: [NamedCollection], mayBeGone: Bool = false, force: Bool = false, undeclared: Bool = false
  ) -> SessionOptions {
    var options = ofSession(force: force, undeclared: undeclared)
    options.environments = collections.filter { !mayBeGone || $0.parent != nil }.compactMap(\.environment)
    return options
  }

  /// The options for a session that shows collections, and an entry.
  package func ofSession(showing collections: [String], _ key: String?) throws -> SessionOptions {
    let entry = try key.map { try reference($0) }
    return ofSession(
      in: collections.map { NamedCollection(CommandArguments.value($0)) } + (entry?.certainPlaces ?? []))
  }

  /// The application that a command is about, if it takes all collections: that of `--app`, unless a collection is named.
  package func application(_ argument: String? = nil) -> String? {
    argument == nil && collection.isEmpty ? app : nil
  }

  /// Those of the collections that are in the requested environment; all of them if none is requested.
  package func inRequestedEnvironment(_ collections: [String]) throws -> [String] {
    guard hasEnvironment else { return collections }
    return try collections.filter { name in
      let parent = CollectionEnvironment(collection: name)?.parent ?? name
      return try inEnvironment(parent).name.utf8.elementsEqual(name.utf8)
    }
  }

  /// Whether an environment is requested.
  var hasEnvironment: Bool { environment != nil }

  /// The collection in the requested environment, or unchanged if its name already has an environment.
  func inEnvironmentUnlessOne(_ collection: String) throws -> NamedCollection {
    try NamedCollection(collection, environment: environment?.name, isVariable: true)
  }
}
