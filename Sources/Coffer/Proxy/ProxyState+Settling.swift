import CofferStorage

/// What a flush does with the changes that it has taken; all but `forEachChange` with the exclusive lock held.
extension ProxyState {
  // MARK: Writing

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

  /// How many items one step of `forEachChange` visits.
  static let itemsPerStep = 256

  /// Passes the changes of taken batches to `body`, item by item.
  ///
  /// It takes the shared lock for some items at a time, so that no `set` waits for thousands. The other items cannot change
  /// meanwhile: new changes and resets concern newer batches.
  func forEachChange(of taken: [PendingBatches.Batch], through number: UInt64, _ body: (TakenChange) throws -> Void)
    rethrows
  {
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

  // MARK: Settling

  /// The commit of a flush.
  struct FlushedCommit {
    /// The number of the commit.
    let number: CommitNumber
    /// The commit counter when the write lock was released.
    let count: UInt64?
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
    items.expectEvictions()
    known.settledNumber = max(known.settledNumber, snapshot)
    // No one else has committed since the known state; before the first read nothing is known that could be outdated.
    let isNext = commit.map { $0.number == known.number + 1 || known.number < 0 } ?? false
    let committed = pending.removeCommitted(through: number)
    if !committed.isEmpty {
      settleAll()
      pending.settling = PendingBatches.Settling(batches: committed, number: number, isKnown: isNext, sealed: sealed)
      settleClearings(committed.flatMap(\.cleared), through: number, isNext)
      if filters.fetch != nil { settleAll() }
    }
    // A reader may have seen the commit first, without the counter's value.
    if let commit, isNext || commit.number == known.number && commit.count != nil {
      setKnown(number: commit.number, count: commit.count)
    }
    return isNext
  }

  private func settleClearings(_ cleared: [ProxyCollection], through number: UInt64, _ isNext: Bool) {
    guard !cleared.isEmpty else { return }
    for collection in cleared {
      let limit = collection.clearings.last { $0 <= number } ?? 0
      items.forEach(of: collection) { item in
        item.committed = isNext ? .absent : .unknown
        // Items set before the clearing were removed by it.
        item.removePending { $0 < limit }
      }
      collection.clearings.removeAll { $0 <= number }
      collection.isComplete = isNext
    }
    settleAll()
    for collection in cleared { items.forEach(of: collection) { $0.update() } }
  }

  /// Settles all remaining items.
  func settleAll() {
    while settleSome() {}
  }

  /// Settles the next items.
  ///
  /// - Returns: Whether there were any.
  func settleSome(_ count: Int = itemsPerStep) -> Bool {
    guard let settling = pending.settling, settling.next.batch < settling.batches.count else {
      pending.settling = nil
      return false
    }
    let items = settling.batches[settling.next.batch].items
    let end = min(settling.next.item + count, items.count)
    for item in items[settling.next.item..<end] { item.withObject { settle($0, settling) } }
    pending.settling?.next = end < items.count ? (settling.next.batch, end) : (settling.next.batch + 1, 0)
    return true
  }

  /// Settles an item, if necessary; call this before using or changing its committed value.
  @inline(__always)
  func settle(_ item: ProxyItem) {
    if let settling = pending.settling { settle(item, settling) }
  }

  @inline(never)
  private func settle(_ item: ProxyItem, _ settling: PendingBatches.Settling) {
    let number = settling.number
    guard item.hasPending(through: number) else { return }
    let isKnown =
      settling.isKnown && (settling.sealed.isEmpty || !settling.sealed.contains(ByteString(item.collection.name)))
    if isKnown, item.settleOnlyChange(through: number) { return items.charge(item) }
    if let change = item.pendingChange(through: number) {
      item.committed = isKnown ? ProxyItem.result(of: change, on: item.committed) : .unknown
    }
    item.removePending { $0 <= number }
    item.update()
    items.charge(item)
  }

  /// Applies to an item what our transaction has done to it, apart from the batches.
  ///
  /// - Parameter isKnown: Whether no one else has committed since the known state.
  func didChange(_ key: String, in name: String, from before: HeldItem?, to after: HeldItem?, isKnown: Bool) {
    let item = items.item(key, in: name).object
    settle(item)
    let show = { (held: HeldItem?) -> Knowledge in held.map { .item($0) } ?? .absent }
    item.committed = isKnown ? show(after) : .unknown
    item.update()
    items.charge(item)
    guard listeners.want(key, in: name), before != after, !item.hasPending, item.collection.isHidden != true
    else {
      return
    }
    withOwnBatch { $0.add(item, before: show(before), after: show(after)) }
  }

  /// Ends a flush, whether it has committed or failed.
  func endFlush() {
    if let failed = pending.endFlush() { known.didNotCommit(failed) }
  }
}
