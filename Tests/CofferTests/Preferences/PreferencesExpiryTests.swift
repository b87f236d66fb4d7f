import CofferObservation
import Foundation
import Observation
import TestSupport
import Testing

@testable import Coffer

extension Keys {
  fileprivate static let level = Key("level", default: 1, limits: .range(...9))
  fileprivate static let name = Key("name", default: "nobody")
  fileprivate static let banner = Key<String?>("banner", in: "shop")
}

@Suite("Settings for a while") struct PreferencesExpiryTests {
  private let preferences: Preferences
  private var database: Database { preferences.database }
  /// A second and a half after the test begins.
  private let expiry = Date(milliseconds: 2500)

  init() throws {
    preferences = try Preferences.inMemory()
    database.core.clock.stop(at: 1000)
  }

  private func info(_ key: String, in collection: String? = nil) throws -> ItemInfo? {
    try preferences.flushAndWait()
    let collection = collection ?? preferences.collection
    return try database.makeConnection().read { try $0.info(forKey: key, inCollection: collection) }
  }

  /// Advances the clock, and removes what has expired.
  private func expire() {
    database.core.clock.stop(at: 2500)
    database.core.expiries.check()
  }

  @Test(
    "6.16 are gone when their time has come, flushed or not, and the next layer shows",
    arguments: [true, false])
  func gone(isFlushed: Bool) throws {
    try preferences.register(defaults: ["plain": "default"])
    try preferences.set("while", forKey: "plain", expires: expiry)
    try preferences.set(7, for: .level, expires: expiry)
    try preferences.set("n", for: .name, expires: expiry)
    try preferences.set("sale", for: .banner, expires: expiry)
    if isFlushed { try preferences.flushAndWait() }
    for _ in 0..<2 {
      #expect(preferences.string(forKey: "plain") == "while")
      #expect(preferences[.level] == 7 && preferences[.name] == "n" && preferences[.banner] == "sale")
    }
    database.core.clock.stop(at: 2500)
    #expect(preferences.string(forKey: "plain") == "default")
    #expect(preferences[.level] == 1 && preferences[.name] == "nobody" && preferences[.banner] == nil)
  }

  @Test("6.16 report that they expire: as changes, as the next value, and to a model")
  @MainActor func told() async throws {
    try preferences.set(7, for: .level, expires: expiry)
    try preferences.flushAndWait()
    let changes = try preferences.changes(of: .level)
    var values = try preferences.values(of: .level).makeAsyncIterator()
    #expect(await values.next() == 7)
    let setting = Setting(.level, in: preferences)
    let (told, continuation) = AsyncStream<Void>.makeStream()
    withObservationTracking {
      #expect(setting.value == 7)
    } onChange: {
      continuation.yield()
    }
    expire()
    #expect(await values.next() == 1)
    for await change in changes {
      #expect(change.keys == ["level"])
      break
    }
    for await _ in told { break }
    #expect(setting.value == 1)
  }

  @Test("6.16 stay if set again without a time, and keep it when updated")
  func again() throws {
    try preferences.set(7, for: .level, expires: expiry, due: expiry)
    try preferences.set("n", for: .name, expires: expiry, due: expiry)
    try preferences.flushAndWait()
    try preferences.set(7, for: .level)
    try preferences.update(.name) { $0 + "!" }
    #expect(try info("level")?.expires == nil && info("level")?.due == nil)
    #expect(try info("name")?.expires == expiry && info("name")?.due == expiry)
    expire()
    #expect(preferences[.level] == 7 && preferences[.name] == "nobody")
  }

  @Test("are set with others in one step; nil removes, and invalid values are refused")
  func batch() throws {
    try preferences.performBatch { batch in
      try batch.set(true, forKey: "maintenance", expires: expiry)
      try batch.set("sale", for: .banner, expires: expiry, due: expiry)
      try batch.set(2, for: .level)
    }
    #expect(try info("maintenance")?.expires == expiry)
    #expect(try info("banner", in: "shop")?.due == expiry)
    try preferences.set(nil, for: .banner, expires: expiry)
    #expect(try info("banner", in: "shop") == nil)
    #expect(throws: CofferError.self) { try preferences.set(10, for: .level, expires: expiry) }
    expire()
    #expect(preferences[.level] == 2 && preferences.object(forKey: "maintenance") == nil)
  }

  @Test("are set through a proxy by typed keys, too")
  func proxy() throws {
    let proxy = preferences.proxy
    try proxy.set("sale", for: .banner, expires: expiry)
    #expect(proxy[.banner] == "sale")
    #expect(try proxy.expiry(forKey: "banner", inCollection: "shop") == expiry)
    try proxy.set(nil, for: .banner, expires: expiry)
    #expect(proxy[.banner] == nil)
  }

  @Test("keep their times when a property list is merged, but not when it replaces all")
  func propertyList() throws {
    try preferences.set("x", forKey: "text", expires: expiry, due: .distantFuture)
    try preferences.flushAndWait()
    let list = try preferences.exportPropertyList()
    try preferences.importPropertyList(list)
    #expect(try info("text")?.expires == expiry && info("text")?.due == .distantFuture)
    try preferences.importPropertyList(list, mode: .replace)
    #expect(try info("text")?.expires == nil && info("text")?.due == nil)
    #expect(preferences.string(forKey: "text") == "x")
  }

  @Test("keep their times under a new name")
  func former() throws {
    try preferences.set("x", forKey: "old", expires: expiry, due: .distantFuture)
    try preferences.flushAndWait()
    try preferences.declare(Settings { Key("new", default: "", formerly: .named("old")) })
    #expect(try info("new")?.expires == expiry && info("new")?.due == .distantFuture)
  }
}
