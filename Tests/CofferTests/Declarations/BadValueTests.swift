import Foundation
import Testing

@testable import Coffer

extension Keys {
  fileprivate static let rate = Key("rate", default: 12, limits: .range(1...100))
  fileprivate static let price = Key("price", in: "billing", default: 100)
  fileprivate static let currency = Key("currency", in: "billing", isShared: true, default: "EUR")
}

@Suite("A bad value") struct BadValueTests {
  private let preferences: Preferences
  private var proxy: ConnectionProxy { preferences.proxy }

  init() throws {
    preferences = try Preferences.inMemory()
  }

  private func layered(_ layers: Preferences.Layer...) -> Preferences {
    Preferences(proxy: proxy, collection: preferences.collection, layers: layers)
  }

  @Test("never hides a good one further down, wherever it stands")
  func hidesNothing() throws {
    let bad = layered(
      .forced(["rate": "fast"]), .arguments(["program", "-rate", "1000"]),
      .environment(prefix: "SHOP_", ["SHOP_RATE": "many"]))
    #expect(bad[.rate] == 12)
    try preferences.suite(named: Preferences.globalCollection).set(7, forKey: "rate")
    #expect(bad[.rate] == 7)
    #expect(try bad.value(of: .rate) == 7)
    #expect(try bad.origin(of: .rate) == .global)
    try preferences.set("30", forKey: "rate")
    #expect(bad[.rate] == 7)
    try preferences.set(30, forKey: "rate")
    #expect(bad[.rate] == 30)
    #expect(layered(.environment(prefix: "SHOP_", ["SHOP_RATE": "99"]))[.rate] == 99)
  }

  @Test("is reported once a value, with its place and what is used instead")
  func reported() async throws {
    let errors = preferences.errors
    let bad = layered(.environment(prefix: "SHOP_", ["SHOP_RATE": "1000"]))
    for _ in 0..<1000 { #expect(bad[.rate] == 12) }
    try preferences.set("31", forKey: "rate")
    for _ in 0..<1000 { #expect(bad[.rate] == 12) }
    try preferences.set("32", forKey: "rate")
    for _ in 0..<1000 { #expect(bad[.rate] == 12) }
    try preferences.suite(named: Preferences.globalCollection).set(400, forKey: "rate")
    preferences.addSuite(named: "suite")
    try preferences.suite(named: "suite").set(5, forKey: "rate")
    for _ in 0..<1000 { #expect(preferences[.rate] == 5) }
    try preferences.suite(named: "suite").set(0, forKey: "rate")
    #expect(preferences[.rate] == 12)
    var reports: [String] = []
    for await report in errors {
      reports.append("\(report.problem?.description ?? ""): \(report.instead ?? "")")
      if reports.count == 5 { break }
    }
    #expect(
      reports == [
        "application/rate is 1 to 100, not 1000 (in the environment's SHOP_RATE): the default",
        "application/rate is of type int, not string (in collection \"application\"): the default",
        "application/rate is of type int, not string (in collection \"application\"): the default",
        "application/rate is 1 to 100, not 0 (in collection \"suite\"): the default",
        "application/rate is 1 to 100, not 400 (in collection \"global\"): the default",
      ])
  }

  @Test("in a sealed collection, or a secret, is reported without the value")
  func sealed() async throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let preferences = try Preferences(database: database, collection: "pins")
    try database.vault.create(key: store.key)
    try database.seal(collection: "pins")
    let errors = preferences.errors
    try preferences.set(987_654, forKey: "rate")
    #expect(preferences[.rate] == 12)
    let report = try #require(await errors.first { _ in true })
    #expect(report.problem?.reason == "1 to 100, and the value is not")
    #expect(throws: CofferError.invalidValue(collection: "pins", key: "rate", reason: "1 to 100, and the value is not"))
    {
      try preferences.set(987_654, for: .rate)
    }
  }

  @Test("cannot be read by the short way either, after a good one was")
  func shortWay() throws {
    preferences[.rate] = 50
    for _ in 0..<10 { #expect(preferences[.rate] == 50) }
    try preferences.set(500, forKey: "rate")
    for _ in 0..<10 { #expect(preferences[.rate] == 12) }
    try proxy.flushAndWait()
    for _ in 0..<10 { #expect(preferences[.rate] == 12) }
    try preferences.set(60, forKey: "rate")
    for _ in 0..<10 { #expect(preferences[.rate] == 60) }
  }
}

@Suite("Modules and suites") struct ModuleTests {
  @Test("compose: a key of a module lies in each suite's own part of it, and in everyone's only when it says so")
  func compose() async throws {
    let preferences = try Preferences.inMemory()
    let acme = preferences.suite(named: "acme")
    acme[.price] = 80
    acme[.currency] = "USD"
    #expect(preferences[.price] == 100)
    #expect(preferences.suite(named: "globex")[.price] == 100)
    #expect(acme[.price] == 80)
    #expect(preferences[.currency] == "USD")
    #expect(try preferences.proxy.object(forKey: "price", inCollection: "acme/billing") == 80)
    #expect(try preferences.proxy.object(forKey: "currency", inCollection: "billing") == "USD")
    #expect(try acme.origin(of: .price) == .suite("acme/billing"))
    var values = try acme.values(of: .price).makeAsyncIterator()
    #expect(await values.next() == 80)
    preferences[.price] = 1
    try acme.performBatch { try $0.set(81, for: .price) }
    #expect(await values.next() == 81)
    try acme.update(.price) { $0 + 1 }
    #expect(acme[.price] == 82)
    try acme.reset(.price)
    #expect(acme[.price] == 100)
    #expect(preferences[.price] == 1)
  }
}
