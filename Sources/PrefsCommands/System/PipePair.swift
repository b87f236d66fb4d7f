#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A pipe whose descriptors are above 2 and not inherited.
package struct PipePair {
  package let reading: Int32
  package let writing: Int32

  package init() throws {
    var pair: [Int32] = [-1, -1]
    guard pipe(&pair) == 0 else { throw Failure.system("a pipe", errno: errno) }
    reading = fcntl(pair[0], F_DUPFD_CLOEXEC, 16)
    writing = fcntl(pair[1], F_DUPFD_CLOEXEC, 16)
    let code = errno
    for descriptor in pair { close(descriptor) }
    guard reading >= 0, writing >= 0 else { throw Failure.system("a pipe", errno: code) }
  }

  package func closeReading() { close(reading) }
  package func closeWriting() { close(writing) }
}
