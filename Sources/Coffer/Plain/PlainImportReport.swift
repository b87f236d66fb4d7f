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

  init() {}

  /// How many items were there already as they are in the file.
  public var unchangedCount: Int { itemCount - insertedCount - updatedCount }
}
