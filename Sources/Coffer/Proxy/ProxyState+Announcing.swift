/// The changes that a proxy's listeners have yet to hear of.
struct Announcer {
  /// Changes of others that listeners want to observe, until they are announced, with the values that they have left.
  var foreign: ChangeListeners.Batch?
  /// Events not yet passed to listeners.
  var unannounced: [ChangeListeners.Batch] = []
}

extension ProxyState {
  // MARK: Own changes

  /// Runs `body`, which changes the visible value of an item, and notifies listeners.
  @inline(__always)
  func announcing(_ item: ProxyItem, _ body: () -> Void) {
    guard listeners.areThere, listeners.want(item.key, in: item.collection.name) else { return body() }
    let before = item.lastVisible
    body()
    withOwnBatch { $0.add(item, before: before, after: item.visible) }
  }

  func announceOwn(whole collection: ProxyCollection) {
    guard listeners.areThere else { return }
    withOwnBatch { $0.whole.insert(ByteString(collection.name)) }
  }

  /// Begins another event if the current one has so many items that its table would take long to grow.
  ///
  /// Called before the changes of one call, which stay together.
  func endLargeEvent() {
    guard let last = announcer.unannounced.last, last.items.count >= Self.itemsPerEvent else { return }
    announce(ChangeListeners.Batch(origin: .proxy))
  }

  static let itemsPerEvent = 8192

  /// Our own unreported changes form one event, unless they are many.
  func withOwnBatch(_ body: (inout ChangeListeners.Batch) -> Void) {
    if announcer.unannounced.last?.origin != .proxy { announce(ChangeListeners.Batch(origin: .proxy)) }
    body(&announcer.unannounced[announcer.unannounced.count - 1])
  }

  func announce(_ batch: ChangeListeners.Batch) {
    announcer.unannounced.append(batch)
    guard announcer.unannounced.count == 1 else { return }
    listeners.enqueue { [self] in
      let batches = lock.withExclusive {
        defer { announcer.unannounced = [] }
        return announcer.unannounced
      }
      for batch in batches { listeners.notify(batch, core) }
    }
  }

  // MARK: Changes of others

  func noteForeign(_ origin: ChangeOrigin, _ body: (inout ChangeListeners.Batch) -> Void) {
    var batch = announcer.foreign.take() ?? ChangeListeners.Batch(origin: origin)
    if batch.origin != origin { batch.origin = .several }
    body(&batch)
    announcer.foreign = batch
  }

  /// Reports the changes of others to listeners, as far as they are visible.
  ///
  /// An item that cannot be read is reported without its value, because no later read may be able to read it either.
  func announceForeign(_ session: Session, _ last: CommitNumber) {
    let changed = lock.withShared { announcer.foreign?.items.values.map(\.item).filter { $0.visible == .unknown } }
    guard let changed else { return }
    let read = changed.compactMap { item -> (ProxyItem, HeldItem?)? in
      let stored = Result { try session.storedItem(item.key, in: item.collection.name) }
      return if case .success(let stored) = stored { (item, stored) } else { nil }
    }
    lock.withExclusive {
      // An item may have been evicted meanwhile; use the one that took its place.
      func current(_ item: ProxyItem) -> ProxyItem {
        items.item(ByteString(item.key), in: item.collection).object
      }
      guard var foreign = announcer.foreign.take() else { return }
      if isUsable(last) { for (item, stored) in read { setCommitted(stored, of: current(item)) } }
      for (id, change) in foreign.items { foreign.items[id]?.after = current(change.item).visible }
      announce(foreign)
    }
  }
}
