import CofferStorage
import Synchronization

/// Which state of the store a proxy knows.
struct KnownState {
  /// The commit for which the items' `committed` is correct; negative before the first read or flush.
  var number: CommitNumber = -1
  /// The newest commit that has turned pending changes into committed ones.
  ///
  /// An older snapshot must no longer be used for committed values: it lacks changes made here.
  var settledNumber: CommitNumber = -1
  /// Our commits that `number` has not reached, oldest first: their changes were reported when they were made.
  private var ownCommits: [CommitIdentity] = []
  /// Whether some commit could not be followed: the log has to be read before the next one is.
  var missesCommits = false
  /// Which of the successive stores at this path it is of.
  var generation = 0
  /// How often the vault had been unlocked when the current read began.
  var unlockCount = 0
  /// The commit counter, kept while it may be read.
  var counter: CommitCounter?

  /// Whether values read in a snapshot may be used as committed ones, as of `number`.
  ///
  /// Not if the vault was locked during the read and is unlocked now: the vault's list of sealed collections was not checked
  /// then.
  func isUsable(_ snapshot: CommitNumber, unlockCount: Int) -> Bool {
    snapshot == number && snapshot >= settledNumber && self.unlockCount == unlockCount
  }

  // MARK: Our commits

  /// The change log has no more.
  private static let maximumOwnCount = Int(ChangeLog.maximumRowCount + ChangeLog.sweepInterval)

  mutating func willCommit(_ commit: CommitIdentity) {
    // A proxy that only writes may never reach them.
    if ownCommits.count >= 2 * Self.maximumOwnCount { ownCommits.removeFirst(ownCommits.count - Self.maximumOwnCount) }
    ownCommits.append(commit)
  }

  /// A commit that was about to be made has failed: it is the newest.
  mutating func didNotCommit(_ commit: CommitIdentity) {
    if let index = ownCommits.lastIndex(of: commit) { ownCommits.remove(at: index) }
  }

  func isOwn(_ commit: CommitIdentity) -> Bool {
    var (start, end) = (0, ownCommits.count)
    while start < end {
      let middle = (start + end) / 2
      if ownCommits[middle].number < commit.number { start = middle + 1 } else { end = middle }
    }
    return start < ownCommits.count && ownCommits[start] == commit
  }

  // MARK: Moving

  /// Everything is known as of a commit.
  mutating func reach(_ number: CommitNumber) {
    self.number = number
    ownCommits.removeAll { $0.number <= number }
  }

  /// The store is another one, or an earlier state of it.
  ///
  /// - Parameter number: The newest commit now; negative if unknown.
  mutating func goBack(to number: CommitNumber) {
    ownCommits = []
    settledNumber = min(settledNumber, number)
  }
}

/// Whether the known state is the newest, for readers without a lock.
///
/// Unchecked: the word is one of the commit counter, which `KnownState` keeps, or of none.
struct CommitCounts: ~Copyable {
  /// Differs from any value of the commit counter.
  nonisolated(unsafe) private static let noCounter = {
    // Never changed; atomic only because the real counters are.
    let word = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: 1)
    word.initialize(to: Atomic(1))
    return word
  }()

  private let word = Atomic<UnsafePointer<Atomic<UInt64>>>(UnsafePointer(noCounter))
  /// The value of the counter at or before the known commit; 0 for none.
  private let known = Atomic<UInt64>(0)

  /// - Parameter counter: Kept by the caller; nil for none.
  func use(_ counter: CommitCounter?) {
    word.store(counter?.word ?? UnsafePointer(Self.noCounter), ordering: .releasing)
  }

  /// Sets the value of the counter at or before the known commit; nil if unknown.
  func know(_ count: UInt64?) { known.store(count ?? 0, ordering: .releasing) }

  @inline(__always)
  var ofKnown: UInt64 { known.load(ordering: .acquiring) }

  /// Whether the known values are the newest; without the lock, this applies to values read between the loads of the two
  /// counts.
  @inline(__always)
  func areCurrent(_ known: UInt64) -> Bool {
    word.load(ordering: .acquiring).pointee.load(ordering: .acquiring) == known
  }
}
