import CofferCrypto

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
    /// Make the databases with these faults forget what is in memory.
    var forgetting: [@Sendable () -> Void] = []
  }

  /// Creates failures that are not there yet.
  public init() {}

  /// Lets all reads fail that are not answered by pending changes; nil lets them succeed again.
  public func setReading(_ error: CofferError?) {
    let forgetting = state.withLock { state in
      state.reading = error
      return state.forgetting
    }
    // What is in memory would be read without the store.
    for forget in forgetting { forget() }
  }

  /// Lets all writes fail; nil lets them succeed again.
  public func setWriting(_ error: CofferError?) {
    state.withLock { $0.writing = error }
  }

  /// Lets everything fail, also what would only be pending, if the proxy has a filter.
  func setAll(_ error: CofferError) {
    state.withLock { ($0.writing, $0.setting) = (error, error) }
    setReading(error)
  }

  func checkSetting() throws { if let error = state.withLock({ $0.setting }) { throw error } }

  func checkReading() throws { if let error = state.withLock({ $0.reading }) { throw error } }

  func checkWriting() throws { if let error = state.withLock({ $0.writing }) { throw error } }

  /// - Parameter forget: Makes a database with these faults forget what is in memory.
  func affect(_ forget: @escaping @Sendable () -> Void) {
    state.withLock { $0.forgetting.append(forget) }
  }
}
