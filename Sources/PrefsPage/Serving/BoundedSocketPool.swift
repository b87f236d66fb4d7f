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
///
/// Where there are too many, the one that has waited longest is closed: a browser has said what it wants by then.
struct BoundedSocketPool<Base: AsyncSocketPool>: AsyncSocketPool {
  private let base: Base
  private let waiting = Waiting()

  private static var limit: Int { 128 }
  private static var patience: Duration { .seconds(30) }

  init(_ base: Base) { self.base = base }

  func prepare() async throws { try await base.prepare() }

  func run() async throws { try await base.run() }

  func suspendSocket(_ socket: Socket, untilReadyFor events: Socket.Events) async throws {
    if Self.isListening(socket) { return try await base.suspendSocket(socket, untilReadyFor: events) }
    let time = Task { try await Task.sleep(for: Self.patience) }
    let number = waiting.enter(time, limit: Self.limit)
    defer {
      waiting.leave(number)
      time.cancel()
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await base.suspendSocket(socket, untilReadyFor: events) }
      group.addTask {
        // Over, or cut short by others.
        try? await time.value
        throw SocketError.disconnected
      }
      // Both end at once then: the group waits for each.
      defer {
        time.cancel()
        group.cancelAll()
      }
      try await group.next()
    }
  }

  private static func isListening(_ socket: Socket) -> Bool {
    var isListening: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(socket.file.rawValue, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0 && isListening != 0
  }
}

/// The connections that wait, the one that has waited longest first.
private final class Waiting: Sendable {
  private struct State {
    var next = 0
    var entries: [(number: Int, time: Task<Void, any Error>)] = []
  }

  private let state = Mutex(State())

  func enter(_ time: Task<Void, any Error>, limit: Int) -> Int {
    state.withLock { state in
      if state.entries.count >= limit { state.entries.removeFirst().time.cancel() }
      state.next += 1
      state.entries.append((state.next, time))
      return state.next
    }
  }

  func leave(_ number: Int) {
    state.withLock { state in state.entries.removeAll { $0.number == number } }
  }
}
