import Synchronization

/// Where the items of typed keys lie: found without a hash, a comparison or a lock.
///
/// The items belong to a `ProxyState`, which keeps those that are remembered; whoever has places keeps the state.
///
/// Unchecked: what the pointers lead to is atomic; a chunk, once made, stays.
final class KeyPlaces: @unchecked Sendable {
  private typealias Place = Atomic<UnsafeMutableRawPointer?>

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
  private let chunks: UnsafeMutablePointer<Place>

  init() {
    chunks = UnsafeMutablePointer<Place>.allocate(capacity: Self.chunkCount)
    for chunk in 0..<Self.chunkCount { (chunks + chunk).initialize(to: Place(nil)) }
  }

  deinit {
    for chunk in 0..<Self.chunkCount { chunks[chunk].load(ordering: .relaxed)?.deallocate() }
    chunks.deallocate()
  }

  /// The item at a position, if one is remembered.
  @inline(__always)
  func item(_ position: Position) -> Unmanaged<ProxyItem>? {
    guard let places = chunks[position.chunk].load(ordering: .acquiring) else { return nil }
    let item = places.assumingMemoryBound(to: Place.self)[position.index].load(ordering: .acquiring)
    return item.map { Unmanaged.fromOpaque($0) }
  }

  /// Called with the exclusive lock of the item's state held.
  func remember(_ item: ProxyItem, at position: Position) {
    item.isRemembered = true
    let chunk = chunks + position.chunk
    if chunk.pointee.load(ordering: .relaxed) == nil {
      let count = Self.firstCount << position.chunk
      let places = UnsafeMutablePointer<Place>.allocate(capacity: count)
      for index in 0..<count { (places + index).initialize(to: Place(nil)) }
      chunk.pointee.store(UnsafeMutableRawPointer(places), ordering: .releasing)
    }
    chunk.pointee.load(ordering: .relaxed)?.assumingMemoryBound(to: Place.self)[position.index]
      .store(Unmanaged.passUnretained(item).toOpaque(), ordering: .releasing)
  }
}

extension ProxyState {
  /// The number that shows for a typed key, or nil inside where there is nothing; nil where that has to be asked otherwise.
  ///
  /// Whether it keeps to the limits of the key is the caller's to ask.
  ///
  /// No lock and no hash: the counter of commits is compared with what it was known to be before the number was read.
  @inline(__always)
  func number<Object>(of key: Key<Object>, in places: KeyPlaces) -> Object?? {
    guard !core.takesDetour, let item = places.item(key.place) else { return nil }
    let count = countOfKnown
    guard let number: Object? = item._withUnsafeGuaranteedRef({ $0.scalar.number() }), isCurrent(count) else {
      return nil
    }
    return .some(number)
  }

  /// The text that shows for a typed key, as `number(of:in:)`; nil where that has to be asked otherwise.
  @inline(__always)
  func string(of key: Key<String>, in places: KeyPlaces) -> String? {
    guard !core.takesDetour, let item = places.item(key.place) else { return nil }
    return lock.withShared {
      guard isCurrent else { return nil }
      return item._withUnsafeGuaranteedRef { $0.visibleText }
    }
  }

  /// Sees to it that a typed key finds its item at once from now on.
  func remember(_ key: Keys, in collection: String, _ places: KeyPlaces) {
    guard places.item(key.place) == nil else { return }
    lock.withExclusive {
      places.remember(item(key.name, in: collection).takeUnretainedValue(), at: key.place)
    }
  }
}
