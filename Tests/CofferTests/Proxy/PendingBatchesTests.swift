import CofferStorage
import Testing

@testable import Coffer

@Suite("The batches of a proxy") struct PendingBatchesTests {
  private let identity = CommitIdentity(number: 7, noise: [1])

  private func opened(_ count: Int) -> PendingBatches {
    var batches = PendingBatches()
    for _ in 0..<count {
      batches.open()
      batches.closeNewest()
    }
    return batches
  }

  @Test("4.6 are open, taken, in flight and committed, one after another")
  func phases() {
    var batches = opened(2)
    #expect(batches.phase == .none)
    #expect(batches.take(through: 1).map(\.number) == [1])
    #expect(batches.phase == .taken && batches.takenNumber == 1 && batches.untaken.map(\.number) == [2])
    batches.markInFlight(identity, through: 1, hasMore: false)
    #expect(batches.phase == .inFlight && batches.batches.count == 2)
    #expect(batches.removeCommitted(through: 1).map(\.number) == [1])
    #expect(batches.phase == .committed && batches.inFlight == nil && batches.batches.map(\.number) == [2])
    #expect(batches.endFlush() == nil)
    #expect(batches.phase == .none && batches.takenNumber == 0)
  }

  @Test("4.6 are open again after a flush that has failed, before its commit or in it", arguments: [false, true])
  func failure(isInFlight: Bool) {
    var batches = opened(1)
    _ = batches.take(through: 1)
    if isInFlight { batches.markInFlight(identity, through: 1, hasMore: false) }
    #expect(batches.endFlush() == (isInFlight ? identity : nil))
    #expect(batches.phase == .none && batches.inFlight == nil)
    #expect(batches.untaken.map(\.number) == [1])
    batches.dropUntaken()
    #expect(batches.batches.isEmpty)
  }

  @Test("4.6 may be taken by a listener's flush as soon as the ones before are committed")
  func nestedFlush() {
    var batches = opened(1)
    _ = batches.take(through: 1)
    batches.markInFlight(identity, through: 1, hasMore: false)
    _ = batches.removeCommitted(through: 1)
    batches.open()
    #expect(batches.take(through: 2).map(\.number) == [2])
    #expect(batches.phase == .taken)
  }

  @Test("4.6 are settled once, whether by a reader that has found the commit or by the flush")
  func settledByReader() {
    var batches = opened(1)
    _ = batches.take(through: 1)
    batches.markInFlight(identity, through: 1, hasMore: false)
    #expect(batches.removeCommitted(through: 1).count == 1)
    #expect(batches.removeCommitted(through: 1).isEmpty)
    #expect(batches.phase == .committed)
  }

  #if DEBUG
    @Test("4.6 skip no step of a flush: a debug build ends with the two steps")
    func skippedStep() async {
      let error = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        var batches = PendingBatches()
        _ = batches.take(through: 0)
        _ = batches.take(through: 0)
      }
      let text = error.map { String(decoding: $0.standardErrorContent, as: UTF8.self) } ?? ""
      #expect(text.contains("a flush cannot be taken after taken"))
    }
  #endif

  @Test("4.6 wait for the writes that were queued before them")
  func otherWrites() {
    var batches = PendingBatches()
    #expect(!batches.areOtherWritesQueued)
    batches.open()
    batches.queueOtherWrite()
    batches.open()
    #expect(batches.lastNumber == 2 && batches.areOtherWritesQueued)
    _ = batches.take(through: 1)
    _ = batches.removeCommitted(through: 1)
    #expect(batches.areOtherWritesQueued)
    _ = batches.endFlush()
    _ = batches.take(through: 2)
    _ = batches.removeCommitted(through: 2)
    #expect(!batches.areOtherWritesQueued)
  }
}
