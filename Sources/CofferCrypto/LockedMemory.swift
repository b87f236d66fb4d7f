import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Zeroed memory for key material: kept out of swap and core dumps where the system allows, and wiped on release.
///
/// Each value has its own pages, because `mlock` and `madvise` work on whole pages and do not nest: of two secrets on
/// one page, releasing one would unlock the other. Locking is best effort, as `RLIMIT_MEMLOCK` may be small or zero;
/// wiping always happens. Locks do not pass to a forked child (`mlock(2)`), the other properties do.
///
/// Single pages are mapped and locked four at a time, and a few wiped ones are kept for the next secrets: opening a
/// store makes ten secrets, and each would otherwise take four system calls.
struct LockedMemory: ~Copyable {
  /// The requested bytes; the address is never null, even for zero bytes.
  let bytes: UnsafeMutableRawBufferPointer

  /// Whether the system agreed to keep these bytes out of swap.
  let isLocked: Bool

  /// Length of the mapping, or nil when the bytes came from the allocator.
  private let mappedByteCount: Int?

  /// The process that locked it; a forked child does not have the lock.
  private let process: UInt64

  /// Maps and locks `byteCount` zeroed bytes.
  ///
  /// - Parameter map: Returns this many bytes of zeroed pages, or nil when the system has none; tests replace it.
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
      // The number of mappings of a process is limited (`vm.max_map_count`), and a file can hold many sealed values.
      // Beyond the limit a secret is only wiped, not locked, which is better than ending the process.
      let allocation = UnsafeMutableRawBufferPointer.allocate(byteCount: max(byteCount, 1), alignment: 16)
      allocation.initializeMemory(as: UInt8.self, repeating: 0)
      bytes = UnsafeMutableRawBufferPointer(rebasing: allocation[..<byteCount])
      isLocked = false
      mappedByteCount = nil
    }
  }

  /// The first byte.
  var start: UnsafeMutableRawPointer {
    // Both branches of `init` set an address.
    bytes.baseAddress!
  }

  /// Overwrites all bytes with zeros, in a way that the optimizer cannot remove.
  func wipe() {
    Memory.wipe(bytes)
  }

  /// Locked pages of zeros, ready for reuse.
  private struct Spare {
    private var pages: [UInt] = []
    private var process: UInt64 = 0

    mutating func take() -> UnsafeMutableRawPointer? {
      // A forked child has the pages without their locks.
      guard process == ProcessToken.current, let page = pages.popLast() else { return nil }
      return UnsafeMutableRawPointer(bitPattern: page)
    }

    /// - Returns: false when enough pages are kept.
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

  /// Whether to lock several pages at once: false after the system first refused; single pages are tried in any case.
  private static let locksSeveral = Atomic(true)

  /// Maps and locks several pages, keeps the rest, and returns one.
  ///
  /// Does not hold the mutex of the kept pages meanwhile: a fork at that point would leave it locked in the child.
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

  /// Keeps pages out of core dumps and, if the system agrees, out of swap.
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
