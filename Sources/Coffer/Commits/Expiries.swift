import CofferCrypto
import CofferStorage
import Dispatch
import Synchronization

/// The clock of a database: the wall clock, unless a test stops it.
package final class DatabaseClock: Sendable {
  /// The minimum means that it is not stopped.
  private let fixed = Atomic<Int64>(.min)

  /// Milliseconds since 1970.
  package var now: Int64 {
    let fixed = fixed.load(ordering: .relaxed)
    return fixed == .min ? Clock.millisecondsSince1970 : fixed
  }

  /// Stops the clock at `time`; for tests.
  package func stop(at time: Int64) { fixed.store(time, ordering: .relaxed) }
}

/// Removes items when they expire, so that the change is reported.
///
/// Correctness does not depend on it: no reader sees an expired item, and every writer removes it first. This covers the
/// time when nothing is written.
package final class Expiries: Sendable {
  private let clock: DatabaseClock
  private let isReadOnly: Bool
  private let onExpiry: @Sendable () -> Void
  private let next = Lock(Int64.max)

  /// The wall clock may be set: never wait longer than this.
  private static let longestWait: Int64 = 60_000
  /// How long to wait before a second attempt.
  private static let retryDelay: Int64 = 5_000

  /// - Parameter onExpiry: Removes expired items, or says that they are, on any thread.
  package init(clock: DatabaseClock, isReadOnly: Bool, onExpiry: @escaping @Sendable () -> Void) {
    self.clock = clock
    self.isReadOnly = isReadOnly
    self.onExpiry = onExpiry
  }

  /// Schedules an expiry.
  package func expect(at time: Int64) {
    guard !isReadOnly else { return }
    let isSooner = next.withLock { next in
      guard time < next else { return false }
      next = time
      return true
    }
    if isSooner { wait(until: time) }
  }

  /// Schedules the next expiry that the connection shows.
  func look(_ connection: SQLiteConnection) throws {
    guard !isReadOnly, let time = try Items(connection: connection).nextExpiry() else { return }
    expect(at: time)
  }

  func tryAgainLater() { expect(at: clock.now + Self.retryDelay) }

  /// Checks the clock immediately, after it was set.
  package func check() {
    let time = next.withLock { $0 }
    if time != .max { reach(time) }
  }

  private func wait(until time: Int64) {
    let delay = min(max(0, time - clock.now), Self.longestWait)
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .milliseconds(Int(delay))) { [weak self] in
      self?.reach(time)
    }
  }

  private func reach(_ time: Int64) {
    let isDue = next.withLock { next -> Bool? in
      // Something sooner was scheduled, or it has been removed.
      guard next == time else { return nil }
      guard time <= clock.now else { return false }
      next = .max
      return true
    }
    guard let isDue else { return }
    if isDue { onExpiry() } else { wait(until: time) }
  }
}
