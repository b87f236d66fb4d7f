import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A collection as a proxy knows it.
///
/// Unchecked: protected by the lock of its `ProxyState`, so the runtime need not check for overlapping accesses; that was a
/// fifth of a `set`.
final class ProxyCollection: @unchecked Sendable {
  let name: String
  let hash: UInt64
  /// Decides what has expired.
  fileprivate let clock: DatabaseClock
  fileprivate let bytes: UnsafeBufferPointer<UInt8>
  /// The batches that clear it, in order.
  @exclusivity(unchecked) var clearings: [UInt64] = []
  /// Whether the fetch filter hides its committed values; nil if the filter has not been asked yet.
  @exclusivity(unchecked) var isHidden: Bool?
  /// Whether it is sealed; nil if that is unknown or may have changed.
  var isSealed: Bool?
  /// Whether all its committed items are known, so that an unknown key is absent.
  @exclusivity(unchecked) var isComplete = false
  /// How many of its items had to be read from the store since it was last complete.
  var missCount = 0

  init(_ name: ByteString, hash: UInt64, clock: DatabaseClock) {
    self.name = name.string
    self.hash = hash
    self.clock = clock
    bytes = name.string.copiedUTF8
  }

  func matches(_ name: UnsafeBufferPointer<UInt8>) -> Bool { bytes.isEqual(to: name) }

  deinit {
    bytes.deallocate()
  }
}

/// A key as a proxy knows it: its committed value, its pending changes, and the resulting visible value.
///
/// Unchecked: protected by the lock of its `ProxyState`, except for the scalar, which is atomic.
final class ProxyItem: @unchecked Sendable {
  /// What is known of the committed item.
  enum Knowledge: Equatable {
    case unknown
    case absent
    case item(HeldItem)
  }

  private struct Pending {
    let number: UInt64
    let change: Mutation
  }

  /// Where the visible value is: a copy of it would be one more reference to count at each `set`.
  private enum Shown {
    case unknown
    case absent
    case committed
    /// Set by the newest change.
    case pending
    /// The result of several changes, or of one that replaces a part.
    indirect case computed(HeldItem)
  }

  let collection: ProxyCollection
  let key: String
  private let bytes: UnsafeBufferPointer<UInt8>
  /// The committed value, as of the proxy's snapshot.
  @exclusivity(unchecked) var committed: Knowledge
  @exclusivity(unchecked) private var shown = Shown.unknown
  /// The change of the newest batch that has one; `older` has those of earlier batches.
  ///
  /// There is rarely more than one.
  @exclusivity(unchecked) private var newest: Pending?
  @exclusivity(unchecked) private var older: [Pending] = []
  /// Its size as counted in the cache.
  @exclusivity(unchecked) var cost = 0
  /// Whether it was read since the last sweep of the cache.
  let wasRead = Atomic<Bool>(false)
  /// Whether a typed key refers to it, so that it must stay.
  var isRemembered = false

  init(_ key: ByteString, in collection: ProxyCollection, committed: Knowledge) {
    self.collection = collection
    self.key = key.string
    self.committed = committed
    bytes = key.string.copiedUTF8
  }

  deinit {
    bytes.deallocate()
  }

  @inline(__always)
  func matches(_ key: UnsafeBufferPointer<UInt8>, in name: UnsafeBufferPointer<UInt8>, _ nameHash: UInt64) -> Bool {
    collection.hash == nameHash && bytes.isEqual(to: key) && collection.bytes.isEqual(to: name)
  }

  // MARK: Pending changes

  var hasPending: Bool { newest != nil }

  /// Whether it has a change in a batch up to `limit`.
  func hasPending(through limit: UInt64) -> Bool {
    older.isEmpty ? hasNewest(through: limit) : older[0].number <= limit
  }

  var isCommittedKnown: Bool { if case .unknown = committed { false } else { true } }

  func hasPending(in batch: UInt64) -> Bool {
    newest?.number == batch || older.contains { $0.number == batch }
  }

