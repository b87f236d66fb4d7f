import CofferStorage

extension ProxyState {
  typealias Knowledge = ProxyItem.Knowledge

  // MARK: One item

  /// The visible value of a key.
  ///
  /// A current value in memory is found without a system call.
  ///
  /// - Parameter isCounted: Whether to measure it as a read by the program.
  func visible(_ key: String, in collection: String, isCounted: Bool = false) throws -> Knowledge {
    let known = remembered(key, in: collection)
    guard case .unknown = known else {
      if isCounted { record(.read(fromMemory: true)) }
      return known
    }
    if isCounted { record(.read(fromMemory: false)) }
    return try resolve(key, in: collection)
  }

  @inline(__always)
  private func remembered(_ key: String, in collection: String) -> Knowledge {
    lock.withShared { () -> Knowledge in
      guard isCurrent else { return .unknown }
      guard let item = items.find(key, collection) else {
        return knowsAll(of: collection) ? .absent : .unknown
      }
      return item.withObject { item in
        item.noteRead()
        return item.visible
      }
    }
  }

  /// The visible number of a key; an inner nil if the key is absent, an outer nil if the slow path must be used.
  @inline(__always)
  func number<Object>(_ key: String, _ collection: String) -> Object?? {
    lock.withShared { () -> Object?? in
      guard isCurrent, let item = items.find(key, collection) else { return nil }
      return item.withObject { item in
        item.noteRead()
        return item.scalar.number()
      }
    }
  }

  /// The visible text of a key; nil if the slow path must be used.
  func string(_ key: String, _ collection: String) -> String? {
    lock.withShared {
      guard isCurrent, let item = items.find(key, collection) else { return nil }
      return item.withObject { item in
        item.noteRead()
        return item.visibleText
      }
    }
  }

  private func knowsAll(of collection: String) -> Bool {
    items.knownCollection(collection)?.isComplete ?? false
  }

  /// The visible value of a key, read from the store if necessary.
  func resolve(_ key: String, in collection: String) throws -> Knowledge {
    while true {
      askFetchFilter(collection)
      let known = try readCommitted { session, last in
        try self.visible(key, in: collection, session, last)
      }
      // The filter has changed meanwhile.
      if case .unknown = known { continue }
      return known
    }
  }

  /// Runs `body` in a read transaction, with everything known as of its snapshot, `last`, until it returns a result: nil
  /// means that one of our flushes has advanced meanwhile.
  func readCommitted<Result>(_ body: (Session, _ last: CommitNumber) throws -> Result?) throws -> Result {
    while true {
      let result = try reader.perform { session -> Result? in
        if session.generation != lock.withShared({ known.generation }) { startOver(session.generation) }
        // Loaded before the snapshot is taken: the snapshot includes everything until here.
        let earlier = lock.withExclusive {
          known.unlockCount = core.vault.unlockCount.load(ordering: .acquiring)
          return known.number
        }
        let count = try countOfCommits(session)
        return try session.read {
          try CofferError.translating {
            let last = try session.changeLog.lastNumber()
            if last < earlier { goBack(from: earlier, to: last, count: count) }
            guard try catchUp(session, last: last, count: count) else { return nil }
            announceForeign(session, last)
            return try body(session, last)
          }
        }
      }
      guard let result else { continue }
      sweep(stepCount: Self.stepsAfterRead)
      return result
    }
  }

  /// Enough to evict what one read has added; with more steps, a read would do the work of flushes.
  private static let stepsAfterRead = 64

  private func countOfCommits(_ session: Session) throws -> UInt64? {
    let (isClosed, counter) = lock.withShared { (pending.isClosed, known.counter) }
    guard !isClosed else { throw CofferError.closed }
    if let counter { return counter.value }
    // Each has a mapping of its own, so make only one.
    var new = session.connection.commitCounter
    if new == nil {
      // The first read maps the wal-index.
      try session.read { _ = try session.changeLog.lastNumber() }
      new = session.connection.commitCounter
    }
    lock.withExclusive { setCounter(new) }
    return new?.value
  }

  /// The visible value of a key, as of a snapshot; nil if one of our flushes has advanced meanwhile.
  func visible(_ key: String, in name: String, _ session: Session, _ last: CommitNumber) throws -> Knowledge? {
    let (known, collection, loadsAll) = lock.withExclusive { () -> (Knowledge, ProxyCollection, Bool) in
      let item = items.item(key, in: name).object
      item.noteRead()
      let known = item.visible
      guard case .unknown = known else { return (known, item.collection, false) }
      item.collection.missCount += 1
      return (known, item.collection, item.collection.missCount == Self.missesBeforeAll)
    }
    guard case .unknown = known else { return known }
    if loadsAll, try !loadAll(of: collection, session, last) { return nil }
    let stored = try session.storedItem(key, in: name)
    return lock.withExclusive { () -> Knowledge? in
      guard isUsable(last) else { return nil }
      // This may be a different item than before: that one may have been evicted.
      let item = items.item(key, in: name).object
      setCommitted(stored, of: item)
      return item.visible
    }
  }

