#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// One connection: reads requests and writes answers, on a separate thread.
///
/// It reads only the head of a request, whose size is limited, until the request is known to come from the page.
struct PageConnection {
  /// Answers a request; reads its body only by calling the closure.
  typealias Handler = @Sendable (HTTPHead, _ body: (_ limit: Int) throws -> [UInt8]) -> HTTPAnswer

  /// The body is longer than permitted, or of unknown length.
  struct TooLarge: Error {}
  private struct Ended: Error {}

  private let descriptor: Int32
  /// Called with true when a request of the page begins, and with false when the connection waits for the next.
  private let state: (_ isBusy: Bool) -> Void
  private var buffer: [UInt8] = []

  /// How long to wait for the first request, for the next ones, and for a body, in seconds.
  private static let (firstPatience, patience, bodyPatience) = (10, 60, 60)

  init(_ descriptor: Int32, state: @escaping (_ isBusy: Bool) -> Void) {
    self.descriptor = descriptor
    self.state = state
  }

  /// Serves until either end closes.
  mutating func serve(_ handler: Handler) {
    var patience = Self.firstPatience
    while let head = try? readHead(Deadline(seconds: patience)) {
      guard (try? answer(head, handler)) ?? false else { break }
      patience = Self.patience
    }
    linger()
  }

  /// - Returns: Whether another request may follow.
  private mutating func answer(_ head: HTTPHead, _ handler: Handler) throws -> Bool {
    var isWhole = head.bodyCount == 0
    // The closure lives no longer than the call.
    var reader = self
    let answer = handler(head) { limit in
      guard let count = head.bodyCount, count <= limit else { throw TooLarge() }
      reader.state(true)
      let body = try reader.read(count, Deadline(seconds: Self.bodyPatience))
      isWhole = true
      return body
    }
    self = reader
    var closes = answer.closes || head.asksToClose || !isWhole
    if case .pieces = answer.body { closes = true }
    switch answer.body {
    case .bytes(let bytes): try write(answer.head(closes: closes) + bytes)
    case .pieces(let next, let end):
      defer { end() }
      try write(answer.head(closes: closes))
      while let piece = next() { try write(piece) }
    }
    state(false)
    return !closes
  }

  // MARK: - Reading

  private mutating func readHead(_ deadline: Deadline) throws -> HTTPHead {
    var searched = 0
    while true {
      if let end = Self.headEnd(buffer, from: searched) {
        guard let head = HTTPHead(buffer[..<end.start]) else { throw Ended() }
        buffer.removeSubrange(..<end.next)
        return head
      }
      searched = max(0, buffer.count - 3)
      guard buffer.count < HTTPHead.byteLimit else { throw Ended() }
      try readSome(HTTPHead.byteLimit, deadline)
    }
  }

  /// The position of the empty line after a head.
  private static func headEnd(_ bytes: [UInt8], from start: Int) -> (start: Int, next: Int)? {
    let end: [UInt8] = [13, 10, 13, 10]
    guard bytes.count >= start + end.count else { return nil }
    for place in start...(bytes.count - end.count) where bytes[place..<place + end.count].elementsEqual(end) {
      return (place, place + end.count)
    }
    return nil
  }

  private mutating func read(_ count: Int, _ deadline: Deadline) throws -> [UInt8] {
    while buffer.count < count { try readSome(count - buffer.count, deadline) }
    defer { buffer.removeSubrange(..<count) }
    return Array(buffer[..<count])
  }

  /// Reads at most `limit` bytes, at least one.
  private mutating func readSome(_ limit: Int, _ deadline: Deadline) throws {
    guard let part = receive(min(limit, 64 << 10), deadline), !part.isEmpty else { throw Ended() }
    buffer += part
  }

  /// - Returns: nil at the deadline or if the connection broke; no bytes at the end.
  private func receive(_ limit: Int, _ deadline: Deadline) -> [UInt8]? {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while true {
      let ready = poll(&request, 1, deadline.milliseconds)
      if ready < 0, errno == EINTR { continue }
      guard ready > 0 else { return nil }
      let part = [UInt8](unsafeUninitializedCapacity: limit) { bytes, count in
        count = max(0, recv(descriptor, bytes.baseAddress, limit, 0))
      }
      return part
    }
  }

  /// Reads a little of what follows a refused request: otherwise the system would discard the answer.
  private mutating func linger() {
    shutdown(descriptor, Int32(SHUT_WR))
    let deadline = Deadline(seconds: 1)
    for _ in 0..<16 {
      guard let part = receive(64 << 10, deadline), !part.isEmpty else { return }
    }
  }

  // MARK: - Writing

  private func write(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Self.sendFlags) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw Ended() }
      rest = rest.dropFirst(count)
    }
  }

  #if canImport(Darwin)
    private static let sendFlags: Int32 = 0
  #else
    private static let sendFlags = Int32(MSG_NOSIGNAL)
  #endif
}

/// When to stop waiting.
private struct Deadline {
  private let end: ContinuousClock.Instant

  init(seconds: Int) { end = .now + .seconds(seconds) }

  /// What is left, for poll(2).
  var milliseconds: Int32 { Int32(max(0, min(1e9, (end - .now) / .milliseconds(1))).rounded(.up)) }
}
