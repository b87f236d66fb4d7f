#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Runs `body` in a forked child, and returns what it wrote to its buffer; nil if the child gave up three times.
///
/// Swift hides `fork`, as a child of a process with threads may do little: a lock that another thread held stays locked in
/// it for ever. This child still draws from OpenSSL; when it hangs, it is ended and the fork is tried again.
func inForkedChild(
  byteCount: Int, seconds: UInt32 = 20, _ body: (UnsafeMutableRawBufferPointer) -> Bool
) -> [UInt8]? {
  for _ in 0..<3 {
    if let written = forkOnce(byteCount, seconds, body) { return written }
  }
  return nil
}

private func forkOnce(
  _ byteCount: Int, _ seconds: UInt32, _ body: (UnsafeMutableRawBufferPointer) -> Bool
) -> [UInt8]? {
  // Everything that the child needs is made before it exists.
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 16)
  defer { buffer.deallocate() }
  var ends: [Int32] = [-1, -1]
  guard let fork = forkFunction, pipe(&ends) == 0 else { return nil }
  let (readEnd, writeEnd) = (ends[0], ends[1])
  defer { close(readEnd) }

  let child = fork()
  if child == 0 {
    alarm(seconds)
    let isDone = body(buffer) && write(writeEnd, buffer.baseAddress, byteCount) == byteCount
    _exit(isDone ? 0 : 1)
  }
  close(writeEnd)
  guard child > 0 else { return nil }

  // So few bytes arrive in one piece.
  var event = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
  let isReady = poll(&event, 1, Int32(seconds) * 1000) == 1
  let count = isReady ? read(readEnd, buffer.baseAddress, byteCount) : 0
  // The child may also hang before its alarm is set.
  kill(child, SIGKILL)
  var status: Int32 = 0
  while waitpid(child, &status, 0) < 0, errno == EINTR {}
  return count == byteCount ? Array(buffer) : nil
}

private let forkFunction: (@convention(c) () -> Int32)? = {
  #if canImport(Darwin)
    let anyLibrary = UnsafeMutableRawPointer(bitPattern: -2)
  #else
    let anyLibrary: UnsafeMutableRawPointer? = nil
  #endif
  return dlsym(anyLibrary, "fork").map { unsafeBitCast($0, to: (@convention(c) () -> Int32).self) }
}()
