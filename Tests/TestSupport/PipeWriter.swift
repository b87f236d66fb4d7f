import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The writing end of a named pipe, once someone reads it.
///
/// - Throws: When that takes longer than a minute.
package func pipeWriter(_ path: String) throws -> FileHandle {
  nonisolated(unsafe) var descriptor: Int32 = -1
  let isOpen = DispatchSemaphore(value: 0)
  // Opening it waits for a reader.
  Thread.detachNewThread {
    descriptor = open(path, O_WRONLY | O_CLOEXEC)
    isOpen.signal()
  }
  guard isOpen.wait(timeout: .now() + 60) == .success else { throw POSIXError(.ETIMEDOUT) }
  guard descriptor >= 0 else { throw POSIXError(.ENOENT) }
  return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
}
