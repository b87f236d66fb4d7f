/// The size of the cache of committed items.
extension ProxyState {
  /// The cost of an item besides its key and its values.
  private static let itemByteCount = 240

  /// Updates the cost of an item to its current contents.
  func charge(_ item: ProxyItem) {
    var cost = Self.itemByteCount + 2 * item.key.utf8.count
    if case .item(let held) = item.committed { cost += held.byteCount }
    // Usually it is the same; writing it would take the cache line from the core that sets the item next.
    guard cost != item.cost else { return }
    cacheByteCount += cost - item.cost
    item.cost = cost
  }

  /// Evicts items that were not read since the last sweep, until the cache is within its limit.
  ///
  /// It works in steps, between which others can take the lock: evicting thousands of items takes milliseconds. Call it
  /// without the lock.
  ///
  /// - Parameter stepCount: The maximum number of steps; a reader need not evict what others have added.
  func sweep(stepCount: Int = .max) {
    for _ in 0..<stepCount {
      guard lock.withExclusive({ sweepSome() }) else { return }
    }
  }

  /// How many slots of the table one step examines.
  static let slotsPerStep = 256

  /// One step.
  ///
  /// - Returns: Whether there is more to do.
  func sweepSome() -> Bool {
    // Unsettled batches refer to items without keeping them; the flush calls this when it has settled them.
    guard settling == nil else { return false }
    if table.pointee.isGrowing {
      table.pointee.move(slotCount: Self.slotsPerStep)
      return true
    }
    let count = itemCount
    table.pointee.sweep(slotCount: Self.slotsPerStep, while: { cacheByteCount > cacheByteLimit }) { item in
      // Batches, also those taken by a flush, refer to items with pending changes without keeping them.
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
    // After two rounds without an eviction, all items have pending changes or must stay: until that changes, one step per
    // call is enough.
    let most = 2 * table.pointee.capacity
    vainSlotCount = min(vainSlotCount + Self.slotsPerStep, most)
    return vainSlotCount < most
  }
}
