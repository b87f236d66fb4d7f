/// Counts and times what a database does, for monitoring.
///
/// `StoreMetrics` in the product CofferMetrics passes everything on to swift-metrics. To use a meter of your own, set
/// ``DatabaseOptions/meter``:
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
  /// Takes one measurement, on the thread that does the work, sometimes with locks held: count it and return.
  ///
  /// It must not read or write the database.
  func record(_ measurement: DatabaseMeasurement)
}

/// One thing that a database has done, without keys or values.
///
/// Later versions may add cases: have a `default`.
public enum DatabaseMeasurement: Sendable, Equatable {
  /// One item was read through a proxy or `Preferences`.
  ///
  /// - `fromMemory`: Whether it was answered without access to the store.
  case read(fromMemory: Bool)
  /// This many keys were set or removed through a proxy or `Preferences`.
  case set(count: Int)
  /// This many changes are not committed yet.
  case pending(count: Int)
  /// A proxy committed this many changes, in this time.
  case flush(changeCount: Int, duration: Duration)
  /// A flush failed; its changes stay pending.
  case flushFailure
  /// A failed flush is being retried.
  case flushRetry
  /// A write transaction waited this long for others, in this process or another, before it began.
  case lockWait(Duration)
  /// The size of the log after a commit.
  case log(byteCount: Int)
  /// The store was verified, in this time.
  case verification(problemCount: Int, duration: Duration)
}

/// The time since its creation, for a meter.
///
/// A class, because there is rarely one: passing nil around costs nothing.
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
