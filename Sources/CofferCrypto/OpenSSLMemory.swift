internal import COpenSSL

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Memory for everything that OpenSSL allocates: left out of core dumps, locked where the system allows, and wiped
/// when freed.
///
/// OpenSSL keeps keys in ordinary memory for as long as a cipher is used: an AES-256 key schedule begins with the
/// key. Small blocks come from an arena, because setting OpenSSL up takes some thousand of them.
enum OpenSSLMemory {
  /// Makes OpenSSL allocate from here; has no effect after its first allocation (`CRYPTO_set_mem_functions(3)`).
  static func use() {
    _ = CRYPTO_set_mem_functions(
      { count, _, _ in OpenSSLMemory.allocate(count) },
      { block, count, _, _ in OpenSSLMemory.resize(block, to: count) },
      { block, _, _ in OpenSSLMemory.free(block) })
  }

  /// The header before each block; its size is a multiple of the alignment.
  private struct Header {
    /// The usable size of the block.
    let capacity: Int
    /// The length of the block's own mapping; 0 if it has none.
    let mappedByteCount: Int
  }

  private static let headerByteCount = 16
  /// Sizes of arena blocks, header included: powers of two from 32 bytes to 16 KiB.
  private static let exponents = 5...14
  /// scrypt's table would use up the whole limit of locked memory.
  private static let largestLocked = 1 << 20

  private struct Arena {
    /// The address of the first free block of each size; each free block holds the address of the next.
    var free = [UInt](repeating: 0, count: exponents.upperBound + 1)
    /// The unused rest of the last mapped chunk.
    var position: UInt = 0
    var end: UInt = 0
    static let chunkByteCount = 64 << 10
  }

  private static let arena = Lock(Arena())

  private static func header(_ block: UnsafeMutableRawPointer) -> UnsafeMutablePointer<Header> {
    (block - headerByteCount).assumingMemoryBound(to: Header.self)
  }

  // MARK: - Functions called by OpenSSL

  /// - Returns: nil for zero bytes, like OpenSSL's own function, and when memory runs out.
  static func allocate(_ count: Int) -> UnsafeMutableRawPointer? {
    guard count > 0, count <= Int.max / 2 else { return nil }
    let exponent = max(exponents.lowerBound, Int.bitWidth - (count + headerByteCount - 1).leadingZeroBitCount)
    guard exponent <= exponents.upperBound else { return map(count) }
    guard let start = take(exponent) else { return nil }
    let block = start + headerByteCount
    header(block).initialize(to: Header(capacity: 1 << exponent - headerByteCount, mappedByteCount: 0))
    return block
  }

  static func resize(_ block: UnsafeMutableRawPointer?, to count: Int) -> UnsafeMutableRawPointer? {
    guard let block else { return allocate(count) }
    guard count > 0 else {
      free(block)
      return nil
    }
    let capacity = header(block).pointee.capacity
    if count <= capacity { return block }
    guard let larger = allocate(count) else { return nil }
    larger.copyMemory(from: block, byteCount: capacity)
    free(block)
    return larger
  }

  static func free(_ block: UnsafeMutableRawPointer?) {
    guard let block else { return }
    let header = header(block).pointee
    guard header.mappedByteCount == 0 else {
      // The kernel clears pages before it reuses them.
      munmap(block - headerByteCount, header.mappedByteCount)
      return
    }
    Memory.wipe(UnsafeMutableRawBufferPointer(start: block, count: header.capacity))
    let exponent = (header.capacity + headerByteCount).trailingZeroBitCount
    arena.withLock { arena in
      block.storeBytes(of: arena.free[exponent], as: UInt.self)
      arena.free[exponent] = UInt(bitPattern: block)
    }
  }

  // MARK: - Pages

  /// A block of 2^exponent bytes, header included.
  private static func take(_ exponent: Int) -> UnsafeMutableRawPointer? {
    arena.withLock { arena in
      if let block = UnsafeMutableRawPointer(bitPattern: arena.free[exponent]) {
        arena.free[exponent] = block.load(as: UInt.self)
        return block - headerByteCount
      }
      let byteCount: UInt = 1 << exponent
      if arena.end - arena.position < byteCount {
        guard let chunk = LockedMemory.map(Arena.chunkByteCount) else { return nil }
        _ = LockedMemory.lock(chunk, Arena.chunkByteCount)
        arena.position = UInt(bitPattern: chunk)
        arena.end = arena.position + UInt(Arena.chunkByteCount)
      }
      defer { arena.position += byteCount }
      return UnsafeMutableRawPointer(bitPattern: arena.position)
    }
  }

  /// A large block, in its own pages.
  private static func map(_ count: Int) -> UnsafeMutableRawPointer? {
    let pageSize = Int(getpagesize())
    let length = (count + headerByteCount + pageSize - 1) / pageSize * pageSize
    guard let mapping = LockedMemory.map(length) else { return nil }
    if length <= largestLocked {
      _ = LockedMemory.lock(mapping, length)
    } else {
      LockedMemory.leaveOutOfDumps(mapping, length)
    }
    let block = mapping + headerByteCount
    header(block).initialize(to: Header(capacity: length - headerByteCount, mappedByteCount: length))
    return block
  }
}
