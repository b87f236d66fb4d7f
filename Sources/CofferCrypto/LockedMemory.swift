import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Zeroed memory for key material: kept out of swap and core dumps where the system allows, wiped when it ends.
///
/// Each value has pages of its own, because `mlock` and `madvise` work on whole pages and do not nest: two secrets on one
/// page would unlock each other. Locking is best effort, as `RLIMIT_MEMLOCK` may be small or zero; wiping always happens.
/// Locks do not pass to a forked child (`mlock(2)`), the other properties do.
///
/// Single pages are mapped and locked four at a time, and a few are kept, wiped, for the next secrets: opening a store
/// makes ten, at four system calls each where each has its own.
struct LockedMemory: ~Copyable {
  /// The bytes asked for; the address is never null, also when there are none.
  let bytes: UnsafeMutableRawBufferPointer

  /// Whether the system agreed to keep these bytes out of swap.
  let isLocked: Bool

  /// Length of the mapping, or nil when the bytes came from the allocator.
  private let mappedByteCount: Int?

  /// The process that locked it: in a forked child of its the lock is gone.
  private let process: UInt64

  /// Maps and locks room for `byteCount` bytes, all zero.
  ///
  /// - Parameter map: Gives this many bytes of zeroed pages, or nil when the system has none; tests replace it.
  init(byteCount: Int, map: ((Int) -> UnsafeMutableRawPointer?)? = nil) {
    precondition(byteCount >= 0, "Ask for zero bytes or more of locked memory.")
    let pageSize = Int(getpagesize())
    // An empty secret gets a page too: OpenSSL reads a null key as "no key given", not as an empty one.
    let length = (max(byteCount, 1) + pageSize - 1) / pageSize * pageSize
    process = ProcessToken.current
    if map == nil, length == pageSize, let page = Self.spare.withLock({ $0.take() }) ?? Self.lockPages() {
      bytes = UnsafeMutableRawBufferPointer(start: page, count: byteCount)
      isLocked = true
      mappedByteCount = length
    } else if let mapping = (map ?? Self.map)(length) {
      bytes = UnsafeMutableRawBufferPointer(start: mapping, count: byteCount)
      isLocked = Self.lock(mapping, length)
      mappedByteCount = length
    } else {
      // A process has a limited number of mappings (`vm.max_map_count`), and a file can hold many sealed values: beyond
      // the limit a secret is only wiped, which is better than ending the process.
      let allocation = UnsafeMutableRawBufferPointer.allocate(byteCount: max(byteCount, 1), alignment: 16)
      allocation.initializeMemory(as: UInt8.self, repeating: 0)
      bytes = UnsafeMutableRawBufferPointer(rebasing: allocation[..<byteCount])
      isLocked = false
      mappedByteCount = nil
    }
  }

  /// The first byte.
  var start: UnsafeMutableRawPointer {
    // Both branches of `init` give an address.
    bytes.baseAddress!
  }

  /// Overwrites all bytes with zeros, in a way that the optimizer cannot leave out.
  func wipe() {
    Memory.wipe(bytes)
  }

  /// Pages that are locked and all zero.
  private struct Spare {
    private var pages: [UInt] = []
    private var process: UInt64 = 0

    mutating func take() -> UnsafeMutableRawPointer? {
      // A forked child has the pages without their locks.
      guard process == ProcessToken.current, let page = pages.popLast() else { return nil }
      return UnsafeMutableRawPointer(bitPattern: page)
    }

    /// - Returns: false when there are enough.
    mutating func keep(_ page: UnsafeMutableRawPointer) -> Bool {
      if process != ProcessToken.current {
        pages = []
        process = ProcessToken.current
      }
      guard pages.count < 16 else { return false }
      pages.append(UInt(bitPattern: page))
      return true
    }
  }

  private static let spare = Lock(Spare())

  /// Whether the system has not yet refused to lock several pages; each alone is tried in any case.
  private static let locksSeveral = Atomic(true)

  /// Maps and locks several pages, and keeps all but the one it gives.
  ///
  /// Without the lock on those that are kept: a fork that comes in between would leave it locked in the child.
  private static func lockPages() -> UnsafeMutableRawPointer? {
    guard locksSeveral.load(ordering: .relaxed) else { return nil }
    let pageSize = Int(getpagesize())
    let length = 4 * pageSize
    guard let block = map(length) else { return nil }
    guard lock(block, length) else {
      locksSeveral.store(false, ordering: .relaxed)
      munmap(block, length)
      return nil
    }
    for offset in stride(from: pageSize, to: length, by: pageSize) {
      let page = block + offset
      if !spare.withLock({ $0.keep(page) }) { munmap(page, pageSize) }
    }
    return block
  }

  static func map(_ length: Int) -> UnsafeMutableRawPointer? {
    let mapping = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    return mapping == MAP_FAILED ? nil : mapping
  }

  /// Keeps pages out of core dumps and, where the system agrees, out of swap.
  ///
  /// - Returns: Whether they stay out of swap.
  static func lock(_ mapping: UnsafeMutableRawPointer, _ length: Int) -> Bool {
    leaveOutOfDumps(mapping, length)
    return mlock(mapping, length) == 0
  }

  /// Keeps pages out of core dumps, where the system can.
  static func leaveOutOfDumps(_ mapping: UnsafeMutableRawPointer, _ length: Int) {
    #if os(Linux) || os(Android)
      _ = madvise(mapping, length, MADV_DONTDUMP)
    #endif
  }

  deinit {
    wipe()
    if let mappedByteCount {
      let page = start
      if isLocked, process == ProcessToken.current, mappedByteCount == Int(getpagesize()),
        Self.spare.withLock({ $0.keep(page) })
      {
        return
      }
      // Unmapping unlocks (`munlock(2)`).
      munmap(start, mappedByteCount)
    } else {
      bytes.deallocate()
    }
  }
}
