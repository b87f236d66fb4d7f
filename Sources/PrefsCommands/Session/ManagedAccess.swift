import Coffer

extension ManagedSettings {
  /// A sentence about a name that may be a slip for `locked`.
  static func doubtText(_ name: String, _ place: Place) -> String {
    "\(place): \"\(name)\" is a setting, and locks nothing. Was it meant to be \"locked\"?"
  }
}

extension KeyReference {
  /// This host's managed settings for the application that the collection is named after.
  func managed() throws -> ManagedSettings { try ManagedSettings(ofApplication: collection) }

  /// - Throws: `CofferError.lockedByAdministrator`.
  func requireUnlocked() throws { try managed().requireUnlocked(key, in: collection) }

  /// The sentence that says what stays in force of a key that was removed; nil if it is not locked.
  func noteOfLock(_ managed: ManagedSettings) -> String? {
    managed.locked(forKey: key).map { locked in
      "\(KeyReference.text(key, in: collection)) keeps the value that \(locked.place) locks, in every program."
    }
  }
}
