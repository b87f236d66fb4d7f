import Coffer
import Dispatch

extension ReadWriteTransaction {
  /// Removes all keys of all collections, like removing them one by one: history keeps them.
  ///
  /// `Connection.erase()` leaves nothing of them.
  public borrowing func removeAllObjectsInAllCollections() throws {
    try session.removeAllInAllCollections()
  }

  /// Runs `block` after the end of the transaction, in the order of these calls, before the completion of the call that made
  /// the transaction.
  ///
  /// In `writeWithoutTransaction`, where everything before is committed already, it runs immediately.
  ///
  /// - Parameters:
  ///   - queue: Where it runs; nil for the thread of the transaction.
  ///   - block: Receives whether the transaction was committed.
  public borrowing func addCompletion(
    on queue: DispatchQueue? = nil, _ block: @escaping @Sendable (_ isCommitted: Bool) -> Void
  ) {
    session.addCompletion(queue, block)
  }

  /// An object for observers of the commit in this process, besides the changes; the last one set is used.
  ///
  /// In `writeWithoutTransaction` it applies only to the transaction of an `inSavepoint`.
  public var notificationCustomObject: (any Sendable)? {
    get { session.attachment }
    nonmutating set { session.attachment = newValue }
  }
}

extension Commit {
  /// The objects that the transaction attached, see `ReadWriteTransaction.notificationCustomObject`; only in the process of
  /// the commit.
  public var customObjects: [any Sendable] { attachments }
}
