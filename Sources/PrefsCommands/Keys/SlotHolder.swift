import Coffer

/// What has key slots: a store.
protocol SlotHolder {
  func slots() throws -> [SlotInfo]
  func addSlot(_ key: KeySource, label: String, stretching: PasswordHash) throws -> SlotInfo
  func addRecoveryKey(label: String) throws -> RecoveryKey
  func changeSlot(_ id: Int, to key: KeySource, label: String?, stretching: PasswordHash) throws -> SlotInfo
  func labelSlot(_ id: Int, _ label: String) throws
  func removeSlot(_ id: Int) throws
  /// Puts another key behind the slots that `keys` open, which are all that stay.
  func replaceKey(openedBy keys: [KeySource], dropping: Set<Int>, progress: (Double) -> Void) throws
}

extension Database: SlotHolder {
  func replaceKey(openedBy keys: [KeySource], dropping: Set<Int>, progress: (Double) -> Void) throws {
    try rotate(newRootKeyFor: keys, droppingSlots: dropping, progress: progress)
  }
}

/// The slots that a command works on, and what opened them.
struct OpenSlots {
  let holder: any SlotHolder
  let key: KeySource?
}

extension Session {
  /// Opens the store for work on its key slots, and closes it afterwards.
  func withSlots<R>(_ body: (OpenSlots) throws -> R) throws -> R {
    let (database, key) = try openWithKey()
    return try using(database) { try body(OpenSlots(holder: $0, key: key)) }
  }
}
