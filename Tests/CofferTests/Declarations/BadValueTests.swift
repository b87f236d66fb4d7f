import CofferCrypto
import Foundation
import Logging
import TestSupport
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

  @Test("never hides a good one further down, in any layer")
  func hidesNothing() throws {
    let bad = layered(
      .forced(["rate": "fast"]), .arguments(["program", "-rate", "1000"]),
      .variables(prefix: "SHOP_", ["SHOP_RATE": "many"]))
    #expect(bad[.rate] == 12)
    try preferences.suite(named: Preferences.globalCollection).set(7, forKey: "rate")
    #expect(bad[.rate] == 7)
    #expect(try bad.value(of: .rate) == 7)
    #expect(try bad.origin(of: .rate) == .global)
    try preferences.set("30", forKey: "rate")
    #expect(bad[.rate] == 7)
    try preferences.set(30, forKey: "rate")
    #expect(bad[.rate] == 30)
    #expect(layered(.variables(prefix: "SHOP_", ["SHOP_RATE": "99"]))[.rate] == 99)
  }

  @Test("is reported once per value, with its place and the value used instead")
  func reported() async throws {
    let errors = preferences.errors
    let bad = layered(.variables(prefix: "SHOP_", ["SHOP_RATE": "1000"]))
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
    #expect(preferences[.rate] == 5)
    var reports: [String] = []
    for await report in errors {
      reports.append("\(report.problem?.description ?? ""): \(report.instead ?? "")")
      if reports.count == 5 { break }
    }
    #expect(
      reports == [
        "application/rate must be 1 to 100, not 1000 (in the environment variable SHOP_RATE): the default",
        "application/rate must be of type int, not string (in collection \"application\"): the default",
        "application/rate must be of type int, not string (in collection \"application\"): the default",
        "application/rate must be 1 to 100, not 0 (in collection \"suite\"): the last good value",
        "application/rate must be 1 to 100, not 400 (in collection \"global\"): the last good value",
      ])
  }

  @Test("of a type of the program's own is reported with what is missing in it")
  func reason() async throws {
    struct Frame: Codable { var width: Int }
    let frame = Key("frame", default: Frame(width: 80))
    let errors = preferences.errors
    try preferences.set(["height": 24], forKey: "frame")
    #expect(preferences[frame].width == 80)
    let report = try #require(await errors.first { _ in true })
    #expect(report.problem?.reason == "of type Frame, not dict: there is no \"width\"")
  }

  @Test("in a sealed collection, or a secret, is reported without the value")
  func sealed() async throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let preferences = try Preferences(database: database, collection: "pins")
    try await database.vault.create(key: store.key)
    try await database.seal(collection: "pins")
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

  @Test("cannot be read on the fast path either, after a good one")
  func shortWay() throws {
    preferences[.rate] = 50
    for _ in 0..<10 { #expect(preferences[.rate] == 50) }
    try preferences.set(500, forKey: "rate")
    for _ in 0..<10 { #expect(preferences[.rate] == 50) }
    try proxy.flushAndWait()
    for _ in 0..<10 { #expect(preferences[.rate] == 50) }
    try preferences.set(60, forKey: "rate")
    for _ in 0..<10 { #expect(preferences[.rate] == 60) }
  }

  @Test("6.17 leaves a program the last good one it has read, on every way to read and set it")
  func lastGood() async throws {
    let store = try TemporaryStore()
    let preferences = try Preferences(database: try store.open(), collection: "shop")
    let other = try Preferences(database: try store.open(), collection: "shop")
    func set(_ value: Value, forKey key: String) throws {
      try other.set(value, forKey: key)
      try other.flushAndWait()
    }
    let property = Preference(Keys.rate, in: preferences)
    var values = try preferences.values(of: .rate).makeAsyncIterator()
    #expect(await values.next() == 12)
    // The second good value is read by the short way only.
    for good in [30, 31] {
      try set(.int(Int64(good)), forKey: "rate")
      for _ in 0..<3 { #expect(preferences[.rate] == good) }
    }
    try set("fast", forKey: "rate")
    try set(1000, forKey: "rate")
    for _ in 0..<3 { #expect(preferences[.rate] == 31 && property.wrappedValue == 31) }
    // One who begins to listen now gets the same.
    var late = try preferences.values(of: .rate).makeAsyncIterator()
    #expect(await late.next() == 31)
    try set(32, forKey: "rate")
    #expect(preferences[.rate] == 32)
    #expect(await late.next() == 32)
    // A removed value is not a bad one.
    try other.reset(.rate)
    try other.flushAndWait()
    #expect(preferences[.rate] == 12)
    // A value read through a suite that is created for each read.
    preferences.suite(named: "acme")[.price] = 80
    #expect(preferences.suite(named: "acme")[.price] == 80)
    try preferences.proxy.setObject("free", forKey: "price", inCollection: "acme/billing")
    #expect(preferences.suite(named: "acme")[.price] == 80 && preferences.suite(named: "globex")[.price] == 100)
  }

  @Test("leaves a proxy the last good one, too, of any type")
  func lastGoodOfProxy() throws {
    let level = Key("level", in: "a", default: 0.5)
    let name = Key("name", in: "a", default: "none", limits: .count(...5))
    let list = Key("list", in: "a", default: [1])
    (proxy[level], proxy[name], proxy[list]) = (0.75, "short", [2])
    for _ in 0..<3 { #expect(proxy[level] == 0.75 && proxy[name] == "short" && proxy[list] == [2]) }
    try proxy.setObject("x", forKey: "level", inCollection: "a")
    try proxy.setObject("longer", forKey: "name", inCollection: "a")
    try proxy.setObject(7, forKey: "list", inCollection: "a")
    for _ in 0..<3 { #expect(proxy[level] == 0.75 && proxy[name] == "short" && proxy[list] == [2]) }
    try proxy.removeAllObjects(inCollection: "a")
    #expect(proxy[level] == 0.5 && proxy[name] == "none" && proxy[list] == [1])
  }

  @Test("that cannot be read leaves the last good one, too")
  func unreadable() throws {
    preferences[.rate] = 40
    #expect(preferences[.rate] == 40)
    try preferences.close()
    #expect(preferences[.rate] == 40)
    #expect(throws: CofferError.closed) { try preferences.value(of: .rate) }
  }

  @Test("of a sealed collection leaves the default, as no plaintext is kept; a kept one is dropped when it is sealed")
  func sealedLater() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let preferences = try Preferences(database: database, collection: "pins")
    preferences[.rate] = 44
    #expect(preferences[.rate] == 44)
    try database.vault.create(key: store.key)
    try preferences.flushAndWait()
    try database.seal(collection: "pins")
    #expect(preferences[.rate] == 44)
    #expect(preferences.lastGood.entry(of: .rate, in: "pins") == nil)
    try preferences.set("x", forKey: "rate")
    #expect(preferences[.rate] == 12)
    database.vault.lock()
    #expect(preferences[.rate] == 12)
  }
}

/// Cannot be decoded, and says so with the value.
private struct Quoting: Codable {
  struct Refusal: Error { let text: String }

  var text = ""

  init() {}

  init(from decoder: any Decoder) throws {
    throw Refusal(text: try decoder.singleValueContainer().decode(String.self))
  }
}

@Suite("Messages and errors", .timeLimit(.minutes(10))) struct MessageSecrecyTests {
  private let store: TemporaryStore
  private let messages: LoggedMessages
  private let proxy: ConnectionProxy
  private let canary = "canary-hunter2-correct-horse"
  private let number = 987_654_321
  private let short = Key<Secret?>("short", in: "web", limits: .count(...5))
  private let port = Key("port", in: "web", default: 1)
  private let quoting = Key("quoting", in: "web", default: Quoting())
  private let mode = Key("mode", in: "pins", default: "a", limits: .choices("a", "b"))
  private let pin = Key("pin", in: "pins", default: 1, limits: .range(1...9))

  /// A store with a value that does not match its key for each of them, those of "pins" sealed.
  init() throws {
    store = try TemporaryStore()
    let messages = LoggedMessages()
    self.messages = messages
    let database = try Database.openOrCreate(
      at: store.path, key: store.key,
      options: .init(
        busyTimeout: .milliseconds(200),
        logger: Logger(label: "test") { _ in
          CallingLogHandler(.trace) { event in
            let text = "\([event.message, event.error, event.metadata] as [Any?])"
            messages.all.withLock { $0.append(text) }
          }
        }))
    try database.vault.create(key: store.key)
    try database.seal(collection: "pins")
    proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    try proxy.setObject(Secret(canary), forKey: "short", inCollection: "web")
    try proxy.setObject(canary, forKey: "port", inCollection: "web")
    try proxy.setObject(canary, forKey: "quoting", inCollection: "web")
    try proxy.setObject(canary, forKey: "mode", inCollection: "pins")
    try proxy.setObject(number, forKey: "pin", inCollection: "pins")
  }

  private func failFlush() throws {
    try store.open().makeConnection().readWrite { _ in
      try proxy.setObject(canary, forKey: "pending", inCollection: "web")
      #expect(throws: CofferError.busy) { try proxy.flushAndWait() }
    }
  }

  private func refusal(of body: () throws -> Void) throws -> String {
    let error = try #require(throws: CofferError.self) { try body() }
    return "\(error)"
  }

  @Test("never include a secret, a sealed value, or a text that cannot be decoded or flushed")
  func secrecy() async throws {
    let failures = proxy.errors
    try failFlush()
    #expect(proxy[short] == nil && proxy[port] == 1 && proxy[quoting].text == "")
    #expect(proxy[mode] == "a" && proxy[pin] == 1)
    proxy[short] = Secret(canary)
    proxy[mode] = canary
    proxy[pin] = number
    var texts = try [
      refusal { try proxy.set(Secret(canary), for: short) },
      refusal { try proxy.set(canary, for: mode) },
      refusal { _ = try proxy.value(of: pin) },
      refusal { _ = try proxy.value(of: quoting) },
      refusal { _ = try proxy.object(forKey: "short", inCollection: "web", as: String.self) },
      refusal { try proxy.setObject([Secret(canary)], forKey: "list", inCollection: "web") },
    ]
    for await failure in failures.prefix(8) { texts.append("\(failure)") }
    let logged = messages.all.withLock { $0 }
    #expect(logged.count >= 9 && logged.contains { $0.contains("A flush failed") })
    for text in texts + logged { #expect(!text.contains(canary) && !text.contains("\(number)"), "\(text)") }
  }
}

@Suite("Modules and suites") struct ModuleTests {
  @Test("compose: a key of a module belongs to each suite's part of it, and is shared only on request")
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
    try await acme.update(.price) { $0 + 1 }
    #expect(acme[.price] == 82)
    try acme.reset(.price)
    #expect(acme[.price] == 100)
    #expect(preferences[.price] == 1)
  }
}
