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

/// A lock for what many threads read all the time and one changes now and then.
///
/// It lies in stripes, each on a cache line of its own. A reader takes the stripe of its thread, so readers on different
/// cores never wait for each other, not even for a cache line; whoever changes something takes all stripes. Readers must
/// be short and wait for nothing, because a change spins until they are done.
///
/// Unchecked: the stripes are atomic, and allocated as long as the lock lives.
struct ReadersWriterLock: ~Copyable, @unchecked Sendable {
  private typealias Stripe = Atomic<UInt32>

  /// In a stripe: somebody changes what is protected.
  ///
  /// The other bits count the readers.
  private static let changing: UInt32 = 1 << 31
  /// Two cache lines: processors fetch them in pairs.
  private static let stride = 128 / MemoryLayout<Stripe>.stride

  private let stripes: UnsafeMutablePointer<Stripe>
  private let stripeCount: Int
  private let key = ThreadNumber.key
  /// Not of nothing: the thread sanitizer takes access to a value without a size for access to what lies behind it.
  private let writers = Lock(false)

  /// One for each processor, up to 16; the C library opens and reads a file of the system each time it is asked.
  private static let usualStripeCount: Int = {
    let processorCount = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    var count = 1
    while count < min(processorCount, 16) { count *= 2 }
    return count
  }()

  init() {
    let count = Self.usualStripeCount
    stripeCount = count
    stripes = UnsafeMutableRawPointer.allocate(byteCount: 128 * count, alignment: 128)
      .bindMemory(to: Stripe.self, capacity: Self.stride * count)
    for index in 0..<count { (stripes + index * Self.stride).initialize(to: Stripe(0)) }
  }

  deinit {
    stripes.deallocate()
  }

  @inline(__always)
  func withShared<Result>(_ body: () throws -> Result) rethrows -> Result {
    let stripe = stripes + (ThreadNumber.current(key) & (stripeCount - 1)) * Self.stride
    while stripe.pointee.add(1, ordering: .acquiring).oldValue & Self.changing != 0 {
      wait(stripe)
    }
    defer { stripe.pointee.subtract(1, ordering: .releasing) }
    return try body()
  }

  /// Takes a reader back, and waits for the change that is under way.
  @inline(never)
  private func wait(_ stripe: UnsafeMutablePointer<Stripe>) {
    stripe.pointee.subtract(1, ordering: .relaxed)
    writers.withLock { _ in }
  }

  @inline(__always)
  func withExclusive<Result>(_ body: () throws -> Result) rethrows -> Result {
    try writers.withLock { _ in
      for index in 0..<stripeCount {
        (stripes + index * Self.stride).pointee.bitwiseOr(Self.changing, ordering: .acquiring)
      }
      defer {
        for index in 0..<stripeCount {
          (stripes + index * Self.stride).pointee.bitwiseAnd(~Self.changing, ordering: .releasing)
        }
      }
      for index in 0..<stripeCount {
        var spinCount = 0
        while (stripes + index * Self.stride).pointee.load(ordering: .acquiring) != Self.changing {
          spinCount += 1
          // A reader that was interrupted.
          if spinCount > 100 { sched_yield() }
        }
      }
      return try body()
    }
  }
}

/// Numbers the threads of this process as they come, so that neighbours get different stripes.
private enum ThreadNumber {
  static let key: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key, nil)
    return key
  }()

  private static let count = Atomic<Int>(0)

  @inline(__always)
  static func current(_ key: pthread_key_t) -> Int {
    let number = Int(bitPattern: pthread_getspecific(key))
    return number != 0 ? number : assign(key)
  }

  @inline(never)
  private static func assign(_ key: pthread_key_t) -> Int {
    let number = count.add(1, ordering: .relaxed).newValue
    pthread_setspecific(key, UnsafeRawPointer(bitPattern: number))
    return number
  }
}
