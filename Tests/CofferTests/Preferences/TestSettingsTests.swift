import Foundation
import Testing

@testable import Coffer

extension Keys {
  fileprivate static let size = Key("size", default: 12)
}

@Suite("Settings for tests") struct TestSettingsTests {
  @Test("6.13, 6.16 expire by a clock that a test advances, and that is announced when it returns")
  func clock() async throws {
    let clock = TestClock(now: Date(timeIntervalSince1970: 1_000_000))
    let preferences = try Preferences.inMemory(clock: clock)
    try preferences.set(true, forKey: "maintenance", expires: clock.now.addingTimeInterval(7200))
    try preferences.set(20, for: .size, expires: clock.now.addingTimeInterval(60))
    try await preferences.flush()
    let changes = try preferences.changes()
    clock.advance(by: .seconds(60))
    #expect(preferences[.size] == 12 && preferences.bool(forKey: "maintenance"))
    #expect(clock.now == Date(timeIntervalSince1970: 1_000_060))
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next()?.keys == ["size"])
    clock.advance(by: .seconds(7140))
    #expect(!preferences.bool(forKey: "maintenance"))
    #expect(await iterator.next()?.keys == ["maintenance"])
  }

  @Test("6.13 fail as a test wants, and lose nothing")
  func faults() throws {
    let faults = StoreFaults()
    let preferences = try Preferences.inMemory(faults: faults)
    try preferences.set(20, for: .size, durability: .committed)
    #expect(preferences[.size] == 20)
    let damage = CofferError.damaged(part: "pages", reason: "as the test wants")
    faults.setReading(damage)
    #expect(throws: damage) { try preferences.value(of: .size) }
    #expect(throws: damage) { try preferences.throwing.value(forKey: "size") }
    // The last good one.
    #expect(preferences[.size] == 20)
    faults.setReading(nil)
    #expect(try preferences.value(of: .size) == 20)
    faults.setWriting(.diskFull(path: "settings.coffer"))
    try preferences.set(21, for: .size)
    #expect(throws: CofferError.diskFull(path: "settings.coffer")) { try preferences.flushAndWait() }
    #expect(try preferences.value(of: .size) == 21)
    faults.setWriting(nil)
    try preferences.flushAndWait()
    #expect(
      try preferences.database.makeConnection().read { try $0.object(forKey: "size", inCollection: "application") }
        == 21)
  }

  @Test("6.13 are an error where a test has not set the standard ones, as in a detached task, and not its end")
  func standard() async throws {
    let value = try await Preferences.withStandard(.inMemory()) {
      Preferences.standard[.size] = 20
      #expect(Preferences.standard[.size] == 20)
      return await Task.detached { () -> Int in
        #expect(throws: CofferError.standardNotSet) { try Preferences.standard.value(of: .size) }
        #expect(throws: CofferError.standardNotSet) {
          try Preferences.standard.set(1, for: .size, durability: .committed)
        }
        let other = Key("other", default: 5)
        #expect(throws: CofferError.standardNotSet) { try Preferences.standard.set(1, for: other) }
        return Preferences.standard[other]
      }.value
    }
    #expect(value == 5)
  }
}
