import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A number that identifies this process and differs in a forked child.
///
/// Code that keeps state which must not be used on both sides of a `fork`, such as buffered random bytes, stores the
/// number and compares. Numbers count generations: a child's is greater than all numbers of its ancestors before the
/// fork. Two children of one process may have the same.
///
/// The number is on a page that the kernel clears in a child (`MADV_WIPEONFORK`, Linux 4.14), also after a bare
/// `clone` system call. Where that is missing, as on Darwin, `pthread_atfork(3)` clears it.
public enum ProcessToken {
  /// The number of this process: never zero, and the same for the life of the process.
  ///
  /// Safe on any thread; one load, except for the first time in a process.
  public static var current: UInt64 {
    let number = page.number.pointee.load(ordering: .relaxed)
    return number != 0 ? number : assign()
  }

  private struct Page {
    let number: UnsafeMutablePointer<Atomic<UInt64>>
    let isEmptiedByKernel: Bool
  }

  // Unsafe only because it holds a pointer: never changed nor freed, and what it points at is atomic.
  nonisolated(unsafe) private static let page = makePage()

  /// The last number given out here or in an ancestor; ordinary memory, which a child inherits.
  private static let generation = Atomic<UInt64>(0)

  /// Registers a handler that clears the page in a child where the kernel does not; the value only records that.
  private static let isWatched: Bool = {
    if page.isEmptiedByKernel { return true }
    // A closure that captures nothing and only stores: after a fork, a child of a multithreaded process can do little
    // else.
    return pthread_atfork(nil, nil, { ProcessToken.page.number.pointee.store(0, ordering: .relaxed) }) == 0
  }()

  private static func assign() -> UInt64 {
    precondition(isWatched, "pthread_atfork failed: without it a forked process would repeat nonces.")
    let number = generation.wrappingAdd(1, ordering: .relaxed).newValue
    // If another thread was faster, its number wins.
    let (exchanged, original) = page.number.pointee.compareExchange(expected: 0, desired: number, ordering: .relaxed)
    return exchanged ? number : original
  }

  private static func makePage() -> Page {
    #if os(Linux) || os(Android)
      let length = Int(getpagesize())
      let mapping = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
      if let mapping, mapping != MAP_FAILED {
        if madvise(mapping, length, MADV_WIPEONFORK) == 0 {
          // A wiped page reads as zero, which is what `Atomic(0)` is in memory.
          let number = mapping.bindMemory(to: Atomic<UInt64>.self, capacity: 1)
          number.initialize(to: Atomic(0))
          return Page(number: number, isEmptiedByKernel: true)
        }
        munmap(mapping, length)
      }
    #endif
    let number = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: 1)
    number.initialize(to: Atomic(0))
    return Page(number: number, isEmptiedByKernel: false)
  }
}
