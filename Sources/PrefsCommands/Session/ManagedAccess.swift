import Coffer

extension KeyReference {
  /// This host's managed settings for the application that the collection is named after.
  func managed() throws -> ManagedSettings { try ManagedSettings(ofApplication: collection) }

  /// - Throws: `CofferError.lockedByAdministrator`.
  func requireUnlocked() throws { try managed().requireUnlocked(key, in: collection) }
}
