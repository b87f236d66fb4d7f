import CofferCrypto

/// Registered defaults, by key; the lowest layer of the search list, never written to the store.
final class RegisteredDefaults: Sendable {
  /// The defaults shared by every `Preferences`.
  static let ofProcess = RegisteredDefaults()

  private let values = Lock<[ByteString: Value]>([:])

  var all: [ByteString: Value] { values.withLock { $0 } }

  func value(forKey key: String) -> Value? {
    values.withLock { $0[ByteString(key)] }
  }

  func add(_ defaults: [(ByteString, Value)]) {
    values.withLock { $0.merge(defaults) { $1 } }
  }
}
