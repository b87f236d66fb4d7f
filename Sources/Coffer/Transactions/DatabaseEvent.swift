/// A kind of change, which an observer may select.
public struct DatabaseEventKind: Sendable, Hashable {
  /// The change to an item; `.removed` also if it goes with its collection.
  public let change: ChangeKind
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
