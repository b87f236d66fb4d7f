/// The changes of a proxy that are not committed yet, in batches, and how far the current flush has come.
struct PendingBatches {
  struct Batch {
    let number: UInt64
    /// The collections that are cleared before any of its changes is made.
    var cleared: [ProxyCollection] = []
    /// The items with a change in it; the table keeps them while they have one.
    var items: [Borrowed<ProxyItem>] = []
    /// How many writes of others had been queued when it was opened.
    let queuedWriteCount: UInt64

    var count: Int { cleared.count + items.count }

    /// Passes the items to `body` one by one, without reference counting.
    @inline(__always)
    func forEachItem(_ body: (ProxyItem) -> Void) {
      for item in items { item.withObject(body) }
    }
  }

  /// How far a flush has come; the numbers are those of the life of a change, see `ProxyState`.
  enum FlushPhase {
    /// There is none; every change is open (1), or its flush has failed.
    case none
    /// It has the write lock and its batches (2).
    case taken
    /// It is about to commit (3).
    case inFlight
    /// Its batches are no longer pending (4), and their items are being settled (5).
    case committed
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

  /// The batches, oldest first.
  ///
  /// They stay here, readable, until their commit has returned.
  private(set) var batches: [Batch] = []
  private(set) var lastNumber: UInt64 = 0
  private var isNewestOpen = false
  private(set) var phase = FlushPhase.none
  /// The current flush has taken the batches up to this one; their changes stay pending, and their items in the table.
  private(set) var takenNumber: UInt64 = 0
  /// The commit that a flush is about to make, and its batches.
  ///
  /// `hasMore` says whether it makes other changes too.
  private(set) var inFlight: (identity: CommitIdentity, number: UInt64, hasMore: Bool)?
  /// Committed batches that are not completely settled yet.
  var settling: Settling?
  /// How many writes of others were queued on the connection, and how many of them are known to have ended.
  private var queuedWriteCount: UInt64 = 0
  private var endedWriteCount: UInt64 = 0
  /// Whether no more changes are accepted.
  var isClosed = false
  /// How many calls are closing the proxy, and whether one has succeeded.
  var closing = (callCount: 0, isDone: false)

  var changeCount: Int { batches.reduce(0) { $0 + $1.count } }

  // MARK: Open

  /// Opens a batch, unless the newest one is open.
  mutating func open() {
    guard !isNewestOpen else { return }
    lastNumber += 1
    batches.append(Batch(number: lastNumber, queuedWriteCount: queuedWriteCount))
    isNewestOpen = true
  }

  /// Later changes come after whatever follows.
  mutating func closeNewest() { isNewestOpen = false }

  /// Adds an item to the open batch.
  @inline(__always)
  mutating func add(_ item: Borrowed<ProxyItem>) { batches[batches.count - 1].items.append(item) }

  /// Clears a collection in the open batch, before any change that follows in it.
  mutating func clear(_ collection: ProxyCollection) {
    let (index, number) = (batches.count - 1, lastNumber)
    batches[index].items.removeAll { reference in
      reference.withObject { item in
        guard item.collection === collection else { return false }
        item.removePending { $0 == number }
        return true
      }
    }
    guard collection.clearings.last != number else { return }
    collection.clearings.append(number)
    batches[index].cleared.append(collection)
  }

  /// The batches that no flush has taken.
  var untaken: [Batch] { batches.filter { $0.number > takenNumber } }

  /// Drops an item from the batches that no flush has taken, and batches that are empty then.
  mutating func drop(_ item: ProxyItem) {
    for index in batches.indices where batches[index].number > takenNumber {
      batches[index].items.removeAll { $0.refers(to: item) }
    }
    dropUntaken { $0.count == 0 }
  }

  /// Drops batches that no flush has taken; their flushes will find nothing to do.
  mutating func dropUntaken(_ isDropped: (Batch) -> Bool = { _ in true }) {
    batches.removeAll { $0.number > takenNumber && isDropped($0) }
    if batches.last?.number != lastNumber { isNewestOpen = false }
  }

  /// A write of others is queued behind the batches so far.
  mutating func queueOtherWrite() {
    closeNewest()
    queuedWriteCount += 1
  }

  /// Whether a write queued before may still commit another value.
  var areOtherWritesQueued: Bool { queuedWriteCount != endedWriteCount }

  // MARK: A flush

  private mutating func advance(to next: FlushPhase) {
    switch (phase, next) {
    // A listener that is notified of a commit may write, and so flush, before its items are settled.
    case (.none, .taken), (.committed, .taken), (.taken, .inFlight): break
    // Without an effect, there is no commit. A reader that has found the commit has settled it already.
    case (.taken, .committed), (.inFlight, .committed), (.committed, .committed): break
    case (_, .none): break
    default: assertionFailure("a flush cannot be \(next) after \(phase)")
    }
    phase = next
  }

  /// Takes the batches up to `number` for a flush that has the write lock.
  mutating func take(through number: UInt64) -> [Batch] {
    advance(to: .taken)
    takenNumber = number
    if batches.last.map({ $0.number <= number }) ?? false { closeNewest() }
    return Array(batches.prefix { $0.number <= number })
  }

  mutating func markInFlight(_ identity: CommitIdentity, through number: UInt64, hasMore: Bool) {
    assert(number == takenNumber, "a flush commits what it has taken")
    advance(to: .inFlight)
    inFlight = (identity, number, hasMore)
  }

  /// Removes the batches up to `number`, which are committed now.
  mutating func removeCommitted(through number: UInt64) -> [Batch] {
    advance(to: .committed)
    inFlight = nil
    let committed = Array(batches.prefix { $0.number <= number })
    batches.removeFirst(committed.count)
    if let newest = committed.last { endedWriteCount = max(endedWriteCount, newest.queuedWriteCount) }
    return committed
  }

  /// Ends a flush; what it had taken without committing it may be discarded again.
  ///
  /// - Returns: The commit that it was about to make, if it failed.
  mutating func endFlush() -> CommitIdentity? {
    defer {
      inFlight = nil
      takenNumber = 0
    }
    advance(to: .none)
    return inFlight?.identity
  }
}
