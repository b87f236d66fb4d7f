import CofferCrypto
import CofferStorage

/// Changes to the pending changes; all with the exclusive lock held.
extension ProxyState {
  // MARK: Adding

  /// Adds a change of a key to the open batch.
  @inline(__always)
  func add(_ change: Mutation, _ key: String, in name: String) {
    // Kept by the table, so no reference is counted.
    let reference = item(key, in: name)
    reference.withObject { item in
      settle(item)
      if isWithoutEffect(change, item) { return }
      announcing(item) {
        openBatch()
        if item.add(change, to: lastNumber) { batches[batches.count - 1].items.append(reference) }
      }
    }
  }

  func clear(_ name: String) {
    openBatch()
    let collection = collection(name)
    let number = lastNumber
    let index = batches.count - 1
    batches[index].items.removeAll { reference in
      reference.withObject { item in
        guard item.collection === collection else { return false }
        item.removePending { $0 == number }
        return true
      }
    }
    if collection.clearings.last != number {
      collection.clearings.append(number)
      batches[index].cleared.append(collection)
    }
    forEachItem(of: collection) { $0.update() }
    announceOwn(whole: collection)
  }

  private func openBatch() {
    guard !isNewestOpen else { return }
    lastNumber += 1
    batches.append(Batch(number: lastNumber, queuedWriteCount: queuedWriteCount))
    isNewestOpen = true
  }

  /// Whether a change has no effect: nothing is pending, and the committed value is known and equal.
  private func isWithoutEffect(_ change: Mutation, _ item: ProxyItem) -> Bool {
    guard !item.hasPending, item.collection.clearings.isEmpty, item.isCommittedKnown else { return false }
    // A write queued before may still commit another value.
    guard queuedWriteCount == endedWriteCount, isCurrent else { return false }
    return switch change {
    case .set(let new): item.committed == .item(new)
    case .removed: item.committed == .absent
    // The flush decides whether there is something to replace.
    case .replaced: false
    }
  }

  // MARK: Resetting

  /// Discards the changes of a key that no flush has taken.
  func reset(_ key: String, in name: String) {
    guard let item = find(key, name)?.object else { return }
    settle(item)
    announcing(item) {
      item.removePending { $0 > takenNumber }
      item.update()
    }
    for index in batches.indices where batches[index].number > takenNumber {
      batches[index].items.removeAll { $0.refers(to: item) }
    }
    dropBatches { $0.count == 0 }
  }

  /// Discards all changes that no flush has taken.
  func reset() {
    for batch in batches where batch.number > takenNumber {
      batch.forEachItem { item in
        announcing(item) {
          item.removePending { $0 > takenNumber }
          item.update()
        }
      }
      for collection in batch.cleared {
        collection.clearings.removeAll { $0 > takenNumber }
        forEachItem(of: collection) { $0.update() }
        announceOwn(whole: collection)
      }
    }
    dropBatches { _ in true }
  }

  /// Drops batches that no flush has taken; their flushes will find nothing to do.
  private func dropBatches(_ isDropped: (Batch) -> Bool) {
    batches.removeAll { $0.number > takenNumber && isDropped($0) }
    if batches.last?.number != lastNumber { isNewestOpen = false }
  }

  // MARK: Flushing

  /// A change that a flush writes.
  struct TakenChange {
    /// Kept by the table: it stays pending until the flush is settled or has failed.
    let item: Borrowed<ProxyItem>
    let change: Mutation

    @inline(__always)
    func write(to session: Session) throws {
      try item.withObject { try session.apply(change, $0.key, in: $0.collection.name) }
    }
  }

  /// Takes the batches up to `number` for a flush that has the write lock.
  func take(through number: UInt64) -> [Batch] {
    takenNumber = number
    if batches.last.map({ $0.number <= number }) ?? false { isNewestOpen = false }
    return Array(batches.prefix { $0.number <= number })
  }

  /// How many items one step of `forEachChange` visits.
  static let itemsPerStep = 256