  /// Adds a change to a batch, which is the newest, and makes it visible.
  ///
  /// - Returns: Whether it is the batch's first change of this key.
  @inline(__always)
  func add(_ change: Mutation, to batch: UInt64) -> Bool {
    let isFirst = newest == nil
    // A change that sets the item replaces any other of the same batch.
    guard isFirst || newest?.number == batch && older.isEmpty, collection.clearings.isEmpty,
      let content = change.scalarContent
    else { return addToOthers(change, in: batch) }
    scalar.store(content)
    shown = .pending
    newest = Pending(number: batch, change: change)
    return isFirst
  }

  /// Adds a change if older batches have others, if its collection is being cleared, or if it sets nothing.
  @inline(never)
  private func addToOthers(_ change: Mutation, in batch: UInt64) -> Bool {
    defer { update() }
    if let newest {
      if newest.number == batch {
        self.newest = Pending(number: batch, change: change.over(newest.change))
        return false
      }
      older.append(newest)
    }
    // After its collection was cleared there is nothing to replace.
    newest = Pending(number: batch, change: collection.clearings.last == batch ? change.over(.removed) : change)
    return true
  }

  /// Drops the changes of some batches, which must no longer refer to the item once the lock is released.
  func removePending(where isRemoved: (UInt64) -> Bool) {
    if !older.isEmpty { older.removeAll { isRemoved($0.number) } }
    if let newest, isRemoved(newest.number) { self.newest = older.popLast() }
  }

  private var isNewestSet: Bool { if case .set? = newest?.change { true } else { false } }

  @inline(__always)
  private func hasNewest(through limit: UInt64) -> Bool {
    guard let number = newest?.number else { return false }
    return number <= limit
  }

  /// The combined change of the batches up to `limit`, after their last clearing of the collection.
  func pendingChange(through limit: UInt64 = .max) -> Mutation? {
    if older.isEmpty, collection.clearings.isEmpty {
      return hasNewest(through: limit) ? newest?.change : nil
    }
    guard let newest else { return nil }
    let cleared = collection.clearings.last { $0 <= limit } ?? 0
    var change: Mutation?
    for pending in [newest] + older.reversed() where pending.number <= limit {
      guard pending.number >= cleared else { break }
      change = change?.over(pending.change) ?? pending.change
      // The item that it replaces may be in an older batch.
      guard case .replaced = change else { break }
    }
    return change
  }

  /// Settles a committed change if it is the only one, sets the item, and is visible: nothing else changes then.
  ///
  /// The pending value is moved to `committed`, without reference counting.
  ///
  /// - Returns: Whether that was the case; otherwise nothing was done.
  @inline(__always)
  func settleOnlyChange(through limit: UInt64) -> Bool {
    guard older.isEmpty, hasNewest(through: limit), collection.clearings.isEmpty, collection.isHidden == false,
      let taken = newest.take()
    else { return false }
    guard case .set(let item) = taken.change else {
      newest = taken
      return false
    }
    committed = .item(item)
    shown = .committed
    return true
  }

  // MARK: The visible value

  /// The result of a change, if any, on the committed value.
  static func result(of change: Mutation?, on base: Knowledge) -> Knowledge {
    switch (change, base) {
    case (.set(let item), _): .item(item)
    case (.removed, _): .absent
    case (.replaced(let replacement), .item(let item)): .item(replacement.applied(to: item))
    case (.replaced, _), (nil, _): base
    }
  }

  /// The visible value; unknown if it depends on a committed value that is unknown.
  @inline(__always)
  var visible: Knowledge {
    let last = lastVisible
    guard case .item(let item) = last, item.expires else { return last }
    return item.dates.isExpired(at: collection.clock.now) ? .absent : last
  }

  /// The visible value, even if it has expired.
  @inline(__always)
  var lastVisible: Knowledge {
    switch shown {
    case .unknown: return .unknown
    case .absent: return .absent
    case .committed: return committed
    case .pending:
      guard case .set(let item)? = newest?.change else {
        assertionFailure("a visible change sets no value")
        return .unknown
      }
      return .item(item)
    case .computed(let item): return .item(item)
    }
  }

  /// The visible text; nil if there is none, or if it depends on the time.
  ///
  /// Nothing else is copied.
  @inline(__always)
  var visibleText: String? {
    switch shown {
    case .committed: committed.text
    case .pending: newest?.change.text
    case .computed(let item): item.text
    case .unknown, .absent: nil
    }
  }

