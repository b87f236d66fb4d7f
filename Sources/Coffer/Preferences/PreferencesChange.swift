extension Preferences {
  /// Settings whose effective values changed together.
  public struct Change: Sendable {
    /// Who changed them.
    public let origin: ChangeOrigin
    /// The changed keys, in the order of their bytes; a typed key with a collection is listed by its name.
    public let keys: [String]
    /// `.keys`, or `.everything` if any other key may have changed, too: a collection was cleared, or too many keys changed
    /// to list them.
    public let scope: ChangeScope
    private let places: Set<Place>
    /// The collections where a typed key may be stored.
    private let placement: @Sendable (Keys) -> [String]

    /// The collection and key that changed in the store.
    struct Place: Hashable {
      let collection: ByteString
      let key: ByteString
      /// Whether the collection is in the search list; otherwise only typed keys are found there.
      let isInList: Bool

      func isOf(_ name: String, in collections: [String]) -> Bool {
        key == ByteString(name) && collections.contains { ByteString($0) == collection }
      }
    }

    init(
      origin: ChangeOrigin, places: Set<Place>, scope: ChangeScope,
      placement: @escaping @Sendable (Keys) -> [String]
    ) {
      self.origin = origin
      self.places = places
      self.scope = scope
      self.placement = placement
      keys = Set(places.map(\.key)).sorted().map(\.string)
    }

    /// This change combined with a later one.
    func merged(with later: Change) -> Change {
      Change(
        origin: origin == later.origin ? origin : .several, places: places.union(later.places),
        scope: scope.union(later.scope), placement: placement)
    }

    /// Whether a key of the search list changed, or may have.
    public func concerns(_ key: String) -> Bool {
      scope == .everything || places.contains { $0.isInList && $0.key == ByteString(key) }
    }

    /// Whether a typed key changed, or may have.
    public func concerns(_ key: Keys) -> Bool {
      guard scope == .keys, key.collection != nil else { return concerns(key.name) }
      let collections = placement(key)
      return places.contains { $0.isOf(key.name, in: collections) }
    }
  }
}
