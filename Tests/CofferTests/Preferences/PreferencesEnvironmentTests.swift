import CofferCompat
import Foundation
import TestSupport
import Testing

@testable import Coffer

extension Keys {
  fileprivate static let size = Key("size", default: 12, limits: .range(1...100))
  fileprivate static let name = Key("name", default: "none")
  fileprivate static let rate = Key("rate", in: "billing", default: 100, limits: .range(1...1000))
  fileprivate static let currency = Key("currency", in: "billing", isShared: true, default: "EUR")
  fileprivate static let width = Key("width", default: 80, formerly: .named("columns"))
  fileprivate static let price = Key("price", in: "billing", default: 1, formerly: .named("cost", in: "money"))
}

@Suite("Settings in an environment") struct PreferencesEnvironmentTests {
  private let database: Database
  private let base: Preferences
  private let staging: Preferences

  init() throws {
    database = try Database.inMemory()
    base = try Preferences(database: database, collection: "web")
    try database.makeConnection().readWrite {
      _ = try $0.makeEnvironment("staging", of: "web")
    }
    // Both see what is not flushed yet.
    staging = Preferences(
      proxy: base.proxy, collection: "web", overrides: Overrides([]), registered: RegisteredDefaults(),
      environment: "staging")
  }

  private func object(_ key: String, _ collection: String) throws -> Int? {
    try database.makeConnection().read { try $0.object(forKey: key, inCollection: collection, as: Int.self) }
  }

  @Test("A name is split at its last @ if an environment can follow")
  func names() throws {
    for (name, parent, environment) in [
      ("web@staging", "web", "staging"), ("@a-b_1", "", "a-b_1"), ("acme/billing@x", "acme/billing", "x"),
      ("ann@example.org@x", "ann@example.org", "x"),
    ] {
      let read = try #require(CollectionEnvironment(collection: name))
      #expect(read.parent == parent && read.name == environment && read.collection == name)
    }
    for name in ["web", "web@", "ann@example.org", "a@b@c", "a@b/c", "a@é", ""] {
      #expect(CollectionEnvironment(collection: name) == nil, "\(name)")
    }
    for (name, parent) in [("", "web"), ("a b", "web"), ("x", "web@staging")] {
      #expect(throws: CofferError.self) { try CollectionEnvironment(name, of: parent) }
    }
  }

  @Test(
    "A change concerns a typed key with its own collection if the environment, or a suite, has that collection")
  func changeOfTypedKey() async throws {
    let suite = staging.suite(named: "acme")
    for (preferences, other) in [(staging, base.suite(named: "acme")), (suite, staging)] {
      var changes = try preferences.changes(of: .rate, .size).makeAsyncIterator()
      try other.set(150, for: .rate)
      try preferences.set(200, for: .rate)
      let change = try #require(await changes.next())
      #expect(change.concerns(.rate) && !change.concerns(.currency) && !change.concerns(.size))
      #expect(change.keys == ["rate"])
      try preferences.reset(.rate)
    }
  }

