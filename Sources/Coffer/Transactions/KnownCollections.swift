/// Collections that were looked up, by name.
///
/// A bulk write names the same collection again and again: the last one is found without hashing.
final class KnownCollections {
  private static let maximumCount = 1000

  private final class Entry {
    let name: ByteString
    /// nil if it has to be looked up again.
    var collection: StoredCollection?

    init(name: ByteString, collection: StoredCollection) {
      self.name = name
      self.collection = collection
    }
  }

  @exclusivity(unchecked) private var table = HashTable<Entry>()
  /// Retained by the table, so that comparing its name needs no reference counting.
  @exclusivity(unchecked) private var last: Borrowed<Entry>?

  subscript(name: String) -> StoredCollection? {
    get { entry(ByteString(name))?.withObject { $0.collection } }
    set {
      let name = ByteString(name)
      if let entry = entry(name) { return entry.withObject { $0.collection = newValue } }
      guard let newValue else { return }
      if table.count >= Self.maximumCount { removeAll() }
      let entry = Entry(name: name, collection: newValue)
      table.insert(entry, hash: name.keyHash)
      last = Borrowed(entry)
    }
  }

  @inline(__always)
  private func entry(_ name: ByteString) -> Borrowed<Entry>? {
    if let last, last.withObject({ $0.name == name }) { return last }
    guard let entry = table.find(name.keyHash, { $0.name == name }) else { return nil }
    last = entry
    return entry
  }

  func removeAll() {
    guard table.count > 0 else { return }
    table = HashTable()
    last = nil
  }
}
