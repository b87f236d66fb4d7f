/// What a call may do that uses a connection at present.
struct SessionCall {
  enum Mode {
    /// Nothing; there is no transaction.
    case idle
    case reading
    case writing
    /// Each operation is a separate transaction.
    case autocommit
  }

  var mode = Mode.idle
  /// The cancellation of a task whose operations are committed separately.
  var autocommitCancellation: Cancellation?
  /// Whether a sanitizer or an observer is running, inside which nothing may be written.
  var isCallingOut = false
  /// Whether the end of a transaction is being delivered, so that another one may begin.
  var isBetweenTransactions = false
}

/// The snapshot of a long-lived read.
struct PinnedSnapshot {
  /// The newest commit in it.
  var number: CommitNumber = 0
  /// Whether it was released so that the log could be checkpointed.
  var hasExpired = false
}

/// What a connection knows of its store from one transaction to the next.
struct KnownStore {
  /// The data version after this connection's last commit, for which all of this is known; nil if it is not.
  var version: UInt32?
  /// The end of the change log; nil if unknown.
  var end: ChangeLog.End?
  /// When the next item expires, or an earlier time; `.max` if none will, nil if unknown.
  var expiry: Int64?
  /// The renames whose former names are kept; nil if unknown.
  var renames: Renames?
  /// Whether there are any, once a write transaction has begun.
  var hasRenames = false
  /// How often the vault had been unlocked when collections were looked up.
  var unlockCount = 0
  /// What the last set did to its item, as a guess for the next one; nil if the item stayed the same.
  var lastSet: ChangeKind?

  mutating func forget() { (version, end, expiry, renames) = (nil, nil, nil, nil) }
}
