#if Metrics
  import Coffer
  import Metrics

  /// The activity of a database as metrics of swift-metrics.
  ///
  /// ```swift
  /// MetricsSystem.bootstrap(factory)  // The program's backend, first.
  /// let options = Database.Options(meter: StoreMetrics(store: "settings"))
  /// let preferences = try Preferences.open(application: "org.example.shop", options: options)
  /// ```
  ///
  /// Each metric has the dimension `store`:
  ///
  /// | name | kind | unit | |
  /// | --- | --- | --- | --- |
  /// | `coffer.reads` | counter | items | read through a proxy or `Preferences`; the dimension `from` is `memory`, for a hit, or `store` |
  /// | `coffer.sets` | counter | keys | set or removed through a proxy or `Preferences` |
  /// | `coffer.pending` | meter | changes | not committed yet |
  /// | `coffer.flush.duration` | timer | time | from the start of a flush, including the wait for its lock, to its commit |
  /// | `coffer.flush.changes` | recorder | changes | in one flush |
  /// | `coffer.flush.failures` | counter | flushes | that failed, without losing changes |
  /// | `coffer.flush.retries` | counter | flushes | retried after a failure |
  /// | `coffer.lock.wait` | timer | time | that a write transaction waited for others |
  /// | `coffer.log.bytes` | meter | bytes | of the log after a commit |
  /// | `coffer.verification.duration` | timer | time | that `Database.verify()` took |
  /// | `coffer.verification.problems` | meter | problems | found by the last verification |
  ///
  /// Timers record nanoseconds, with milliseconds as the preferred display unit; the backend decides which unit it shows.
  public struct StoreMetrics: DatabaseMeter {
    private let readsFromMemory: Counter
    private let readsFromStore: Counter
    private let sets: Counter
    private let pending: Meter
    private let flushDuration: Timer
    private let flushChanges: Recorder
    private let flushFailures: Counter
    private let flushRetries: Counter
    private let lockWait: Timer
    private let logByteCount: Meter
    private let verificationDuration: Timer
    private let verificationProblems: Meter

    /// - Parameters:
    ///   - store: Distinguishes the metrics of this store from those of the program's other stores.
    ///   - factory: The backend; the program's by default.
    public init(store: String, factory: any MetricsFactory = MetricsSystem.factory) {
      let store = ("store", store)
      func counter(_ name: String, _ more: (String, String)...) -> Counter {
        Counter(label: "coffer." + name, dimensions: [store] + more, factory: factory)
      }
      func meter(_ name: String) -> Meter { Meter(label: "coffer." + name, dimensions: [store], factory: factory) }
      func timer(_ name: String) -> Timer {
        Timer(label: "coffer." + name, dimensions: [store], preferredDisplayUnit: .milliseconds, factory: factory)
      }
      readsFromMemory = counter("reads", ("from", "memory"))
      readsFromStore = counter("reads", ("from", "store"))
      sets = counter("sets")
      pending = meter("pending")
      flushDuration = timer("flush.duration")
      flushChanges = Recorder(label: "coffer.flush.changes", dimensions: [store], factory: factory)
      flushFailures = counter("flush.failures")
      flushRetries = counter("flush.retries")
      lockWait = timer("lock.wait")
      logByteCount = meter("log.bytes")
      verificationDuration = timer("verification.duration")
      verificationProblems = meter("verification.problems")
    }

    /// Passes a measurement on.
    public func record(_ measurement: DatabaseMeasurement) {
      switch measurement {
      case .read(let fromMemory): (fromMemory ? readsFromMemory : readsFromStore).increment()
      case .set(let count): sets.increment(by: count)
      case .pending(let count): pending.set(count)
      case .flush(let changeCount, let duration):
        flushDuration.record(duration: duration)
        flushChanges.record(changeCount)
      case .flushFailure: flushFailures.increment()
      case .flushRetry: flushRetries.increment()
      case .lockWait(let duration): lockWait.record(duration: duration)
      case .log(let byteCount): logByteCount.set(byteCount)
      case .verification(let problemCount, let duration):
        verificationDuration.record(duration: duration)
        verificationProblems.set(problemCount)
      }
    }
  }
#else
  public import Coffer

  /// Not built: the package's trait `Metrics` is not enabled.
  @available(
    *, unavailable,
    message: "enable the trait \"Metrics\" in your Package.swift, as in .package(…, traits: [\"Metrics\"])"
  )
  public struct StoreMetrics: DatabaseMeter {
    /// Not built.
    public init(store: String) { fatalError() }
    /// Not built.
    public func record(_ measurement: DatabaseMeasurement) { fatalError() }
  }
#endif
