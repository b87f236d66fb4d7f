/// A kind of change, as an observer is asked about it.
public struct DatabaseEventKind: Sendable, Hashable {
  /// What happens to an item.
  public enum Operation: Sendable, Hashable, CaseIterable {
    /// A key that was not there gets an object.
    case insertion
    /// The object, the metadata, or both change.
    case update
    /// A key goes, alone or with its collection.
    case removal
    /// Nothing changes; the key is announced as changed.
    case touch
  }

  /// What happens.
  public let operation: Operation
  /// In which collection.
  public let collection: String
  /// Whether it concerns the object.
  public let changesObject: Bool
  /// Whether it concerns the metadata.
  public let changesMetadata: Bool
}

/// A change of one item in the transaction that is under way.
///
/// Events are values: keep them as long as you like.
public struct DatabaseEvent: Sendable, Hashable {
  /// What happened, in which collection.
  public let kind: DatabaseEventKind
  /// To which key.
  public let key: String

  /// In which collection.
  public var collection: String { kind.collection }
}

/// A change of one item with its values before and after.
public struct DatabasePreUpdateEvent: Sendable {
  /// The change.
  public let event: DatabaseEvent
  let old: HeldItem?
  let new: HeldItem?
  let core: DatabaseCore

  /// The object before; nil for an insertion.
  ///
  /// - Throws: `CofferError.notDecodable`, as do the others below; `.locked` where it is sealed and the vault locked.
  public var oldObject: Value? {
    get throws { try object(of: old) }
  }

  /// The object after; nil for a removal.
  public var newObject: Value? {
    get throws { try object(of: new) }
  }

  /// The metadata before, if there was any.
  public var oldMetadata: Value? {
    get throws { try metadata(of: old) }
  }

  /// The metadata after, if there is any.
  public var newMetadata: Value? {
    get throws { try metadata(of: new) }
  }

  // Opened only here: an event of a sealed collection has its values sealed.

  private func object(of item: HeldItem?) throws -> Value? {
    try item.map { try core.value($0.object, event.key, in: event.collection) }
  }

  private func metadata(of item: HeldItem?) throws -> Value? {
    try item?.metadata.map { try core.value(.metadata, $0, event.key, in: event.collection) }
  }
}
