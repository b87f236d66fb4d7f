extension Session {
  /// How many items are removed in one commit, and how many are examined at most before a transaction.
  private static let expiredCount = 1000

  /// Removes the items that have expired at `time`, in a commit of its own, with the write lock held before and after.
  ///
  /// It has no author, since the next writer did not remove them, and each key has the time at which it expired.
  /// It is not mixed with any transaction's changes, and no transaction sees expired items. If it fails, the transaction
  /// continues: it does not see expired items either way.
  func removeExpired(at time: Int64, _ beginWrite: () throws -> Void) throws {
    guard try mayHaveExpired(at: time) else { return }
    let expired = try CofferError.translating { try items.expired(at: time, atMost: Self.expiredCount) }
    guard !expired.isEmpty else { return }
    begin(nil, at: time)
    transaction.isExpiry = true
    do {
      for item in expired { try expire(item) }
      try commit(prepareCommit())
      end(number: transaction.committed, isCommitted: true)
    } catch {
      try? connection.rollback()
      end(number: nil, isCommitted: false)
      core.options.logger.debug("Expired items are not removed yet. \(error)")
    }
    try beginWrite()
    known.expiry = nil
    // There may be more.
    if try mayHaveExpired(at: time) { core.expiries.tryAgainLater() }
  }

  private func mayHaveExpired(at time: Int64) throws -> Bool {
    if let expiry = known.expiry, expiry > time { return false }
    let next = try CofferError.translating { try items.nextExpiry() } ?? .max
    known.expiry = next
    return next <= time
  }
}
