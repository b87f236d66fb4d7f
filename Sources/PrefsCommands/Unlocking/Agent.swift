import Coffer
import Dispatch
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Keeps the key of a vault for a limited time, and hands it to processes of the same user.
///
/// It exits when the time is over, on request, at SIGTERM, and when its socket is gone or replaced by another
/// agent's.
final class Agent: Sendable {
  private let key: Mutex<SecretBytes?>
  private let listener: Int32
  private let path: String
  private let identity: AgentSocket.Identity?
  private let deadline: ContinuousClock.Instant
  private let queue = DispatchQueue(label: "prefs.agent")

  /// The interval, in seconds, to check the socket, and a clock that runs while the machine sleeps.
  private static let interval = 5.0

  init(key: SecretBytes, listener: Int32, path: String, ttl: TimeToLive) {
    self.key = Mutex(key)
    self.listener = listener
    self.path = path
    identity = AgentSocket.Identity(path)
    deadline = .now + .seconds(ttl.seconds)
  }

  /// Serves requests until the end.
  func run() -> Never {
    let connections = DispatchSource.makeReadSource(fileDescriptor: listener, queue: queue)
    connections.setEventHandler { self.serveOne() }
    connections.resume()
    let signals = [SIGTERM, SIGINT, SIGHUP].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler { self.end() }
      source.resume()
      return source
    }
    queue.async { self.watch() }
    withExtendedLifetime((connections, signals)) { dispatchMain() }
  }

  /// Ends when the time is over; else checks again later.
  private func watch() {
    let left = deadline - .now
    guard left > .zero, identity != nil, AgentSocket.Identity(path) == identity else { end() }
    queue.asyncAfter(deadline: .now() + min(Self.interval, left / .seconds(1))) { self.watch() }
  }

  private func serveOne() {
    let connection = accept(listener, nil, nil)
    guard connection >= 0 else { return }
    defer { close(connection) }
    AgentSocket.setTimeouts(connection)
    guard AgentSocket.isPeerThisUser(connection) else { return }
    var byte: UInt8 = 0
    guard read(connection, &byte, 1) == 1 else { return }
    switch AgentRequest(rawValue: byte) {
    case .key:
      guard deadline > .now, let key = key.withLock({ $0 }) else { end() }
      try? key.withUnsafeBytes { try FileDescriptor.writeAll($0, to: connection, named: "a connection") }
    case .remainingTime:
      let text = "\(max(0, (deadline - .now) / .seconds(1)))"
      try? FileDescriptor.writeAll(text.utf8, to: connection, named: "a connection")
    case .stop: end()
    case nil: break
    }
  }

  /// Wipes the key and exits; the connections close with the process.
  private func end() -> Never {
    if identity != nil, AgentSocket.Identity(path) == identity { unlink(path) }
    key.withLock { $0 = nil }
    exit(0)
  }
}
