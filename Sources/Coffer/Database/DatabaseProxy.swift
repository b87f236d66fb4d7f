/// What a database does with the proxies above it: they register with it, and are closed before it.
protocol DatabaseProxy: AnyObject, Sendable {
  /// Writes what is pending, and admits no more changes.
  ///
  /// - Returns: Whether this call has closed it.
  func close() throws -> Bool
  /// Admits changes again: the database stays open.
  func reopen()
  /// Called after all proxies were closed.
  func databaseDidClose()
  /// What was read from the store may no longer be there.
  func storeWasReplaced()
  /// What was read while the vault was locked can be read now.
  func vaultWasUnlocked()
}