  /// Updates the visible value, after a change here or in the collection.
  func update() {
    let base: Shown =
      if !collection.clearings.isEmpty || collection.isHidden == true {
        .absent
      } else {
        collection.isHidden == nil ? .unknown : .committed
      }
    shown =
      switch pendingChange() {
      case .set where isNewestSet: .pending
      case .set(let item): .computed(item)
      case .removed: .absent
      case let change?:
        if case .committed = base, let item = Self.result(of: change, on: committed).item {
          .computed(item)
        } else {
          base
        }
      case nil: base
      }
    scalar.store(lastVisible.scalarContent)
  }

  // MARK: Reading without a lock

  let scalar = Scalar()
}

extension HeldValue {
  @inline(__always)
  fileprivate var text: String? { if case .string(let text) = self { text } else { nil } }

  fileprivate var scalarContent: Scalar.Content {
    switch self {
    case .int(let int): Scalar.Content(kind: .int, word: UInt64(bitPattern: int))
    case .bool(let bool): Scalar.Content(kind: .bool, word: bool ? 1 : 0)
    case .double(let double): Scalar.Content(kind: .double, word: double.bitPattern)
    default: Scalar.Content(kind: .other)
    }
  }
}

/// An item that expires is never read without checking the clock.
extension HeldItem {
  @inline(__always)
  fileprivate var text: String? { expires ? nil : object.text }

  fileprivate var scalarContent: Scalar.Content { expires ? Scalar.Content(kind: .other) : object.scalarContent }
}

extension Mutation {
  @inline(__always)
  fileprivate var text: String? { if case .set(let item) = self { item.text } else { nil } }

  /// The content of a change that sets an item; nil for others.
  ///
  /// Not inlined: if callers saw the change's parts, these would be copied, with reference counting.
  fileprivate var scalarContent: Scalar.Content? {
    @inline(never) get {
      switch self {
      case .set(let item): item.scalarContent
      case .removed, .replaced: nil
      }
    }
  }
}

extension ProxyItem.Knowledge {
  @inline(__always)
  fileprivate var text: String? { if case .item(let item) = self { item.text } else { nil } }

  fileprivate var scalarContent: Scalar.Content {
    switch self {
    case .absent: Scalar.Content(kind: .absent)
    case .item(let item): item.scalarContent
    case .unknown: Scalar.Content(kind: .other)
    }
  }
}

extension String {
  /// The UTF-8 bytes, for the caller to deallocate.
  fileprivate var copiedUTF8: UnsafeBufferPointer<UInt8> {
    let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: utf8.count)
    _ = copy.initialize(from: utf8)
    return UnsafeBufferPointer(copy)
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Most keys have at most 16 bytes, which two words cover.
  @inline(__always)
  fileprivate func isEqual(to other: UnsafeBufferPointer<UInt8>) -> Bool {
    guard count == other.count else { return false }
    guard count > 0, let a = UnsafeRawPointer(baseAddress), let b = UnsafeRawPointer(other.baseAddress) else {
      return true
    }
    if count > 16 { return memcmp(a, b, count) == 0 }
    if count >= 8 { return Self.words(a, b, count, UInt64.self) }
    if count >= 4 { return Self.words(a, b, count, UInt32.self) }
    if count >= 2 { return Self.words(a, b, count, UInt16.self) }
    return a.load(as: UInt8.self) == b.load(as: UInt8.self)
  }

  /// Compares the first word and the last one, which may overlap.
  @inline(__always)
  private static func words<Word: FixedWidthInteger & BitwiseCopyable>(
    _ a: UnsafeRawPointer, _ b: UnsafeRawPointer, _ count: Int, _ type: Word.Type
  ) -> Bool {
    let last = count - MemoryLayout<Word>.size
    return a.loadUnaligned(as: Word.self) == b.loadUnaligned(as: Word.self)
      && a.loadUnaligned(fromByteOffset: last, as: Word.self) == b.loadUnaligned(fromByteOffset: last, as: Word.self)
  }
}
