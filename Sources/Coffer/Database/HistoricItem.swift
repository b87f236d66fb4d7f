#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What an item was before it was overwritten or removed; see `Reading.history(forKey:inCollection:)`.
public struct HistoricItem: Sendable, Equatable {
  /// The collection it was in.
  public let collection: String
  /// Its key.
  public let key: String
  /// Its value.
  public let value: Value
  /// Its metadata, if it had any.
  public let metadata: Value?
  /// The number of the commit that set it, see ``ItemInfo/version``.
  public let version: Int64
  /// When it was set, to the millisecond.
  public let modified: Date
  /// The number of the commit that ended it: the version that overwrote it, unless it was removed.
  public let endVersion: Int64
  /// When it was overwritten or removed, to the millisecond.
  public let ended: Date
}
