import CofferCrypto
import CofferStorage

/// Changes to the pending changes; all with the exclusive lock held.
extension ProxyState {
  // MARK: Adding

  /// Adds a change of a key to the open batch.
  @inline(__always)
  func add(_ change: Mutation, _ key: String, in name: String) {
    // Kept by the table, so no reference is counted.
    let reference = items.item(key, in: name)
    reference.withObject { item in
      settle(item)
      if isWithoutEffect(change, item) { return }
      announcing(item) {
        pending.open()
        if item.add(change, to: pending.lastNumber) { pending.add(reference) }
      }
    }
  }

  func clear(_ name: String) {
    pending.open()
    let collection = items.collection(name)
    pending.clear(collection)
    items.forEach(of: collection) { $0.update() }
    announceOwn(whole: collection)
  }

  /// Whether a change has no effect: nothing is pending, and the committed value is known and equal.
  private func isWithoutEffect(_ change: Mutation, _ item: ProxyItem) -> Bool {
    guard !item.hasPending, item.collection.clearings.isEmpty, item.isCommittedKnown else { return false }
    // A write queued before may still commit another value.
    guard !pending.areOtherWritesQueued, isCurrent else { return false }
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
    guard let item = items.find(key, name)?.object else { return }
    settle(item)
    announcing(item) {
      item.removePending { $0 > pending.takenNumber }
      item.update()
    }
    pending.drop(item)
  }

  /// Discards all changes that no flush has taken.
  func reset() {
    for batch in pending.untaken {
      batch.forEachItem { item in
        announcing(item) {
          item.removePending { $0 > pending.takenNumber }
          item.update()
        }
      }
      for collection in batch.cleared {
        collection.clearings.removeAll { $0 > pending.takenNumber }
        items.forEach(of: collection) { $0.update() }
        announceOwn(whole: collection)
      }
    }
    pending.dropUntaken()
  }
}
