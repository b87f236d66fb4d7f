import CofferStorage
import Foundation
import Testing

/// Every byte of a small store damaged in turn: the same data, a typed error, or (in the log only) an earlier commit
/// that is reported.
///
/// `COFFER_EXHAUSTIVE=1` flips every bit; without it, one bit in every 23rd byte, and in each of the first ones.
@Suite("A damaged store") struct DamageTests {
  private static let isExhaustive = ProcessInfo.processInfo.environment["COFFER_EXHAUSTIVE"] != nil

  /// A store with five commits, and what it held after each of them; open, so that its log is there.
  private func makeStore() throws -> (store: SmallStore, connection: SQLiteConnection, states: [[String]]) {
    let store = try SmallStore()
    let connection = try store.connect()
    // A page that no test reads.
    try connection.execute("CREATE TABLE unread(x)")
    var states: [[String]] = [[]]
    for commit in 0..<5 {
      try connection.write {
        for number in 0..<12 {
          try connection.set("key \(number) \(commit % 2)", String(repeating: "value \(commit) ", count: 60))
        }
      }
      states.append(try connection.contents())
    }
    return (store, connection, states)
  }

  private func flip(_ bit: Int, of offset: Int, in path: String) throws {
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    defer { try? file.close() }
    try file.seek(toOffset: UInt64(offset))
    let byte = try #require(try file.read(upToCount: 1)?.first)
    try file.seek(toOffset: UInt64(offset))
    try file.write(contentsOf: Data([byte ^ UInt8(1 << bit)]))
  }

  private func bits(_ count: Int, dense: Range<Int>) -> [(offset: Int, bit: Int)] {
    (0..<count).flatMap { offset -> [(offset: Int, bit: Int)] in
      if Self.isExhaustive { return (0..<8).map { (offset, $0) } }
      return dense.contains(offset) || offset % 23 == 0 ? [(offset, offset % 8)] : []
    }
  }

  @Test("that was closed gives the same data or a typed error for every flipped bit, and opening does not change it")
  func closedStore() throws {
    let (store, connection, states) = try makeStore()
    try connection.close()
    let original = try store.bytes()
    var outcomes: [String: Int] = [:]
    for (offset, bit) in bits(original.count, dense: 0..<300) {
      try flip(bit, of: offset, in: store.path)
      do {
        let opened = try Store.open(at: store.path, key: store.key)
        #expect(try store.contents() == states.last, "bit \(bit) of byte \(offset)")
        // What no read met, a verification finds.
        // In a closed store the log notice is empty, and anything but a whole notice is ignored.
        let isFound =
          try LogNotice.range.contains(offset) || !opened.damagedEnvelopeCopies().isEmpty
          || !opened.verifyPages { _ in }.damaged.isEmpty
        #expect(isFound, "bit \(bit) of byte \(offset)")
        outcomes["same data, found by verification", default: 0] += 1
      } catch let error as StorageError {
        guard case .damaged = error else {
          Issue.record("bit \(bit) of byte \(offset): \(error)")
          continue
        }
        outcomes["damaged", default: 0] += 1
      }
      try flip(bit, of: offset, in: store.path)
    }
    // Every flip was undone, and nothing else has happened to the file.
    #expect(try store.bytes() == original)
    print("closed store, \(original.count) bytes: \(outcomes)")
    #expect(outcomes["damaged", default: 0] > 0)
  }

  @Test("with a log gives the same data, a typed error, or an earlier commit that is reported, for every flipped bit")
  func log() throws {
    let (store, connection, states) = try makeStore()
    let copy = try store.copyAsAfterCrash()
    let (file, log) = (try copy.bytes(), try copy.bytes("-wal"))
    try connection.close()
    var outcomes: [String: Int] = [:]
    for (offset, bit) in bits(log.count, dense: 0..<80) {
      try copy.overwrite(file)
      var damaged = log
      damaged[offset] ^= UInt8(1 << bit)
      try copy.overwrite(damaged, suffix: "-wal")
      do {
        let recovering = try copy.connect()
        let found = try recovering.contents()
        if found == states.last {
          outcomes["same data", default: 0] += 1
        } else {
          #expect(states.contains(found), "bit \(bit) of byte \(offset)")
          #expect(recovering.logLoss != nil, "bit \(bit) of byte \(offset)")
          outcomes["an earlier commit, reported", default: 0] += 1
        }
        try recovering.close()
      } catch is StorageError {
        outcomes["typed error", default: 0] += 1
        try? FileManager.default.removeItem(atPath: copy.path + "-shm")
      }
    }
    print("log, \(log.count) bytes: \(outcomes)")
    #expect(outcomes["an earlier commit, reported", default: 0] > 0)
  }

  @Test("cut at any length gives the same data, a typed error, or an earlier commit")
  func cut() throws {
    let (store, connection, states) = try makeStore()
    let copy = try store.copyAsAfterCrash()
    let (crashed, log) = (try copy.bytes(), try copy.bytes("-wal"))
    try connection.close()
    let file = try store.bytes()
    for count in stride(from: 0, through: file.count, by: Self.isExhaustive ? 1 : 509) {
      try copy.overwrite(Array(file.prefix(count)))
      try? FileManager.default.removeItem(atPath: copy.path + "-wal")
      do {
        #expect(try copy.contents() == states.last, "\(count) bytes")
      } catch let error as StorageError {
        switch error {
        case .damaged, .notAStore: break
        default: Issue.record("\(count) bytes: \(error)")
        }
      }
    }
    for count in stride(from: 0, through: log.count, by: Self.isExhaustive ? 1 : 509) {
      try copy.overwrite(crashed)
      try copy.overwrite(Array(log.prefix(count)), suffix: "-wal")
      #expect(try states.contains(copy.contents()), "\(count) bytes of the log")
    }
  }
}
