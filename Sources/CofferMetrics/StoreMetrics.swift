#if Metrics
  import Coffer
  import Metrics

  /// What a database does, as numbers of swift-metrics.
  ///
  /// ```swift
  /// MetricsSystem.bootstrap(factory)  // The program's backend, first.
  /// let options = Database.Options(meter: StoreMetrics(store: "settings"))
  /// let preferences = try Preferences.open(application: "org.example.shop", options: options)
  /// ```
  ///
  /// Each has the dimension `store`:
  ///
  /// | name | kind | unit | |
  /// | --- | --- | --- | --- |
  /// | `coffer.reads` | counter | items | read through a proxy or `Preferences`; the dimension `from` is `memory`, for a hit, or `store` |
  /// | `coffer.sets` | counter | keys | set or removed through a proxy or `Preferences` |
  /// | `coffer.pending` | meter | changes | not committed yet |
  /// | `coffer.flush.duration` | timer | time | from a flush's beginning, the wait for its lock included, to its commit |
  /// | `coffer.flush.changes` | recorder | changes | in one flush |
  /// | `coffer.flush.failures` | counter | flushes | that failed, and lost nothing |
  /// | `coffer.flush.retries` | counter | flushes | tried again after one that failed |
  /// | `coffer.lock.wait` | timer | time | that a write transaction waited for others |
  /// | `coffer.log.bytes` | meter | bytes | of the log after a commit |
  /// | `coffer.verification.duration` | timer | time | that `Database.verify()` took |
  /// | `coffer.verification.problems` | meter | problems | that it found the last time |
  ///
  /// A timer records nanoseconds; the backend says in which unit it shows them, and milliseconds are what is asked for.
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
    ///   - store: What tells its numbers from those of other stores of the program.
    ///   - factory: The backend; that of the program unless another is given.
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

    /// Hands a measurement on.
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
#endif
