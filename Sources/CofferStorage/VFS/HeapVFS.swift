import CSQLite
import CofferCrypto
import Synchronization

/// An in-memory store: a database file and a log shared by connections of this process, freed with the last reference
/// to this object.
///
/// SQLite's own `:memory:` has no write-ahead log, and therefore no snapshots during a write.
package final class HeapStore: Sendable {
  package let path: String
  private static let count = Atomic<UInt64>(0)

  package init() {
    path = "/coffer-\(Self.count.wrappingAdd(1, ordering: .relaxed).newValue)"
    HeapVFS.register()
  }

  deinit {
    HeapVFS.removeFiles(of: path)
  }
}

/// The VFS of in-memory stores: databases and logs on the heap, with the wal-index and the locks that SQLite's log
/// needs between connections of one process.
///
/// Locks follow https://www.sqlite.org/lockingv3.html (database) and https://www.sqlite.org/walformat.html#wal_locks.
/// Nothing is sealed: this memory is no more exposed than SQLite's page cache.
enum HeapVFS {
  static let name = "coffer-memory"
  private static let files = Lock<[String: HeapFile]>([:])

  static func removeFiles(of path: String) {
    files.withLock { files in
      files[path] = nil
      files[path + "-wal"] = nil
    }
  }

  /// Registers the VFS on first use.
  static func register() {
    _ = registration
  }

  private static let registration: Void = {
    guard sqlite3_initialize() == SQLITE_OK, let below = sqlite3_vfs_find(nil) else {
      preconditionFailure("SQLite has no default VFS")
    }
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    // Time, sleep and randomness are the system's.
    vfs.initialize(to: below.pointee)
    vfs.pointee.iVersion = 2
    vfs.pointee.szOsFile = Int32(OpenFile.byteCount)
    vfs.pointee.pNext = nil
    vfs.pointee.zName = UnsafePointer(strdup(name))
    vfs.pointee.xOpen = { _, name, file, flags, outFlags in
      file!.pointee.pMethods = nil
      // In a new store, the switch to WAL goes through a rollback journal.
      guard let name, flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL) != 0 else {
        return SQLITE_CANTOPEN
      }
      let path = String(cString: name)
      let heapFile = files.withLock { files in
        let heapFile = files[path] ?? HeapFile()
        files[path] = heapFile
        return heapFile
      }
      OpenFile.install(HeapHandle(file: heapFile), in: file!, methods: HeapHandle.methods)
      outFlags?.pointee = flags
      return SQLITE_OK
    }
    vfs.pointee.xDelete = { _, name, _ in
      let path = String(cString: name!)
      files.withLock { $0[path] = nil }
      return SQLITE_OK
    }
    vfs.pointee.xAccess = { _, name, _, result in
      let path = String(cString: name!)
      result!.pointee = files.withLock { $0[path] }.map { $0.byteCount > 0 ? 1 : 0 } ?? 0
      return SQLITE_OK
    }
    vfs.pointee.xFullPathname = { _, name, count, output in
      guard strlen(name!) < Int(count) else { return SQLITE_CANTOPEN }
      strcpy(output!, name!)
      return SQLITE_OK
    }
    guard sqlite3_vfs_register(vfs, 0) == SQLITE_OK else { preconditionFailure("SQLite refused the VFS \(name)") }
  }()
}

/// A file on the heap, with its locks.
final class HeapFile: Sendable {
  /// SQLite's locks on a database file: many readers, at most one pending writer, no readers while it writes.
  private struct State {
    var bytes: [UInt8] = []
    var sharedCount = 0
    var isReserved = false
    var isPending = false
    var isExclusive = false
    var regions: [UnsafeMutableRawPointer] = []
    /// For each wal-index lock the number of holders; -1 for an exclusive one.
    var indexLocks = [Int](repeating: 0, count: Int(SQLITE_SHM_NLOCK))
  }

  private let state = Lock(State())

  deinit {
    state.withLock { state in
      for region in state.regions { region.deallocate() }
    }
  }

  var byteCount: Int { state.withLock { $0.bytes.count } }

  // MARK: Bytes

