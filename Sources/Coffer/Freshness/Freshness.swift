import CofferStorage

/// Where the newest state of a store is remembered, so that an older state put in its place is recognized.
public enum Freshness: Sendable {
  /// In the user's state folder, for a store that this user owns in the user's data folder, like those of
  /// `Preferences.open(application:)`; nowhere for any other store.
  case automatic
  /// Nowhere.
  case unwatched
  /// In a folder, outside of the store's backups; it is created with mode 0700 if missing, a file in it with mode 0600.
  case inFolder(String)
  /// In an anchor of the program's own.
  case anchored(any FreshnessAnchor)

  /// The anchor of the store at `path`, a resolved path, owned by `user`.
  func anchor(ofStoreAt path: String, user: UInt32) -> (any FreshnessAnchor)? {
    switch self {
    case .automatic: FileAnchor.standard(forStoreAt: path, user: user)
    case .unwatched: nil
    case .inFolder(let folder): FileAnchor(folder: folder)
    case .anchored(let anchor): anchor
    }
  }
}

/// Remembers the newest state of stores in a place that copying their files does not affect.
///
/// After commits that are on disk, at most once per ``interval``, a database gives it a record of some hundred bytes, sealed
/// under a key of the store. Opening the store reads the record, and throws `CofferError.rolledBack` if the store is older, or
/// `CofferError.anotherStore` if it is another one. Creating and restoring a store replace the record.
/// ``Freshness/inFolder(_:)`` needs none; a TPM's counter or a keychain can conform.
///
/// Failures should be ignored: a store without a record opens as it is.
public protocol FreshnessAnchor: Sendable {
  /// The last record kept for the store at `path`, or nil.
  func record(ofStoreAt path: String) -> [UInt8]?
  /// Keeps `record` in place of the earlier one; nil removes that.
  ///
  /// A record need not be on disk when this returns.
  func keep(_ record: [UInt8]?, ofStoreAt path: String)
  /// The minimum time between two records of a database while it is open; the last one is kept once that is over, or when it closes.
  ///
  /// A quarter of a second by default; longer for an anchor that wears out.
  var interval: Duration { get }
}

extension FreshnessAnchor {
  /// A quarter of a second.
  public var interval: Duration { .milliseconds(250) }
}

/// An anchor that can make a record survive a power failure: before a root key is replaced, the record is under the present one,
/// since a store recognizes records of its last two root keys only.
package protocol SynchronizedAnchor: FreshnessAnchor {
  /// Writes the record of the store at `path` to disk.
  func synchronizeRecord(ofStoreAt path: String)
  /// Runs `body`, which gives the name of the store at `path` to another file. No program keeps a record meanwhile: it would be
  /// that of the file which has just lost the name.
  func replacing<Result>(storeAt path: String, _ body: () throws -> Result) rethrows -> Result
}

extension FreshnessAnchor {
  /// Runs `body`, which gives the name of the store at `path` to another file, while no program keeps a record, if the anchor can
  /// see to that.
  func replacingAlone<Result>(storeAt path: String, _ body: () throws -> Result) rethrows -> Result {
    guard let anchor = self as? any SynchronizedAnchor else { return try body() }
    return try anchor.replacing(storeAt: path, body)
  }
}