  func setCommitted(_ held: HeldItem?, of item: ProxyItem) {
    settle(item)
    item.committed = held.map { .item($0) } ?? .absent
    item.update()
    items.charge(item)
  }

  // MARK: A whole collection

  /// How many items of a collection are read one by one before all of them are.
  ///
  /// A program that reads one value and ends need not pay for the rest.
  private static let missesBeforeAll = 8

  /// Reads a whole collection, if it is small.
  ///
  /// - Returns: False if one of our flushes has advanced beyond `last`.
  func loadAll(of collection: ProxyCollection, _ session: Session, _ last: CommitNumber) throws -> Bool {
    var room = lock.withShared { items.byteLimit / 8 }
    var rows: [(key: ByteString, item: HeldItem)] = []
    if let stored = try session.storedCollection(collection.name) {
      let cursor = Cursor(
        connection: session.connection, collection: stored.id, isSealed: stored.isSealed, range: .all, columns: .rows,
        at: session.transaction.time)
      while try cursor.advance() {
        let (key, item) = (cursor.key, try cursor.item())
        room -= 256 + key.utf8.count + item.byteCount
        guard room > 0 else { return true }
        rows.append((ByteString(key), item))
      }
    }
    return lock.withExclusive {
      guard isUsable(last) else { return false }
      for row in rows { setCommitted(row.item, of: items.item(row.key, in: collection).object) }
      items.forEach(of: collection) { item in
        settle(item)
        guard item.committed == .unknown else { return }
        item.committed = .absent
        item.update()
      }
      collection.isComplete = true
      return true
    }
  }

  // MARK: Commits of others

  /// Forgets everything: the store was rolled back to an earlier state.
  private func goBack(from earlier: CommitNumber, to last: CommitNumber, count: UInt64?) {
    core.commits.forgetEverything()
    lock.withExclusive {
      forgetEverything()
      known.goBack(to: last)
      setKnown(number: last, count: count)
      if listeners.areThere { announce(ChangeListeners.Batch(origin: .several, isEverything: true)) }
    }
    reader.database.reportRollback(from: earlier, to: last)
  }

  /// Makes the next read use the store that replaced this one.
  func storeWasReplaced() {
    lock.withExclusive {
      forgetEverything()
      known.goBack(to: -1)
      setKnown(number: -1, count: nil)
    }
  }

  /// Begins again with another store, on the reader's queue.
  private func startOver(_ generation: Int) {
    storeWasReplaced()
    lock.withExclusive {
      known.generation = generation
      setCounter(nil)
      if listeners.areThere { announce(ChangeListeners.Batch(origin: .several, isEverything: true)) }
    }
  }

  /// Follows a commit that the feed has read, on behalf of listeners.
  ///
  /// The log is read only if other commits are missing before it, or if it did more than change keys: the vault may be new, for
  /// instance. Items are read only if a listener wants them.
  func follow(_ commit: Commit) throws {
    let mustRead = lock.withExclusive { () -> Bool in
      guard !known.missesCommits, let delivery = commit.delivery, delivery.storeGeneration == known.generation,
        commit.identity != nil,
        known.number >= 0, commit.number <= known.number || commit.number == known.number + 1 && commit.actions.isEmpty
      else {
        known.missesCommits = true
        return true
      }
      if commit.number > known.number {
        forget([commit.withUnnamedRemovalOfAll], delivery.count)
        setKnown(number: commit.number, count: delivery.count)
      }
      return announcer.foreign != nil
    }
    if mustRead { try catchUp() }
  }

  /// Looks for commits of others, and reports them to listeners.
  func catchUp() throws {
    try readCommitted { _, _ in () }
  }

