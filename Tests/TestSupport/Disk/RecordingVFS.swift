import CSQLite
import CofferCrypto
import CofferStorage
import Foundation
import Synchronization

/// A VFS between ours and the system's that records everything written to the disk, including shared memory, and can
/// make calls fail.
package final class RecordingVFS: Sendable {
  package enum Event: Sendable {
    /// A new, empty file.
    case create(path: String)
    case open(path: String)
    case write(path: String, offset: Int64, bytes: Data)
    case truncate(path: String, size: Int64)
    case sync(path: String)
    /// The disk wrote none, some, or all of the unsynced data, and treats all of it as written from now on.
    case failedSync(path: String)
    case delete(path: String, isSynced: Bool)
    case link(from: String, to: String)
    case rename(from: String, to: String)
    case syncFolder(path: String)
    /// The first region of the wal-index when a lock was released.
    case sharedMemory(path: String, bytes: Data)
    /// A mark made by the test between two events.
    case mark(Int)
    /// What an anchor keeps of the store; it is never synced, and may be on the disk immediately.
    case witness([UInt8]?)
  }

  /// A request of SQLite to the VFS, or of a new store to the system.
  package struct Call: Sendable {
    package enum Kind: String, Sendable {
      case open, delete, access
      case read, write, truncate, sync, size, lock
      case mapIndex, lockIndex
      case create, link, syncFolder
    }

    package let kind: Kind
    package let path: String
    package var offset: Int64 = 0
    package var byteCount = 0
  }

  /// How a call fails.
  package enum Fault: Sendable {
    /// With a system error, and SQLite's code for it if there are several.
    case error(errno: Int32, code: Int32? = nil)
    /// After half of the bytes: a read as at the end of the file, a write with this error.
    case half(errno: Int32)
  }

  package let name: String
  let below: VFSPointer
  private let recorded = Lock<[Event]>([])
  private let fault = Lock<@Sendable (Call) -> Fault?>({ _ in nil })
  private let indexHook = Lock<@Sendable (IndexAccess, UnsafeMutableRawPointer) -> Void>({ _, _ in })
  private static let count = Atomic<Int>(0)

  /// Registered for the life of the process, like every VFS, on top of the one called `belowName`.
  package init(below belowName: String? = nil) {
    let number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
    name = "recording-\(number)"
    let below = sqlite3_vfs_find(belowName)!
    self.below = VFSPointer(pointer: below)
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    vfs.initialize(to: below.pointee)
    vfs.pointee.iVersion = 2
    vfs.pointee.szOsFile = Int32(OpenFile.byteCount)
    vfs.pointee.pNext = nil
    vfs.pointee.zName = UnsafePointer(strdup(name))
    vfs.pointee.pAppData = Unmanaged.passRetained(self).toOpaque()
    vfs.pointee.xOpen = { vfs, name, file, flags, outFlags in
      RecordingVFS.of(vfs!).open(name!, file!, flags, outFlags)
    }
    vfs.pointee.xDelete = { vfs, name, sync in
      let recorder = RecordingVFS.of(vfs!)
      let path = String(cString: name!)
      if let code = recorder.failure(of: Call(kind: .delete, path: path)) { return code }
      let below = recorder.below.pointer
      let code = below.pointee.xDelete(below, name, sync)
      if code == SQLITE_OK { recorder.record(.delete(path: path, isSynced: sync != 0)) }
      return code
    }
    vfs.pointee.xAccess = { vfs, name, flags, result in
      let recorder = RecordingVFS.of(vfs!)
      if let code = recorder.failure(of: Call(kind: .access, path: String(cString: name!))) { return code }
      let below = recorder.below.pointer
      return below.pointee.xAccess(below, name, flags, result)
    }
    vfs.pointee.xFullPathname = { vfs, name, count, output in
      let below = RecordingVFS.of(vfs!).below.pointer
      return below.pointee.xFullPathname(below, name, count, output)
    }
    sqlite3_vfs_register(vfs, 0)
  }

  private static func of(_ vfs: UnsafeMutablePointer<sqlite3_vfs>) -> RecordingVFS {
    Unmanaged<RecordingVFS>.fromOpaque(vfs.pointee.pAppData).takeUnretainedValue()
  }

  private func open(
    _ name: UnsafePointer<CChar>, _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    file.pointee.pMethods = nil
    let path = String(cString: name)
    if let code = failure(of: Call(kind: .open, path: path)) { return code }
    let isThere = access(path, F_OK) == 0
    let code = RealFile.open(name, below, flags, outFlags) { real in
      let isNewLog = !isThere && flags & SQLITE_OPEN_WAL != 0
      OpenFile.install(
        RecordedFile(real: real, path: path, isNewLog: isNewLog, recorder: self), in: file,
        methods: RecordedFile.methods)
    }
    guard code == SQLITE_OK else { return code }
    if !isThere { record(.create(path: path)) }
    record(.open(path: path))
    return code
  }

  /// Our VFS on top of this one, which also records the system calls of a new store.
  package func encrypting() -> EncryptingVFS {
    EncryptingVFS(name: "coffer-on-\(name)", below: name) { [self] call in observe(call) }
  }

  /// - Returns: The error to fail with.
  private func observe(_ call: FileCall) -> Int32? {
    let (next, event): (Call, Event) =
      switch call {
      case .create(let path): (Call(kind: .create, path: path), .create(path: path))
      case .write(let path, let offset, let bytes):
        (
          Call(kind: .write, path: path, offset: Int64(offset), byteCount: bytes.count),
          .write(path: path, offset: Int64(offset), bytes: Data(bytes))
        )
      case .sync(let path): (Call(kind: .sync, path: path), .sync(path: path))
      case .link(let from, let to): (Call(kind: .link, path: to), .link(from: from, to: to))
      case .rename(let from, let to): (Call(kind: .link, path: to), .rename(from: from, to: to))
      case .syncFolder(let path): (Call(kind: .syncFolder, path: path), .syncFolder(path: path))
      case .remove(let path): (Call(kind: .delete, path: path), .delete(path: path, isSynced: false))
      }
    switch fault(of: next) {
    case .error(let code, _), .half(let code):
      if next.kind == .sync { record(.failedSync(path: next.path)) }
      return code
    case nil:
      record(event)
      return nil
    }
  }

  // MARK: Faults

  /// Makes calls fail from now on: those for which `fault` returns a fault.
  package func failCalls(_ fault: @escaping @Sendable (Call) -> Fault?) {
    self.fault.withLock { $0 = fault }
  }

  /// Makes writes fail from now on, with SQLite's code for each.
  package func failWrites(_ code: @escaping @Sendable (_ path: String, _ offset: Int64) -> Int32?) {
    failCalls { call in
      guard call.kind == .write, let code = code(call.path, call.offset) else { return nil }
      return .error(errno: code == SQLITE_FULL ? ENOSPC : EIO, code: code)
    }
  }

  func fault(of call: Call) -> Fault? {
    fault.withLock { $0 }(call)
  }

  /// SQLite's code for a call that is to fail; the system's error is set.
  func failure(of call: Call) -> Int32? {
    guard let fault = fault(of: call) else { return nil }
    return Self.code(of: fault, call.kind)
  }

  /// The result of the system's VFS if the call beneath it fails with that error.
  static func code(of fault: Fault, _ kind: Call.Kind) -> Int32 {
    switch fault {
    case .error(let error, let code?):
      errno = error
      return code
    case .error(let error, nil), .half(let error):
      errno = error
      if error == ENOSPC, kind == .write { return SQLITE_FULL }
      return switch kind {
      case .open: SQLITE_CANTOPEN
      case .delete: SQLITE_IOERR | 10 << 8
      case .access: SQLITE_IOERR | 13 << 8
      case .read: SQLITE_IOERR | 1 << 8
      case .write: SQLITE_IOERR | 3 << 8
      case .sync: SQLITE_IOERR | 4 << 8
      case .truncate: SQLITE_IOERR | 6 << 8
      case .size: SQLITE_IOERR | 7 << 8
      case .lock: SQLITE_IOERR | 15 << 8
      case .lockIndex: SQLITE_IOERR | 20 << 8
      case .mapIndex: SQLITE_IOERR | 21 << 8
      case .create, .link, .syncFolder: SQLITE_IOERR
      }
    }
  }

  // MARK: The wal-index

  /// What a connection does with the wal-index between reads of it.
  package enum IndexAccess: Equatable, Sendable {
    /// Between the two copies of the header.
    case barrier
    /// A lock was taken or released, with these flags.
    case lock(first: Int, flags: Int32)
  }

  /// Runs `body` with the wal-index whenever a connection calls the VFS while using it.
  package func onIndexAccess(_ body: @escaping @Sendable (IndexAccess, UnsafeMutableRawPointer) -> Void) {
    indexHook.withLock { $0 = body }
  }

  func noteIndexAccess(_ access: IndexAccess, _ index: UnsafeMutableRawPointer?) {
    guard let index else { return }
    indexHook.withLock { $0 }(access, index)
  }

  // MARK: The record

  package func record(_ event: Event) {
    recorded.withLock { $0.append(event) }
  }

  package var events: [Event] { recorded.withLock { $0 } }

  package func forgetEvents() {
    recorded.withLock { $0 = [] }
  }

  /// Everything that was ever written, file by file, in the order of the writes.
  package var writtenBytes: Data {
    events.reduce(into: Data()) { bytes, event in
      switch event {
      case .write(_, _, let written), .sharedMemory(_, let written): bytes.append(written)
      default: break
      }
    }
  }
}
