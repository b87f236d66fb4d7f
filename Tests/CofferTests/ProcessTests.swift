import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Several processes", .serialized) struct ProcessTests {
  private let store: TemporaryStore

  init() throws {
    store = try TemporaryStore()
  }

  @Test("read what another one set, of any type")
  func samples() throws {
    try store.open().close()
    #expect(try store.worker("set-samples").status == 0)
    let check = try store.worker("check-samples")
    #expect(check.status == 0, "\(check.text)")
  }

  @Test("4.14, 4.15 that hammer one collection through proxies read nothing stale, and their updates add up")
  func hammers() throws {
    let count = Self.isSoak ? 20_000 : 400
    let proxy = try ConnectionProxy(database: store.open())
    let hammer = Hammer(proxy, name: "parent", partner: "child")
    let process = try store.startWorker("hammer", "\(count)")
    let isChecked = DispatchSemaphore(value: 0)
    let checkedCount = Lock(0)
    DispatchQueue.global().async {
      var text = Data()
      while true {
        let more = process.output.availableData
        guard !more.isEmpty else { break }
        text += more
        while let end = text.firstIndex(of: UInt8(ascii: "\n")) {
          let number = Int(String(decoding: text[..<end], as: UTF8.self))
          text = Data(text[(end + 1)...])
          #expect(throws: Never.self) { try hammer.expect(#require(number)) }
          checkedCount.withLock { $0 += 1 }
        }
      }
      isChecked.signal()
    }
    try hammer.run(count) { process.input.write(Data("\($0)\n".utf8)) }
    try process.input.close()
    isChecked.wait()
    #expect(process.end() == 0)
    #expect(checkedCount.withLock { $0 } == count)
    let sum: Int? = try proxy.object(forKey: "shared", inCollection: Hammer.collection)
    #expect(sum == 2 * count)
  }

  @Test("4.8 that run out of space in a flush keep everything readable and pending, and write it once there is space")
  func fullDisk() throws {
    try store.open().close()
    let child = try store.worker("full-disk", "100")
    #expect(child.status == 0)
    let lines = child.text.split(separator: "\n")
    #expect(lines.count == 5)
    for index in [0, 2] where lines.count == 5 {
      #expect(lines[index].hasPrefix("refused: "))
      #expect(lines[index + 1] == "all readable and pending")
    }
    #expect(lines.last == "flushed, 0 pending")
    let connection = try store.open().makeConnection()
    #expect(try connection.read { try $0.numberOfKeys() } == 101)
    let last: String? = try connection.read { try $0.object(forKey: "99") }
    #expect(last == String(repeating: "99 ", count: 2000))
  }

  @Test("that create a store concurrently all get the same one")
  func creators() throws {
    try FileManager.default.removeItem(atPath: store.keyFile)
    let processes = try (0..<4).map { _ in try store.startWorker("create") }
    for process in processes {
      #expect(process.end() == 0)
    }
    let keys = try store.open().makeConnection().read { try $0.allKeys() }
    #expect(Set(keys) == Set(processes.map { "creator \($0.id)" }))
    let names = try FileManager.default.contentsOfDirectory(atPath: store.folder)
    #expect(!names.contains { $0.hasSuffix(".tmp") })
  }

  @Test("that each write 1,000 keys concurrently lose none")
  func writers() throws {
    let connection = try store.open().makeConnection()
    let processes = try ["a", "b"].map { try store.startWorker("insert", $0, "1000") }
    for process in processes {
      #expect(process.end() == 0)
    }
    let keys = try connection.read { try $0.allKeys(inCollection: "numbers") }
    #expect(Set(keys) == Set(["a", "b"].flatMap { prefix in (0..<1000).map { "\(prefix)\($0)" } }))
    #expect(try connection.read { try $0.commitNumber() } == 2001)
  }

  @Test("that commit once and end say in the log what is on the disk: damage to that is reported, and the log kept")
  func oneCommitEach() throws {
    let store = try TemporaryStore()
    // Keeps the log.
    let database = try store.open()
    for number in 0..<5 { #expect(try store.worker("set", "k\(number)", "v").status == 0) }
    let crashed = try TemporaryStore()
    try store.copyAsAfterCrash(to: crashed)
    try database.close()
    let log = URL(fileURLWithPath: crashed.path + "-wal")
    var bytes = try Data(contentsOf: log)
    bytes[32 + 24 + 100] ^= 1
    try bytes.write(to: log)
    try crashed.open().close()
    #expect(try Data(contentsOf: URL(fileURLWithPath: crashed.path + "-damaged-log-1")) == bytes)
  }

  @Test("that are killed lose no commit they had acknowledged, 20 times (200 with COFFER_SOAK)")
  func killedWriters() throws {
    try store.open().close()
    for round in 0..<(Self.isSoak ? 200 : 20) {
      let process = try store.startWorker("acknowledge", "\(round).")
      // So many commits, then the signal, wherever the writer is by then.
      var text = Data()
      while text.filter({ $0 == UInt8(ascii: "\n") }).count < 10 + 7 * (round % 20) {
        let more = process.output.availableData
        try #require(!more.isEmpty)
        text += more
      }
      kill(process.id, SIGKILL)
      text += process.output.readDataToEndOfFile()
      process.end()
      let acknowledged = String(decoding: text, as: UTF8.self).split(separator: "\n").count
      let connection = try store.open().makeConnection()
      try connection.read { transaction in
        for number in 0..<acknowledged {
          let value: String? = try transaction.object(forKey: "\(round).\(number)", inCollection: "kept")
          #expect(value?.hasSuffix(" \(number)") == true, "round \(round) lost \(number) of \(acknowledged)")
        }
      }
    }
    #expect(try store.open().verify().problems.isEmpty)
  }

  @Test(
    "4.10 flush at their normal exit, with a proxy in hand or just released",
    arguments: [
      "exit-without-flush", "release-without-flush",
    ])
  func exit(_ command: String) throws {
    try store.open().close()
    #expect(try store.worker(command).status == 0)
    #expect(try store.open().makeConnection().read { try $0.numberOfKeys(inCollection: "exit") } == 500)
  }

  @Test("4.10 end without their last flush if another one keeps the lock")
  func exitWithoutLock() throws {
    let connection = try store.open().makeConnection()
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k")
      #expect(try store.worker("exit-without-flush").status == 0)
    }
    #expect(try connection.read { try $0.numberOfKeys(inCollection: "exit") } == 0)
  }

  /// How much the heavy tests do; `COFFER_SOAK=1` does all that is promised.
  private static let isSoak = ProcessInfo.processInfo.environment["COFFER_SOAK"] != nil

  @Test("that write, checkpoint and read concurrently lose nothing, and see no error")
  func manyAtOnce() throws {
    let count = Self.isSoak ? 10_000 : 500
    let database = try store.open()
    let writers = try ["a", "b"].map { try store.startWorker("insert", $0, "\(count)") }
    let reader = try store.startWorker("read", "\(2 * count)")
    var checkpointCount = 0
    let connection = try database.makeConnection()
    while writers.contains(where: \.isRunning) {
      try connection.perform { try $0.connection.execute("PRAGMA wal_checkpoint(RESTART)") }
      checkpointCount += 1
    }
    for process in writers + [reader] {
      #expect(process.end() == 0)
    }
    #expect(checkpointCount > 3)
    #expect(try connection.read { try $0.numberOfKeys(inCollection: "numbers") } == 2 * count)
    #expect(try database.verify().problems.isEmpty)
  }

  @Test("that recover one log concurrently all find every commit in it")
  func recoveryByMany() throws {
    let database = try store.open()
    let connection = try database.makeConnection()
    for number in 0..<200 { try connection.readWrite { try $0.setObject(number, forKey: "\(number)") } }
    for _ in 0..<5 {
      let crashed = try TemporaryStore()
      try store.copyAsAfterCrash(to: crashed)
      let processes = try ["a", "b", "c", "d"].map { try crashed.startWorker("insert", $0, "5") }
      for process in processes {
        #expect(process.end() == 0)
      }
      try crashed.open().makeConnection().read { transaction in
        let count = try transaction.numberOfKeys()
        #expect(count == 200)
        #expect(try transaction.numberOfKeys(inCollection: "numbers") == 20)
      }
    }
  }

  @Test("4.10 may still write while they exit")
  func writeAtExit() throws {
    try store.open().close()
    let child = try store.worker("write-at-exit")
    #expect(child.status == 0)
    #expect(child.text == "written\n")
    #expect(try store.open().makeConnection().read { try $0.hasObject(forKey: "late") })
  }

  @Test("that were forked get an error that the database belongs to the parent")
  func fork() throws {
    try store.open().close()
    let child = try store.worker("fork")
    #expect(child.text == "child 42\nparent [\"after\", \"before\"]\n")
  }

  @Test("find a lock of another one busy, and free after its death")
  func busy() throws {
    try store.open().close()
    let process = try store.startWorker("hold-write-lock")
    #expect(process.readLine() == "locked")
    let connection = try store.open(busyTimeout: .milliseconds(20)).makeConnection()
    #expect(throws: CofferError.busy) { try connection.readWrite { try $0.setObject(1, forKey: "k") } }
    #expect(try connection.read { try $0.allKeys() }.isEmpty)
    process.kill()
    try connection.readWrite { try $0.setObject(1, forKey: "k") }
    #expect(try connection.read { try $0.allKeys() } == ["k"])
  }
}
