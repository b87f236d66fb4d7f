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

/// Failures of a store in memory; for tests of what a program does then.
///
/// ```swift
/// let faults = StoreFaults()
/// let preferences = try Preferences.inMemory(faults: faults)
/// faults.setWriting(.diskFull(path: "settings.coffer"))
/// try preferences.set(5, for: .retries)             // In memory.
/// do { try preferences.flushAndWait() } catch { }   // CofferError.diskFull; nothing is lost.
/// faults.setWriting(nil)
/// try preferences.flushAndWait()
/// ```
public final class StoreFaults: Sendable {
  private let state = Lock(State())

  private struct State {
    var reading: CofferError?
    var writing: CofferError?
    /// Thrown when a value is set through a proxy with a filter.
    var setting: CofferError?
    var databases: [WeakDatabase] = []
  }

  /// Creates failures that are not there yet.
  public init() {}

  /// Lets all reads fail that are not answered by pending changes; nil lets them succeed again.
  public func setReading(_ error: CofferError?) {
    let databases = state.withLock { state in
      state.reading = error
      return state.databases.compactMap(\.database)
    }
    // What is in memory would be read without the store.
    for database in databases { database.forgetItems() }
  }

  /// Lets all writes fail; nil lets them succeed again.
  public func setWriting(_ error: CofferError?) {
    state.withLock { $0.writing = error }
  }

  /// Lets everything fail, also what would only be pending.
  func setAll(_ error: CofferError, of preferences: Preferences) {
    state.withLock { ($0.writing, $0.setting) = (error, error) }
    setReading(error)
    preferences.proxy.writtenCollectionsFilter = .only([])
  }

  func checkSetting() throws { if let error = state.withLock({ $0.setting }) { throw error } }

  func checkReading() throws { if let error = state.withLock({ $0.reading }) { throw error } }

  func checkWriting() throws { if let error = state.withLock({ $0.writing }) { throw error } }

  /// - Parameter database: A database that was made with these faults.
  func affect(_ database: Database) {
    state.withLock { $0.databases.append(WeakDatabase(database)) }
  }
}

/// Unchecked: a weak reference is read and cleared atomically, and never assigned again.
private struct WeakDatabase: @unchecked Sendable {
  weak var database: Database?

  init(_ database: Database) { self.database = database }
}
