import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Unchecked: `lock` protects the pair.
private final class Pair: @unchecked Sendable {
  let lock = ReadersWriterLock()
  private var first = 0
  private var second = 0

  func change() {
    lock.withExclusive {
      first += 1
      sched_yield()
      second += 1
    }
  }

  var isWhole: Bool {
    lock.withShared {
      let first = first
      sched_yield()
      return first == second
    }
  }
  var count: Int { lock.withShared { first } }
}

@Suite("The lock of a proxy") struct ReadersWriterLockTests {
  private let pair = Pair()

  /// Runs `body` in so many threads that live at the same time, all of which have read before it begins.
  private func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let pair = pair
    let haveRead = DispatchGroup()
    let areDone = DispatchGroup()
    for _ in 0..<count { haveRead.enter() }
    for number in 0..<count {
      areDone.enter()
      Thread.detachNewThread {
        defer { areDone.leave() }
        _ = pair.isWhole
        haveRead.leave()
        haveRead.wait()
        body(number)
      }
    }
    areDone.wait()
  }

  // Forty threads are more than have a stripe to themselves; those of the second time find some of the stripes free again.
  @Test(
    "No thread reads during a change, however many there are", arguments: [[3, 3], [40, 3], [40, 40]])
  func manyThreads(counts: [Int]) {
    let pair = pair
    for count in counts {
      inThreads(count) { number in
        for _ in 0..<500 {
          if number % 3 == 0 { pair.change() } else { #expect(pair.isWhole) }
        }
      }
    }
    #expect(pair.isWhole)
    #expect(pair.count == counts.reduce(0) { $0 + ($1 + 2) / 3 * 500 })
  }

  @Test("A change waits for every reader, in its own stripe and in a shared one", arguments: [3, 40])
  func waiting(readerCount: Int) {
    let pair = pair
    let areIn = DispatchSemaphore(value: 0)
    let mayLeave = DispatchSemaphore(value: 0)
    let haveLeft = DispatchSemaphore(value: 0)
    let isChanged = DispatchGroup()
    let areDone = DispatchGroup()
    for _ in 0..<readerCount {
      areDone.enter()
      Thread.detachNewThread {
        pair.lock.withShared {
          areIn.signal()
          mayLeave.wait()
        }
        haveLeft.signal()
        areDone.leave()
      }
    }
    for _ in 0..<readerCount { areIn.wait() }
    isChanged.enter()
    Thread.detachNewThread {
      pair.change()
      isChanged.leave()
    }
    // One of them is in still when all others have left; a change that did not wait would be done meanwhile.
    for _ in 1..<readerCount { mayLeave.signal() }
    for _ in 1..<readerCount { haveLeft.wait() }
    #expect(isChanged.wait(timeout: .now() + .milliseconds(50)) == .timedOut)
    mayLeave.signal()
    areDone.wait()
    isChanged.wait()
    #expect(pair.count == 1)
  }

  // The mutex that stands in for the thread sanitizer keeps no order.
  #if os(Linux) && !COFFER_THREAD_SANITIZER
    /// Runs `body` in a thread, and returns when it waits for something.
    private func startUntilWaiting(_ group: DispatchGroup, _ body: @escaping @Sendable () -> Void) {
      // Not a semaphore, which the thread might wait for.
      let thread = Started()
      group.enter()
      Thread.detachNewThread {
        // PROCESS/task/THREAD
        let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
        thread.id.store(link?.split(separator: "/").last.flatMap { Int($0) } ?? 0, ordering: .releasing)
        body()
        group.leave()
      }
      while true {
        let id = thread.id.load(ordering: .acquiring)
        // proc_pid_stat(5): the state follows the name, which is in parentheses.
        if id != 0, let stat = try? String(contentsOfFile: "/proc/self/task/\(id)/stat", encoding: .utf8),
          stat.split(separator: ")").last?.hasPrefix(" S") == true
        {
          return
        }
        sched_yield()
      }
    }

    private final class Started: Sendable { let id = Atomic<Int>(0) }
    private final class Seen: Sendable { let count = Atomic<Int>(-1) }

    @Test("A read that waits for a change comes before the next change, so that a flush of many steps holds no read up")
    func turns() {
      let pair = pair
      for round in 0..<100 {
        let areDone = DispatchGroup()
        let seen = Seen()
        pair.lock.withExclusive {
          startUntilWaiting(areDone) { seen.count.store(pair.count, ordering: .releasing) }
          startUntilWaiting(areDone) { pair.change() }
        }
        areDone.wait()
        #expect(seen.count.load(ordering: .acquiring) == round && pair.count == round + 1)
      }
    }
  #endif
}
