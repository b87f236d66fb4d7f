/// What is in force in some collections while a program runs: administrators' files are followed as they change.
package struct FollowedSettings: Sendable {
  private let sources: [ManagedSource]
  private let places: [Place]

  private struct Place: Sendable {
    let collection: String
    let sources: [ManagedSource]
    /// Whether administrators' defaults show here: behind the parent's values, not the environment's.
    let hasDefaults: Bool
  }

  /// - Parameter collections: Those that are searched, in order.
  /// - Throws: As `AdministratorFiles.settings(ofApplication:)`.
  package init(of collections: [String], in database: Database) throws {
    let files = database.options.settingRules?.files ?? AdministratorFiles()
    var known: [ByteString: ManagedSource] = [:]
    let parents = collections.map { ByteString(CollectionEnvironment(collection: $0)?.parent ?? $0) }
    places = try database.makeConnection().read { transaction in
      try collections.enumerated().map { index, collection in
        let applications = try transaction.effectiveSettings(of: collection).applications
        let sources = try applications.map { application in
          let source = try known[ByteString(application)] ?? ManagedSource(following: files.folders(of: application))
          known[ByteString(application)] = source
          return source
        }
        return Place(
          collection: collection, sources: sources, hasDefaults: !parents[(index + 1)...].contains(parents[index]))
      }
    }
    sources = Array(known.values)
    for source in sources {
      source.start(didChange: {}) { [weak database] error in
        database?.report(error, forKey: nil, inCollection: "", instead: "the last good managed settings")
      }
    }
  }

  /// The value in force in a collection, which is stored or an administrator's.
  package func value<Found>(
    _ key: String, in collection: String, stored: () throws -> Found?, managed: (Value) -> Found
  ) rethrows -> Found? {
    guard let place = places.first(where: { $0.collection.utf8.elementsEqual(collection.utf8) }),
      place.sources.contains(where: { $0.current != nil })
    else { return try stored() }
    let found = try EffectiveSettings(collection, place.sources.compactMap(\.current)).find(key) { _ in
      try stored()
    } declared: {
      nil
    }
    return switch found {
    case .locked(let value, _)?: managed(value)
    case .managed(let value, _)?: place.hasDefaults ? managed(value) : nil
    case .stored(let stored)?: stored
    case .declared?, nil: nil
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
