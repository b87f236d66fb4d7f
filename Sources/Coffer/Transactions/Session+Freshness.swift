extension Session {
  /// Checks the chain of the change log, and compares it with the record outside of the store.
  ///
  /// - Parameter record: The result of `freshnessRecord`, read before this transaction began.
  package func checkLog(against record: [UInt8]?) throws -> ChangeLogCheck {
    var check = try changeLog.checkChain()
    try check.compare(with: record, connection.store, changeLog)
    return check
  }

  /// What is remembered of the store outside of it.
  package var freshnessRecord: [UInt8]? { core.witness?.record() }
}
