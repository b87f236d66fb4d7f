import Coffer

extension KeyReference {
  /// What the administrator of this host gives the application that the collection is named for.
  private func managed() throws -> ManagedSettings { try ManagedSettings(ofApplication: collection) }

  /// The value that is locked, and the file that says so.
  func lockedValue() throws -> (value: Value, file: String)? { try managed().locked(forKey: key) }

  /// The default of this host, and the file that gives it.
  func managedDefault() throws -> (value: Value, file: String)? { try managed().defaultValue(forKey: key) }

  /// - Throws: `CofferError.lockedByAdministrator`.
  func requireUnlocked() throws { try managed().requireUnlocked(key, in: collection) }
}
