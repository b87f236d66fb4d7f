/// The items that a connection read last, as of one snapshot.
///
/// Two generations: what is found in the older one moves to the newer; when that is half of the limit, it becomes the
/// older one, and what was not asked for since is gone.
struct ItemCache {
  /// How many items are kept.
  var limit = 250 {
    didSet { removeAll() }
  }

  /// Larger values are not kept.
  private static let maximumByteCount = 16 << 10

  private struct ItemKey: Hashable {
    let collection: ByteString
    let key: ByteString
  }

  /// The commit as of which the items are.
  var snapshot: Int64 = -1
  private var newer: [ItemKey: StoredItem?] = [:]
  private var older: [ItemKey: StoredItem?] = [:]

  var isEmpty: Bool { newer.isEmpty && older.isEmpty }

  /// What is known of a key: an item, or that there is none; nil when nothing is known.
  mutating func item(_ key: String, in collection: String) -> StoredItem?? {
    let key = ItemKey(collection: ByteString(collection), key: ByteString(key))
    if let found = newer[key] { return .some(found) }
    guard let found = older[key] else { return nil }
    insert(found, key)
    return .some(found)
  }

  mutating func insert(_ item: StoredItem?, _ key: String, in collection: String) {
    guard limit > 0,
      (item?.object.bytes.count ?? 0) + (item?.metadata?.bytes.count ?? 0) <= Self.maximumByteCount
    else { return }
    insert(item, ItemKey(collection: ByteString(collection), key: ByteString(key)))
  }

  private mutating func insert(_ item: StoredItem?, _ key: ItemKey) {
    if newer.count >= max(1, limit / 2) {
      older = newer
      newer = [:]
    }
    newer[key] = .some(item)
  }

  mutating func remove(_ key: String, in collection: String) {
    let key = ItemKey(collection: ByteString(collection), key: ByteString(key))
    newer.removeValue(forKey: key)
    older.removeValue(forKey: key)
  }

  mutating func removeAll() {
    newer = [:]
    older = [:]
  }
}
