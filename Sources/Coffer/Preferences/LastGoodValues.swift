import CofferCrypto

/// The last good values of typed keys, used in place of a bad value that comes later.
///
/// A value is recorded when it is first read after a change, never on the fastest path.
final class LastGoodValues: Sendable {
  /// A good value, and the bad values that were skipped for it.
  struct Entry<Object: Sendable>: Sendable {
    let object: Object
    /// Problems of bad values that persist, in an environment variable for instance: they must not hide later changes below
    /// them.
    var problems: [SettingProblem] = []
    var isDefault = false
  }

  /// Keys by name and type, not by identity: some programs create a key for each use.
  private struct Place: Hashable {
    let key: ByteString
    let collection: ByteString
    let type: ObjectIdentifier

    init<Object>(_ key: Key<Object>, _ collection: String) {
      (self.key, self.collection) = (ByteString(key.name), ByteString(collection))
      type = ObjectIdentifier(Object.self)
    }
  }

  private let entries = Lock<[Place: any Sendable]>([:])

  /// The last good value; nil if there is none, or if it came from another key and violates this key's limits.
  func entry<Object>(of key: Key<Object>, in collection: String) -> Entry<Object>? {
    let entry = entries.withLock { $0[Place(key, collection)] } as? Entry<Object>
    return entry.flatMap { key.allows($0.object) ? $0 : nil }
  }

  /// - Parameter entry: nil forgets the entry, when a value has been sealed.
  func note<Object>(_ entry: Entry<Object>?, of key: Key<Object>, in collection: String) {
    entries.withLock { $0[Place(key, collection)] = entry }
  }
}
