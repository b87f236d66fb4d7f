import CofferCrypto
import Testing

@testable import Coffer

@Suite("What a proxy knows of the store") struct KnownStateTests {
  private func commit(_ number: CommitNumber, _ noise: UInt8 = 0) -> CommitIdentity {
    CommitIdentity(number: number, noise: [noise])
  }

  @Test("It tells its own commits from others of the same number, and forgets those that the change log no longer has")
  func ownCommits() {
    var known = KnownState()
    let last = 3 * ChangeLog.maximumRowCount
    for number in 1...last { known.willCommit(commit(number)) }
    for number in [last, last - 1, last - ChangeLog.maximumRowCount] { #expect(known.isOwn(commit(number))) }
    for other in [commit(1), commit(last + 1), commit(last, 1)] { #expect(!known.isOwn(other)) }
    known.didNotCommit(commit(last))
    #expect(!known.isOwn(commit(last)) && known.isOwn(commit(last - 1)))
    known.reach(last - 1)
    #expect(!known.isOwn(commit(last - 1)))
  }
}
