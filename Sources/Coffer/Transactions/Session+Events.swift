extension Session {
  /// Whether an observer wants such changes, so that the item's values are needed.
  func observes(_ change: ChangeKind, in collection: String, _ part: ItemPart? = nil) -> Bool {
    // After a rollback, changes have no effect.
    guard let observation = transaction.observation, !transaction.isRolledBack else { return false }
    return callingOut { observation.observes(Self.kind(change, collection, part)) }
  }

  private static func kind(
    _ change: ChangeKind, _ collection: String, _ part: ItemPart?
  ) -> DatabaseEventKind {
    DatabaseEventKind(
      change: change, collection: collection, changesObject: part != .metadata, changesMetadata: part != .object)
  }

  /// Records a change, also for the observers that want it.
  func record(
    _ kind: ChangeKind, _ key: String, in collection: String, id: Int64, _ part: ItemPart? = nil,
    old: HeldItem? = nil, new: HeldItem? = nil, expired: Int64? = nil
  ) {
    recordUnobserved(kind, key, in: collection, id: id, part, expired: expired)
    guard let observation = transaction.observation, !transaction.isRolledBack else { return }
    let eventKind = Self.kind(kind, collection, part)
    guard callingOut({ observation.observes(eventKind) }) else { return }
    transaction.undelivered.append(
      ObservedChange(event: DatabaseEvent(kind: eventKind, key: key), old: old, new: new))
  }

  /// Records a change that no observer wants.
  func recordUnobserved(
    _ kind: ChangeKind, _ key: String, in collection: String, id: Int64, _ part: ItemPart? = nil,
    expired: Int64? = nil
  ) {
    transaction.changes.record(
      key, in: id,
      ChangeSet.Change(
        kind: kind, changesObject: part != .metadata, changesMetadata: part != .object, expired: expired),
      expectedCount: transaction.expectedChangeCount)
    if !cache.isEmpty { cache.remove(ByteString(key), in: id) }
    if transaction.isFeedObserved { transaction.changedNames[id] = collection }
  }

  /// Records the removal of a whole collection.
  func recordClearing(of collection: String, id: Int64, keys: [String], isErased: Bool) {
    transaction.changes.recordClearing(of: id, keys: keys.map(ByteString.init), isErased: isErased)
    transaction.changedNames[id] = collection
    knownCollections[collection] = nil
    cache.removeAll()
  }

  func recordClearingOfAll(isErased: Bool = false) {
    transaction.changes.recordClearingOfAll(isErased: isErased)
    knownCollections.removeAll()
    cache.removeAll()
  }
}
