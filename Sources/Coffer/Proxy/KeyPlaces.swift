import Synchronization

/// Where the items of typed keys lie, by the numbers of the keys: found without a hash, a comparison or a lock.
///
/// The items belong to a `ProxyState`, which keeps those that are remembered; whoever has places keeps the state.
///
/// Unchecked: what the pointers lead to is atomic; a chunk, once made, stays.
final class KeyPlaces: @unchecked Sendable {
  private typealias Place = Atomic<UnsafeMutableRawPointer?>

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

  /// The item of the key with this number, if it is remembered.
  @inline(__always)
  func item(_ number: Int) -> Unmanaged<ProxyItem>? {
    let (chunk, index) = Self.position(number)
    guard let places = chunks[chunk].load(ordering: .acquiring) else { return nil }
    let item = places.assumingMemoryBound(to: Place.self)[index].load(ordering: .acquiring)
    return item.map { Unmanaged.fromOpaque($0) }
  }

  /// Called with the exclusive lock of the item's state held.
  func remember(_ item: ProxyItem, _ number: Int) {
    item.isRemembered = true
    let (chunk, index) = Self.position(number)
    if chunks[chunk].load(ordering: .relaxed) == nil {
      let count = Self.firstCount << chunk
      let places = UnsafeMutablePointer<Place>.allocate(capacity: count)
      for index in 0..<count { (places + index).initialize(to: Place(nil)) }
      chunks[chunk].store(UnsafeMutableRawPointer(places), ordering: .releasing)
    }
    chunks[chunk].load(ordering: .relaxed)?.assumingMemoryBound(to: Place.self)[index]
      .store(Unmanaged.passUnretained(item).toOpaque(), ordering: .releasing)
  }

  @inline(__always)
  private static func position(_ number: Int) -> (chunk: Int, index: Int) {
    let shifted = number + firstCount
    let chunk = (Int.bitWidth - 1 - shifted.leadingZeroBitCount) - firstCount.trailingZeroBitCount
    return (chunk, shifted - firstCount << chunk)
  }
}

extension ProxyState {
  /// The number that shows for a typed key, or nil inside where there is nothing; nil where that has to be asked otherwise.
  ///
  /// No lock and no hash: the counter of commits is compared with what it was known to be before the number was read.
  @inline(__always)
  func number<Object>(of key: Key<Object>, in places: KeyPlaces) -> Object?? {
    guard key.isValid == nil, !core.hasAnyRules, let item = places.item(key.id) else { return nil }
    let count = countOfKnown
    guard let number: Object? = item._withUnsafeGuaranteedRef({ $0.scalar.number() }), isCurrent(count) else {
      return nil
    }
    return .some(number)
  }

  /// The text that shows for a typed key; nil where that has to be asked otherwise.
  @inline(__always)
  func string(of key: Key<String>, in places: KeyPlaces) -> String? {
    guard key.isValid == nil, !core.hasAnyRules, let item = places.item(key.id) else { return nil }
    return lock.withShared {
      guard isCurrent else { return nil }
      return item._withUnsafeGuaranteedRef { item in
        guard case .item(let held) = item.visible, case .string(let string) = held.object else { return nil }
        return string
      }
    }
  }

  /// Sees to it that a typed key finds its item at once from now on.
  func remember(_ key: Keys, in collection: String, _ places: KeyPlaces) {
    guard places.item(key.id) == nil else { return }
    lock.withExclusive { places.remember(item(key.name, in: collection), key.id) }
  }
}
