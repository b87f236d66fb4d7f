/// The items of a proxy by collection and key: a hash table with open addressing, searched without a copy or a count of
/// references.
struct ItemTable: ~Copyable {
  private struct Slot {
    var hash: UInt64
    var item: Unmanaged<ProxyItem>?
  }

  private var slots: UnsafeMutablePointer<Slot>
  private var capacity: Int
  private(set) var count = 0

  init() {
    capacity = 64
    slots = Self.allocate(capacity)
  }

  deinit {
    for index in 0..<capacity { slots[index].item?.release() }
    slots.deallocate()
  }

  private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<Slot> {
    let slots = UnsafeMutablePointer<Slot>.allocate(capacity: capacity)
    slots.initialize(repeating: Slot(hash: 0, item: nil), count: capacity)
    return slots
  }

  /// The item with this hash for which `matches` holds.
  @inline(__always)
  borrowing func find(_ hash: UInt64, _ matches: (ProxyItem) -> Bool) -> Unmanaged<ProxyItem>? {
    var index = Int(truncatingIfNeeded: hash) & (capacity - 1)
    while let item = slots[index].item {
      if slots[index].hash == hash, item._withUnsafeGuaranteedRef(matches) { return item }
      index = (index + 1) & (capacity - 1)
    }
    return nil
  }

  /// Adds an item that is not there.
  mutating func insert(_ item: ProxyItem) {
    if 2 * count >= capacity { resize(2 * capacity) { _ in true } }
    place(Unmanaged.passRetained(item), item.hash)
  }

  private mutating func place(_ item: Unmanaged<ProxyItem>, _ hash: UInt64) {
    var index = Int(truncatingIfNeeded: hash) & (capacity - 1)
    while slots[index].item != nil { index = (index + 1) & (capacity - 1) }
    slots[index] = Slot(hash: hash, item: item)
    count += 1
  }

  private mutating func resize(_ newCapacity: Int, keeping isKept: (ProxyItem) -> Bool) {
    let (old, oldCapacity) = (slots, capacity)
    slots = Self.allocate(newCapacity)
    capacity = newCapacity
    count = 0
    for index in 0..<oldCapacity {
      guard let item = old[index].item else { continue }
      if isKept(item.takeUnretainedValue()) { place(item, old[index].hash) } else { item.release() }
    }
    old.deallocate()
  }

  mutating func removeAll(where isRemoved: (ProxyItem) -> Bool) {
    resize(capacity) { !isRemoved($0) }
    var smaller = capacity
    while smaller > 64, 8 * count < smaller { smaller /= 2 }
    if smaller < capacity { resize(smaller) { _ in true } }
  }

  borrowing func forEach(_ body: (ProxyItem) -> Void) {
    for index in 0..<capacity {
      if let item = slots[index].item { body(item.takeUnretainedValue()) }
    }
  }
}
