/// Collections that were looked up, by name.
///
/// A bulk write names the same one again and again: the last one is found without hashing.
struct KnownCollections {
  private static let maximumCount = 1000

  private var collections: [ByteString: StoredCollection] = [:]
  private var last: (name: ByteString, collection: StoredCollection)?

  subscript(name: String) -> StoredCollection? {
    mutating get {
      let name = ByteString(name)
      if let last, last.name == name { return last.collection }
      guard let collection = collections[name] else { return nil }
      last = (name, collection)
      return collection
    }
    set {
      let name = ByteString(name)
      if collections.count >= Self.maximumCount { collections.removeAll() }
      collections[name] = newValue
      last = newValue.map { (name, $0) }
    }
  }

  mutating func removeAll() {
    self = KnownCollections()
  }
}
