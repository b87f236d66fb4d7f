#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What can be known of an item without reading its value.
public struct ItemInfo: Sendable, Equatable {
  /// The collection it is in.
  public let collection: String
  /// Its key.
  public let key: String
  /// The kind of its value; always `.sealed` in a sealed collection.
  public let kind: Value.Kind
  /// The size of its value as stored; a sealed value has some bytes more.
  public let byteCount: Int
  /// The number of the commit that last changed it: above 0, and never reused for another value of this key, even after it
  /// is removed and set again.
  public let version: CommitNumber
  /// When it was last changed, to the millisecond.
  public let modified: Date
  /// When it expires; nil for never.
  public let expires: Date?
  /// When it should be renewed; nil if not set.
  public let due: Date?
}

/// An item with its value.
public struct Item: Sendable, Equatable {
  /// The collection it is in.
  public let collection: String
  /// Its key.
  public let key: String
  /// Its value.
  public let value: Value
  /// Its metadata, if it has any.
  public let metadata: Value?
  /// The number of the commit that last changed it; see ``ItemInfo/version``.
  public let version: CommitNumber
  /// When it was last changed, to the millisecond.
  public let modified: Date
  /// When it expires; nil for never.
  public let expires: Date?
  /// When it should be renewed; nil if not set.
  public let due: Date?
  /// Who set it; nil if its collection kept no history then, or keeps none now.
  public let author: Author?
}

extension Date {
  package init(milliseconds: Int64) {
    self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
  }

  /// In milliseconds since 1970, limited to the range.
  ///
  /// Rounded to nearest: a date created from milliseconds may be slightly less.
  package var milliseconds: Int64 {
    Int64(exactly: (timeIntervalSince1970 * 1000).rounded()) ?? (self > Date(timeIntervalSince1970: 0) ? .max : .min)
  }
}

extension ItemDates {
  /// - Parameters:
  ///   - expires: nil for never.
  ///   - due: nil for never.
  package init(expires: Date?, due: Date?) {
    self.init(expires: expires?.milliseconds, due: due?.milliseconds)
  }
}

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
  /// The number of the commit that set it; see ``ItemInfo/version``.
  public let version: CommitNumber
  /// When it was set, to the millisecond.
  public let modified: Date
  /// The number of the commit that ended it: the version that overwrote it, unless it was removed.
  public let endVersion: CommitNumber
  /// When it was overwritten or removed, to the millisecond.
  public let ended: Date
  /// When it was to expire; nil for never.
  public let expires: Date?
  /// Who set it; nil if its collection kept no history then.
  public let author: Author?
  /// Who overwrote or removed it.
  public let endedBy: Author?

  /// Whether it expired, instead of being overwritten or removed before.
  public var hasExpired: Bool { expires.map { $0 <= ended } ?? false }
}
