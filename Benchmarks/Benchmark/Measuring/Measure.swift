import Dispatch
import Foundation
import Synchronization

/// Clocks and counters.
enum Measure {
  static func nanoseconds() -> UInt64 { DispatchTime.now().uptimeNanoseconds }

  /// How long one measurement of a fast operation lasts, without preparations.
  private static let window: UInt64 = 30_000_000
  /// The maximum number of repetitions of an operation that needs preparation each time.
  private static let maximumRunCount = 50

  /// The nanoseconds of one of the `count` operations of `body`, which is run again and again for a while.
  ///
  /// The median of the runs, so that a run disturbed by another program does not count.
  ///
  /// - Parameter prepare: Done before each run, and not measured.
  static func nanoseconds(
    each count: Int, preparing prepare: (() throws -> Void)? = nil, _ body: () throws -> Void
  ) rethrows -> Double {
    var elapsed: UInt64 = 0
    var times: [UInt64] = []
    repeat {
      try prepare?()
      let start = nanoseconds()
      try body()
      let time = nanoseconds() - start
      elapsed += time
      times.append(time)
    } while elapsed < window && (prepare == nil || times.count < maximumRunCount)
    return Double(times.sorted()[times.count / 2]) / Double(count)
  }

  /// The median of some measurements: for single events, which are disturbed now and then.
  static func median(of count: Int, _ measure: () throws -> Double) rethrows -> Double {
    try (0..<count).map { _ in try measure() }.sorted()[count / 2]
  }

  // MARK: Threads

  private final class Race: Sendable {
    let missing: Atomic<Int>
    let times = Mutex<[Result<Double, any Error>]>([])

    init(count: Int) {
      missing = Atomic(count)
    }
  }

  /// The nanoseconds of one operation of `body` run by `threadCount` threads concurrently: the mean of the threads.
  static func nanoseconds(
    onThreads threadCount: Int, each count: Int, _ body: @escaping @Sendable () throws -> Void
  ) throws -> Double {
    let race = Race(count: threadCount)
    let finished = DispatchSemaphore(value: 0)
    for _ in 0..<threadCount {
      let thread = Thread {
        race.missing.subtract(1, ordering: .acquiringAndReleasing)
        while race.missing.load(ordering: .acquiring) > 0 {}
        let time = Result { try nanoseconds(each: count, body) }
        race.times.withLock { $0.append(time) }
        finished.signal()
      }
      thread.start()
    }
    for _ in 0..<threadCount { finished.wait() }
    return try race.times.withLock { times in try times.reduce(0) { $0 + (try $1.get()) } / Double(threadCount) }
  }

  private final class Companion: Sendable {
    let isDone = Atomic(false)
    let longest = Mutex<Result<UInt64, any Error>>(.success(0))
  }

  /// The nanoseconds of the longest run of `operation`, which another thread runs again and again until `body` is done.
  static func longestNanoseconds(
    of operation: @escaping @Sendable () throws -> Void, during body: () throws -> Void
  ) throws -> Double {
    let companion = Companion()
    let (hasBegun, hasEnded) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let thread = Thread {
      let longest = Result {
        try operation()
        hasBegun.signal()
        var longest: UInt64 = 0
        while !companion.isDone.load(ordering: .relaxed) {
          let start = nanoseconds()
          try operation()
          longest = max(longest, nanoseconds() - start)
        }
        return longest
      }
      companion.longest.withLock { $0 = longest }
      hasBegun.signal()
      hasEnded.signal()
    }
    thread.start()
    hasBegun.wait()
    let result = Result { try body() }
    companion.isDone.store(true, ordering: .relaxed)
    hasEnded.wait()
    try result.get()
    return try Double(companion.longest.withLock { try $0.get() })
  }

  // MARK: Processor time

  /// The microseconds that all threads of this process spend on `body`, in user and kernel mode; the mean of some
  /// runs.
  static func processorMicroseconds(
    runs runCount: Int, preparing prepare: () throws -> Void, _ body: () throws -> Void
  ) rethrows -> Double {
    var sum = 0.0
    for _ in 0..<runCount {
      try prepare()
      letOthersFinish()
      let start = processorMicroseconds()
      try body()
      letOthersFinish()
      sum += processorMicroseconds() - start
    }
    return sum / Double(runCount)
  }

  /// Sleeps, which costs next to nothing, until what `body` left to other threads is done: the kernel counts the time of
  /// a thread that is still at work only from tick to tick.
  private static func letOthersFinish() {
    usleep(1000)
  }

  /// Of all threads since the process began: like `getrusage` with `RUSAGE_SELF`, in finer units.
  private static func processorMicroseconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1000
  }

  // MARK: Memory

  /// The resident memory of this process, in bytes.
  static func residentByteCount() throws -> Int {
    #if os(Linux)
      let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
      guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
        let kibibytes = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({ Int($0) })
      else { throw Failure(reason: "/proc/self/status does not say VmRSS") }
      return kibibytes << 10
    #else
      var info = mach_task_basic_info()
      var count = mach_msg_type_number_t(MemoryLayout<mach_task_basic_info>.size / MemoryLayout<natural_t>.size)
      let code = withUnsafeMutablePointer(to: &info) { info in
        info.withMemoryRebound(to: integer_t.self, capacity: Int(count)) {
          task_info(mach_task_self_, task_flavor_t(MACH_TASK_BASIC_INFO), $0, &count)
        }
      }
      guard code == KERN_SUCCESS else { throw Failure(reason: "task_info failed with \(code)") }
      return Int(info.resident_size)
    #endif
  }
}
