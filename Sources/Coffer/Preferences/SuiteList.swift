import CofferCrypto

/// The suites that were added to a search list, in order.
final class SuiteList: Sendable {
  private let added = Lock<[String]>([])

  var names: [String] { added.withLock { $0 } }

  func add(_ name: String) {
    added.withLock { names in
      if !names.contains(where: { ByteString($0) == ByteString(name) }) { names.append(name) }
    }
  }

  func remove(_ name: String) {
    added.withLock { names in names.removeAll { ByteString($0) == ByteString(name) } }
  }
}
