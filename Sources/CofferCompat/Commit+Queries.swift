import Coffer

extension Commit {
  /// Whether all collections were removed, or the changes are unknown: any key of any collection may have changed.
  public var didClearAllCollections: Bool { scope == .everything }

  /// Whether a collection was removed as a whole.
  public func didClear(collection: String) -> Bool { isCleared(collection) }
}

extension Sequence<Commit> {
  /// Whether a collection was removed as a whole.
  public func didClear(collection: String) -> Bool { contains { $0.didClear(collection: collection) } }

  /// Whether anything changed in a collection.
  public func hasChange(inCollection collection: String, of part: ItemPart? = nil) -> Bool {
    contains { $0.hasChange(inCollection: collection, of: part) }
  }

  /// Whether a key changed, or may have.
  public func hasChange(forKey key: String, inCollection collection: String = "", of part: ItemPart? = nil) -> Bool {
    contains { $0.hasChange(forKey: key, inCollection: collection, of: part) }
  }

  /// Whether any of some keys changed, or may have.
  public func hasChange(
    forAnyOf keys: some Sequence<String>, inCollection collection: String = "", of part: ItemPart? = nil
  ) -> Bool {
    let keys = Array(keys)
    return contains { $0.hasChange(forAnyOf: keys, inCollection: collection, of: part) }
  }

  /// The keys of a collection that changed, without duplicates, in the order of their bytes.
  public func changedKeys(inCollection collection: String = "", of part: ItemPart? = nil) -> [String] {
    Set(flatMap { $0.changedKeys(inCollection: collection, of: part) }.map(ByteString.init)).sorted().map(\.string)
  }
}
