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
  let begin = ContinuousClock.now
  while true {
    let descriptor = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
    if descriptor >= 0 { return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true) }
    guard errno == ENXIO, ContinuousClock.now - begin < .seconds(60) else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    usleep(2000)
  }
}
