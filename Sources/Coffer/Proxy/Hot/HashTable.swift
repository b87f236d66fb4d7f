#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Objects by a hash of theirs, with open addressing, searched without a copy or a count of references.
///
/// Not a dictionary: the runtime looks through all conformances of the program for each new type of keys, which takes
/// longer than all else that a first read does in Swift.
struct HashTable<Element: AnyObject>: ~Copyable {
  private struct Slot {
    var hash: UInt64
    var element: Borrowed<Element>?
  }

  private var slots: UnsafeMutablePointer<Slot>
  private(set) var capacity: Int
  /// The slots before the size changed, whose elements move a few at a time; they stay as they are until all have moved.
  private var earlier: (slots: UnsafeMutablePointer<Slot>, capacity: Int, movedCount: Int)?
  /// Where `sweep` goes on.
  private var hand = 0
  private(set) var count = 0

  private static var minimumCapacity: Int { 64 }

  init() {
    capacity = Self.minimumCapacity
    slots = Self.allocate(capacity)
  }

  deinit {
    forEach { Borrowed($0).release() }
    Self.deallocate(slots)
    if let earlier { Self.deallocate(earlier.slots) }
  }

  private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<Slot> {
    // Zeros, which the system gives for much memory without writing them: no hash and no element.
    guard let zeros = calloc(capacity, MemoryLayout<Slot>.stride) else { fatalError("no memory is left") }
    return zeros.bindMemory(to: Slot.self, capacity: capacity)
  }

  private static func deallocate(_ slots: UnsafeMutablePointer<Slot>) { free(slots) }

  /// The element with this hash for which `matches` holds.
  @inline(__always)
  borrowing func find(_ hash: UInt64, _ matches: (Element) -> Bool) -> Borrowed<Element>? {
    if let element = Self.find(hash, slots, capacity, matches) { return element }
    return earlier == nil ? nil : findEarlier(hash, matches)
  }

  /// Not inlined: seldom needed, and what is inlined twice makes the whole too long to be inlined anywhere.
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

  /// Adds an element that is not there.
  mutating func insert(_ element: Element, hash: UInt64) {
    // More than the two for each that would be enough until it grows again.
    move(slotCount: 16)
    if 2 * count >= capacity { resize(2 * capacity) }
    count += 1
    place(Borrowed.passRetained(element), hash)
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
    slots = Self.allocate(newCapacity)
    capacity = newCapacity
    // So few move at once.
    if capacity <= 1024 { move(slotCount: .max) }
  }

  /// Whether elements have to move after a change of its size.
  var isGrowing: Bool { earlier != nil }

  /// Moves what lies in the next slots of the earlier ones.
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
      Self.deallocate(earlier.slots)
    }
  }

  // MARK: Removing

  /// Goes on through the table from where it stopped the last time, and removes the elements for which `isRemoved` holds.
  ///
  /// - Parameters:
  ///   - slotCount: How many slots it looks at, at most.
  ///   - isNeeded: Asked before each of them.
  mutating func sweep(slotCount: Int, while isNeeded: () -> Bool, _ isRemoved: (Element) -> Bool) {
    move(slotCount: .max)
    for _ in 0..<slotCount {
      guard isNeeded() else { return }
      hand &= capacity - 1
      // Another element may take the place of a removed one.
      if slots[hand].element?.withObject(isRemoved) ?? false { remove(at: hand) } else { hand += 1 }
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
      if let element = slots[index].element { body(element.object) }
    }
    guard let earlier else { return }
    for index in earlier.movedCount..<earlier.capacity {
      if let element = earlier.slots[index].element { body(element.object) }
    }
  }
}
