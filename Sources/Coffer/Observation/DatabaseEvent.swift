/// A kind of change, as an observer is asked whether it wants to hear of it.
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
  let old: StoredItem?
  let new: StoredItem?
  let core: DatabaseCore

  /// The object before; nil for an insertion.
  ///
  /// - Throws: `CofferError.notDecodable`, as do the others below; `.locked` where it is sealed and the vault locked.
  public var oldObject: Value? {
    get throws { try value(.object, old?.object) }
  }

  /// The object after; nil for a removal.
  public var newObject: Value? {
    get throws { try value(.object, new?.object) }
  }

  /// The metadata before, if there was any.
  public var oldMetadata: Value? {
    get throws { try value(.metadata, old?.metadata) }
  }

  /// The metadata after, if there is any.
  public var newMetadata: Value? {
    get throws { try value(.metadata, new?.metadata) }
  }

  /// Opened only here: an event of a sealed collection has its values sealed.
  private func value(_ part: ItemPart, _ stored: StoredValue?) throws -> Value? {
    try stored.map { try core.value(part, $0, event.key, in: event.collection) }
  }
}

/// The two values of an item, as they are stored.
struct StoredItem: Equatable, Sendable {
  var object: StoredValue
  var metadata: StoredValue?
}
