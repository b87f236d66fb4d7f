import CofferCrypto

/// The last good values that typed keys gave: what stands for a bad one that comes later.
///
/// They are noted where a value is read for the first time after it changed, which is never on the shortest way.
final class LastGoodValues: Sendable {
  /// A good value, and the bad ones that were passed over for it.
  struct Entry<Object: Sendable>: Sendable {
    let object: Object
    /// Of a bad value that stays as it is, in a variable for instance: it must not hide what changes below it.
    var problems: [SettingProblem] = []
    var isDefault = false
  }

  /// Keys by their names and types, not by themselves: some programs make one anew for each use.
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

  /// The last good value; nil where there was none, or another key's that this one does not allow.
  func entry<Object>(of key: Key<Object>, in collection: String) -> Entry<Object>? {
    let entry = entries.withLock { $0[Place(key, collection)] } as? Entry<Object>
    return entry.flatMap { key.allows($0.object) ? $0 : nil }
  }

  /// - Parameter entry: nil to forget it, as what is sealed now.
  func note<Object>(_ entry: Entry<Object>?, of key: Key<Object>, in collection: String) {
    entries.withLock { $0[Place(key, collection)] = entry }
  }
}
