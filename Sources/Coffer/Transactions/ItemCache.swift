/// The items that a connection read last, as of one snapshot.
///
/// It serves transactions that read much: the first read of each goes to the tables anyway, to take the snapshot.
struct ItemCache {
  /// How many items are kept; when there would be more, all are let go.
  var limit = 250 {
    didSet { removeAll() }
  }

  /// Larger values are not kept.
  private static let maximumByteCount = 16 << 10

  private struct ItemKey: Hashable {
    let collection: Int64
    let key: ByteString
  }

  /// The commit as of which the items are.
  var snapshot: Int64 = -1
  private var items: [ItemKey: HeldItem?] = [:]

  var isEmpty: Bool { items.isEmpty }

  /// What is known of a key: an item, or that there is none; nil when nothing is known.
  func item(_ key: String, in collection: Int64) -> HeldItem?? {
    items[ItemKey(collection: collection, key: ByteString(key))]
  }

  mutating func insert(_ item: HeldItem?, _ key: String, in collection: Int64) {
    // What expires is not in a snapshot for ever.
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
