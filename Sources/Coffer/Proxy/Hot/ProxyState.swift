import CofferCrypto
import CofferStorage
import Synchronization

/// What a proxy has in memory: of every item it has met, what is committed, what is pending, and so what shows.
///
/// # A change on its way
///
/// 1. **Open.** A `set` adds its change to the newest batch, and shows at once. The first change of a batch queues its flush.
/// 2. **Taken.** The flush has the write lock and takes every batch up to its own. From now on they cannot be reset; the
///    next `set` opens another batch. An error puts them back to 1.
/// 3. **In flight.** The flush is about to commit, and knows its identity. A reader that finds this commit in the change log
///    before the flush has heard of it settles the batches itself.
/// 4. **Committed.** The commit has returned: the batches are pending no more. Their items still have the changes, and show
///    them; by the number of its batch an item is known to be one that has to be settled, which comes before anything else
///    that changes what is known of it.
/// 5. **Settled.** The flush goes through the items, some at a time: the changes are what is committed. Where somebody else
///    has committed in between, what is committed counts as unknown, and the next read asks the store. Until the last one is
///    settled, no item is let go of.
///
/// # What is current
///
/// What is committed is known as of one commit, `sequence`. A counter in the wal-index, which every commit of every process
/// moves, says by one load whether that is still the newest. If not, the change log says which keys changed since, and those
/// are forgotten.
///
/// # What is protected by what
///
/// - `lock`, shared: reads of what is in memory. Exclusive: every change of a property, in steps of a few hundred items.
/// - The reader's queue: one `readCommitted` at a time. What it changes, it changes with the lock, too.
/// - Nothing: the counter of commits, `knownCount`, and the numbers in `Scalar`, which are atomic. A read without the lock
///   loads the known count first, then the number, then the counter: an equal counter proves that the number was current.
///
/// No code of the user's runs with the lock held.
///
/// Unchecked: all that is neither atomic nor constant is protected as above. For what each `set`, read or flush
/// touches, the runtime does not look for accesses that overlap: that was a fifth of a `set`.
final class ProxyState: @unchecked Sendable {
  let lock = ReadersWriterLock()
  /// Reads what is committed; nobody else uses it, so no transaction and no long-lived read stands in its way.
  let reader: Connection
  let core: DatabaseCore
  /// Hands a measurement to whoever counts.
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

  /// The item of a key, made where it is missing; the table keeps it until the next sweep.
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

  // MARK: What is committed

  /// The commit as of which `committed` is true of the items; negative before the first read or flush.
  @exclusivity(unchecked) var sequence: Int64 = -1
  /// The newest commit that has made pending changes committed ones.
  ///
  /// Of an older snapshot, nothing may be taken for committed any more: it lacks what was set here.
  @exclusivity(unchecked) var settledSequence: Int64 = -1

  /// Whether what was read in a snapshot may be taken for what is committed, as of `sequence`.
  ///
  /// Not what was read with the vault locked, when it is unlocked now: nobody asked the vault's list of what is sealed.
  func isUsable(_ snapshot: Int64) -> Bool {
    snapshot == sequence && snapshot >= settledSequence
      && readUnlockCount == core.vault.unlockCount.load(ordering: .acquiring)
  }

  /// How often the vault had been unlocked when the read that is under way began.
  var readUnlockCount = 0

  /// Of which of the stores that followed each other under one name what is known was read.
  var generation = 0

  /// Kept as long as somebody may read it.
  ///
  /// Changed with the lock held and on the reader's queue, and so read with either.
  var counter: CommitCounter? {
    didSet { counterWord.store(counter?.word ?? UnsafePointer(Self.noCounter), ordering: .releasing) }
  }

