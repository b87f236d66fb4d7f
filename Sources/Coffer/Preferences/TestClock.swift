import CofferCrypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A clock that stands still until a test advances it; for values that expire.
///
/// ```swift
/// let clock = TestClock()
/// let preferences = try Preferences.inMemory(clock: clock)
/// try preferences.set(true, forKey: "maintenance", expires: clock.now.addingTimeInterval(7200))
/// clock.advance(by: .seconds(7200))
/// preferences.bool(forKey: "maintenance")  // false
/// ```
public final class TestClock: Sendable {
  private let state: Lock<State>

  private struct State {
    /// In milliseconds since 1970.
    var now: Int64
    var databases: [WeakDatabase] = []
  }

  /// Creates a clock.
  ///
  /// - Parameter now: The time that it shows, to the millisecond.
  public init(now: Date = Date()) {
    state = Lock(State(now: now.milliseconds))
  }

  /// The time that it shows.
  public var now: Date { Date(milliseconds: state.withLock { $0.now }) }

  /// Advances the clock.
  ///
  /// When this returns, what has expired is removed, and its change was announced.
  public func advance(by duration: Duration) {
    let (now, databases) = state.withLock { state in
      state.now += Int64(duration / .milliseconds(1))
      return (state.now, state.databases.compactMap(\.database))
    }
    for database in databases {
      database.core.clock.stop(at: now)
      database.core.expiries.check()
      database.resumption.wait()
    }
  }

  /// Lets a database use this clock.
  func drive(_ database: Database) {
    state.withLock { state in
      database.core.clock.stop(at: state.now)
      state.databases.append(WeakDatabase(database))
    }
  }
}

/// Unchecked: a weak reference is read and cleared atomically, and never assigned again.
private struct WeakDatabase: @unchecked Sendable {
  weak var database: Database?

  init(_ database: Database) { self.database = database }
}
