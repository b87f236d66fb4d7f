/// The items and collections that a proxy has met, and how much of the cache they take.
///
/// Unchecked: protected by the lock of its `ProxyState`. Behind one pointer, so that the search for an item is inlined.
struct ItemTable: ~Copyable {
  private struct Storage: ~Copyable {
    var items = HashTable<ProxyItem>()
    var collections = HashTable<ProxyCollection>()
    var byteCount = 0
    var byteLimit: Int
    var vainSlotCount = 0
    var hidesNewCollections: Bool? = false
  }

  private let storage: UnsafeMutablePointer<Storage>
  private let seed = UInt64.random(in: .min ... .max)
  private let clock: DatabaseClock

  /// - Parameter clock: Decides what has expired.
  init(byteLimit: Int, clock: DatabaseClock) {
    self.clock = clock
    storage = UnsafeMutablePointer<Storage>.allocate(capacity: 1)
    storage.initialize(to: Storage(byteLimit: byteLimit))
  }

  deinit {
    storage.deinitialize(count: 1)
    storage.deallocate()
  }

  // MARK: Items

  /// The item of a key, if there is one.
  @inline(__always)
  func find(_ key: String, _ collection: String) -> Borrowed<ProxyItem>? {
    key.withUTF8Bytes { key in
      collection.withUTF8Bytes { name in
        let nameHash = KeyHash.hash(name, seed: seed)
        return storage.pointee.items.find(KeyHash.hash(key, seed: nameHash)) { $0.matches(key, in: name, nameHash) }
      }
    }
  }

  /// The item of a key, created if missing; the table keeps it until the next sweep.
  @inline(__always)
  func item(_ key: String, in name: String) -> Borrowed<ProxyItem> {
    find(key, name) ?? makeItem(ByteString(key), in: collection(name))
  }

  func item(_ key: ByteString, in collection: ProxyCollection) -> Borrowed<ProxyItem> {
    find(key.string, collection.name) ?? makeItem(key, in: collection)
  }

  @inline(never)
  private func makeItem(_ key: ByteString, in collection: ProxyCollection) -> Borrowed<ProxyItem> {
    let hash = key.string.withUTF8Bytes { KeyHash.hash($0, seed: collection.hash) }
    let item = ProxyItem(key, in: collection, committed: collection.isComplete ? .absent : .unknown)
    storage.pointee.items.insert(item, hash: hash)
    charge(item)
    item.update()
    return Borrowed(item)
  }

  var count: Int { storage.pointee.items.count }

  func forEach(_ body: (ProxyItem) -> Void) {
    storage.pointee.items.forEach(body)
  }

  func forEach(of collection: ProxyCollection, _ body: (ProxyItem) -> Void) {
    forEach { if $0.collection === collection { body($0) } }
  }

  // MARK: Collections

  /// The collection of this name, if the proxy has met it.
  func knownCollection(_ name: String) -> ProxyCollection? {
    name.withUTF8Bytes { name in
      storage.pointee.collections.find(KeyHash.hash(name, seed: seed)) { $0.matches(name) }?.object
    }
  }

  func collection(_ name: String) -> ProxyCollection {
    if let collection = knownCollection(name) { return collection }
    let collection = ProxyCollection(
      ByteString(name), hash: name.withUTF8Bytes { KeyHash.hash($0, seed: seed) }, clock: clock)
    collection.isHidden = storage.pointee.hidesNewCollections
    storage.pointee.collections.insert(collection, hash: collection.hash)
    return collection
  }

  func forEachCollection(_ body: (ProxyCollection) -> Void) {
    storage.pointee.collections.forEach(body)
  }

  /// Whether committed values are hidden; nil if that has to be asked for each collection.
  func setHidden(_ isHidden: Bool?) {
    storage.pointee.hidesNewCollections = isHidden
    forEachCollection { $0.isHidden = isHidden }
    forEach { $0.update() }
  }

  // MARK: Size

  /// How much committed data is cached, in bytes.
  var byteCount: Int { storage.pointee.byteCount }

  /// The limit on that.
  var byteLimit: Int {
    get { storage.pointee.byteLimit }
    nonmutating set {
      storage.pointee.byteLimit = newValue
      expectEvictions()
    }
  }

  /// The cost of an item besides its key and its values.
  private static let itemByteCount = 240

  /// Updates the cost of an item to its current contents.
  func charge(_ item: ProxyItem) {
    var cost = Self.itemByteCount + 2 * item.key.utf8.count
    if case .item(let held) = item.committed { cost += held.byteCount }
    // Usually it is the same; writing it would take the cache line from the core that sets the item next.
    guard cost != item.cost else { return }
    storage.pointee.byteCount += cost - item.cost
    item.cost = cost
  }

  /// How many slots of the table one step examines: so few that their items fit into a list that is quickly allocated.
  static let slotsPerStep = 64

  /// What a step has removed from the table: freeing memory may take milliseconds, so it is done without the lock.
  struct Leftovers {
    fileprivate(set) var items: [ProxyItem] = []
    fileprivate var slots: ZeroedMemory?

    /// Has room for one step.
    init() { items.reserveCapacity(slotsPerStep) }

    mutating func free() {
      items.removeAll(keepingCapacity: true)
      slots = nil
    }
  }

  /// Some items may have become evictable: the limit was set, or a flush was settled.
  func expectEvictions() { storage.pointee.vainSlotCount = 0 }

  /// One step of evicting items that were not read since the last sweep, until the cache is within its limit.
  ///
  /// - Returns: Whether there is more to do.
  func sweepSome(into leftovers: inout Leftovers) -> Bool {
    leftovers.slots = storage.pointee.items.takeRetired()
    if storage.pointee.items.isGrowing {
      storage.pointee.items.move(slotCount: Self.slotsPerStep)
      return true
    }
    let (before, storage) = (count, storage)
    storage.pointee.items.sweep(
      slotCount: Self.slotsPerStep, while: { storage.pointee.byteCount > storage.pointee.byteLimit }
    ) { item in
      guard Self.mayGo(item) else { return false }
      storage.pointee.byteCount -= item.cost
      item.collection.isComplete = false
      leftovers.items.append(item)
      return true
    }
    if count < before { storage.pointee.items.shrink() }
    let isWithinLimit = byteCount <= byteLimit
    if isWithinLimit || count < before {
      expectEvictions()
      return !isWithinLimit
    }
    // After two rounds without an eviction, all items have pending changes or must stay: until that changes, one step per
    // call is enough.
    let most = 2 * storage.pointee.items.capacity
    storage.pointee.vainSlotCount = min(storage.pointee.vainSlotCount + Self.slotsPerStep, most)
    return storage.pointee.vainSlotCount < most
  }

  /// Whether an item may be evicted: if it was not read since this was asked before.
  private static func mayGo(_ item: ProxyItem) -> Bool {
    // Batches, also those taken by a flush, refer to items with pending changes without keeping them.
    guard !item.hasPending, !item.isRemembered, !item.wasRead.load(ordering: .relaxed) else {
      item.wasRead.store(false, ordering: .relaxed)
      return false
    }
    return true
  }
}