  func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Int32 {
    state.withLock { state in
      let count = max(0, min(buffer.count, state.bytes.count - offset))
      if count > 0 {
        state.bytes.withUnsafeBytes {
          buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count]))
        }
      }
      guard count < buffer.count else { return SQLITE_OK }
      // "unread parts of the buffer [are] filled with zeros": https://www.sqlite.org/c3ref/io_methods.html
      memset(buffer.baseAddress! + count, 0, buffer.count - count)
      return COFFER_IOERR_SHORT_READ
    }
  }

  func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) {
    state.withLock { state in
      let missing = offset + buffer.count - state.bytes.count
      if missing > 0 { state.bytes += [UInt8](repeating: 0, count: missing) }
      state.bytes.withUnsafeMutableBytes {
        UnsafeMutableRawBufferPointer(rebasing: $0[offset..<offset + buffer.count]).copyMemory(from: buffer)
      }
    }
  }

  func truncate(to count: Int) {
    state.withLock { state in
      if count < state.bytes.count { state.bytes.removeLast(state.bytes.count - count) }
    }
  }

  // MARK: Locks

  func lock(from current: Int32, to wanted: Int32) -> Int32? {
    state.withLock { state in
      if current < SQLITE_LOCK_SHARED {
        guard !state.isPending, !state.isExclusive else { return nil }
        state.sharedCount += 1
      }
      guard wanted > SQLITE_LOCK_SHARED else { return wanted }
      if current < SQLITE_LOCK_RESERVED {
        guard !state.isReserved else { return current < SQLITE_LOCK_SHARED ? SQLITE_LOCK_SHARED : nil }
        state.isReserved = true
      }
      guard wanted == SQLITE_LOCK_EXCLUSIVE else { return wanted }
      state.isPending = true
      guard state.sharedCount == 1 else { return SQLITE_LOCK_PENDING }
      state.isExclusive = true
      return wanted
    }
  }

  func unlock(from current: Int32, to wanted: Int32) {
    state.withLock { state in
      if current > SQLITE_LOCK_SHARED {
        state.isReserved = false
        state.isPending = false
        state.isExclusive = false
      }
      if current >= SQLITE_LOCK_SHARED, wanted == SQLITE_LOCK_NONE { state.sharedCount -= 1 }
    }
  }

  var isReserved: Bool { state.withLock { $0.isReserved } }

  // MARK: The wal-index

  func region(_ number: Int, byteCount: Int, extend: Bool) -> UnsafeMutableRawPointer? {
    state.withLock { state -> HeapRegion in
      while extend, state.regions.count <= number {
        let region = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
        memset(region, 0, byteCount)
        state.regions.append(region)
      }
      return HeapRegion(pointer: number < state.regions.count ? state.regions[number] : nil)
    }.pointer
  }

  func lockIndex(_ locks: Range<Int>, exclusive: Bool) -> Bool {
    state.withLock { state in
      guard locks.allSatisfy({ exclusive ? state.indexLocks[$0] == 0 : state.indexLocks[$0] >= 0 }) else {
        return false
      }
      for lock in locks { state.indexLocks[lock] = exclusive ? -1 : state.indexLocks[lock] + 1 }
      return true
    }
  }

  func unlockIndex(_ locks: Range<Int>, exclusive: Bool) {
    state.withLock { state in
      for lock in locks { state.indexLocks[lock] -= exclusive ? -1 : 1 }
    }
  }
}

/// A region of the wal-index.
///
/// SQLite's own protocol protects its contents, as it does for a mapped file.
private struct HeapRegion: @unchecked Sendable {
  let pointer: UnsafeMutableRawPointer?
}

/// One connection's handle on a file.
final class HeapHandle {
  let file: HeapFile
  var level = SQLITE_LOCK_NONE
  var sharedIndexLocks = 0
  var exclusiveIndexLocks = 0
  private var checkpoint = CheckpointGuard()
  /// The wal-index header's checksum when this connection last released the write lock.
  var indexVersionAfterWrite: UInt64?

  init(file: HeapFile) {
    self.file = file
  }

  func lock(_ wanted: Int32) -> Int32 {
    guard level < wanted else { return SQLITE_OK }
    guard let reached = file.lock(from: level, to: wanted) else { return SQLITE_BUSY }
    level = reached
    return reached == wanted ? SQLITE_OK : SQLITE_BUSY
  }

  func unlock(_ wanted: Int32) {
    guard level > wanted else { return }
    file.unlock(from: level, to: wanted)
    level = wanted
  }

