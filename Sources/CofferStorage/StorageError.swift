/// Why the storage layer failed.
///
/// `Coffer` turns these into `CofferError`, adding what it knows of collections and keys.
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
  /// Another file was put in the place of an open store.
  case replaced(path: String)
  case inputOutput(path: String, reason: String)
  case sqlite(code: Int32, message: String)
  case usedAfterFork
  case closed
  case unsupported(reason: String)
  case slotNotFound(id: Int)
  case lastSlot
  case slotsFull(maximum: Int)
  case slotsNotOpened(ids: [Int])
  /// A file of another program is not what it should be.
  case unreadable(path: String, reason: String)
  /// A file of another program does not open with its passphrase.
  case wrongKeyForSource(path: String)
}
