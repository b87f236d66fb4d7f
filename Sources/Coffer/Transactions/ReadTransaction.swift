/// A read transaction: one snapshot.
///
/// `Connection.read` lends it to a closure, which it cannot leave.
public struct ReadTransaction: ~Copyable, Reading {
  /// What the transaction works on.
  public let context: TransactionContext

  init(context: TransactionContext) {
    self.context = context
  }
}