  /// Passes the changes of taken batches to `body`, item by item.
  ///
  /// It takes the shared lock for some items at a time, so that no `set` waits for thousands. The other items cannot change
  /// meanwhile: new changes and resets concern newer batches.
  func forEachChange(of taken: [Batch], through number: UInt64, _ body: (TakenChange) throws -> Void) rethrows {
    var changes: [TakenChange] = []
    for (position, batch) in taken.enumerated() {
      let later = taken[(position + 1)...]
      for start in stride(from: 0, to: batch.items.count, by: Self.itemsPerStep) {
        lock.withShared {
          // Put the first one last: it can be popped from there without reference counting.
          var index = min(start + Self.itemsPerStep, batch.items.count)
          while index > start {
            index -= 1
            let reference = batch.items[index]
            reference.withObject { item in
              // An item that a later batch changes too is written once, with the later batch.
              guard !later.contains(where: { item.hasPending(in: $0.number) }),
                batch.number >= item.collection.clearings.last(where: { $0 <= number }) ?? 0,
                let change = item.pendingChange(through: number)
              else { return }
              changes.append(TakenChange(item: reference, change: change))
            }
          }
        }
        while let change = changes.popLast() { try body(change) }
      }
    }
  }

  /// The commit of a flush.
  struct FlushedCommit {
    /// The number of the commit.
    let number: CommitNumber
    /// The commit counter when the write lock was released.
    let count: UInt64?
  }

  /// Committed batches, and how far they are settled.
  struct Settling {
    let batches: [Batch]
    /// The number of the newest batch.
    let number: UInt64
    /// Whether the pending changes are now the committed values; otherwise these have to be read.
    let isKnown: Bool
    /// The collections whose stored values differ from the pending ones, because they were sealed.
    let sealed: Set<ByteString>
    /// The next item to settle, as indices of its batch and within it.
    var next = (batch: 0, item: 0)
  }

  /// Marks the batches up to `number` as committed; their items remain to be settled.
  ///
  /// If one of them clears a collection, or a filter may hide committed values, they are settled at once.
  ///
  /// - Parameters:
  ///   - commit: nil if they had no effect, or if the commits before theirs are not known here.
  ///   - snapshot: The oldest snapshot that includes them all.
  ///   - sealed: The collections whose stored values differ from the pending ones, because they were sealed.
  /// - Returns: Whether no one else has committed since the known state, or nothing was known yet.
  @discardableResult
  func settle(
    through number: UInt64, commit: FlushedCommit?, in snapshot: CommitNumber, sealedIn sealed: Set<ByteString> = []
  ) -> Bool {
    inFlight = nil
    vainSlotCount = 0
    settledNumber = max(settledNumber, snapshot)
    // No one else has committed since the known state; before the first read nothing is known that could be outdated.
    let isNext = commit.map { $0.number == knownNumber + 1 || knownNumber < 0 } ?? false
    let settled = Array(batches.prefix { $0.number <= number })
    if let newest = settled.last {
      settleAll()
      batches.removeFirst(settled.count)
      endedWriteCount = max(endedWriteCount, newest.queuedWriteCount)
      settling = Settling(batches: settled, number: number, isKnown: isNext, sealed: sealed)
      settleClearings(settled.flatMap(\.cleared), through: number, isNext)
      if fetchFilter != nil { settleAll() }
    }
    // A reader may have seen the commit first, without the counter's value.
    if let commit, isNext || commit.number == knownNumber && commit.count != nil {
      setKnown(number: commit.number, count: commit.count)
    }
    return isNext
  }

  private func settleClearings(_ cleared: [ProxyCollection], through number: UInt64, _ isNext: Bool) {
    guard !cleared.isEmpty else { return }
    for collection in cleared {
      let limit = collection.clearings.last { $0 <= number } ?? 0
      forEachItem(of: collection) { item in
        item.committed = isNext ? .absent : .unknown
        // Items set before the clearing were removed by it.
        item.removePending { $0 < limit }
      }
      collection.clearings.removeAll { $0 <= number }
      collection.isComplete = isNext
    }
    settleAll()
    for collection in cleared { forEachItem(of: collection) { $0.update() } }
  }

