/// Objects by a hash of theirs, with open addressing, searched without a copy or a count of references.
///
/// Not a dictionary: the runtime looks through all conformances of the program for each new type of keys, which takes
/// longer than all else that a first read does in Swift.
struct HashTable<Element: AnyObject>: ~Copyable {
  private struct Slot {
    var hash: UInt64
    var element: Unmanaged<Element>?
  }

  private var slots: UnsafeMutablePointer<Slot>
  private(set) var capacity: Int
  /// Where `sweep` goes on.
  private var hand = 0
  private(set) var count = 0

  private static var minimumCapacity: Int { 64 }

  init() {
    capacity = Self.minimumCapacity
    slots = Self.allocate(capacity)
  }

  deinit {
    for index in 0..<capacity { slots[index].element?.release() }
    slots.deallocate()
  }

  private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<Slot> {
    let slots = UnsafeMutablePointer<Slot>.allocate(capacity: capacity)
    slots.initialize(repeating: Slot(hash: 0, element: nil), count: capacity)
    return slots
  }

  /// The element with this hash for which `matches` holds.
  @inline(__always)
  borrowing func find(_ hash: UInt64, _ matches: (Element) -> Bool) -> Unmanaged<Element>? {
    var index = Int(truncatingIfNeeded: hash) & (capacity - 1)
    while let element = slots[index].element {
      if slots[index].hash == hash, element._withUnsafeGuaranteedRef(matches) { return element }
      index = (index + 1) & (capacity - 1)
    }
    return nil
  }

  /// Adds an element that is not there.
  mutating func insert(_ element: Element, hash: UInt64) {
    if 2 * count >= capacity { resize(2 * capacity) }
    place(Unmanaged.passRetained(element), hash)
  }

  private mutating func place(_ element: Unmanaged<Element>, _ hash: UInt64) {
    var index = Int(truncatingIfNeeded: hash) & (capacity - 1)
    while slots[index].element != nil { index = (index + 1) & (capacity - 1) }
    slots[index] = Slot(hash: hash, element: element)
    count += 1
  }

  private mutating func resize(_ newCapacity: Int) {
    let (old, oldCapacity) = (slots, capacity)
    slots = Self.allocate(newCapacity)
    capacity = newCapacity
    count = 0
    for index in 0..<oldCapacity {
      if let element = old[index].element { place(element, old[index].hash) }
    }
    old.deallocate()
  }

  // MARK: Removing

  /// Goes on through the table from where it stopped the last time, and removes the elements for which `isRemoved` holds.
  ///
  /// - Parameters:
  ///   - slotCount: How many slots it looks at, at most.
  ///   - isNeeded: Asked before each of them.
  mutating func sweep(slotCount: Int, while isNeeded: () -> Bool, _ isRemoved: (Element) -> Bool) {
    for _ in 0..<slotCount {
      guard isNeeded() else { return }
      hand &= capacity - 1
      // Another element may take the place of a removed one.
      if slots[hand].element?._withUnsafeGuaranteedRef(isRemoved) ?? false { remove(at: hand) } else { hand += 1 }
    }
  }

  /// Moves those behind it nearer to where their hashes want them, up to the next free slot: a search stops there.
  private mutating func remove(at index: Int) {
    slots[index].element?.release()
    count -= 1
    let mask = capacity - 1
    var (free, next) = (index, (index + 1) & mask)
    while slots[next].element != nil {
      let home = Int(truncatingIfNeeded: slots[next].hash) & mask
      if (next - home) & mask >= (next - free) & mask {
        slots[free] = slots[next]
        free = next
      }
      next = (next + 1) & mask
    }
    slots[free].element = nil
  }

  /// Gives memory back where few elements are left.
  mutating func shrink() {
    var smaller = capacity
    while smaller > Self.minimumCapacity, 8 * count < smaller { smaller /= 2 }
    if smaller < capacity { resize(smaller) }
  }

  borrowing func forEach(_ body: (Element) -> Void) {
    for index in 0..<capacity {
      if let element = slots[index].element { body(element.takeUnretainedValue()) }
    }
  }
}
