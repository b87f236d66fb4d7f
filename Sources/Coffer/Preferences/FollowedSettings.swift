/// What is in force in some collections while a program runs: administrators' files are followed as they change.
package struct FollowedSettings: Sendable {
  private let sources: [ManagedSource]
  private let places: [Place]

  private struct Place: Sendable {
    let collection: String
    let sources: [ManagedSource]
    /// Those that count for keys that are not declared.
    let formerSources: [ManagedSource]
    let declaredKeys: Set<ByteString>
    /// Whether administrators' defaults show here: behind the parent's values, not the environment's.
    let hasDefaults: Bool
    /// The keys for which the first source counts alone.
    let ownKeys: Set<ByteString>
  }

  /// - Parameter collections: Those that are searched, in order.
  /// - Throws: As `AdministratorFiles.settings(ofApplication:)`.
  package init(of collections: [String], in database: Database) throws {
    let files = database.options.settingRules?.files ?? AdministratorFiles()
    var known: [ByteString: ManagedSource] = [:]
    let parents = collections.map { ByteString(CollectionEnvironment(collection: $0)?.parent ?? $0) }
    places = try database.makeConnection().read { transaction in
      try collections.enumerated().map { index, collection in
        let settings = try transaction.effectiveSettings(of: collection)
        let sources = try settings.applications.map { application in
          let source = try known[ByteString(application)] ?? ManagedSource(following: files.folders(of: application))
          known[ByteString(application)] = source
          return source
        }
        let former = try transaction.formerApplications(of: settings)
        let formerSources = former.applications.compactMap { application -> ManagedSource? in
          // Files that cannot be read concern those who use the application.
          let source = known[ByteString(application)] ?? (try? ManagedSource(following: files.folders(of: application)))
          known[ByteString(application)] = source
          return source
        }
        return Place(
          collection: collection, sources: sources, formerSources: formerSources, declaredKeys: former.declaredKeys,
          hasDefaults: !parents[(index + 1)...].contains(parents[index]), ownKeys: settings.ownKeys)
      }
    }
    sources = Array(known.values)
    for source in sources {
      source.start(didChange: {}) { [weak database] error in
        database?.report(error, forKey: nil, inCollection: "", instead: "the last good managed settings")
      }
    }
  }

  /// Looks for the value in force in a collection, which is stored or an administrator's.
  ///
  /// - Parameter isGood: Whether a value at a place is good; a bad one is skipped.
  package func find<Found>(
    _ key: String, in collection: String, stored: () throws -> Found?, managed: (Value) -> Found,
    isGood: (_ found: Found, _ place: String) throws -> Bool
  ) throws {
    guard let place = places.first(where: { $0.collection.utf8.elementsEqual(collection.utf8) }),
      place.sources.contains(where: { $0.current != nil }) || place.formerSources.contains(where: { $0.current != nil })
    else {
      if let stored = try stored() { _ = try isGood(stored, EffectiveSettings.place(collection)) }
      return
    }
    // A file without settings keeps its place: the first one may count alone.
    let files = place.sources.map { $0.current ?? ManagedSettings(ofCollection: "") }
    let settings = EffectiveSettings(
      collection, files, ownKeys: place.ownKeys, formerFiles: place.formerSources.compactMap(\.current),
      declaredKeys: place.declaredKeys)
    _ = try settings.find(key) { _ in
      try stored()
    } declared: {
      nil
    } isGood: { found, source in
      switch found {
      case .locked(let value, _): try isGood(managed(value), source)
      case .managed(let value, _): place.hasDefaults ? try isGood(managed(value), source) : false
      case .stored(let stored): try isGood(stored, source)
      case .declared: false
      }
    }
  }

  /// Yields whenever administrators' files have changed.
  package func changes() -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let registrations = sources.map { $0.listen { _, _ in continuation.yield() } }
    continuation.onTermination = { _ in withExtendedLifetime(registrations) {} }
    return stream
  }
}
