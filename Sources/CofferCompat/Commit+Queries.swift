import Coffer

/// What changed of an item.
public enum ChangedPart: Sendable {
  case object, metadata

  fileprivate var itemPart: ItemPart { self == .object ? .object : .metadata }
}

extension Commit {
  /// Whether all collections were removed, or the changes are unknown: any key of any collection may have changed.
  public var didClearAllCollections: Bool { scope == .everything }

  /// Whether a collection was removed as a whole.
  public func didClear(collection: String) -> Bool { isCleared(collection) }

  /// Whether anything changed in a collection.
  ///
  /// - Parameter part: Restricts this to the object or the metadata; a removal changes both.
  public func hasChange(inCollection collection: String, of part: ChangedPart? = nil) -> Bool {
    concerns(part?.itemPart, collection: collection)
  }

  /// Whether a key changed, or may have: because a collection was removed, or too many keys changed to list them.
  ///
  /// - Parameter part: Restricts this to the object or the metadata; a removal changes both.
  public func hasChange(forKey key: String, inCollection collection: String = "", of part: ChangedPart? = nil) -> Bool {
    concerns(part?.itemPart, key: key, inCollection: collection)
  }

  /// Whether any of some keys changed, or may have.
  ///
  /// - Parameter part: Restricts this to the object or the metadata; a removal changes both.
  public func hasChange(
    forAnyOf keys: some Sequence<String>, inCollection collection: String = "", of part: ChangedPart? = nil
  ) -> Bool {
    keys.contains { hasChange(forKey: $0, inCollection: collection, of: part) }
  }
}

extension Sequence<Commit> {
  /// Whether a collection was removed as a whole.
  public func didClear(collection: String) -> Bool { contains { $0.didClear(collection: collection) } }

  /// Whether anything changed in a collection.
  public func hasChange(inCollection collection: String, of part: ChangedPart? = nil) -> Bool {
    contains { $0.hasChange(inCollection: collection, of: part) }
  }

  /// Whether a key changed, or may have.
  public func hasChange(forKey key: String, inCollection collection: String = "", of part: ChangedPart? = nil) -> Bool {
    contains { $0.hasChange(forKey: key, inCollection: collection, of: part) }
  }

  /// Whether any of some keys changed, or may have.
  public func hasChange(
    forAnyOf keys: some Sequence<String>, inCollection collection: String = "", of part: ChangedPart? = nil
  ) -> Bool {
    let keys = Array(keys)
    return contains { $0.hasChange(forAnyOf: keys, inCollection: collection, of: part) }
  }

  /// The keys of a collection that changed, without duplicates, in the order of their bytes.
  public func changedKeys(inCollection collection: String = "", of part: ChangedPart? = nil) -> [String] {
    let keys = flatMap { $0.changedKeys(part?.itemPart, inCollection: collection) }
    return Set(keys.map(ByteString.init)).sorted().map(\.string)
  }
}
