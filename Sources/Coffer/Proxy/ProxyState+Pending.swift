import CofferCrypto
import CofferStorage

/// What changes pending changes; all of it with the exclusive lock held.
extension ProxyState {
  // MARK: Adding

  /// Adds a change of a key to the open batch.
  @inline(__always)
  func add(_ change: Mutation, _ key: String, in name: String) {
    // The table keeps it: no reference is counted.
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

  /// Whether a change would leave everything as it is: nothing is pending, and what is committed is known and the same.
  private func isWithoutEffect(_ change: Mutation, _ item: ProxyItem) -> Bool {
    guard !item.hasPending, item.collection.clearings.isEmpty, item.isCommittedKnown else { return false }
    // A write that was queued before must not come to its end with another value.
    guard queuedWriteCount == endedWriteCount, isCurrent else { return false }
    return switch change {
    case .set(let new): item.committed == .item(new)
    case .removed: item.committed == .absent
    // Whether there is something to replace is decided in the flush.
    case .replaced: false
    }
  }

  // MARK: Resetting

  /// Drops the changes of a key that no flush has taken.
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

  /// Drops all that no flush has taken.
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
    /// The table keeps it: what a flush has taken stays pending until that is settled or has failed.
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

  /// How many items one step of `forEachChange` looks at.
  static let itemsPerStep = 256

  /// Hands to `body` what the batches that a flush has taken do to each of their items.
  ///
  /// Takes the shared lock for some of them at a time, so that no `set` waits for thousands. The others stay as they are
  /// meanwhile: what is set or reset now belongs to newer batches.
  func forEachChange(of taken: [Batch], through number: UInt64, _ body: (TakenChange) throws -> Void) rethrows {
    var changes: [TakenChange] = []
    for (position, batch) in taken.enumerated() {
      let later = taken[(position + 1)...]
      for start in stride(from: 0, to: batch.items.count, by: Self.itemsPerStep) {
        lock.withShared {
          // The first one at the end, from where it is taken without counting a reference.
          var index = min(start + Self.itemsPerStep, batch.items.count)
          while index > start {
            index -= 1
            let reference = batch.items[index]
            reference.withObject { item in
              // One that a later batch changes too is written once, with the later one.
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

  /// What a flush has committed.
  struct FlushedCommit {
    /// The number of the commit.
    let sequence: Int64
    /// What the counter of commits showed when the write lock was given back.
    let count: UInt64?
  }

  /// Batches that are committed, and how far they are settled.
  struct Settling {
    let batches: [Batch]
    /// That of the newest one.
    let number: UInt64
    /// Whether what was pending is what is committed; otherwise that is to be read.
    let isKnown: Bool
    /// The collections where what lies there is not what was pending.
    let sealed: Set<ByteString>
    /// The next item, as places of its batch and in that.
    var next = (batch: 0, item: 0)
  }

  /// Has the batches up to `number`, which are committed, count as committed; their items remain to be settled.
  ///
  /// Where one of them clears a collection, or a filter may hide what is committed, they are settled at once.
  ///
  /// - Parameters:
  ///   - commit: nil where they had no effect, or what else was committed is not known here.
  ///   - snapshot: The oldest snapshot that has it all.
  ///   - sealed: The collections where what lies there is not what was pending.
  /// - Returns: Whether nobody else has committed since what is known, or nothing was known yet.
  @discardableResult
  func settle(
    through number: UInt64, commit: FlushedCommit?, in snapshot: Int64, sealedIn sealed: Set<ByteString> = []
  ) -> Bool {
    inFlight = nil
    vainSlotCount = 0
    settledSequence = max(settledSequence, snapshot)
    // Nobody else has committed since what is known; before the first read nothing is, that others could have changed.
    let isNext = commit.map { $0.sequence == sequence + 1 || sequence < 0 } ?? false
    let settled = Array(batches.prefix { $0.number <= number })
    if let newest = settled.last {
      settleAll()
      batches.removeFirst(settled.count)
      endedWriteCount = max(endedWriteCount, newest.queuedWriteCount)
      settling = Settling(batches: settled, number: number, isKnown: isNext, sealed: sealed)
      settleClearings(settled.flatMap(\.cleared), through: number, isNext)
      if fetchFilter != nil { settleAll() }
    }
    if isNext, let commit { setKnown(sequence: commit.sequence, count: commit.count) }
    return isNext
  }

  private func settleClearings(_ cleared: [ProxyCollection], through number: UInt64, _ isNext: Bool) {
    guard !cleared.isEmpty else { return }
    for collection in cleared {
      let limit = collection.clearings.last { $0 <= number } ?? 0
      forEachItem(of: collection) { item in
        item.committed = isNext ? .absent : .unknown
        // What was set before the clearing is gone with it.
        item.removePending { $0 < limit }
      }
      collection.clearings.removeAll { $0 <= number }
      collection.isComplete = isNext
    }
    settleAll()
    for collection in cleared { forEachItem(of: collection) { $0.update() } }
  }

  /// Settles all that is left.
  func settleAll() {
    while settleSome() {}
  }

  /// Settles the next items.
  ///
  /// - Returns: Whether there are more.
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

  /// Settles an item, if it has to be; whoever goes on with what is committed of it does this first.
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

  /// Takes over what a transaction of ours has made of an item, beside the batches.
  ///
  /// - Parameter isKnown: Whether nobody else has committed since what is known.
  func didChange(_ key: String, in name: String, from before: HeldItem?, to after: HeldItem?, isKnown: Bool) {
    let item = item(key, in: name).object
    settle(item)
    let show = { (held: HeldItem?) -> Knowledge in held.map { .item($0) } ?? .absent }
    item.committed = isKnown ? show(after) : .unknown
    item.update()
    charge(item)
    guard listeners.areThere, before != after, !item.hasPending, item.collection.isHidden != true else { return }
    withOwnBatch { $0.add(item, before: show(before), after: show(after)) }
  }

  // MARK: Announcing

  /// Runs `body`, which changes what shows for an item, and tells listeners.
  @inline(__always)
  func announcing(_ item: ProxyItem, _ body: () -> Void) {
    guard listeners.areThere else { return body() }
    let before = item.lastVisible
    body()
    withOwnBatch { $0.add(item, before: before, after: item.visible) }
  }

  private func announceOwn(whole collection: ProxyCollection) {
    guard listeners.areThere else { return }
    withOwnBatch { $0.whole.insert(ByteString(collection.name)) }
  }

  /// Begins another event where so much waits in one that its table would take long to grow.
  ///
  /// Called before what one call changes, which stays together.
  func endLargeEvent() {
    guard let last = unannounced.last, last.items.count >= Self.itemsPerEvent else { return }
    announce(ChangeListeners.Batch(origin: .proxy))
  }

  static let itemsPerEvent = 8192

  /// Changes of ours that nobody was told of yet make one event, unless they are many.
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