  /// Forgets the keys that changed between the known state and `last`.
  ///
  /// - Returns: False if one of our flushes has advanced beyond `last`.
  private func catchUp(_ session: Session, last: CommitNumber, count: UInt64?) throws -> Bool {
    let (earlier, inFlight) = lock.withShared { (known.number, pending.inFlight) }
    guard earlier <= last else { return false }
    guard earlier != last, earlier >= 0 || inFlight != nil else {
      if earlier < 0 {
        try session.lookForVault()
        try core.expiries.look(session.connection)
      }
      return lock.withExclusive {
        guard known.number == earlier else { return false }
        // Changes without effect show until they are settled, and others may have changed the items since.
        if earlier < 0 { settleAll() }
        setKnown(number: last, count: count)
        known.missesCommits = false
        return true
      }
    }
    // Before the first read nothing is known that could be outdated, but a flush may be in flight.
    let start = earlier >= 0 ? earlier : (inFlight?.identity.number ?? last + 1) - 1
    try session.lookForVault()
    try core.expiries.look(session.connection)
    let commits = try core.commits.commits(after: start, session.connection, isUnnamedRemovalOfAll: true)
    return lock.withExclusive {
      guard known.number == earlier else { return false }
      forget(commits, count)
      setKnown(number: last, count: count)
      known.missesCommits = false
      return true
    }
  }

  /// Forgets what commits have changed, and collects the changes of others for listeners, still without their visible values.
  ///
  /// - Parameter commits: nil when some of them are no longer in the log.
  private func forget(_ commits: [Commit]?, _ count: UInt64?) {
    let interests = listeners.areThere ? listeners.interests : nil
    guard let commits else {
      forgetEverything()
      if interests != nil { noteForeign(.several) { $0.isEverything = true } }
      return
    }
    for commit in commits {
      if let inFlight = pending.inFlight, inFlight.identity == commit.identity {
        // Committed, and seen before the flush has returned. Only the flush knows which values were sealed.
        let number = inFlight.identity.number
        let isKnown = commits.count == 1 && !core.vault.isThere.load(ordering: .relaxed)
        let flushed = isKnown ? FlushedCommit(number: number, count: count) : nil
        settle(through: inFlight.number, commit: flushed, in: number)
        // Pending changes are settled, if only as unknown, and need not be forgotten one by one.
        // Items that followed another name of their setting were not pending.
        if !inFlight.hasMore, !core.hasRenames.load(ordering: .relaxed) { continue }
      }
      let isOwn = commit.identity.map(known.isOwn) ?? false
      let interests = isOwn ? nil : interests
      if commit.isEverything {
        forgetEverything()
        if interests != nil { noteForeign(commit.origin) { $0.isEverything = true } }
        continue
      }
      for (name, change) in commit.collections {
        // Of one that was never used here there is nothing to forget.
        guard let collection = interests == nil ? items.knownCollection(name.string) : items.collection(name.string)
        else { continue }
        if !isOwn { collection.isSealed = nil }
        forget(change, in: collection, name, commit.origin, collection.isHidden == true ? nil : interests)
      }
    }
  }

  /// - Parameter interests: What listeners want to observe of it; nil for nothing.
  private func forget(
    _ change: ChangeSet.CollectionChange, in collection: ProxyCollection, _ name: ByteString, _ origin: ChangeOrigin,
    _ interests: ChangeInterests?
  ) {
    if change.isCleared || change.isUnlisted {
      collection.isComplete = false
      collection.missCount = 0
      items.forEach(of: collection, forget)
      if interests != nil { noteForeign(origin) { $0.whole.insert(name) } }
    }
    for (key, change) in change.keys {
      let isWanted = interests?.include(key, in: name) ?? false
      // A complete collection also has to note keys that were never read: they are no longer known to be absent.
      guard collection.isComplete || isWanted || items.find(key.string, collection.name) != nil else { continue }
      let item = items.item(key, in: collection).object
      if isWanted {
        noteForeign(origin) { $0.add(item, before: item.lastVisible, after: .unknown, kind: change.kind) }
      }
      forget(item)
    }
  }

  private func forget(_ item: ProxyItem) {
    settle(item)
    item.committed = .unknown
    item.update()
  }

  /// Forgets items that a commit of this proxy changed beside its own changes, because they are other names of settings.
  func forgetFollowers(_ places: [SettingPlace]) {
    for place in places {
      let collection = items.collection(place.collection.string)
      guard collection.isComplete || items.find(place.key.string, collection.name) != nil else { continue }
      forget(items.item(place.key, in: collection).object)
    }
  }

  /// Forgets committed values, so that they are reread with the vault unlocked.
  func vaultWasUnlocked() {
    lock.withExclusive { forgetEverything() }
  }

  private func forgetEverything() {
    items.forEachCollection { collection in
      collection.isSealed = nil
      collection.isComplete = false
      collection.missCount = 0
    }
    items.forEach(forget)
  }
}

extension ProxyItem {
  @inline(__always)
  func noteRead() {
    // An unconditional store would take the cache line away from other readers.
    if !wasRead.load(ordering: .relaxed) { wasRead.store(true, ordering: .relaxed) }
  }
}
