import CofferStorage
import Foundation
import Testing

@testable import Coffer
@testable import CofferMaintenance

/// Every byte of a small store damaged in turn: the same data, a typed error, or (in the log only) an earlier commit
/// that is reported.
///
/// `COFFER_EXHAUSTIVE=1` flips every bit; without it, one bit in every 23rd byte, and in each of the first ones.
@Suite("A damaged store") struct DamageTests {
  private typealias Contents = [String: [String: Value]]
  private static let isExhaustive = ProcessInfo.processInfo.environment["COFFER_EXHAUSTIVE"] != nil

  private func contents(_ connection: Connection) throws -> Contents {
    try connection.read { transaction in
      var contents: Contents = [:]
      for collection in try transaction.allCollections() {
        for key in try transaction.allKeys(inCollection: collection) {
          contents[collection, default: [:]][key] = try transaction.value(forKey: key, inCollection: collection)
        }
      }
      return contents
    }
  }

  /// A store with five commits, and what it held after each of them; open, so that its log is there.
  private func makeStore() throws -> (store: TemporaryStore, connection: Connection, states: [Contents]) {
    let store = try TemporaryStore()
    let database = try store.open()
    let connection = try database.makeConnection()
    var states: [Contents] = [[:]]
    for commit in 0..<5 {
      try connection.readWrite { transaction in
        for number in 0..<4 {
          try transaction.setObject(
            "value \(commit)", forKey: "key \(number)", inCollection: "collection \(commit % 2)")
        }
        try transaction.setObject(commit, forKey: "commit")
      }
      states.append(try contents(connection))
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

  @Test("that was closed gives the same data or a typed error for every flipped bit, and is not changed by opening")
  func closedStore() throws {
    let (store, connection, states) = try makeStore()
    try connection.database.close()
    let original = try store.bytes()
    var outcomes: [String: Int] = [:]
    for (offset, bit) in bits(original.count, dense: 0..<300) {
      try flip(bit, of: offset, in: store.path)
      do {
        let database = try store.open()
        #expect(try contents(database.makeConnection()) == states.last, "bit \(bit) of byte \(offset)")
        // What no read met, a verification finds.
        let status = try database.status()
        let isFound = try !status.damagedEnvelopeCopies.isEmpty || !database.verify().problems.isEmpty
        #expect(isFound, "bit \(bit) of byte \(offset)")
        try database.close()
        outcomes["same data, found by verification", default: 0] += 1
      } catch let error as CofferError {
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
    let copy = try TemporaryStore()
    try store.copyAsAfterCrash(to: copy)
    let (file, log) = (try copy.bytes(), try copy.bytes("-wal"))
    try connection.database.close()
    var outcomes: [String: Int] = [:]
    for (offset, bit) in bits(log.count, dense: 0..<80) {
      try file.write(to: URL(fileURLWithPath: copy.path))
      var damaged = log
      damaged[offset] ^= UInt8(1 << bit)
      try damaged.write(to: URL(fileURLWithPath: copy.path + "-wal"))
      do {
        let database = try copy.open()
        let found = try contents(database.makeConnection())
        if found == states.last {
          outcomes["same data", default: 0] += 1
        } else {
          #expect(states.contains(found), "bit \(bit) of byte \(offset)")
          #expect(database.logProblem != nil, "bit \(bit) of byte \(offset)")
          outcomes["an earlier commit, reported", default: 0] += 1
        }
        try database.close()
      } catch is CofferError {
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
    let copy = try TemporaryStore()
    try store.copyAsAfterCrash(to: copy)
    let log = try copy.bytes("-wal")
    try connection.database.close()
    let file = try store.bytes()
    for count in stride(from: 0, through: file.count, by: Self.isExhaustive ? 1 : 509) {
      try file.prefix(count).write(to: URL(fileURLWithPath: copy.path))
      try? FileManager.default.removeItem(atPath: copy.path + "-wal")
      do {
        let database = try copy.open()
        #expect(try contents(database.makeConnection()) == states.last, "\(count) bytes")
        try database.close()
      } catch let error as CofferError {
        switch error {
        case .damaged, .notAStore: break
        default: Issue.record("\(count) bytes: \(error)")
        }
      }
    }
    for count in stride(from: 0, through: log.count, by: Self.isExhaustive ? 1 : 509) {
      try file.write(to: URL(fileURLWithPath: copy.path))
      try log.prefix(count).write(to: URL(fileURLWithPath: copy.path + "-wal"))
      let database = try copy.open()
      #expect(try states.contains(contents(database.makeConnection())), "\(count) bytes of the log")
      try database.close()
    }
  }
}
