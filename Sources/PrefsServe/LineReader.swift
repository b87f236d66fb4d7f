import PrefsCommands

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Reads lines of limited length from a descriptor.
struct LineReader {
  enum Line {
    case whole(ArraySlice<UInt8>)
    /// What follows it has no beginning.
    case tooLong
  }

  /// The longest line, in bytes: twice what a value of 10 MB takes.
  static let limit = 32 << 20

  private let descriptor: Int32
  private var buffer: [UInt8] = []
  /// Where the next line begins, and up to where its end was looked for.
  private var (start, searched) = (0, 0)

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// The next line; nil at the end, where a line without a line feed is dropped.
  ///
  /// - Throws: ``Failure`` if the descriptor cannot be read.
  mutating func next() throws -> Line? {
    while true {
      let end = lineFeed
      if (end ?? buffer.count) - start > Self.limit { return .tooLong }
      if let end {
        defer { (start, searched) = (end + 1, end + 1) }
        return .whole(buffer[start..<end])
      }
      if start == buffer.count {
        buffer.removeAll(keepingCapacity: buffer.capacity <= 1 << 20)
      } else {
        buffer.removeSubrange(..<start)
      }
      (start, searched) = (0, buffer.count)
      guard try fill() else { return nil }
    }
  }

  /// Where the next line feed is, from where it was not looked for yet.
  private var lineFeed: Int? {
    buffer.withUnsafeBytes { bytes in
      guard searched < bytes.count, let start = bytes.baseAddress,
        let found = memchr(start + searched, 0x0a, bytes.count - searched)
      else { return nil }
      return UnsafeRawPointer(found) - start
    }
  }

  /// - Returns: false at the end, and if the other end was closed with something unread.
  private mutating func fill() throws -> Bool {
    while true {
      var (result, code) = (0, Int32(0))
      let part = [UInt8](unsafeUninitializedCapacity: 64 << 10) { bytes, count in
        result = read(descriptor, bytes.baseAddress, bytes.count)
        code = errno
        count = max(0, result)
      }
      if result > 0 {
        buffer += part
        return true
      }
      if result == 0 { return false }
      switch code {
      case EINTR: continue
      // The other end may have made it nonblocking.
      case EAGAIN:
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        poll(&request, 1, -1)
      case ECONNRESET: return false
      default: throw Failure.system("the client", errno: code)
      }
    }
  }
}
