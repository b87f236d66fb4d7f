import CofferCrypto
import CofferStorage
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A lock for data that many threads read all the time, and one changes now and then.
///
/// Readers count themselves in stripes, each on its own cache line, so that readers on different cores never wait for each
/// other, not even for a cache line. A writer sets a flag and waits until no reader is counted; a reader that finds the flag
/// after counting itself uncounts itself, and counts itself again in its turn among the writers: then the next one waits for it,
/// even if one comes after another, as in a flush. Reads must be short and must not wait for anything, not even for a nested
/// read, because a writer spins until they are done.
///
/// This is Dekker's pattern: each side writes its own word, then reads the other's, all sequentially consistent, so that one
/// of the two sees the other. If a thread has a stripe to itself, counting takes one store with a barrier on entry and a
/// plain one on exit; threads that share a stripe need an atomic addition for each.
///
/// Unchecked: the stripes are atomic, and allocated for the lifetime of the lock.
struct ReadersWriterLock: ~Copyable, @unchecked Sendable {
  private typealias Stripe = Atomic<UInt32>

  /// Two cache lines: processors fetch them in pairs.
  private static let stride = 128 / MemoryLayout<Stripe>.stride

  /// One stripe for each thread number.
  private let stripes: UnsafeMutablePointer<Stripe>
  private let key = ThreadNumber.key
  private let isChanging = Atomic<Bool>(false)
  /// Not `Lock<Void>`: the thread sanitizer mistakes access to a value without a size for access to what lies behind it.
  private let writers = Lock(false)

  init() {
    stripes = UnsafeMutableRawPointer.allocate(byteCount: 128 * ThreadNumber.all.count, alignment: 128)
      .bindMemory(to: Stripe.self, capacity: Self.stride * ThreadNumber.all.count)
    for number in ThreadNumber.all { stripe(number).initialize(to: Stripe(0)) }
  }

  deinit {
    stripes.deallocate()
  }

  @inline(__always)
  private func stripe(_ number: Int) -> UnsafeMutablePointer<Stripe> { stripes + number * Self.stride }

  @inline(__always)
  func withShared<Result>(_ body: () throws -> Result) rethrows -> Result {
    let number = ThreadNumber.current(key)
    let stripe = stripe(number)
    let isOwned = ThreadNumber.owned.contains(number)
    enter(stripe, isOwned)
    if isChanging.load(ordering: .sequentiallyConsistent) {
      leave(stripe, isOwned)
      enterInTurn(stripe, isOwned)
    }
    defer { leave(stripe, isOwned) }
    return try body()
  }

  @inline(__always)
  private func enter(_ stripe: UnsafeMutablePointer<Stripe>, _ isOwned: Bool) {
    if isOwned {
      assert(stripe.pointee.load(ordering: .relaxed) == 0, "a read lock is held already")
      stripe.pointee.store(1, ordering: .sequentiallyConsistent)
    } else {
      stripe.pointee.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }
  }

  @inline(__always)
  private func leave(_ stripe: UnsafeMutablePointer<Stripe>, _ isOwned: Bool) {
    if isOwned {
      stripe.pointee.store(0, ordering: .releasing)
    } else {
      stripe.pointee.wrappingSubtract(1, ordering: .releasing)
    }
  }

  @inline(never)
  private func enterInTurn(_ stripe: UnsafeMutablePointer<Stripe>, _ isOwned: Bool) {
    writers.withLock { _ in enter(stripe, isOwned) }
  }

  @inline(__always)
  func withExclusive<Result>(_ body: () throws -> Result) rethrows -> Result {
    try writers.withLock { _ in
      isChanging.store(true, ordering: .sequentiallyConsistent)
      defer { isChanging.store(false, ordering: .releasing) }
      // A thread that gets its number after this load finds the flag.
      var owned = ThreadNumber.taken.load(ordering: .sequentiallyConsistent)
      while owned != 0 {
        waitForReaders(stripe(owned.trailingZeroBitCount))
        owned &= owned - 1
      }
      if ThreadNumber.sharingCount.load(ordering: .sequentiallyConsistent) != 0 {
        for number in ThreadNumber.shared { waitForReaders(stripe(number)) }
      }
      return try body()
    }
  }

  @inline(__always)
  private func waitForReaders(_ stripe: UnsafeMutablePointer<Stripe>) {
    var spinCount = 0
    while stripe.pointee.load(ordering: .sequentiallyConsistent) != 0 {
      spinCount += 1
      // A reader was preempted.
      if spinCount > 100 { sched_yield() }
    }
  }
}

/// Numbers the reading threads of this process.
private enum ThreadNumber {
  /// Numbers that belong to one living thread at a time.
  static let owned = 0..<16
  /// Numbers that the other threads share.
  static let shared = 16..<24
  static let all = owned.lowerBound..<shared.upperBound

  /// A bit for each number that belongs to a thread.
  static let taken = Atomic<UInt32>(0)
  /// How many threads have ever got a shared number.
  static let sharingCount = Atomic<Int>(0)

  static let key: pthread_key_t = {
    var key = pthread_key_t()
    // When a thread ends, its number becomes free.
    let code = pthread_key_create(&key) { value in
      let number = Int(bitPattern: value) - 1
      if owned.contains(number) { taken.bitwiseAnd(~(1 << UInt32(number)), ordering: .releasing) }
    }
    // Another key's value would hold another key's pointers.
    precondition(code == 0, "no thread-specific data key is left in this process: \(code)")
    return key
  }()

  @inline(__always)
  static func current(_ key: pthread_key_t) -> Int {
    // Zero means that there is none yet.
    let value = Int(bitPattern: pthread_getspecific(key))
    return value != 0 ? value - 1 : assign(key)
  }

  @inline(never)
  private static func assign(_ key: pthread_key_t) -> Int {
    let number =
      takeOwned()
      ?? shared.lowerBound + sharingCount.add(1, ordering: .sequentiallyConsistent).oldValue % shared.count
    pthread_setspecific(key, UnsafeRawPointer(bitPattern: number + 1))
    return number
  }

  private static func takeOwned() -> Int? {
    var taken = taken.load(ordering: .relaxed)
    while true {
      let number = (~taken).trailingZeroBitCount
      guard owned.contains(number) else { return nil }
      let (isDone, found) = Self.taken.compareExchange(
        expected: taken, desired: taken | 1 << UInt32(number), ordering: .sequentiallyConsistent)
      if isDone { return number }
      taken = found
    }
  }
}