  func lockIndex(_ first: Int32, _ count: Int32, _ flags: Int32) -> Int32 {
    let locks = Int(first)..<Int(first + count)
    let mask = ((1 << locks.count) - 1) << locks.lowerBound
    let isExclusive = flags & SQLITE_SHM_EXCLUSIVE != 0
    if flags & SQLITE_SHM_UNLOCK != 0 {
      let held = isExclusive ? exclusiveIndexLocks : sharedIndexLocks
      guard held & mask == mask else { return SQLITE_OK }
      // While the write lock was held, only this connection committed.
      if isExclusive, first == IndexLock.write { indexVersionAfterWrite = commitCounter?.value }
      if isExclusive, locks.contains(Int(IndexLock.recovery)) { checkpoint.begin(salts: indexSalts) }
      file.unlockIndex(locks, exclusive: isExclusive)
      if isExclusive { exclusiveIndexLocks &= ~mask } else { sharedIndexLocks &= ~mask }
      return SQLITE_OK
    }
    guard !isExclusive, sharedIndexLocks & mask == mask else {
      guard file.lockIndex(locks, exclusive: isExclusive) else { return SQLITE_BUSY }
      if isExclusive, first <= IndexLock.recovery { checkpoint.begin(salts: indexSalts) }
      if isExclusive, checkpoint.mustGiveBack(first, flags, salts: indexSalts) {
        file.unlockIndex(locks, exclusive: true)
        return SQLITE_BUSY
      }
      if isExclusive { exclusiveIndexLocks |= mask } else { sharedIndexLocks |= mask }
      return SQLITE_OK
    }
    return SQLITE_OK
  }

  var commitCounter: CommitCounter? {
    file.region(0, byteCount: 0, extend: false).map { CommitCounter(index: $0, in: file) }
  }

  /// The salts of the log's current generation, according to the wal-index.
  private var indexSalts: UInt64? {
    file.region(0, byteCount: 0, extend: false)?.load(fromByteOffset: 32, as: UInt64.self)
  }

  private static func of(_ file: UnsafeMutablePointer<sqlite3_file>?) -> HeapHandle {
    OpenFile.state(file!).takeUnretainedValue()
  }

  /// Written once, before any file is opened, and only read afterwards.
  nonisolated(unsafe) static let methods: UnsafePointer<sqlite3_io_methods> = {
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    methods.initialize(to: sqlite3_io_methods())
    methods.pointee.iVersion = 2
    methods.pointee.xClose = { file in
      let state: Unmanaged<HeapHandle> = OpenFile.state(file!)
      state.takeUnretainedValue().unlock(SQLITE_LOCK_NONE)
      state.release()
      return SQLITE_OK
    }
    methods.pointee.xRead = { file, buffer, count, offset in
      of(file).file.read(UnsafeMutableRawBufferPointer(start: buffer, count: Int(count)), at: Int(offset))
    }
    methods.pointee.xWrite = { file, buffer, count, offset in
      of(file).file.write(UnsafeRawBufferPointer(start: buffer, count: Int(count)), at: Int(offset))
      return SQLITE_OK
    }
    methods.pointee.xTruncate = { file, size in
      of(file).file.truncate(to: Int(size))
      return SQLITE_OK
    }
    methods.pointee.xSync = { _, _ in SQLITE_OK }
    methods.pointee.xFileSize = { file, result in
      result!.pointee = Int64(of(file).file.byteCount)
      return SQLITE_OK
    }
    methods.pointee.xLock = { file, level in of(file).lock(level) }
    methods.pointee.xUnlock = { file, level in
      of(file).unlock(level)
      return SQLITE_OK
    }
    methods.pointee.xCheckReservedLock = { file, result in
      result!.pointee = of(file).file.isReserved ? 1 : 0
      return SQLITE_OK
    }
    methods.pointee.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
    methods.pointee.xSectorSize = { _ in 4096 }
    methods.pointee.xDeviceCharacteristics = { _ in SQLITE_IOCAP_POWERSAFE_OVERWRITE | SQLITE_IOCAP_SAFE_APPEND }
    methods.pointee.xShmMap = { file, region, count, extend, result in
      let pointer = of(file).file.region(Int(region), byteCount: Int(count), extend: extend != 0)
      UnsafeMutableRawPointer(result!).storeBytes(of: pointer, as: UnsafeMutableRawPointer?.self)
      return SQLITE_OK
    }
    methods.pointee.xShmLock = { file, first, count, flags in of(file).lockIndex(first, count, flags) }
    methods.pointee.xShmBarrier = { _ in atomicMemoryFence(ordering: .sequentiallyConsistent) }
    methods.pointee.xShmUnmap = { file, _ in
      let handle = of(file)
      for lock in 0..<Int32(SQLITE_SHM_NLOCK) {
        _ = handle.lockIndex(lock, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED)
        _ = handle.lockIndex(lock, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)
      }
      return SQLITE_OK
    }
    return UnsafePointer(methods)
  }()
}
