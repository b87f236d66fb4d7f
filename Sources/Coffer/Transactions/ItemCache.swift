/// The items that a connection read recently, as of one snapshot.
///
/// It serves transactions with many reads: the first read of each goes to the tables anyway, to take the snapshot.
struct ItemCache {
  /// The maximum number of items; when it is exceeded, all are dropped.
  var limit = 250 {
    didSet { removeAll() }
  }

  /// Larger values are not cached.
  private static let maximumByteCount = 16 << 10

  private struct ItemKey: Hashable {
    let collection: Int64
    let key: ByteString
  }

  /// The commit that the items correspond to.
  var commit: CommitNumber = -1
  private var items: [ItemKey: HeldItem?] = [:]

  var isEmpty: Bool { items.isEmpty }

  /// What is known of a key: an item, or that there is none; nil if nothing is known.
  func item(_ key: String, in collection: Int64) -> HeldItem?? {
    items[ItemKey(collection: collection, key: ByteString(key))]
  }

  mutating func insert(_ item: HeldItem?, _ key: String, in collection: Int64) {
    // An item that expires changes without a new snapshot.
    guard item?.byteCount ?? 0 <= Self.maximumByteCount, !(item?.expires ?? false) else { return }
    if items.count >= limit { items.removeAll(keepingCapacity: true) }
    items[ItemKey(collection: collection, key: ByteString(key))] = .some(item)
  }

  mutating func remove(_ key: ByteString, in collection: Int64) {
    items.removeValue(forKey: ItemKey(collection: collection, key: key))
  }

  mutating func removeAll() {
    items = [:]
  }
}
