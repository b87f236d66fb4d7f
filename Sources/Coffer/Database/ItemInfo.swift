#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What is known of an item without reading its value.
public struct ItemInfo: Sendable, Equatable {
  /// The collection it is in.
  public let collection: String
  /// Its key.
  public let key: String
  /// What kind of value it holds; `.sealed` in a sealed collection, whatever it is.
  public let kind: Value.Kind
  /// The size of its value as stored; a sealed one has some bytes more.
  public let byteCount: Int
  /// The number of the commit that changed it last: above 0, and never the same again for another value of this key, also
  /// when it is removed and set anew.
  public let version: Int64
  /// When it was changed last, to the millisecond.
  public let modified: Date
  /// From when on it is gone; nil for an item that stays.
  public let expires: Date?
  /// From when on it should be set anew; nil where nobody said so.
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
  /// The number of the commit that changed it last, see ``ItemInfo/version``.
  public let version: Int64
  /// When it was changed last, to the millisecond.
  public let modified: Date
  /// From when on it is gone; nil for an item that stays.
  public let expires: Date?
  /// From when on it should be set anew; nil where nobody said so.
  public let due: Date?
  /// Who set it; nil where its collection keeps no history, or kept none then.
  public let author: Author?
}

extension Date {
  package init(milliseconds: Int64) {
    self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
  }

  /// In milliseconds since 1970; what is too far away is as far as can be said.
  ///
  /// Rounded to the nearest: a date made of milliseconds may lie a little before them.
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
  /// The number of the commit that set it, see ``ItemInfo/version``.
  public let version: Int64
  /// When it was set, to the millisecond.
  public let modified: Date
  /// The number of the commit that ended it: the version that overwrote it, unless it was removed.
  public let endVersion: Int64
  /// When it was overwritten or removed, to the millisecond.
  public let ended: Date
  /// From when on it was to be gone; nil for an item that was to stay.
  public let expires: Date?
  /// Who set it; nil where its collection kept no history then.
  public let author: Author?
  /// Who overwrote or removed it.
  public let endedBy: Author?

  /// Whether it was not overwritten or removed in time, and expired.
  public var hasExpired: Bool { expires.map { $0 <= ended } ?? false }
}
