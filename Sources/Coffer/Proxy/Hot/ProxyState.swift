import CofferCrypto
import CofferStorage
import Synchronization

/// The memory of a proxy: for every item it has met, the committed value, the pending changes, and the visible result.
///
/// Its parts are the items (`ItemTable`), the changes to come (`PendingBatches`), what is known of the store (`KnownState`) and
/// what listeners have yet to hear (`Announcer`). What concerns several of them is in the extensions of this type.
///
/// # The life of a change
///
/// 1. **Open.** A `set` adds its change to the newest batch, and it is visible at once. The first change of a batch queues
///    its flush.
/// 2. **Taken.** The flush has the write lock and takes every batch up to its own. From now on they cannot be discarded; the
///    next `set` opens another batch. An error returns them to 1.
/// 3. **In flight.** The flush is about to commit, and knows the identity of its commit. A reader that finds this commit in
///    the change log before the flush has returned settles the batches itself.
/// 4. **Committed.** The commit has returned, and the batches are no longer pending. Their items still hold the changes, and
///    show them. The number of its batch marks an item as unsettled; it has to be settled before anything else changes what
///    is known of it.
/// 5. **Settled.** The flush visits the items, some at a time: the changes become the committed values. If others have
///    committed in between, the committed values become unknown, and the next read asks the store. No item is evicted until
///    the last one is settled.
///
/// `PendingBatches.FlushPhase` names these steps for a flush, and asserts that they follow each other.
///
/// # What is current
///
/// The committed values are known as of one commit, `known.number`. A counter in the wal-index, which every commit of every
/// process changes, shows with one load whether that is still the newest. If not, the change log lists the keys changed
/// since, and these are forgotten.
///
/// # What protects what
///
/// - `lock`, shared: reads of memory. Exclusive: every change of a property. A flush takes steps of a few hundred items;
///   clearing a collection, a filter and a commit that cannot be followed key by key pass over all items at once.
/// - The reader's queue: one `readCommitted` at a time. Its changes also take the lock.
/// - Atomics, without a lock: `counts`, and the numbers in `Scalar`. A read without the lock loads the known count first, then
///   the number, then the counter: if the counts are equal, the number was current.
///
/// No user code runs with the lock held.
///
/// Unchecked: everything that is neither atomic nor constant is protected as above. For the properties that each `set`, read
/// or flush uses, the runtime does not check for overlapping accesses: that was a fifth of a `set`.
final class ProxyState: @unchecked Sendable {
  let lock = ReadersWriterLock()
  /// Reads committed values; used by nothing else, so no transaction or long-lived read can block it.
  let reader: Connection
  let core: DatabaseCore

  let items: ItemTable
  @exclusivity(unchecked) var pending = PendingBatches()
  @exclusivity(unchecked) var known = KnownState()
  let counts = CommitCounts()
  @exclusivity(unchecked) var announcer = Announcer()
  /// Constant, and not in `announcer`: each `set` asks whether there are any, without counting a reference.
  let listeners = ChangeListeners()
  var filters = ProxyFilters()
  /// Whether there is a filter for writes; can be read without the lock.
  let hasWriteFilter = Atomic<Bool>(false)
  /// For tests.
  var hooks = FlushHooks()

  init(reader: Connection, cacheByteLimit: Int) {
    self.reader = reader
    core = reader.database.core
    items = ItemTable(byteLimit: cacheByteLimit, clock: core.clock)
  }

  /// Passes a measurement to the meter, if any.
  @inline(__always)
  func record(_ measurement: @autoclosure () -> DatabaseMeasurement) {
    if core.isMetered { core.options.meter?.record(measurement()) }
  }

  // MARK: What is known

  @inline(__always)
  var isCurrent: Bool { counts.areCurrent(counts.ofKnown) }

  /// Whether values read in a snapshot may be used as committed ones; see `KnownState`.
  func isUsable(_ snapshot: CommitNumber) -> Bool {
    known.isUsable(snapshot, unlockCount: core.vault.unlockCount.load(ordering: .acquiring))
  }

  /// - Parameter count: The value of the commit counter at or before the commit; nil if unknown.
  func setKnown(number: CommitNumber, count: UInt64?) {
    known.reach(number)
    counts.know(pending.isClosed ? nil : count)
  }

  func setCounter(_ counter: CommitCounter?) {
    known.counter = counter
    counts.use(counter)
  }

  /// Accepts no more changes, and lets no read be answered from memory; or accepts them again.
  func setClosed(_ isClosed: Bool) {
    pending.isClosed = isClosed
    if isClosed { counts.know(nil) }
  }

  // MARK: Size

  /// Evicts items that were not read since the last sweep, until the cache is within its limit.
  ///
  /// It works in steps, between which others can take the lock: evicting thousands of items takes milliseconds. Call it
  /// without the lock.
  ///
  /// - Parameter stepCount: The maximum number of steps; a reader need not evict what others have added.
  func sweep(stepCount: Int = .max) {
    var leftovers = ItemTable.Leftovers()
    for _ in 0..<stepCount {
      let isMore = lock.withExclusive { sweepSome(into: &leftovers) }
      leftovers.free()
      guard isMore else { return }
    }
  }

  /// One step; see `ItemTable`.
  ///
  /// - Returns: Whether there is more to do.
  func sweepSome(into leftovers: inout ItemTable.Leftovers) -> Bool {
    // Unsettled batches refer to items without keeping them; the flush calls this when it has settled them.
    pending.settling == nil && items.sweepSome(into: &leftovers)
  }
}

/// What tests run in the middle of a flush.
struct FlushHooks {
  /// Between the commit of a flush and the moment when the proxy learns of it.
  var onCommit: (() -> Void)?
  /// When the changes of a flush count as committed, before it settles them.
  var onSettling: (() -> Void)?
  /// When closing has failed, before changes are accepted again.
  var onCloseFailure: (() -> Void)?
}
