import Coffer

extension KeyReference {
  /// What the administrator of this host gives the application that the collection is named for.
  func managed() throws -> ManagedSettings { try ManagedSettings(ofApplication: collection) }

  /// - Throws: `CofferError.lockedByAdministrator`.
  func requireUnlocked() throws { try managed().requireUnlocked(key, in: collection) }
}
