import CofferCrypto
import CofferStorage

extension CofferError {
  /// Runs `body`, translating errors of lower layers to Coffer's; other errors pass.
  package static func translating<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      throw translated(error)
    }
  }

  /// The translation of an error of a lower layer; other errors unchanged.
  static func translated(_ error: any Error) -> any Error {
    switch error {
    case let error as StorageError: CofferError(error)
    case let error as CryptoError: CofferError.unsupported(reason: "OpenSSL failed: \(error)")
    default: error
    }
  }

  package init(_ error: StorageError) {
    // Users know no temporary names.
    self =
      switch error.aboutFinalFile {
      case .notFound(let path): .storeNotFound(path: path)
      case .exists(let path): .storeExists(path: path)
      case .notAStore(let path, let reason): .notAStore(path: path, reason: reason)
      case .newerFormat(let part, let found, let supported):
        .newerFormat(part: part, found: found, supported: supported)
      case .wrongKey: .wrongKey
      case .keyUnavailable(let reason): .keyUnavailable(reason: reason)
      case .damaged(let part, let reason): .damaged(part: part, reason: reason)
      case .busy: .busy
      case .diskFull(let path): .diskFull(path: path)
      case .permissionDenied(let path, let reason): .permissionDenied(path: path, reason: reason)
      case .belongsToAnother(let path, let user): .belongsToAnotherUser(path: path, user: Int(user))
      case .replaced(let path): .storeReplaced(path: path)
      case .imageChanged(let path): .imageChanged(path: path)
      case .usedUnderAnotherName(let path): .usedUnderAnotherName(path: path)
      case .inputOutput(let path, let reason): .inputOutput(path: path, reason: reason)
      case .sqlite(let code, let message): .sqlite(code: Int(code), message: message)
      case .usedAfterFork: .usedAfterFork
      case .closed: .closed
      case .unsupported(let reason): .unsupported(reason: reason)
      case .slotNotFound(let id): .slotNotFound(id: id)
      case .lastSlot: .lastSlot
      case .slotsFull(let maximum): .slotsFull(maximum: maximum)
      case .slotsNotOpened(let ids): .slotsNotOpened(ids: ids)
      case .secretInUse(let slot): .secretInUse(slot: slot)
      case .rootKeyUnverified(let path): .rootKeyUnverified(path: path)
      case .rolledBack(let commit, let known, let found):
        .rolledBack(
          known: StoreAge(commit: commit, envelope: known), found: StoreAge(commit: nil, envelope: found))
      case .unreadable(let path, let reason): .malformedSettings(source: path, reason: reason)
      case .wrongKeyForSource(let path): .wrongKeyForSource(path: path)
      }
  }
}
