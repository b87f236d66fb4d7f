import Testing

@testable import Coffer

/// What holds in the parts that suites have of collections: what a program reads there, and nothing else.
@Suite("The settings of suites") struct SuiteTests {
  private let database: Database
  private let preferences: Preferences
  private let own = Key("own", default: 1, limits: .range(1...10))
  private let spelt = Key("spelt", in: "shop", default: 1, limits: .range(1...10))
  private let rate = Key("rate", in: "billing", default: 1, limits: .range(1...10))

  init() throws {
    database = try Database.inMemory()
    preferences = try Preferences(database: database, collection: "shop")
  }

  private func isDeclared(_ key: String, _ collection: String) throws -> Bool {
    try database.makeConnection().read { transaction in
      let one = try transaction.declaration(forKey: key, inCollection: collection) != nil
      let keys = try DeclaredKeys(transaction)
      let settings = try transaction.effectiveSettings(of: collection)
      #expect((keys.setting(key, in: collection) != nil) == one)
      #expect(keys.settings(in: collection).contains { $0.declaration.name == key } == one)
      #expect(one || !settings.hasDeclarations)
      #expect(try transaction.session.declarations.keys(in: collection).contains(ByteString(key)) == one)
      return one
    }
  }

  @Test("are declared in their parts of a collection; of the application's own, suites have no part")
  func parts() throws {
    try preferences.declare(
      Settings {
        own
        spelt
        rate
      })
    #expect(try isDeclared("rate", "acme/billing") && isDeclared("own", "shop") && isDeclared("spelt", "shop"))
    for key in ["own", "spelt"] { #expect(try !isDeclared(key, "acme/shop")) }
    let acme = preferences.suite(named: "acme")
    #expect(acme.place(of: own) == "acme" && acme.place(of: spelt) == "acme" && acme.place(of: rate) == "acme/billing")
    #expect(acme.managedName(of: spelt) == "acme/spelt" && acme.suite(named: "b").place(of: spelt) == "b")
    // Another application's settings of that collection are in suites' parts of it.
    try Preferences(database: database, collection: "tool").declare(Settings { Key("size", in: "shop", default: 1) })
    #expect(try isDeclared("size", "acme/shop"))
    #expect(try database.makeConnection().read { try $0.declaration(forKey: "own", inCollection: "acme/shop") } == nil)
  }

  @Test("follow their other names where a program reads them, and nowhere else")
  func names() throws {
    func declare(_ version: String, _ keys: [Keys]) throws {
      try preferences.declare(Settings(version: version) { keys })
    }
    try declare("1", [own, rate, Key("moved", default: 1)])
    try declare(
      "2",
      [
        Key("own.new", default: 1, formerly: .named("own")),
        Key("price", in: "billing", default: 1, formerly: .named("rate")),
        Key("moved", in: "billing", default: 1, formerly: .named("moved", in: "shop")),
      ])
    let connection = try database.makeConnection()
    func set(_ key: String, _ collection: String) throws -> [String] {
      try connection.readWrite { try $0.setObject(2, forKey: key, inCollection: collection) }
      return try connection.read { transaction in
        try transaction.allCollections().flatMap { name in
          try transaction.allKeys(inCollection: name).map { "\(name)/\($0)" }
        }.sorted()
      }
    }
    #expect(try set("own", "acme/shop") == ["acme/shop/own"])
    #expect(try set("moved", "acme/billing") == ["acme/billing/moved", "acme/shop/own"])
    #expect(
      try set("rate", "acme/billing") == [
        "acme/billing/moved", "acme/billing/price", "acme/billing/rate", "acme/shop/own",
      ])
  }
}
