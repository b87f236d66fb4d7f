#if os(Linux)
  import CSQLite
  import Foundation
  import Synchronization

  /// Lets a signal interrupt system calls of SQLite's own VFS, every second one of each kind: it
  /// fails with `EINTR`, and succeeds when retried.
  ///
  /// For a separate process: the calls of all connections go through it.
  package enum InterruptedCalls {
    private static let count = Atomic<Int>(0)

    /// How many calls have been interrupted.
    package static var interruptedCount: Int { count.load(ordering: .relaxed) }

    /// Whether to interrupt the call: every second one, so that a retry works.
    private static func isInterrupted(_ turn: borrowing Atomic<Bool>) -> Bool {
      guard turn.logicalXor(true, ordering: .relaxed).newValue else { return false }
      count.wrappingAdd(1, ordering: .relaxed)
      errno = EINTR
      return true
    }

    private static let opens = Atomic(false)
    private static let reads = Atomic(false)
    private static let writes = Atomic(false)
    private static let truncations = Atomic(false)

    /// From now on; SQLite's names for the calls are in "Overriding system calls" of https://www.sqlite.org/c3ref/vfs.html.
    package static func start() {
      typealias Open = @convention(c) (UnsafePointer<CChar>, Int32, Int32) -> Int32
      typealias Read = @convention(c) (Int32, UnsafeMutableRawPointer, Int) -> Int
      typealias ReadAt = @convention(c) (Int32, UnsafeMutableRawPointer, Int, off_t) -> Int
      typealias Write = @convention(c) (Int32, UnsafeRawPointer, Int) -> Int
      typealias WriteAt = @convention(c) (Int32, UnsafeRawPointer, Int, off_t) -> Int
      typealias Truncate = @convention(c) (Int32, off_t) -> Int32
      let open: Open = {
        InterruptedCalls.isInterrupted(InterruptedCalls.opens) ? -1 : Foundation.open($0, $1, mode_t($2))
      }
      let read: Read = { InterruptedCalls.isInterrupted(InterruptedCalls.reads) ? -1 : Foundation.read($0, $1, $2) }
      let readAt: ReadAt = { InterruptedCalls.isInterrupted(InterruptedCalls.reads) ? -1 : pread($0, $1, $2, $3) }
      let write: Write = { InterruptedCalls.isInterrupted(InterruptedCalls.writes) ? -1 : Foundation.write($0, $1, $2) }
      let writeAt: WriteAt = { InterruptedCalls.isInterrupted(InterruptedCalls.writes) ? -1 : pwrite($0, $1, $2, $3) }
      let truncate: Truncate = { InterruptedCalls.isInterrupted(InterruptedCalls.truncations) ? -1 : ftruncate($0, $1) }
      replace("open", by: unsafeBitCast(open, to: sqlite3_syscall_ptr.self))
      replace("read", by: unsafeBitCast(read, to: sqlite3_syscall_ptr.self))
      for name in ["pread", "pread64"] { replace(name, by: unsafeBitCast(readAt, to: sqlite3_syscall_ptr.self)) }
      replace("write", by: unsafeBitCast(write, to: sqlite3_syscall_ptr.self))
      for name in ["pwrite", "pwrite64"] { replace(name, by: unsafeBitCast(writeAt, to: sqlite3_syscall_ptr.self)) }
      replace("ftruncate", by: unsafeBitCast(truncate, to: sqlite3_syscall_ptr.self))
    }

    private static func replace(_ name: String, by function: sqlite3_syscall_ptr) {
      guard let vfs = sqlite3_vfs_find(nil) else { return }
      _ = vfs.pointee.xSetSystemCall(vfs, name, function)
    }
  }
#endif
