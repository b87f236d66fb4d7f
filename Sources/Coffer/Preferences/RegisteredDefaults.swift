import CofferCrypto

/// Defaults that were registered, by key; the lowest layer of the search list, never written anywhere.
final class RegisteredDefaults: Sendable {
  /// Those that every `Preferences` sees.
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