  /// Never equal to what the counter of commits showed.
  nonisolated(unsafe) private static let noCounter = {
    // Never changed: an atomic only because the real ones are.
    let word = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: 1)
    word.initialize(to: Atomic(1))
    return word
  }()

  private let counterWord = Atomic<UnsafePointer<Atomic<UInt64>>>(UnsafePointer(noCounter))
  /// What the counter showed at or before `sequence`; 0 for nothing.
  private let knownCount = Atomic<UInt64>(0)

  /// Whether what is known is the newest; without the lock, what was read between the two counts for the first.
  @inline(__always)
  func isCurrent(_ knownCount: UInt64) -> Bool {
    counterWord.load(ordering: .acquiring).pointee.load(ordering: .acquiring) == knownCount
  }

  @inline(__always)
  var countOfKnown: UInt64 { knownCount.load(ordering: .acquiring) }

  @inline(__always)
  var isCurrent: Bool { isCurrent(countOfKnown) }

  func setKnown(sequence: Int64, count: UInt64?) {
    self.sequence = sequence
    knownCount.store(isClosed ? 0 : count ?? 0, ordering: .releasing)
    ownCommits.removeAll { $0.sequence <= sequence }
  }

  // MARK: Pending changes

  struct Batch {
    let number: UInt64
    /// The collections that are cleared before any of its changes is made.
    var cleared: [ProxyCollection] = []
    /// The items with a change in it; as long as they have one, the table keeps them.
    var items: [Borrowed<ProxyItem>] = []
    /// How many writes of others had been queued when it was opened.
    let queuedWriteCount: UInt64

    var count: Int { cleared.count + items.count }

    /// Lends the items to `body` one by one, without counting references to them.
    @inline(__always)
    func forEachItem(_ body: (ProxyItem) -> Void) {
      for item in items { item.withObject(body) }
    }
  }

  /// Oldest first.
  ///
  /// They stay here, readable, until their commit has returned.
  @exclusivity(unchecked) var batches: [Batch] = []
  @exclusivity(unchecked) var isNewestOpen = false
  @exclusivity(unchecked) var lastNumber: UInt64 = 0
  /// The flush that is under way has taken the batches up to this one; what they change stays pending, and so in the table.
  @exclusivity(unchecked) var takenNumber: UInt64 = 0
  @exclusivity(unchecked) var isClosed = false {
    didSet { if isClosed { knownCount.store(0, ordering: .releasing) } }
  }
  /// How many calls are about to close it, and whether one has.
  var closing = (callCount: 0, isDone: false)
  /// The commit that a flush is about to make, and the batches that go with it.
  ///
  /// `hasMore` says whether it changes something beside them.
  @exclusivity(unchecked) var inFlight: (identity: CommitIdentity, number: UInt64, hasMore: Bool)?
  /// What is committed and not settled yet, item by item.
  @exclusivity(unchecked) var settling: Settling?
  /// Commits of ours that `sequence` has not reached: their changes were announced when they were made.
  @exclusivity(unchecked) var ownCommits: [CommitIdentity] = []
  /// How many writes of others were queued on the connection, and how many of them are known to have ended.
  @exclusivity(unchecked) var queuedWriteCount: UInt64 = 0
  @exclusivity(unchecked) var endedWriteCount: UInt64 = 0
  /// Which collections show what is committed; nil for all.
  var fetchFilter: CollectionFilter?
  /// How often it was set.
  var fetchFilterCount = 0
  /// Which collections take changes; nil for all.
  var writeFilter: CollectionFilter? {
    didSet { hasWriteFilter.store(writeFilter != nil, ordering: .releasing) }
  }
  /// Readable without the lock.
  let hasWriteFilter = Atomic<Bool>(false)

  var changeCount: Int { batches.reduce(0) { $0 + $1.count } }

  /// Runs between a flush's commit and the moment when the proxy hears of it; for tests.
  var onCommit: (() -> Void)?

  /// Runs when a flush's changes count as committed, before it settles them; for tests.
  var onSettling: (() -> Void)?

  /// Runs when closing has failed, before changes are taken again; for tests.
  var onCloseFailure: (() -> Void)?

  // MARK: Size

  /// How much of what is committed is kept, in bytes.
  var cacheByteLimit: Int {
    didSet { vainSlotCount = 0 }
  }
  var cacheByteCount = 0
  /// How many slots were looked at since something was let go of, a flush has settled, or the limit was set.
  @exclusivity(unchecked) var vainSlotCount = 0

  // MARK: Who listens

  let listeners = ChangeListeners()
  /// What listeners have not been told yet.
  var unannounced: [ChangeListeners.Batch] = []
}
