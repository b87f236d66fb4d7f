import FlyingSocks
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Keeps connections that say nothing from using up the process: few of them wait at once, and none for long.
struct BoundedSocketPool<Base: AsyncSocketPool>: AsyncSocketPool {
  private let base: Base
  private let waiting = Waiting()

  private final class Waiting: Sendable {
    let count = Mutex(0)
  }

  private static var limit: Int { 128 }
  private static var patience: Duration { .seconds(30) }

  init(_ base: Base) { self.base = base }

  func prepare() async throws { try await base.prepare() }

  func run() async throws { try await base.run() }

  func suspendSocket(_ socket: Socket, untilReadyFor events: Socket.Events) async throws {
    if Self.isListening(socket) { return try await base.suspendSocket(socket, untilReadyFor: events) }
    try waiting.count.withLock { count in
      guard count < Self.limit else { throw SocketError.disconnected }
      count += 1
    }
    defer { waiting.count.withLock { $0 -= 1 } }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await base.suspendSocket(socket, untilReadyFor: events) }
      group.addTask {
        try await Task.sleep(for: Self.patience)
        throw SocketError.disconnected
      }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  private static func isListening(_ socket: Socket) -> Bool {
    var isListening: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(socket.file.rawValue, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0 && isListening != 0
  }
}
