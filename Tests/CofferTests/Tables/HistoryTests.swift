import CofferCompat
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("The history of an item") struct HistoryTests {
  private let fixture: HistoryFixture
  private var connection: Connection { fixture.connection }

  init() throws {
    fixture = try HistoryFixture()
  }

  // MARK: - What is kept

  @Test("has what commits overwrote and removed, newest first, with metadata, versions and times")
  func story() throws {
    #expect(try fixture.history().isEmpty)
    let first = try fixture.set("a", "m")
    #expect(try fixture.history().isEmpty)
    try connection.setTime(2000)
    let second = try fixture.set("b")
    try connection.setTime(3000)
    let removal = try fixture.set(nil)
    try connection.setTime(4000)
    try fixture.set("c")
    try connection.readWrite { try $0.replaceMetadata("n", forKey: "k", inCollection: "kept") }
    let last = try fixture.set("d")

    let history = try fixture.history()
    #expect(history.map(\.text) == ["c", "c", "b", "a"])
    #expect(history.map(\.metadata) == [.string("n"), nil, nil, .string("m")])
    #expect(history.map(\.version) == [last - 1, last - 2, second, first])
    #expect(history.map(\.endVersion) == [last, last - 1, removal, second])
    #expect(history.map { $0.modified.timeIntervalSince1970 } == [4000, 4000, 2000, 1000])
    #expect(history.map { $0.ended.timeIntervalSince1970 } == [4000, 4000, 3000, 2000])
    #expect(history.allSatisfy { $0.collection == "kept" && $0.key == "k" })
    #expect(try fixture.database.verify().problems.isEmpty)
  }

  @Test("is kept for every kind of change: replaced, removed with others, by a proxy, commit by commit")
  func kinds() throws {
    // The proxy's clock is not the fixture's.
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(maximumAge: nil), forCollection: "kept") }
    for key in ["k", "l"] { try fixture.set("1", forKey: key) }
    try connection.readWrite { try $0.replaceObject("2", forKey: "k", inCollection: "kept") }
    try connection.writeWithoutTransaction { transaction in
      try transaction.setObject("3", forKey: "k", inCollection: "kept")
      try transaction.setObject("4", forKey: "k", inCollection: "kept")
    }
    let proxy = try ConnectionProxy(database: fixture.database)
    try proxy.setObject("5", forKey: "k", inCollection: "kept", durability: .committed)
    try proxy.removeObject(forKey: "k", inCollection: "kept", durability: .committed)
    try proxy.close()
    try connection.readWrite { try $0.removeObjects(forKeys: ["k", "l", "none"], inCollection: "kept") }
    #expect(try fixture.objects() == ["5", "4", "3", "2", "1"])
    #expect(try fixture.objects(forKey: "l") == ["1"])
    #expect(try connection.read { try $0.allKeysWithHistory(inCollection: "kept") } == ["k", "l"])
  }

  @Test("gets no entry from equal values, touching, absent keys, or collections that keep none")
  func nothing() throws {
    try fixture.set("a", "m")
    try connection.readWrite { transaction in
      try transaction.setObject("a", forKey: "k", inCollection: "kept", withMetadata: "m")
      try transaction.replaceObject("a", forKey: "k", inCollection: "kept")
      try transaction.replaceMetadata("m", forKey: "k", inCollection: "kept")
      try transaction.touchRow(forKey: "k", inCollection: "kept")
      try transaction.removeObject(forKey: "absent", inCollection: "kept")
      try transaction.replaceObject("b", forKey: "absent", inCollection: "kept")
      try transaction.setObject("a", forKey: "k")
    }
    try connection.readWrite { try $0.setObject("b", forKey: "k") }
    try connection.readWrite { try $0.removeObject(forKey: "k") }
    #expect(try fixture.rowCount() == 0)
    #expect(try connection.read { try $0.history(forKey: "k") }.isEmpty)
    #expect(try connection.read { try $0.history(forKey: "k", inCollection: "none") }.isEmpty)
    #expect(try connection.read { try $0.allKeysWithHistory() }.isEmpty)
    #expect(try connection.read { try $0.historyLimits(forCollection: "") } == nil)
  }

  @Test("has committed values, not intermediate ones of a transaction")
  func onlyCommitted() throws {
    try fixture.set("a")
    try connection.readWrite { transaction in
      for object in ["b", "c", "d"] { try transaction.setObject(object, forKey: "k", inCollection: "kept") }
      try transaction.removeObject(forKey: "k", inCollection: "kept")
      try transaction.setObject("e", forKey: "k", inCollection: "kept")
      // Its own past is there at once.
      #expect(try transaction.history(forKey: "k", inCollection: "kept").map(\.text) == ["a"])
      try transaction.setObject("passing", forKey: "l", inCollection: "kept")
      try transaction.removeObject(forKey: "l", inCollection: "kept")
    }
    try fixture.set("f")
    #expect(try fixture.objects() == ["e", "a"])
    #expect(try fixture.objects(forKey: "l").isEmpty)
  }

  @Test("is unchanged after a rollback, a savepoint's rollback, and a failed operation")
  func undone() throws {
    try fixture.set("a")
    try fixture.set("b")
    try fixture.set("p", forKey: "poison")
    try connection.poison("UPDATE")
    try connection.readWrite { transaction in
      try transaction.inSavepoint {
        try transaction.setObject("c", forKey: "k", inCollection: "kept")
        #expect(try transaction.history(forKey: "k", inCollection: "kept").count == 2)
        return .rollback
      }
      #expect(try transaction.history(forKey: "k", inCollection: "kept").count == 1)
      #expect(throws: CofferError.self) { try transaction.setObject("q", forKey: "poison", inCollection: "kept") }
      #expect(throws: CofferError.self) { try transaction.replaceObject("q", forKey: "poison", inCollection: "kept") }
      try transaction.setObject("c", forKey: "other", inCollection: "kept")
    }
    #expect(try fixture.objects(forKey: "poison").isEmpty)
    try connection.readWrite { transaction in
      try transaction.setObject("c", forKey: "k", inCollection: "kept")
      try transaction.setHistoryLimits(nil, forCollection: "kept")
      transaction.rollback()
    }
    #expect(try fixture.objects() == ["a"])
    // What was undone can be done again.
    try connection.readWrite { try $0.removeObject(forKey: "poison", inCollection: "kept") }
    try fixture.set("c")
    #expect(try fixture.objects() == ["b", "a"])
    #expect(try fixture.objects(forKey: "poison") == ["p"])
  }

  @Test("is kept for empty keys and keys with NUL, for large values, and for the collection without a name")
  func oddKeys() throws {
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "") }
    for key in ["", "\0", "a\0", "a\0b", "é", "e\u{301}"] {
      let large = String(repeating: "x", count: 100_000) + key
      for object in [key, large, ""] { try connection.readWrite { try $0.setObject(object, forKey: key) } }
      #expect(try connection.read { try $0.history(forKey: key) }.map(\.text) == [large, key])
    }
    #expect(try connection.read { try $0.allKeysWithHistory() } == ["", "\0", "a\0", "a\0b", "e\u{301}", "é"])
  }

  // MARK: - Bounds

  @Test("is bounded by count for each item")
  func count() throws {
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(maximumCount: 3), forCollection: "kept") }
    for number in 0..<10 { try fixture.set("\(number)") }
    #expect(try fixture.objects() == ["8", "7", "6"])
    try fixture.set("a", forKey: "l")
    try fixture.set("b", forKey: "l")
    try fixture.set(nil)
    #expect(try fixture.objects() == ["9", "8", "7"])
    #expect(try fixture.objects(forKey: "l") == ["a"])
  }

  @Test("is bounded by the time since a value was overwritten, not since it was set")
  func age() throws {
    let limits = HistoryLimits(maximumCount: 100, maximumAge: .seconds(60))
    try connection.readWrite { try $0.setHistoryLimits(limits, forCollection: "kept") }
    try fixture.set("old", forKey: "k")
    try fixture.set("stands", forKey: "l")
    try connection.setTime(100_000)
    try fixture.set("new")
    #expect(try fixture.objects() == ["old"])
    try connection.setTime(100_060)
    try fixture.set("b", forKey: "l")
    #expect(try fixture.objects() == ["old"])
    try connection.setTime(100_061)
    // A change of any item of the collection takes the old away.
    try fixture.set("c", forKey: "l")
    #expect(try fixture.objects().isEmpty)
    #expect(try fixture.objects(forKey: "l") == ["b", "stands"])
    // A clock that was set back removes nothing.
    try connection.setTime(0)
    try fixture.set("d", forKey: "l")
    #expect(try fixture.objects(forKey: "l") == ["c", "b", "stands"])
  }

  @Test("that is too old is dropped within 64 commits, even if the key is not written, and kept if no age is set")
  func ageElsewhere() throws {
    try connection.readWrite { transaction in
      try transaction.setHistoryLimits(HistoryLimits(maximumAge: .seconds(1)), forCollection: "kept")
      try transaction.setHistoryLimits(HistoryLimits(maximumAge: nil), forCollection: "for ever")
      try transaction.setObject("1", forKey: "k", inCollection: "for ever")
    }
    try fixture.set("a")
    try fixture.set(nil)
    try connection.readWrite { try $0.removeObject(forKey: "k", inCollection: "for ever") }
    try connection.setTime(1_000_000)
    #expect(try fixture.rowCount() == 2)
    for number in 0..<64 { try connection.readWrite { try $0.setObject(number, forKey: "elsewhere") } }
    #expect(try fixture.rowCount() == 1)
    #expect(try connection.read { try $0.history(forKey: "k", inCollection: "for ever") }.map(\.text) == ["1"])
  }

  @Test("agrees with a simple model, under random changes and limits")
  func model() throws {
    var generator = SplitMix64(state: 11)
    for _ in 0..<6 {
      let limit = Int.random(in: 1...4, using: &generator)
      let fixture = try HistoryFixture(HistoryLimits(maximumCount: limit))
      var present: [String: Int] = [:]
      var past: [String: [Int]] = [:]
      for _ in 0..<60 {
        let before = present
        let number = try fixture.commitNumber()
        let isCommitted = Int.random(in: 0..<4, using: &generator) > 0
        try fixture.connection.readWrite { transaction in
          for _ in 0..<Int.random(in: 0...4, using: &generator) {
            let key = ["", "a", "b"].randomElement(using: &generator) ?? ""
            let value = Int.random(in: 0..<3, using: &generator)
            if value == 0 {
              try transaction.removeObject(forKey: key, inCollection: "kept")
              present[key] = nil
            } else {
              try transaction.setObject(value, forKey: key, inCollection: "kept")
              present[key] = value
            }
          }
          if !isCommitted { transaction.rollback() }
        }
        guard isCommitted else {
          present = before
          continue
        }
        // The store goes by what was written, the model by the result: a value set back to itself is a change.
        for key in ["", "a", "b"] {
          let history = try fixture.connection.read { try $0.history(forKey: key, inCollection: "kept") }
          let expected = (before[key].map { [$0] } ?? []) + (past[key] ?? [])
          let isEnded = before[key] != nil && history.first?.endVersion == number + 1
          if before[key] != nil, before[key] != present[key] { #expect(isEnded) }
          let kept = isEnded ? Array(expected.prefix(limit)) : past[key] ?? []
          #expect(history.map(\.value) == kept.map { .int(Int64($0)) })
          past[key] = kept
        }
      }
      try fixture.database.close()
    }
  }
}

extension HistoryFixture {
  fileprivate func commitNumber() throws -> CommitNumber { try connection.read { try $0.commitNumber() } }
}
