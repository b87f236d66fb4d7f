import CofferCrypto
import CofferStorage
import Synchronization

/// The memory of a proxy: for every item it has met, the committed value, the pending changes, and the visible result.
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
/// # What is current
///
/// The committed values are known as of one commit, `knownNumber`. A counter in the wal-index, which every commit of every
/// process changes, shows with one load whether that is still the newest. If not, the change log lists the keys changed
/// since, and these are forgotten.
///
/// # What protects what
///
/// - `lock`, shared: reads of memory. Exclusive: every change of a property, in steps of a few hundred items.
/// - The reader's queue: one `readCommitted` at a time. Its changes also take the lock.
/// - Atomics, without a lock: the commit counter, `knownCount`, and the numbers in `Scalar`. A read without the lock loads
///   the known count first, then the number, then the counter: if the counts are equal, the number was current.
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
  /// Passes a measurement to the meter, if any.
  @inline(__always)
  func record(_ measurement: @autoclosure () -> DatabaseMeasurement) {
    if core.isMetered { core.options.meter?.record(measurement()) }
  }

  init(reader: Connection, cacheByteLimit: Int) {
    self.reader = reader
    core = reader.database.core
    self.cacheByteLimit = cacheByteLimit
  }

  // MARK: Items

  /// The items by collection and key; behind a pointer, so that the search for one is inlined.
  let table = {
    let table = UnsafeMutablePointer<HashTable<ProxyItem>>.allocate(capacity: 1)
    table.initialize(to: HashTable())
    return table
  }()

  deinit {
    table.deinitialize(count: 1)
    table.deallocate()
  }

  @exclusivity(unchecked) private var collections = HashTable<ProxyCollection>()
  private let seed = UInt64.random(in: .min ... .max)

  /// The item of a key, if there is one.
  @inline(__always)
  func find(_ key: String, _ collection: String) -> Borrowed<ProxyItem>? {
    key.withUTF8Bytes { key in
      collection.withUTF8Bytes { name in
        let nameHash = KeyHash.hash(name, seed: seed)
        return table.pointee.find(KeyHash.hash(key, seed: nameHash)) { $0.matches(key, in: name, nameHash) }
      }
    }
  }

  /// The collection of this name, if the proxy has met it.
  func knownCollection(_ name: String) -> ProxyCollection? {
    name.withUTF8Bytes { name in
      collections.find(KeyHash.hash(name, seed: seed)) { $0.matches(name) }?.object
    }
  }

  func collection(_ name: String) -> ProxyCollection {
    if let collection = knownCollection(name) { return collection }
    let collection = ProxyCollection(
      ByteString(name), hash: name.withUTF8Bytes { KeyHash.hash($0, seed: seed) }, clock: core.clock)
    if fetchFilter == nil { collection.isHidden = false }
    collections.insert(collection, hash: collection.hash)
    return collection
  }

  func forEachCollection(_ body: (ProxyCollection) -> Void) {
    collections.forEach(body)
  }

  /// The item of a key, created if missing; the table keeps it until the next sweep.
  @inline(__always)
  func item(_ key: String, in name: String) -> Borrowed<ProxyItem> {
    find(key, name) ?? makeItem(ByteString(key), in: collection(name))
  }

  func item(_ key: ByteString, in collection: ProxyCollection) -> Borrowed<ProxyItem> {
    find(key.string, collection.name) ?? makeItem(key, in: collection)
  }

  @inline(never)
  private func makeItem(_ key: ByteString, in collection: ProxyCollection) -> Borrowed<ProxyItem> {
    let hash = key.string.withUTF8Bytes { KeyHash.hash($0, seed: collection.hash) }
    let item = ProxyItem(key, in: collection, committed: collection.isComplete ? .absent : .unknown)
    table.pointee.insert(item, hash: hash)
    charge(item)
    item.update()
    return Borrowed(item)
  }

  var itemCount: Int { table.pointee.count }

  func forEachItem(_ body: (ProxyItem) -> Void) {
    table.pointee.forEach(body)
  }

  func forEachItem(of collection: ProxyCollection, _ body: (ProxyItem) -> Void) {
    table.pointee.forEach { if $0.collection === collection { body($0) } }
  }

  // MARK: Committed values

  /// The commit for which the items' `committed` is correct; negative before the first read or flush.
  @exclusivity(unchecked) var knownNumber: CommitNumber = -1
  /// The newest commit that has turned pending changes into committed ones.
  ///
  /// An older snapshot must no longer be used for committed values: it lacks changes made here.
  @exclusivity(unchecked) var settledNumber: CommitNumber = -1

  /// Whether values read in a snapshot may be used as committed ones, as of `knownNumber`.
  ///
  /// Not if the vault was locked during the read and is unlocked now: the vault's list of sealed collections was not checked
  /// then.
  func isUsable(_ snapshot: CommitNumber) -> Bool {
    snapshot == knownNumber && snapshot >= settledNumber
      && readUnlockCount == core.vault.unlockCount.load(ordering: .acquiring)
  }

  /// How often the vault had been unlocked when the current read began.
  var readUnlockCount = 0

  /// Which of the successive stores at this path the known values were read from.
  var generation = 0

  /// The commit counter, kept while it may be read.
  ///
  /// Changed with the lock held and on the reader's queue, so either allows reading it.
  var counter: CommitCounter? {
    didSet { counterWord.store(counter?.word ?? UnsafePointer(Self.noCounter), ordering: .releasing) }
  }

  /// Differs from any value of the commit counter.
  nonisolated(unsafe) private static let noCounter = {
    // Never changed; atomic only because the real counters are.
    let word = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: 1)
    word.initialize(to: Atomic(1))
    return word
  }()

  private let counterWord = Atomic<UnsafePointer<Atomic<UInt64>>>(UnsafePointer(noCounter))
  /// The value of the counter at or before `knownNumber`; 0 for none.
  private let knownCount = Atomic<UInt64>(0)

  /// Whether the known values are the newest; without the lock, this applies to values read between the loads of the two
  /// counts.
  @inline(__always)
  func isCurrent(_ knownCount: UInt64) -> Bool {
    counterWord.load(ordering: .acquiring).pointee.load(ordering: .acquiring) == knownCount
  }

  @inline(__always)
  var countOfKnown: UInt64 { knownCount.load(ordering: .acquiring) }

  @inline(__always)
  var isCurrent: Bool { isCurrent(countOfKnown) }

  func setKnown(number: CommitNumber, count: UInt64?) {
    knownNumber = number
    knownCount.store(isClosed ? 0 : count ?? 0, ordering: .releasing)
    ownCommits.removeAll { $0.number <= number }
  }

  // MARK: Pending changes

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

  /// The batches, oldest first.
  ///
  /// They stay here, readable, until their commit has returned.
  @exclusivity(unchecked) var batches: [Batch] = []
  @exclusivity(unchecked) var isNewestOpen = false
  @exclusivity(unchecked) var lastNumber: UInt64 = 0
  /// The current flush has taken the batches up to this one; their changes stay pending, and their items in the table.
  @exclusivity(unchecked) var takenNumber: UInt64 = 0
  @exclusivity(unchecked) var isClosed = false {
    didSet { if isClosed { knownCount.store(0, ordering: .releasing) } }
  }
  /// How many calls are closing it, and whether one has succeeded.
  var closing = (callCount: 0, isDone: false)
  /// The commit that a flush is about to make, and its batches.
  ///
  /// `hasMore` says whether it makes other changes too.
  @exclusivity(unchecked) var inFlight: (identity: CommitIdentity, number: UInt64, hasMore: Bool)?
  /// Committed batches that are not completely settled yet.
  @exclusivity(unchecked) var settling: Settling?
  /// Our commits that `knownNumber` has not reached: their changes were reported when they were made.
  @exclusivity(unchecked) var ownCommits: [CommitIdentity] = []
  /// How many writes of others were queued on the connection, and how many of them are known to have ended.
  @exclusivity(unchecked) var queuedWriteCount: UInt64 = 0
  @exclusivity(unchecked) var endedWriteCount: UInt64 = 0
  /// The collections whose committed values are visible; nil for all.
  var fetchFilter: CollectionFilter?
  /// How often the filter was set.
  var fetchFilterCount = 0
  /// The collections that may be written; nil for all.
  var writeFilter: CollectionFilter? {
    didSet { hasWriteFilter.store(writeFilter != nil, ordering: .releasing) }
  }
  /// Can be read without the lock.
  let hasWriteFilter = Atomic<Bool>(false)

  var changeCount: Int { batches.reduce(0) { $0 + $1.count } }

  /// Runs between the commit of a flush and the moment when the proxy learns of it; for tests.
  var onCommit: (() -> Void)?

  /// Runs when the changes of a flush count as committed, before it settles them; for tests.
  var onSettling: (() -> Void)?

  /// Runs when closing has failed, before changes are accepted again; for tests.
  var onCloseFailure: (() -> Void)?

  // MARK: Size

  /// The limit on cached committed data, in bytes.
  var cacheByteLimit: Int {
    didSet { vainSlotCount = 0 }
  }
  var cacheByteCount = 0
  /// How many slots were examined since an item was last evicted, a flush last settled, or the limit was set.
  @exclusivity(unchecked) var vainSlotCount = 0

  // MARK: Listeners

  let listeners = ChangeListeners()
  /// Changes of others that listeners want to observe, until they are announced, with the values that they have left.
  var foreign: ChangeListeners.Batch?
  /// Whether some commit could not be followed: the log has to be read before the next one is.
  var missesCommits = false
  /// Events not yet passed to listeners.
  var unannounced: [ChangeListeners.Batch] = []
}
