/// What counts and times what a database does, for monitoring.
///
/// `StoreMetrics` in the product CofferMetrics hands everything on to swift-metrics. One of your own goes into
/// ``Database/Options/meter``:
///
/// ```swift
/// final class FlushCounter: DatabaseMeter {
///   let count = Atomic<Int>(0)
///
///   func record(_ measurement: DatabaseMeasurement) {
///     if case .flush = measurement { count.add(1, ordering: .relaxed) }
///   }
/// }
/// ```
public protocol DatabaseMeter: Sendable {
  /// Takes one measurement, on the thread that does the work, some with locks held: count it and return.
  ///
  /// Nothing may be read or written from here.
  func record(_ measurement: DatabaseMeasurement)
}

/// One thing that a database has done, without keys or values.
public enum DatabaseMeasurement: Sendable, Equatable {
  /// One item was read through a proxy or `Preferences`.
  ///
  /// - `fromMemory`: Whether it was answered without a look into the store.
  case read(fromMemory: Bool)
  /// So many keys were set or removed through a proxy or `Preferences`.
  case set(count: Int)
  /// So many changes are not committed yet.
  case pending(count: Int)
  /// So many changes were committed by a proxy, in that time.
  case flush(changeCount: Int, duration: Duration)
  /// A flush failed; its changes stay pending.
  case flushFailure
  /// A flush that had failed is tried again.
  case flushRetry
  /// A write transaction waited so long for others, of this process or another, until it could begin.
  case lockWait(Duration)
  /// The log is so large after a commit.
  case log(byteCount: Int)
  /// The store was verified, in that time.
  case verification(problemCount: Int, duration: Duration)
}

/// The time since it was made, for a meter.
///
/// An object, as there hardly ever is one: copying none costs nothing.
package final class Stopwatch: Sendable {
  package let meter: any DatabaseMeter
  private let start = ContinuousClock.now

  package init(_ meter: any DatabaseMeter) {
    self.meter = meter
  }

  package func record(_ measurement: (Duration) -> DatabaseMeasurement) {
    meter.record(measurement(start.duration(to: .now)))
  }
}
