import CofferStorage

/// A proxy's memory holds no plaintext of sealed collections: values are sealed when they are set, and opened when they are
/// read.
extension ProxyState {
  /// The change in the form in which it may wait for its flush.
  ///
  /// A value equal to the visible one is sealed to the same bytes, and so becomes a change without effect.
  ///
  /// - Throws: `CofferError.vaultLocked`; the errors of reading the store, if it is unknown whether the collection is sealed.
  func sealing(_ change: PendingChanges.KeyChange) throws -> PendingChanges.KeyChange {
    guard core.vault.isThere.load(ordering: .relaxed), change.mutation.hasValues, try isSealed(change.collection) else {
      return change
    }
    let sealed = try sealing(change.mutation, change.key, in: change.collection)
    return PendingChanges.KeyChange(mutation: sealed, key: change.key, collection: change.collection)
  }

  private func sealing(_ change: Mutation, _ key: String, in collection: String) throws -> Mutation {
    let present = lock.withShared {
      items.find(key, collection)?.withObject { $0.visible.item }
    }
    func sealed(_ value: StoredValue, _ part: ItemPart, _ present: StoredValue?) throws -> StoredValue {
      try core.vault.seal(value, part, key, in: collection, keeping: present)
    }
    func object(_ held: HeldValue) throws -> HeldValue {
      .stored(try sealed(held.stored, .object, present?.object.stored))
    }
    func metadata(_ stored: StoredValue) throws -> StoredValue {
      try sealed(stored, .metadata, present?.metadata)
    }
    switch change {
    case .set(let item):
      return .set(
        HeldItem(object: try object(item.object), metadata: try item.metadata.map(metadata), dates: item.dates))
    case .replaced(let new):
      return .replaced(
        .init(object: try new.object.map(object), metadata: try new.metadata.map { try $0.map(metadata) }))
    case .removed: return change
    }
  }

  /// Whether a collection is sealed: read from the store once, and again after others have changed the collection.
  func isSealed(_ name: String) throws -> Bool {
    guard core.vault.isThere.load(ordering: .relaxed) else { return false }
    let known = lock.withShared { isCurrent ? items.knownCollection(name)?.isSealed : nil }
    if let known { return known }
    return try readCommitted { session, last in
      let isSealed = try session.isSealedOrWillBe(name)
      return lock.withExclusive {
        guard isUsable(last) else { return nil }
        items.collection(name).isSealed = isSealed
        return isSealed
      }
    }
  }
}

extension Mutation {
  /// Whether it contains a value.
  var hasValues: Bool {
    switch self {
    case .set: true
    case .removed: false
    case .replaced(let new): new.object != nil || (new.metadata ?? nil) != nil
    }
  }
}
