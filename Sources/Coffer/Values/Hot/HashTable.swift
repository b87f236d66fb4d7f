#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A hash table of objects with open addressing, searched without copies or reference counting.
///
/// Not a dictionary: for each new key type, the runtime searches all conformances of the program, which takes longer than
/// everything else that a first read does in Swift.
struct HashTable<Element: AnyObject>: ~Copyable {
  private struct Slot {
    var hash: UInt64
    var element: Borrowed<Element>?
  }

  private var memory: ZeroedMemory
  /// The memory as slots: zero means no hash and no element.
  private var slots: UnsafeMutablePointer<Slot>
  private(set) var capacity: Int
  /// The slots before the last resize, whose elements move a few at a time; they stay unchanged until all have moved.
  private var earlier: (slots: UnsafeMutablePointer<Slot>, capacity: Int, movedCount: Int)?
  /// The memory of those, kept until `takeRetired` or the next resize.
  private var earlierMemory: ZeroedMemory?
  /// Where `sweep` continues.
  private var hand = 0
  private(set) var count = 0

  /// The most that `ZeroedMemory` takes for small.
  private static var minimumCapacity: Int { 32 }

  init() {
    capacity = Self.minimumCapacity
    (memory, slots) = Self.allocate(capacity)
  }

  deinit {
    forEach { Borrowed($0).release() }
  }

  private static func allocate(_ capacity: Int) -> (ZeroedMemory, UnsafeMutablePointer<Slot>) {
    let memory = ZeroedMemory(byteCount: capacity * MemoryLayout<Slot>.stride)
    return (memory, memory.start.bindMemory(to: Slot.self, capacity: capacity))
  }

  /// The element with this hash for which `matches` holds.
  @inline(__always)
  borrowing func find(_ hash: UInt64, _ matches: (Element) -> Bool) -> Borrowed<Element>? {
    if let element = Self.find(hash, slots, capacity, matches) { return element }
    return earlier == nil ? nil : findEarlier(hash, matches)
  }

  /// Not inlined: it is rarely needed, and inlining it twice would make callers too large to be inlined.
  @inline(never)
  private borrowing func findEarlier(_ hash: UInt64, _ matches: (Element) -> Bool) -> Borrowed<Element>? {
    guard let earlier else { return nil }
    return Self.find(hash, earlier.slots, earlier.capacity, matches)
  }

  @inline(__always)
  private static func find(
    _ hash: UInt64, _ slots: UnsafeMutablePointer<Slot>, _ capacity: Int, _ matches: (Element) -> Bool
  ) -> Borrowed<Element>? {
    var index = Int(truncatingIfNeeded: hash) & (capacity - 1)
    while let element = slots[index].element {
      if slots[index].hash == hash, element.withObject(matches) { return element }
      index = (index + 1) & (capacity - 1)
    }
    return nil
  }

  /// Adds an element that is not in the table.
  mutating func insert(_ element: Element, hash: UInt64) {
    // More than the two per insertion that would suffice before the next resize.
    move(slotCount: 16)
    if 2 * count >= capacity { resize(2 * capacity) }
    count += 1
    place(Borrowed(keeping: element), hash)
  }

  private mutating func place(_ element: Borrowed<Element>, _ hash: UInt64) {
    var index = Int(truncatingIfNeeded: hash) & (capacity - 1)
    while slots[index].element != nil { index = (index + 1) & (capacity - 1) }
    slots[index] = Slot(hash: hash, element: element)
  }

  /// Changes the size; the elements move later.
  private mutating func resize(_ newCapacity: Int) {
    move(slotCount: .max)
    earlier = (slots, capacity, 0)
    earlierMemory = memory
    (memory, slots) = Self.allocate(newCapacity)
    capacity = newCapacity
    // A small table moves at once.
    if capacity <= 1024 { move(slotCount: .max) }
  }

  /// Whether elements have yet to move after a resize.
  var isGrowing: Bool { earlier != nil }

  /// Moves the elements of the next of the earlier slots.
  mutating func move(slotCount: Int) {
    guard let earlier else { return }
    let end = earlier.movedCount + min(slotCount, earlier.capacity - earlier.movedCount)
    for index in earlier.movedCount..<end {
      if let element = earlier.slots[index].element { place(element, earlier.slots[index].hash) }
    }
    if end < earlier.capacity {
      self.earlier?.movedCount = end
    } else {
      self.earlier = nil
    }
  }

  /// The memory of slots that are no longer needed, if any: to be freed without the lock, since that may take a millisecond.
  mutating func takeRetired() -> ZeroedMemory? { isGrowing ? nil : earlierMemory.take() }

  // MARK: Removing

  /// Continues through the table from where it last stopped, removing the elements for which `isRemoved` holds.
  ///
  /// - Parameters:
  ///   - slotCount: The maximum number of slots to examine.
  ///   - isNeeded: Called before each of them.
  mutating func sweep(slotCount: Int, while isNeeded: () -> Bool, _ isRemoved: (Element) -> Bool) {
    move(slotCount: .max)
    for _ in 0..<slotCount {
      guard isNeeded() else { return }
      hand &= capacity - 1
      // Another element may move into the slot of a removed one.
      if slots[hand].element?.withObject(isRemoved) ?? false { remove(at: hand) } else { hand += 1 }
    }
  }

  /// Moves the elements behind it, up to the next free slot, closer to their preferred slots: a search stops at a free slot.
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

  /// Releases memory if few elements are left.
  mutating func shrink() {
    var smaller = capacity
    while smaller > Self.minimumCapacity, 8 * count < smaller { smaller /= 2 }
    if smaller < capacity { resize(smaller) }
  }

  borrowing func forEach(_ body: (Element) -> Void) {
    for index in 0..<capacity {
      if let element = slots[index].element { body(element.object) }
    }
    guard let earlier else { return }
    for index in earlier.movedCount..<earlier.capacity {
      if let element = earlier.slots[index].element { body(element.object) }
    }
  }
}

/// Memory that is zero at first.
///
/// More than a small block comes from the system: before glibc's `malloc` provides or takes back a large one, it merges all small
/// ones that were freed, which took 10 ms after 100,000 evictions, with the lock held.
final class ZeroedMemory {
  let start: UnsafeMutableRawPointer
  private let byteCount: Int

  /// `malloc` has lists of blocks up to nearly twice this size, from which it takes one at once.
  private static let smallByteCount = 512

  fileprivate init(byteCount: Int) {
    self.byteCount = byteCount
    let zeros =
      byteCount <= Self.smallByteCount
      ? calloc(1, byteCount) : mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    // As Swift's own containers do: no caller could go on without it, and a store survives any end of its process.
    guard let zeros, zeros != MAP_FAILED else { fatalError("out of memory") }
    start = zeros
  }

  deinit {
    if byteCount <= Self.smallByteCount { free(start) } else { munmap(start, byteCount) }
  }
}
