/// How much of what is committed is kept.
extension ProxyState {
  /// What an item costs beside its key and its values.
  private static let itemByteCount = 240

  /// Counts an item for what it holds now.
  func charge(_ item: ProxyItem) {
    var cost = Self.itemByteCount + 2 * item.key.utf8.count
    if case .item(let held) = item.committed { cost += held.byteCount }
    // Most of the time it is the same: writing it would take the cache line from the core that sets the item next.
    guard cost != item.cost else { return }
    cacheByteCount += cost - item.cost
    item.cost = cost
  }

  /// Lets go of what was not read since it came by the last time, until the cache is within its limit.
  ///
  /// In steps, between which others have the lock: letting go of thousands of items takes milliseconds. Called without it.
  ///
  /// - Parameter stepCount: After how many steps to leave the rest to others: whoever reads has not made all of it.
  func sweep(stepCount: Int = .max) {
    for _ in 0..<stepCount {
      guard lock.withExclusive({ sweepSome() }) else { return }
    }
  }

  /// How many slots of the table one step looks at.
  static let slotsPerStep = 256

  /// One step.
  ///
  /// - Returns: Whether there is more to do.
  func sweepSome() -> Bool {
    // What is being settled refers to items without keeping them; the flush comes here when it has done that.
    guard settling == nil else { return false }
    if table.pointee.isGrowing {
      table.pointee.move(slotCount: Self.slotsPerStep)
      return true
    }
    let count = itemCount
    table.pointee.sweep(slotCount: Self.slotsPerStep, while: { cacheByteCount > cacheByteLimit }) { item in
      // Batches, and what a flush has taken, refer to items with something pending without keeping them.
      guard !item.hasPending, !item.isRemembered, !item.wasRead.load(ordering: .relaxed) else {
        item.wasRead.store(false, ordering: .relaxed)
        return false
      }
      cacheByteCount -= item.cost
      item.collection.isComplete = false
      return true
    }
    if itemCount < count { table.pointee.shrink() }
    let isWithinLimit = cacheByteCount <= cacheByteLimit
    if isWithinLimit || itemCount < count {
      vainSlotCount = 0
      return !isWithinLimit
    }
    // Twice round without any, all have something pending, or must stay: one step each time will do until that changes.
    let most = 2 * table.pointee.capacity
    vainSlotCount = min(vainSlotCount + Self.slotsPerStep, most)
    return vainSlotCount < most
  }
}
