import Synchronization

/// The items of typed keys, found without a hash, a comparison or a lock.
///
/// The items belong to a `ProxyState`, which keeps the remembered ones; owners of a `KeyPlaces` also keep the state.
///
/// Unchecked: the pointers lead to atomics, and a chunk is never freed while this exists.
final class KeyPlaces: @unchecked Sendable {
  private typealias Chunk = Atomic<UnsafeMutableRawPointer?>

  private struct Place: ~Copyable {
    let item = Atomic<UnsafeMutableRawPointer?>(nil)
    /// The version of the visible value that was found to be good for the key.
    let goodVersion = Atomic<UInt64>(Scalar.noVersion)
  }

  /// A position in the chunks, stored in the key so that a read need not compute it.
  struct Position: Hashable {
    let chunk: Int
    let index: Int

    /// - Parameter number: The key's number, from 0.
    init(number: Int) {
      let shifted = number + KeyPlaces.firstCount
      chunk = (Int.bitWidth - 1 - shifted.leadingZeroBitCount) - KeyPlaces.firstCount.trailingZeroBitCount
      index = shifted - KeyPlaces.firstCount << chunk
    }
  }

  /// The first chunk has 64 places; each further chunk has twice as many as the one before.
  private static let firstCount = 64
  private static let chunkCount = 32
  private let chunks: UnsafeMutablePointer<Chunk>

  init() {
    chunks = UnsafeMutablePointer<Chunk>.allocate(capacity: Self.chunkCount)
    for chunk in 0..<Self.chunkCount { (chunks + chunk).initialize(to: Chunk(nil)) }
  }

  deinit {
    for chunk in 0..<Self.chunkCount { chunks[chunk].load(ordering: .relaxed)?.deallocate() }
    chunks.deallocate()
  }

  @inline(__always)
  private func place(_ position: Position) -> UnsafeMutablePointer<Place>? {
    guard let places = chunks[position.chunk].load(ordering: .acquiring) else { return nil }
    return places.assumingMemoryBound(to: Place.self) + position.index
  }

  /// The item at a position, if one is remembered, and the version of it that was found to be good.
  @inline(__always)
  func item(_ position: Position) -> (item: Borrowed<ProxyItem>, goodVersion: UInt64)? {
    guard let place = place(position), let item = place.pointee.item.load(ordering: .acquiring) else { return nil }
    return (Borrowed(address: item), place.pointee.goodVersion.load(ordering: .acquiring))
  }

  /// Allows the item's value to be read without a check from now on, while it has this version.
  func noteGood(_ version: UInt64, at position: Position) {
    place(position)?.pointee.goodVersion.store(version, ordering: .releasing)
  }

  /// Called with the exclusive lock of the item's state held.
  func remember(_ item: ProxyItem, at position: Position) {
    item.isRemembered = true
    let chunk = chunks + position.chunk
    if chunk.pointee.load(ordering: .relaxed) == nil {
      let count = Self.firstCount << position.chunk
      let places = UnsafeMutablePointer<Place>.allocate(capacity: count)
      for index in 0..<count { (places + index).initialize(to: Place()) }
      chunk.pointee.store(UnsafeMutableRawPointer(places), ordering: .releasing)
    }
    place(position)?.pointee.item.store(Borrowed(item).address, ordering: .releasing)
  }
}

extension ProxyState {
  /// The visible number of a typed key; an inner nil means that the key is absent, an outer nil that the slow path must be
  /// used, as after each change: the first read of a value checks it, and remembers it as the last good one.
  ///
  /// It takes no lock and no hash: the commit counter is compared with its known value, loaded before the number.
  @inline(__always)
  func number<Object>(at position: KeyPlaces.Position, in places: KeyPlaces) -> Object?? {
    guard !core.takesDetour, let (item, version) = places.item(position) else { return nil }
    let count = counts.ofKnown
    guard let number: Object? = item.withObject({ $0.scalar.number(of: version) }), counts.areCurrent(count)
    else { return nil }
    return .some(number)
  }

  /// The visible text of a typed key, as `number(at:in:)`; nil if the slow path must be used.
  @inline(__always)
  func string(at position: KeyPlaces.Position, in places: KeyPlaces) -> String? {
    guard !core.takesDetour, let (item, version) = places.item(position) else { return nil }
    return lock.withShared {
      guard isCurrent else { return nil }
      return item.withObject { $0.scalar.version == version ? $0.visibleText : nil }
    }
  }

  /// The unchecked visible value of a typed key, with its version: a number, a text, or an inner nil if the key is absent;
  /// an outer nil if the slow path must be used.
  func unchecked<Object>(
    at position: KeyPlaces.Position, as type: Object.Type, in places: KeyPlaces
  ) -> (object: Object?, version: UInt64)? {
    guard !core.takesDetour, let (item, _) = places.item(position) else { return nil }
    return lock.withShared {
      guard isCurrent else { return nil }
      return item.withObject { item in
        let version = item.scalar.version
        // Not in one step: nil would be cast to any optional type.
        if let text = item.visibleText, let object = text as? Object { return (object, version) }
        guard let number: Object? = item.scalar.number() else { return nil }
        return (number, version)
      }
    }
  }

  /// Makes the next read of each typed key check the visible value again, since something outside the store may now override
  /// it.
  func recheckKeys() {
    lock.withExclusive {
      items.forEach { if $0.isRemembered { $0.update() } }
    }
  }

  /// Lets a typed key find its item directly from now on.
  func remember(_ key: String, in collection: String, at position: KeyPlaces.Position, _ places: KeyPlaces) {
    guard places.item(position) == nil else { return }
    lock.withExclusive {
      places.remember(items.item(key, in: collection).object, at: position)
    }
  }
}
