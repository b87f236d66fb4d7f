import Synchronization

/// Where the items of typed keys lie: found without a hash, a comparison or a lock.
///
/// The items belong to a `ProxyState`, which keeps those that are remembered; whoever has places keeps the state.
///
/// Unchecked: what the pointers lead to is atomic; a chunk, once made, stays.
final class KeyPlaces: @unchecked Sendable {
  private typealias Chunk = Atomic<UnsafeMutableRawPointer?>

  private struct Place: ~Copyable {
    let item = Atomic<UnsafeMutableRawPointer?>(nil)
    /// The version of what shows that was found to be good for the key.
    let goodVersion = Atomic<UInt64>(Scalar.noVersion)
  }

  /// One of the places; the key knows it, so that a read need not compute it.
  struct Position: Hashable {
    let chunk: Int
    let index: Int

    /// - Parameter number: That of the key, from 0.
    init(number: Int) {
      let shifted = number + KeyPlaces.firstCount
      chunk = (Int.bitWidth - 1 - shifted.leadingZeroBitCount) - KeyPlaces.firstCount.trailingZeroBitCount
      index = shifted - KeyPlaces.firstCount << chunk
    }
  }

  /// The first chunk has 64 places, each further one twice as many as the one before.
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
    return (Borrowed.fromOpaque(item), place.pointee.goodVersion.load(ordering: .acquiring))
  }

  /// Has the item's value be read without a check from now on, as long as it is of this version.
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
    place(position)?.pointee.item.store(Borrowed(item).toOpaque(), ordering: .releasing)
  }
}

extension ProxyState {
  /// The number that shows for a typed key, or nil inside where there is nothing; nil where that has to be asked otherwise, as
  /// after each change: the first read of a value checks it, and remembers it as the last good one.
  ///
  /// No lock and no hash: the counter of commits is compared with what it was known to be before the number was read.
  @inline(__always)
  func number<Object>(of key: Key<Object>, in places: KeyPlaces) -> Object?? {
    guard !core.takesDetour, let (item, version) = places.item(key.place) else { return nil }
    let count = countOfKnown
    guard let number: Object? = item.withObject({ $0.scalar.number(of: version) }), isCurrent(count)
    else { return nil }
    return .some(number)
  }

  /// The text that shows for a typed key, as `number(of:in:)`; nil where that has to be asked otherwise.
  @inline(__always)
  func string(of key: Key<String>, in places: KeyPlaces) -> String? {
    guard !core.takesDetour, let (item, version) = places.item(key.place) else { return nil }
    return lock.withShared {
      guard isCurrent else { return nil }
      return item.withObject { $0.scalar.version == version ? $0.visibleText : nil }
    }
  }

  /// What shows for a typed key whatever was found good, with its version: a number, a text, or nil inside where there is
  /// nothing; nil where that has to be asked otherwise.
  func unchecked<Object>(of key: Key<Object>, in places: KeyPlaces) -> (object: Object?, version: UInt64)? {
    guard !core.takesDetour, let (item, _) = places.item(key.place) else { return nil }
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

  /// Has the next read of each typed key check what shows, where something beside the store may hide it now.
  func checkKeysAnew() {
    lock.withExclusive {
      forEachItem { if $0.isRemembered { $0.update() } }
    }
  }

  /// Sees to it that a typed key finds its item at once from now on.
  func remember(_ key: Keys, in collection: String, _ places: KeyPlaces) {
    guard places.item(key.place) == nil else { return }
    lock.withExclusive {
      places.remember(item(key.name, in: collection).object, at: key.place)
    }
  }
}
