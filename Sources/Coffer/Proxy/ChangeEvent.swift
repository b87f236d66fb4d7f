extension ConnectionProxy {
  /// Visible changes through a proxy that were made together.
  ///
  /// ```swift
  /// for await event in try settings.changes(inCollection: "ui") {
  ///   for change in event.changes { print(change.key, change.kind) }
  /// }
  /// ```
  public struct ChangeEvent: Sendable {
    /// The change to one key.
    public struct Change: Sendable {
      /// The collection of the key.
      public let collection: String
      /// The key.
      public let key: String
      /// The kind of the change.
      public let kind: ChangeKind
      let before: HeldItem?
      let after: HeldItem?
      let core: DatabaseCore

      /// The new object; nil if the key was removed.
      ///
      /// An event of a sealed collection holds its values sealed; this opens them, and throws while the vault is locked.
      ///
      /// - Throws: `CofferError.notDecodable` when it is of another type.
      public func object<Object: Decodable>(as type: Object.Type = Object.self) throws -> Object? {
        try after.map { try core.decode($0.object, as: type, key, in: collection) }
      }

      /// The previous object; nil if there was none, or if it was not in memory when another process changed it.
      ///
      /// - Throws: `CofferError.notDecodable` when it is of another type.
      public func oldObject<Object: Decodable>(as type: Object.Type = Object.self) throws -> Object? {
        try before.map { try core.decode($0.object, as: type, key, in: collection) }
      }

      /// The new metadata, or nil.
      ///
      /// - Throws: `CofferError.notDecodable` when it is of another type.
      public func metadata<Metadata: Decodable>(as type: Metadata.Type = Metadata.self) throws -> Metadata? {
        try core.metadata(after?.metadata, as: type, key, in: collection)
      }
    }

    /// Who made the change.
    public let origin: ChangeOrigin
    /// The changed keys, in the order of collections and keys.
    public let changes: [Change]
    /// Whether other keys may have changed, too.
    public let scope: ChangeScope

    /// Whether a key changed, or may have.
    public func concerns(key: String, inCollection collection: String = "") -> Bool {
      concerning(ChangeInterest(collections: [ByteString(collection)], keys: [ByteString(key)])) != nil
    }

    /// The part of the event that is of interest; nil if there is none.
    func concerning(_ interest: ChangeInterest) -> ChangeEvent? {
      let changes = changes.filter { interest.includes(ByteString($0.key), in: ByteString($0.collection)) }
      let scope =
        scope == .everything
        ? scope
        : ChangeScope(wholeCollections: scope.wholeCollections.map { ByteString($0) }.filter(interest.includes))
      guard !changes.isEmpty || scope != .keys else { return nil }
      return ChangeEvent(origin: origin, changes: changes, scope: scope)
    }
  }
}

extension ConnectionProxy.ChangeEvent {
  init(_ batch: ChangeListeners.Batch, _ core: DatabaseCore) {
    self.init(
      origin: batch.origin, changes: Self.sorted(batch.items.values.compactMap { Change($0, core) }),
      scope: batch.isEverything ? .everything : ChangeScope(wholeCollections: batch.whole))
  }

  private static func sorted(_ changes: [Change]) -> [Change] {
    changes.sorted { $0.place < $1.place }
  }

  /// This event combined with a later one.
  func merged(with later: Self) -> Self {
    var merged: [SettingPlace: Change] = [:]
    for change in changes + later.changes {
      merged[change.place] = merged[change.place].map { $0.followed(by: change) } ?? change
    }
    return Self(
      origin: origin == later.origin ? origin : .several, changes: Self.sorted(Array(merged.values)),
      scope: scope.union(later.scope))
  }
}

extension ConnectionProxy.ChangeEvent.Change {
  /// nil if nothing visible changed.
  init?(_ change: ChangeListeners.ItemChange, _ core: DatabaseCore) {
    let kind: ChangeKind
    switch (change.before, change.after) {
    case (.absent, .absent): return nil
    case (.absent, .item): kind = .inserted
    case (.item, .absent), (.unknown, .absent): kind = .removed
    case (.item(let before), .item(let after)) where before == after:
      guard change.kind == .touched else { return nil }
      kind = .touched
    case (.item, .item): kind = .updated
    default: kind = change.kind ?? .updated
    }
    self.init(
      collection: change.item.collection.name, key: change.item.key, kind: kind, before: change.before.item,
      after: change.after.item, core: core)
  }

  fileprivate var place: SettingPlace { SettingPlace(key, in: collection) }

  func followed(by later: Self) -> Self {
    // The change must be reported even if the value is the same as before.
    let kind = self.kind.followed(by: later.kind) ?? later.kind
    return Self(
      collection: collection, key: key, kind: kind, before: before, after: later.after, core: core)
  }
}

extension ProxyItem.Knowledge {
  /// The item, if it is known and present.
  var item: HeldItem? {
    if case .item(let item) = self { item } else { nil }
  }
}
