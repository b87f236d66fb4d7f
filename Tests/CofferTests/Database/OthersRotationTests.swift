import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("A store that another program has re-encrypted since it was last read here") struct OthersRotationTests {
  private let store: TemporaryStore
  private let database: Database
  /// Keeps the log.
  private let connection: Connection

  init() throws {
    store = try TemporaryStore()
    let first = try store.open()
    try first.makeConnection().readWrite { transaction in
      // Of more pages than are checked between two steps of progress.
      for number in 0..<40 { try transaction.setObject(String(repeating: "a", count: 40_000), forKey: "\(number)") }
    }
    try first.close()
    database = try store.open()
    connection = try database.makeConnection()
    #expect(try connection.read { try $0.hasObject(forKey: "0") })
  }

  private func worker(_ command: String, _ arguments: [String] = []) throws {
    try #require(Child.run(TemporaryStore.worker, [command, store.path, store.keyFile] + arguments).status == 0)
  }

  private func hasKey(_ key: String) throws -> Bool {
    try store.open().makeConnection().read { try $0.hasObject(forKey: key) }
  }

  @Test("is whole")
  func verified() throws {
    try worker("rotate")
    #expect(try database.verify().problems.isEmpty)
  }

  @Test("is whole, if that happened while its pages were being read")
  func verifiedMeanwhile() throws {
    var hasBegun = false
    let report = try database.verify { _ in
      guard !hasBegun else { return }
      hasBegun = true
      #expect(throws: Never.self) { try worker("rotate") }
    }
    #expect(report.problems.isEmpty && hasBegun)
  }

  @Test("is re-encrypted once more")
  func rotated() throws {
    try worker("rotate")
    try database.rotate()
    #expect(try StoreFiles.epochs(store) == [3])
  }

  @Test("has lost nothing of its log")
  func log() throws {
    try worker("rotate")
    try worker("set", ["later", "1"])
    let log = try LogStatus(of: database.storeOnDisk())
    #expect(log.problems.isEmpty && log.frameCount > 0)
  }

  @Test("keeps what is in its log, if a program was killed as it committed, and this one closes the store last")
  func closed() throws {
    try worker("rotate")
    try worker("set", ["later", "1"])
    #expect(try !store.bytes("-wal").isEmpty)
    // The copies of the header of the wal-index differ then.
    let torn = ["if=/dev/zero", "of=\(store.path)-shm", "bs=1", "seek=60", "count=1", "conv=notrunc", "status=none"]
    try #require(Child.run("/bin/dd", torn).status == 0)
    try database.close()
    #expect(try hasKey("later"))
    #expect(StoreCopies.damagedLogs(besides: store.path).isEmpty)
  }
}
