import Coffer
import PrefsCommands

/// The store that is served.
struct ServedStore: Sendable {
  let database: Database
  let session: CommandSession
  let vault: KeptVault
  /// The collection that is meant if a request names none.
  let collection: String

  /// Runs `body`, and again if the vault can be unlocked that it needs, or if another program wrote to a store that can only be
  /// read as an image.
  func unlocking<R>(_ body: () throws -> R) throws -> R {
    do {
      return try CommandSession.whileImageChanges(body)
    } catch CofferError.vaultLocked {
      vault.check()
      return try body()
    }
  }

  /// An error as clients get it, which is as commands print it with `--json`.
  func json(of error: any Error) -> String {
    let failure =
      switch error {
      case let failure as Failure: failure
      // No conflict, which clients try again.
      case CofferError.storeReplaced: Failure(.storeNotFound, "\(error)")
      case let error as CofferError: Failure(error, force: nil, undeclared: "\"undeclared\":true")
      default: Failure(.other, "an unexpected error of type \(type(of: error)). Nothing was changed.")
      }
    return failure.json(store: session.path)
  }
}
