import Coffer

/// What an import has changed, or would.
public struct PlainImportReport: Sendable, Equatable {
  /// How many items were read.
  public internal(set) var itemCount = 0
  /// How many of them are new.
  public internal(set) var insertedCount = 0
  /// How many of them replaced another value, or other metadata.
  public internal(set) var updatedCount = 0
  /// How many items were removed, because the file doesn't have them.
  public internal(set) var removedCount = 0
  /// The collections that were read, in the order of their names.
  public internal(set) var collections: [String] = []
  /// How many values and metadata are data because nobody knows what wrote them.
  public internal(set) var opaqueCount = 0

  /// How many values the file does not show, and were left as they are: redacted secrets.
  package internal(set) var redactedCount = 0
  /// What would change, by collection and key; only of an import that changes nothing.
  package internal(set) var changes: [Change] = []

  /// One item that an import would add, change or remove.
  package struct Change: Sendable, Equatable {
    package let collection: String
    package let key: String
    /// The value that is there; nil when the item is new.
    package let before: Value?
    /// The value in the file; nil when the item would be removed.
    package let after: Value?
    /// Whether the collection is sealed, and its values are not to be shown.
    package let isSealed: Bool
  }

  init() {}

  /// How many items were there already as they are in the file.
  public var unchangedCount: Int { itemCount - insertedCount - updatedCount }
}

extension PlainImportReport.Change: CustomStringConvertible, CustomReflectable {
  /// Collection and key; never a value, which may be a sealed one.
  package var description: String { "\(collection)/\(key)" }

  package var customMirror: Mirror { Mirror(self, children: ["collection": collection, "key": key]) }
}
