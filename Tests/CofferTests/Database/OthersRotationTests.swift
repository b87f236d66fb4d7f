import CofferCrypto
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

  @Test("is not salvaged, if its pages are under keys that the one that opened it does not vouch for")
  func salvaged() throws {
    try database.close()
    let before = try Store.peekEnvelope(at: store.path)
    // The command runs once the envelope is read, and before any page is.
    let newRootKey = "'\(TemporaryStore.worker)' lock-out '\(store.path)' '\(store.keyFile)' && "
    let key = KeySource.keyCommand("\(newRootKey) \(newRootKey) cat '\(store.keyFile)'")
    let target = store.folder + "/salvaged.coffer"
    #expect(throws: CofferError.rootKeyUnverified(path: database.path)) {
      try Database.salvage(at: store.path, key: key, to: target, newKey: store.key)
    }
    #expect(access(target, F_OK) != 0)
    #expect(try Store.peekEnvelope(at: store.path).epochs[0].number > before.epochs[0].number)
  }

  /// As by a program that is killed as it commits: the two copies of the header of the wal-index differ.
  private func tearIndex() throws {
    let output = ["of=\(store.path)-shm", "seek=60", "bs=1", "count=1", "conv=notrunc", "status=none"]
    try #require(Child.run("/bin/dd", ["if=/dev/zero"] + output).status == 0)
  }

  @Test("keeps what is in its log, if a program was killed as it committed, and this one closes the store last")
  func closed() throws {
    try worker("rotate")
    try worker("set", ["later", "1"])
    #expect(try !store.bytes("-wal").isEmpty)
    try tearIndex()
    try database.close()
    #expect(try hasKey("later"))
    #expect(StoreCopies.damagedLogs(besides: store.path).isEmpty)
  }

  @Test("keeps its log, if this program is locked out, and closes the store last")
  func lockedOut() throws {
    let passphrase = KeySource.passphrase(SecretBytes(copying: "other".utf8))
    try database.addSlot(passphrase, stretching: .scrypt(log2N: 14, r: 8, p: 1))
    try database.close()
    let other = try Database.open(at: store.path, key: passphrase, options: .quiet)
    let connection = try other.makeConnection()
    #expect(try connection.read { try $0.hasObject(forKey: "0") })
    try worker("lock-out", ["1"])
    try worker("set", ["later", "1"])
    #expect(throws: StorageError.wrongKey) { try LogStatus(of: other.storeOnDisk()) }
    #expect(throws: CofferError.wrongKey) { try other.verify() }
    let log = try store.bytes("-wal")
    try tearIndex()
    try other.close()
    #expect(try store.bytes("-wal") == log)
    #expect(try hasKey("later"))
  }

  @Test("has its damaged log until the next opening, which says so, if this program closes it last")
  func damaged() throws {
    for key in ["1", "2", "3"] { try worker("set", ["later", key]) }
    let log = try store.bytes("-wal")
    let place = Layout.logHeaderByteCount + Layout.frameByteCount + 100
    // Closing a descriptor of the log here drops no lock.
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: store.path + "-wal"))
    try file.seek(toOffset: UInt64(place))
    try file.write(contentsOf: [~log[place]])
    try file.close()
    try tearIndex()
    try database.close()
    #expect(try store.bytes("-wal").count == log.count)
    #expect(StoreCopies.damagedLogs(besides: store.path).isEmpty)
    let reopened = try store.open()
    #expect(reopened.logProblem != nil || reopened.logNote != nil)
    #expect(try reopened.verify().problems.isEmpty)
  }
}
