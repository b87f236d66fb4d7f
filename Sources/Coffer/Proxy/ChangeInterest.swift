/// The changes that a listener of a proxy wants to observe.
struct ChangeInterest: Sendable {
  /// nil for all collections.
  var collections: Set<ByteString>?
  /// nil for all keys.
  var keys: Set<ByteString>?
  var prefix: String?

  func includes(_ collection: ByteString) -> Bool { collections?.contains(collection) ?? true }

  func includes(_ key: ByteString, in collection: ByteString) -> Bool {
    guard includes(collection) else { return false }
    if let keys { return keys.contains(key) }
    return prefix.map { key.string.utf8.starts(with: $0.utf8) } ?? true
  }
}

/// What several listeners want to observe, together: asking that takes the same time for one listener and for thousands of keys.
struct ChangeInterests {
  private var isEverything = false
  private var collections: Set<ByteString> = []
  /// Wherever they are.
  private var keys: Set<ByteString> = []
  private var keysByCollection: [ByteString: Set<ByteString>] = [:]
  private var prefixes: [ChangeInterest] = []

  mutating func add(_ interest: ChangeInterest) {
    switch (interest.collections, interest.keys, interest.prefix) {
    case (_, nil, .some): prefixes.append(interest)
    case (nil, nil, nil): isEverything = true
    case (let collections?, nil, nil): self.collections.formUnion(collections)
    case (nil, let keys?, _): self.keys.formUnion(keys)
    case (let collections?, let keys?, _):
      for collection in collections { keysByCollection[collection, default: []].formUnion(keys) }
    }
  }

  /// Whether the changes of a key are of interest.
  func include(_ key: ByteString, in collection: ByteString) -> Bool {
    isEverything || collections.contains(collection) || keys.contains(key)
      || keysByCollection[collection]?.contains(key) ?? false
      || prefixes.contains { $0.includes(key, in: collection) }
  }
}
