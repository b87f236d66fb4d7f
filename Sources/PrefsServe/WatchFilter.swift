import Coffer
import PrefsCommands

/// What a client watches: collections and keys, or everything.
struct WatchFilter {
  private struct Place {
    let place: NamedCollection
    /// nil for the whole collection.
    let key: String?
  }

  /// What may have changed for a client.
  enum Changes {
    case nothing
    case everything
    case keys([Change])
  }

  struct Change {
    let collection: String
    let key: String
    /// As `prefs watch` prints it.
    let what: String
  }

  /// nil for everything.
  private let places: [Place]?

  /// The most keys of a commit that are listed.
  private static let keyLimit = 1000

  /// - Throws: ``Failure`` with the status `usage`.
  init(_ request: JSONMembers) throws {
    let environment = try request.optionalText("env")
    func place(_ collection: String, _ key: String?) throws -> Place {
      Place(place: try NamedCollection(collection, environment: environment, isVariable: false), key: key)
    }
    let collections = try request.optionalTexts("collections")
    guard request["keys"] != nil else {
      places = try collections?.map { try place($0, nil) }
      return
    }
    let keys = try request.list("keys").map { element in
      guard case .array(let names) = element, names.count == 2, case .string(let collection) = names[0],
        case .string(let key) = names[1]
      else { throw Failure(.usage, "\"keys\" is not a list of pairs [\"COLLECTION\",\"KEY\"].") }
      return try place(collection, key)
    }
    places = try (collections ?? []).map { try place($0, nil) } + keys
  }

  /// Checks that the environments exist.
  func check(_ transaction: borrowing some Reading & ~Copyable) throws {
    for place in places ?? [] { _ = try place.place.inForce(transaction) }
  }

  /// The whole collections that it consists of; nil if single keys or everything are watched.
  var wholeCollections: [NamedCollection]? {
    guard let places, places.allSatisfy({ $0.key == nil }) else { return nil }
    return places.map(\.place)
  }

  /// The collections, or nil for all.
  var collections: [String]? { places?.map(\.place.name) }

  /// What a commit may have changed of what is in force.
  func changes(in commit: Commit) -> Changes {
    // Declarations, environments and seals change what is in force without naming keys.
    if commit.scope == .everything || !commit.actions.isEmpty { return .everything }
    var changes: [Change] = []
    var seen: Set<SettingPlace> = []
    for (shown, changed, key) in sources(commit) where commit.concerns(collection: changed) {
      if commit.isCleared(changed) || commit.isUnlisted(changed) { return .everything }
      for name in commit.changedKeys(inCollection: changed) {
        if let key, !key.utf8.elementsEqual(name.utf8) { continue }
        guard seen.insert(SettingPlace(name, in: shown)).inserted else { continue }
        let isExpiry = commit.hasExpired(key: name, inCollection: changed)
        let kind = commit.kind(forKey: name, inCollection: changed) ?? .updated
        changes.append(Change(collection: shown, key: name, what: isExpiry ? "expired" : "\(kind)"))
      }
      if changes.count > Self.keyLimit { return .everything }
    }
    return changes.isEmpty ? .nothing : .keys(changes)
  }

  /// The collections that show values, with those whose values they show.
  private func sources(_ commit: Commit) -> [(shown: String, changed: String, key: String?)] {
    guard let places else { return commit.changedCollections.map { ($0, $0, nil) } }
    return places.flatMap { place in
      let name = place.place.name
      let parent = CollectionEnvironment(collection: name)?.parent
      return ([name] + (parent.map { [$0] } ?? [])).map { (name, $0, place.key) }
    }
  }
}
