/// What was asked for a key and is not committed yet.
///
/// Values are encoded when they are set, and in a sealed collection sealed: what the caller mutates later doesn't change them.
enum PendingChange: Sendable {
  case set(HeldItem)
  case removed
  /// New values for an item, if there is one when they are written.
  ///
  /// In a box: it is rare, and larger than the others, which every item has room for.
  indirect case replaced(Replacement)

  /// What takes the place of an item's values.
  struct Replacement: Sendable {
    /// nil keeps the object.
    var object: HeldValue?
    /// nil keeps the metadata, nil inside clears it.
    var metadata: StoredValue??

    func applied(to item: HeldItem) -> HeldItem {
      HeldItem(object: object ?? item.object, metadata: metadata ?? item.metadata)
    }
  }

  /// This change after `earlier`, as one change.
  func over(_ earlier: PendingChange?) -> PendingChange {
    guard case .replaced(let new) = self else { return self }
    return switch earlier {
    case .set(let item): .set(new.applied(to: item))
    case .removed: .removed
    case .replaced(let old):
      .replaced(Replacement(object: new.object ?? old.object, metadata: new.metadata ?? old.metadata))
    case nil: self
    }
  }

  /// How many bytes of values it holds.
  var byteCount: Int {
    switch self {
    case .set(let item): item.byteCount
    case .removed: 0
    case .replaced(let new): (new.object?.byteCount ?? 0) + ((new.metadata ?? nil)?.bytes.count ?? 0)
    }
  }
}

extension Session {
  /// Writes a pending change, and tells the post-sanitizers what was stored.
  func write(_ change: PendingChange, _ key: String, in collection: String) throws {
    switch change {
    case .set(let item):
      try set(item, key, in: collection)
      try didSet(item, key, in: collection)
    case .removed:
      try remove(key, in: collection)
    case .replaced(let new):
      if let object = new.object, let metadata = new.metadata {
        // Both at once, which is one update.
        guard try has(key, in: collection) else { return }
        return try write(.set(HeldItem(object: object, metadata: metadata)), key, in: collection)
      }
      if let object = new.object { try replaceAndTell(.object, key, in: collection) { _ in object.stored } }
      if let metadata = new.metadata { try replaceAndTell(.metadata, key, in: collection) { _ in metadata } }
    }
  }
}
