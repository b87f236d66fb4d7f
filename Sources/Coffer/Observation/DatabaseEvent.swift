/// A kind of change, which an observer may select.
public struct DatabaseEventKind: Sendable, Hashable {
  /// The change to an item.
  public enum Operation: Sendable, Hashable, CaseIterable {
    /// A new key gets an object.
    case insertion
    /// The object, the metadata, or both change.
    case update
    /// A key is removed, alone or with its collection.
    case removal
    /// Nothing changes; the key is reported as changed.
    case touch
  }

  /// The change.
  public let operation: Operation
  /// The collection.
  public let collection: String
  /// Whether it concerns the object.
  public let changesObject: Bool
  /// Whether it concerns the metadata.
  public let changesMetadata: Bool
}

/// A change to one item in the current transaction.
///
/// Events are values, and may be kept.
public struct DatabaseEvent: Sendable, Hashable {
  /// The kind of change, with its collection.
  public let kind: DatabaseEventKind
  /// The key.
  public let key: String

  /// The collection.
  public var collection: String { kind.collection }
}

/// A change to one item, with its values before and after.
public struct DatabasePreUpdateEvent: Sendable {
  /// The change.
  public let event: DatabaseEvent
  let old: HeldItem?
  let new: HeldItem?
  let core: DatabaseCore

  /// The object before; nil for an insertion.
  ///
  /// - Throws: `CofferError.notDecodable`, as do the others below; `.locked` when it is sealed and the vault is locked.
  public var oldObject: Value? {
    get throws { try object(of: old) }
  }

  /// The object after; nil for a removal.
  public var newObject: Value? {
    get throws { try object(of: new) }
  }

  /// The metadata before, or nil.
  public var oldMetadata: Value? {
    get throws { try metadata(of: old) }
  }

  /// The metadata after, or nil.
  public var newMetadata: Value? {
    get throws { try metadata(of: new) }
  }

  // Opened only here: an event of a sealed collection holds its values sealed.

  private func object(of item: HeldItem?) throws -> Value? {
    try item.map { try core.value($0.object, event.key, in: event.collection) }
  }

  private func metadata(of item: HeldItem?) throws -> Value? {
    try item?.metadata.map { try core.value(.metadata, $0, event.key, in: event.collection) }
  }
}