  /// Settles all remaining items.
  func settleAll() {
    while settleSome() {}
  }

  /// Settles the next items.
  ///
  /// - Returns: Whether there were any.
  func settleSome(_ count: Int = itemsPerStep) -> Bool {
    guard let settling, settling.next.batch < settling.batches.count else {
      self.settling = nil
      return false
    }
    let items = settling.batches[settling.next.batch].items
    let end = min(settling.next.item + count, items.count)
    for item in items[settling.next.item..<end] { item.withObject { settle($0, settling) } }
    self.settling?.next = end < items.count ? (settling.next.batch, end) : (settling.next.batch + 1, 0)
    return true
  }

  /// Settles an item, if necessary; call this before using or changing its committed value.
  @inline(__always)
  func settle(_ item: ProxyItem) {
    if let settling { settle(item, settling) }
  }

  @inline(never)
  private func settle(_ item: ProxyItem, _ settling: Settling) {
    let number = settling.number
    guard item.hasPending(through: number) else { return }
    let isKnown =
      settling.isKnown && (settling.sealed.isEmpty || !settling.sealed.contains(ByteString(item.collection.name)))
    if isKnown, item.settleOnlyChange(through: number) { return charge(item) }
    if let change = item.pendingChange(through: number) {
      item.committed = isKnown ? ProxyItem.result(of: change, on: item.committed) : .unknown
    }
    item.removePending { $0 <= number }
    item.update()
    charge(item)
  }

  /// Applies to an item what our transaction has done to it, apart from the batches.
  ///
  /// - Parameter isKnown: Whether no one else has committed since the known state.
  func didChange(_ key: String, in name: String, from before: HeldItem?, to after: HeldItem?, isKnown: Bool) {
    let item = item(key, in: name).object
    settle(item)
    let show = { (held: HeldItem?) -> Knowledge in held.map { .item($0) } ?? .absent }
    item.committed = isKnown ? show(after) : .unknown
    item.update()
    charge(item)
    guard listeners.want(key, in: name), before != after, !item.hasPending, item.collection.isHidden != true else {
      return
    }
    withOwnBatch { $0.add(item, before: show(before), after: show(after)) }
  }

  // MARK: Announcing

  /// Runs `body`, which changes the visible value of an item, and notifies listeners.
  @inline(__always)
  func announcing(_ item: ProxyItem, _ body: () -> Void) {
    guard listeners.want(item.key, in: item.collection.name) else { return body() }
    let before = item.lastVisible
    body()
    withOwnBatch { $0.add(item, before: before, after: item.visible) }
  }

  private func announceOwn(whole collection: ProxyCollection) {
    guard listeners.areThere else { return }
    withOwnBatch { $0.whole.insert(ByteString(collection.name)) }
  }

  /// Begins another event if the current one has so many items that its table would take long to grow.
  ///
  /// Called before the changes of one call, which stay together.
  func endLargeEvent() {
    guard let last = unannounced.last, last.items.count >= Self.itemsPerEvent else { return }
    announce(ChangeListeners.Batch(origin: .proxy))
  }

  static let itemsPerEvent = 8192

  /// Our own unreported changes form one event, unless they are many.
  private func withOwnBatch(_ body: (inout ChangeListeners.Batch) -> Void) {
    if unannounced.last?.origin != .proxy { announce(ChangeListeners.Batch(origin: .proxy)) }
    body(&unannounced[unannounced.count - 1])
  }

  func announce(_ batch: ChangeListeners.Batch) {
    unannounced.append(batch)
    guard unannounced.count == 1 else { return }
    listeners.enqueue { [self] in
      let batches = lock.withExclusive {
        defer { unannounced = [] }
        return unannounced
      }
      for batch in batches { listeners.tell(batch, core) }
    }
  }
}