  @Test("A missing one is an error, and an empty one is not")
  func absent() throws {
    #expect(throws: CofferError.environmentNotFound(environment: "stagin", collection: "web")) {
      try Preferences(database: database, collection: "web", environment: "stagin")
    }
    #expect(throws: CofferError.self) { try Preferences(database: database, collection: "web", environment: "a b") }
    try staging.set(14, for: .size)
    try staging.flushAndWait()
    try database.makeConnection().readWrite { try $0.removeAllObjects(inCollection: "web@staging") }
    _ = try Preferences(database: database, collection: "web", environment: "staging")
    try database.makeConnection().readWrite { try $0.removeAllObjectsInAllCollections() }
    _ = try Preferences(database: database, collection: "web", environment: "staging")
    let environment = try CollectionEnvironment("staging", of: "web")
    #expect(try database.makeConnection().readWrite { try $0.removeEnvironment(environment) })
    #expect(throws: CofferError.self) { try Preferences(database: database, collection: "web", environment: "staging") }
    #expect(try !database.makeConnection().readWrite { try $0.removeEnvironment(environment) })
  }

  @Test("Values not set there come from the parent, with their origin, and writes go to the environment")
  func layers() throws {
    try base.set(20, for: .size)
    #expect(staging[.size] == 20 && staging.integer(forKey: "size") == 20)
    #expect(try staging.origin(of: .size) == .parent("web"))
    #expect(staging.origin(ofKey: "size") == .parent("web"))
    staging[.size] += 1
    #expect(staging[.size] == 21 && base[.size] == 20)
    #expect(try staging.origin(of: .size) == .application)
    #expect(staging.collection == "web@staging" && staging.environment == "staging")
    #expect(try staging.update(.name) { $0 + "!" } == "none!")
    #expect(base[.name] == "none")
    #expect(staging.dictionaryRepresentation()["size"] as? Int == 21)
    try staging.reset(.size)
    #expect(staging[.size] == 20)
    try base.reset(.size)
    try base.suite(named: Preferences.globalCollection).set(7, forKey: "size")
    #expect(staging[.size] == 7)
    #expect(try staging.origin(of: .size) == .global)
  }

  @Test("Keys that name a collection, and suites, have their own part in the environment")
  func parts() throws {
    base[.rate] = 80
    #expect(staging[.rate] == 80)
    // Once more, by the short way.
    #expect(staging[.rate] == 80)
    #expect(try staging.origin(of: .rate) == .suite("billing"))
    staging[.rate] = 90
    #expect(staging[.rate] == 90 && base[.rate] == 80)
    let tenant = staging.suite(named: "acme")
    base.suite(named: "acme")[.rate] = 5
    #expect(tenant[.rate] == 5)
    tenant[.rate] = 6
    tenant[.currency] = "USD"
    try tenant.set(3, forKey: "size")
    try staging.flushAndWait()
    #expect(try object("rate", "billing@staging") == 90 && object("rate", "acme/billing@staging") == 6)
    #expect(try object("size", "acme@staging") == 3)
    #expect(staging[.currency] == "USD" && base[.currency] == "EUR")
    staging.addSuite(named: "acme")
    #expect(staging[.size] == 3)
    #expect(try staging.origin(of: .size) == .suite("acme@staging"))
  }

  @Test("A bad value there does not hide the good one of the parent")
  func badValue() throws {
    try base.set(30, for: .size)
    try staging.set(400, forKey: "size")
    #expect(staging[.size] == 30)
    base[.rate] = 50
    try database.makeConnection().readWrite {
      try $0.setObject("many", forKey: "rate", inCollection: "billing@staging")
    }
    #expect(staging[.rate] == 50)
  }

  @Test("A change of the parent is reported while it is visible")
  func changes() async throws {
    var values = try staging.values(of: .rate).makeAsyncIterator()
    #expect(await values.next() == 100)
    base[.rate] = 80
    #expect(await values.next() == 80)
    staging[.rate] = 90
    #expect(await values.next() == 90)
    // Hidden, and so no event; the next one is.
    base[.rate] = 70
    staging[.rate] = 91
    #expect(await values.next() == 91)
    try staging.reset(.rate)
    #expect(await values.next() == 70)
    var sizes = try staging.values(of: .size).makeAsyncIterator()
    #expect(await sizes.next() == 12)
    base[.size] = 13
    #expect(await sizes.next() == 13)
  }

  @Test("Declarations are those of the application, and former settings are migrated in each environment")
  func declarations() throws {
    try base.set(100, forKey: "columns")
    try staging.set(120, forKey: "columns")
    try database.makeConnection().readWrite {
      try $0.setObject(5, forKey: "cost", inCollection: "money@staging")
      try $0.setObject(4, forKey: "cost", inCollection: "money")
    }
    try staging.flushAndWait()
    try staging.declare(Settings { [Keys.size, Keys.width, Keys.price, Keys.rate] })
    #expect(staging[.width] == 120 && base[.width] == 100)
    #expect(staging[.price] == 5 && base[.price] == 4)
    try database.makeConnection().read { transaction in
      let declared = try transaction.declaredSettings()
      #expect(Set(declared.map(\.declaration.collection)) == ["web", "billing"])
      #expect(Set(declared.map(\.application)) == ["web"])
      for collection in ["web@staging", "web"] {
        #expect(try transaction.declaration(forKey: "size", inCollection: collection)?.collection == collection)
      }
      #expect(try transaction.declaration(forKey: "rate", inCollection: "acme/billing@test") != nil)
    }
  }

  @Test("The environment of a sealed collection is sealed before anything is set in it")
  func sealed() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite {
      _ = try $0.makeEnvironment("staging", of: "web")
    }
    try database.vault.create(key: store.key)
    try database.seal(collection: "billing")
    let staging = try Preferences(database: database, collection: "web", environment: "staging")
    staging[.rate] = 77
    try staging.flushAndWait()
    try database.makeConnection().read { transaction in
      let isSealed = try transaction.isSealed(collection: "billing@staging")
      #expect(isSealed)
      #expect(try transaction.info(forKey: "rate", inCollection: "billing@staging")?.kind == .sealed)
    }
    #expect(staging[.rate] == 77)
    // A bad one of the sealed parent is not in the error either.
    try database.makeConnection().readWrite { transaction in
      try transaction.removeObject(forKey: "rate", inCollection: "billing@staging")
      try transaction.setObject(987_654, forKey: "rate", inCollection: "billing")
    }
    #expect(
      throws: CofferError.invalidValue(collection: "billing", key: "rate", reason: "1 to 1000, and the value is not")
    ) {
      try staging.value(of: .rate)
    }
    database.vault.lock()
    #expect(throws: CofferError.self) {
      try Preferences(database: database, collection: "more", environment: nil).proxy.setObject(
        1, forKey: "x", inCollection: "billing@test")
    }
    #expect(throws: CofferError.self) {
      try database.makeConnection().readWrite { try $0.setObject(1, forKey: "x", inCollection: "billing@test") }
    }
  }
}
