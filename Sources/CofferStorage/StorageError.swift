/// An error of the storage layer.
///
/// `Coffer` translates it into a `CofferError`, adding collections and keys where it knows them. Most cases have the same name
/// there: programs match them, beside those of collections and settings, of which this layer knows nothing. The compiler checks
/// that none is forgotten.
package enum StorageError: Error, Equatable, Sendable {
  case notFound(path: String)
  case exists(path: String)
  case notAStore(path: String, reason: String)
  case newerFormat(part: String, found: Int, supported: Int)
  case wrongKey
  case keyUnavailable(reason: String)
  case damaged(part: String, reason: String)
  case busy
  case diskFull(path: String)
  case permissionDenied(path: String, reason: String)
  case belongsToAnother(path: String, user: UInt32)
  /// An open store was replaced by another file.
  case replaced(path: String)
  /// A store that can only be read as an image was changed during a transaction; another one reads the new state.
  case imageChanged(path: String)
  /// The log of the store belongs to another name of its file.
  case usedUnderAnotherName(path: String)
  case inputOutput(path: String, reason: String)
  case sqlite(code: Int32, message: String)
  case usedAfterFork
  case closed
  case unsupported(reason: String)
  case slotNotFound(id: Int)
  case lastSlot
  case slotsFull(maximum: Int)
  case slotsNotOpened(ids: [Int])
  /// The secret opens this slot already.
  case secretInUse(slot: Int)
  /// The envelope is under another root key, which the one held here does not vouch for.
  case rootKeyUnverified(path: String)
  /// The envelope is not the one that is remembered outside of the store, nor a later one: `knownCommit` is nil if that is
  /// under a root key that this one is neither nor follows.
  case rolledBack(knownCommit: Int64?, known: UInt64, found: UInt64)
  /// Another program's file is not of the expected form.
  case unreadable(path: String, reason: String)
  /// Another program's file does not open with its passphrase.
  case wrongKeyForSource(path: String)
}
