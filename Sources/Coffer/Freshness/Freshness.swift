import CofferStorage

/// Where the newest state of a store is remembered, so that an older one, put in its place, is not taken for it.
public enum Freshness: Sendable {
  /// In the user's state folder for a store of this user's own in the user's data folder, as
  /// `Preferences.open(application:)` makes it; nowhere for any other store.
  case automatic
  /// Nowhere.
  case unwatched
  /// Where an anchor keeps it.
  case anchored(any FreshnessAnchor)

  /// The anchor of the store at `path`, a file's resolved path, that belongs to `user`.
  func anchor(ofStoreAt path: String, user: UInt32) -> (any FreshnessAnchor)? {
    switch self {
    case .automatic: FileAnchor.standard(forStoreAt: path, user: user)
    case .unwatched: nil
    case .anchored(let anchor): anchor
    }
  }
}

/// Remembers the newest state of stores where a copy of their files does not reach.
///
/// A database gives it a record of some hundred bytes, sealed under a key of the store, after commits that are on the disk,
/// not more often than every ``interval``, and asks for it when the store is opened. A store that is older than its record says throws
/// `CofferError.rolledBack`. ``FileAnchor`` keeps records in a folder; a TPM's counter or a keychain can stand behind this
/// protocol as well.
///
/// What fails is to be passed over: a store without a record opens as it is.
public protocol FreshnessAnchor: Sendable {
  /// The record that was kept last for the store at `path`; nil where there is none.
  func record(ofStoreAt path: String) -> [UInt8]?
  /// Keeps `record` in the place of the earlier one; nil forgets that.
  ///
  /// A record need not be on the disk when this returns.
  func keep(_ record: [UInt8]?, ofStoreAt path: String)
  /// The least time between two records of a database while it is open; the last one is kept when it closes.
  ///
  /// A quarter of a second unless the anchor says something else, as one that wears out will.
  var interval: Duration { get }
}

extension FreshnessAnchor {
  /// A quarter of a second.
  public var interval: Duration { .milliseconds(250) }
}

/// How new a store is.
public struct StoreAge: Equatable, Sendable, CustomStringConvertible {
  /// The number of the last commit; nil where the record of it was made under an earlier root key.
  public let commit: Int64?
  /// How often what opens the store was changed, and once more.
  public let envelope: UInt64

  /// For people: `commit 12, key change 3`.
  public var description: String {
    (commit.map { "commit \($0), " } ?? "") + "key change \(envelope)"
  }
}
