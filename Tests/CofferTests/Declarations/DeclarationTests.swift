import Foundation
import TestSupport
import Testing

@testable import Coffer

private enum Theme: String, Codable, CaseIterable { case light, dark }
private enum Level: Int, Codable, CaseIterable { case low = 1, high = 10 }
private struct Frame: Codable, Equatable { var width = 80 }

@Suite("Declarations") struct DeclarationTests {
  @Test("have the type and the limits of their Swift type")
  func types() {
    func outline<Object>(_ key: Key<Object>) -> String { key.declaration(in: "app").outline }
    #expect(outline(Key("k", default: 3)) == "int, default 3")
    #expect(outline(Key("k", default: UInt8(3))) == "int, 0 to 255, default 3")
    #expect(outline(Key("k", default: UInt(3))) == "int, 0 or more, default 3")
    #expect(outline(Key("k", default: Theme.dark)) == "string, one of light, dark, default dark")
    #expect(outline(Key("k", default: Level.low)) == "int, one of 1, 10, default 1")
    #expect(outline(Key<Theme?>("k")) == "string, one of light, dark, no default")
    #expect(outline(Key("k", default: ["a"])) == "array<string>, default [\"a\"]")
    #expect(outline(Key("k", default: ["a": [1.5]])) == "dict<array<double>>, default {\"a\":[1.5]}")
    #expect(outline(Key("k", default: Frame())) == "json, default {\"width\":80}")
    #expect(outline(Key<Secret?>("k", limits: .count(8...))) == "secret, at least 8 long, no default")
    #expect(outline(Key<[Int?]?>("k")) == "array, no default")
  }

  @Test("round-trip through JSON")
  func json() throws {
    let date = Date(timeIntervalSince1970: 1_700_000_000)
    let declarations = [
      Key("plain", default: 3).declaration(in: "app"),
      Key(
        "all", in: "ui", isShared: true, default: "b", limits: .choices("a", "b"), .notEmpty, .pattern("[ab]"),
        .satisfying("a good one") { _ in true }, summary: "Says \"all\"", effect: .restart, since: "1.2",
        deprecated: "use plain"
      ).declaration(in: "app"),
      Key("date", default: date, limits: .range(date...)).declaration(in: "app"),
      Key("data", default: Data([0, 255]), limits: .count(...9)).declaration(in: "app"),
      Key("url", default: URL(string: "https://example.org/a%20b")!).declaration(in: "app"),
      Key("double", default: Double.infinity, limits: .range(1...)).declaration(in: "app"),
      Key("frame", default: Frame()).declaration(in: "app"),
      Key("uuids", default: [UUID()]).declaration(in: "app"),
      Key<Secret?>("secret").declaration(in: "app"),
    ]
    for declaration in declarations { #expect(try Declaration(json: declaration.json) == declaration) }
  }

  @Test("have a type that is nested up to 8 deep")
  func nesting() {
    func text(_ name: String, _ depth: Int) -> String {
      String(repeating: "\(name)<", count: depth) + "int" + String(repeating: ">", count: depth)
    }
    for name in ["array", "dict"] {
      #expect(SettingType(text(name, 8))?.description == text(name, 8))
      #expect(SettingType(text(name, 9)) == nil)
    }
    // A declaration that could not be read again would damage the store.
    #expect(throws: CofferError.self) {
      try Settings { Key("deep", default: [[[[[[[[[1]]]]]]]]]) }.declarations(of: "shop")
    }
  }

  @Test("that are invalid are refused, and the setting is named")
  func malformed() {
    for (json, reason) in [
      ("{", "not JSON"), ("[]", "not an object"), (#"{"type":"int"}"#, "no name"),
      (#"{"name":"a"}"#, "\"a\": its type"),
      (#"{"name":"a","type":"array<intt>"}"#, "its type"),
      (#"{"name":"a","type":"int","default":"x"}"#, "its default is not of its type"),
      (#"{"name":"a","type":"int","default":9,"limits":[{"maximum":8}]}"#, "its default must be 8 or less, not 9"),
      (#"{"name":"a","type":"int","limits":[{"minimum":9,"maximum":8}]}"#, "ends before it begins"),
      (#"{"name":"a","type":"int","limits":[{"minimumm":9}]}"#, "\"minimumm\" is unknown"),
      (#"{"name":"a","type":"int","limits":[{"minimum":9,"choices":[9]}]}"#, "of several kinds"),
      (#"{"name":"a","type":"int","limits":[{}]}"#, "a limit is empty"),
      (#"{"name":"a","type":"int","limits":[{"minimum":"x"}]}"#, "its minimum is not of its type, int"),
      (
        #"{"name":"a","type":"string","limits":[{"pattern":"("}]}"#,
        "a closing parenthesis is missing for this one, at character 1"
      ),
      (#"{"name":"a","type":"string","limits":[{"pattern":"(a+)\\1"}]}"#, "refers to a group, at character 5"),
      (#"{"name":"a","type":"string","shared":"yes"}"#, "neither true nor false"),
      (
        #"{"name":"a","type":"string","summary":"\#(String(repeating: "x", count: 262_144))"}"#,
        "longer than 262144 bytes"
      ),
      (#"{"name":"a","type":"string","limits":[{"minimumCount":-1}]}"#, "its length"),
      (#"{"name":"a","type":"string","effect":"never"}"#, "its effect"),
      (#"{"name":"a","type":"secret","default":"x"}"#, "a secret cannot have a default"),
      (
        #"{"name":"a","type":"\#(String(repeating: "array<", count: 90))int\#(String(repeating: ">", count: 90))"}"#,
        "its type"
      ),
    ] {
      #expect { try Declaration(json: json) } throws: { error in "\(error)".contains(reason) }
    }
  }

  @Test("say what a value should be, and what it is if that reveals nothing")
  func problems() throws {
    func problem<Object>(_ key: Key<Object>, _ value: Value, shown: Bool = true) -> String? {
      key.declaration(in: "app").problem(of: value, showsValue: shown)
    }
    let size = Key("size", default: 12, limits: .range(6...72))
    #expect(problem(size, 400) == "6 to 72, not 400")
    #expect(problem(size, 400, shown: false) == "6 to 72, and the value is not")
    #expect(problem(size, "12") == "of type int, not string")
    #expect(problem(size, 72) == nil)
    #expect(problem(Key("k", default: Theme.dark), "blue") == "one of light, dark, not blue")
    #expect(problem(Key("k", default: "abc", limits: .count(3...5)), "hunter2") == "3 to 5 long, not 7")
    #expect(problem(Key("k", default: "é", limits: .count(...1)), "e\u{301}") == "at most 1 long, not 2")
    #expect(
      problem(Key("k", default: "a", limits: .pattern("[a-z]+")), "Hunter")
        == "text matching [a-z]+, and the value is not")
    #expect(problem(Key("k", default: "7", limits: .pattern(#"\d"#)), "٧") != nil)
    #expect(problem(Key("k", default: [1], limits: .notEmpty), []) == "at least 1 long, not 0")
    #expect(problem(Key<Secret?>("k", limits: .count(8...)), .secret(Secret("short"))) == "at least 8 long, not 5")
    #expect(problem(Key("k", default: 1.5, limits: .range(0...2)), .double(.nan)) == "0.0 to 2.0, not nan")
    #expect(problem(Key("k", default: 1.5, limits: .range(0...2)), 2) == nil)
    #expect(problem(Key("k", default: UInt64.max), .uint64(.max)) == nil)
  }
}

private enum Size: Int, Codable, Comparable {
  case small, large

  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

@Suite("Declarations that are damaged") struct DamagedDeclarationTests {
  /// Declares `shop/port`, and then changes what is stored.
  private func damaged(_ sql: String) throws -> (store: TemporaryStore, database: Database) {
    let store = try TemporaryStore()
    let database = try store.open()
    try Preferences(database: database, collection: "shop").declare(
      Settings {
        Key("port", default: "80")
        Key("host", default: "a")
      })
    try database.makeConnection().perform { try $0.connection.execute(sql) }
    try database.close()
    return (store, try Database.open(at: store.path, key: store.key, options: .init(checksDeclarations: true)))
  }

  private static let declarations = [
    "{", "", "[]", "null", "{}", #"{"name":"port"}"#, #"{"type":"string","collection":"shop"}"#,
    #"{"name":1,"collection":"shop","type":"string"}"#, #"{"name":"port","collection":1,"type":"string"}"#,
    #"{"name":"other","collection":"shop","type":"string"}"#, #"{"name":"port","collection":"web","type":"string"}"#,
    #"{"name":"port","type":"string"}"#, #"{"name":"port","collection":"shop","type":"text"}"#,
    #"{"name":"port","collection":"shop","type":1}"#,
    #"{"name":"port","collection":"shop","type":"string","default":1}"#,
    #"{"name":"port","collection":"shop","type":"secret","default":"x"}"#,
    #"{"name":"port","collection":"shop","type":"string","limits":{}}"#,
    #"{"name":"port","collection":"shop","type":"string","limits":[1]}"#,
    #"{"name":"port","collection":"shop","type":"string","limits":[{}]}"#,
    #"{"name":"port","collection":"shop","type":"string","limits":[{"choices":[]}]}"#,
    #"{"name":"port","collection":"shop","type":"string","limits":[{"choices":[1]}]}"#,
    #"{"name":"port","collection":"shop","type":"string","limits":[{"minimumCount":2,"maximumCount":1}]}"#,
    #"{"name":"port","collection":"shop","type":"string","limits":[{"minimumCount":1.5}]}"#,
    #"{"name":"port","collection":"shop","type":"string","limits":[{"pattern":1}]}"#,
    #"{"name":"port","collection":"shop","type":"string","limits":[{"pattern":"("}]}"#,
    #"{"name":"port","collection":"shop","type":"string","effect":"later"}"#,
    #"{"name":"port","collection":"shop","type":"string","summary":1}"#,
    #"{"name":"port","collection":"shop","type":"string","shared":1}"#,
    #"{"name":"port","collection":"shop","type":"string","limits":[{"pattern":"\#(String(repeating: "[", count: 5_000))"}]}"#,
    #"{"name":"port","collection":"shop","type":"string","limits":[{"pattern":"\#(String(repeating: "(", count: 1_500))"}]}"#,
    // Longer than a statement may be.
    #"{"name":"port","collection":"shop","type":"string","limits":[{"pattern":"' || hex(zeroblob(150000)) || '"}]}"#,
    #"{"name":"port","collection":"shop","type":"json","default":\#(String(repeating: "[", count: 300))}"#,
    #"{"name":"port","collection":"shop","type":"\#(String(repeating: "array<", count: 5_000))"}"#,
  ]

  @Test("stop a write of their setting with the reason, and a verification names them", arguments: declarations.indices)
  func stopsAndIsFound(index: Int) throws {
    let json = Self.declarations[index]
    let (store, database) = try damaged("UPDATE declarations SET declaration = '\(json)' WHERE key = 'port'")
    defer { withExtendedLifetime(store) {} }
    let connection = try database.makeConnection()
    let error = #expect(throws: CofferError.self) {
      try connection.readWrite { try $0.setObject("x", forKey: "port", inCollection: "shop") }
    }
    guard case .damaged("table of declarations", let reason)? = error else { throw try #require(error) }
    #expect(throws: CofferError.self) { try connection.read { try $0.declaredSettings() } }
    #expect(try database.verify().problems.map(\.description) == ["The table of declarations is damaged: \(reason)."])
    // The others go on.
    try connection.readWrite { try $0.setObject("x", forKey: "host", inCollection: "shop") }
  }

  @Test("as a whole are found, too: of an application that is not listed, and in two ways")
  func others() throws {
    let orphan = try damaged("DELETE FROM applications")
    #expect(try orphan.database.verify().problems.count == 2)
    let other = #"{"name":"port","collection":"shop","type":"int"}"#
    let (store, database) = try damaged(
      """
      INSERT INTO applications VALUES ('other', NULL, x'');
      INSERT INTO declarations VALUES ('shop', 'port', 'other', '\(other)')
      """)
    defer { withExtendedLifetime(store) {} }
    #expect(
      try database.verify().problems.map(\.description)
        == ["The table of declarations is damaged: those of shop/port by other and shop differ."])
  }

  @Test("are replaced when the application declares them again")
  func repaired() throws {
    let (store, database) = try damaged("UPDATE declarations SET declaration = '{'")
    defer { withExtendedLifetime(store) {} }
    try database.makeConnection().readWrite {
      try $0.declare([Declaration("port", in: "shop", type: .string)], by: "shop")
    }
    #expect(try database.verify().problems.isEmpty)
  }

  @Test("are never written: a range of a type whose order no tool knows is words")
  func ownOrder() throws {
    let key = Key("size", default: Size.small, limits: .range(...Size.large))
    let declaration = key.declaration(in: "shop")
    #expect(declaration.limits.contains(.described("large or less")))
    #expect(try Declaration(json: declaration.json) == declaration)
  }
}

@Suite("Declaring settings") struct DeclaringTests {
  private let store: TemporaryStore
  private let database: Database

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
  }

  private func preferences(_ application: String = "shop") throws -> Preferences {
    try Preferences(database: database, collection: application)
  }

  private func version() throws -> Schema.Version {
    try database.makeConnection().perform { try Schema.version($0.connection) }
  }

  private func declared() throws -> [DeclaredSetting] {
    try database.makeConnection().read { try $0.declaredSettings() }
  }

  @Test("stores them once, and leaves a store without any readable for older programs")
  func once() throws {
    #expect(try version() == Schema.version)
    let settings = Settings(version: "1.0") {
      Key("port", default: 8080, limits: .range(1...65535), summary: "Where the service listens", effect: .restart)
      Settings { Key("rate", in: "billing", default: 100) }
    }
    try preferences().declare(settings)
    #expect(try version() == Schema.versionWithDeclarations)
    let commits = try database.makeConnection().read { try $0.commitNumber() }
    for _ in 0..<3 { try preferences().declare(settings) }
    #expect(try database.makeConnection().read { try $0.commitNumber() } == commits)
    #expect(
      try declared().map { "\($0.application) \($0.version ?? "") \($0.declaration.collection) \($0.declaration.name)" }
        == ["shop 1.0 billing rate", "shop 1.0 shop port"])
    #expect(try declared()[1].declaration.summary == "Where the service listens")
    try database.close()
    #expect(try store.open().makeConnection().read { try $0.declaredSettings() }.count == 2)
    // What is declared no longer is not in force.
    let rest = Settings(version: "1.1") { Key("rate", in: "billing", default: 100) }
    try Preferences(database: store.open(), collection: "shop").declare(rest)
    let all = try store.open().makeConnection().read { try $0.declaredSettings() }
    #expect(all.filter(\.isInForce).map(\.declaration.name) == ["rate"])
  }

  @Test(
    "in a store from before versions were recorded adds them, and keeps the former names of the version that was there")
  func upgraded() throws {
    try preferences().declare(Settings(version: "1") { Key("a", default: 1) })
    try database.makeConnection().perform { session in
      for table in ["versions", "renames", "behind"] { try session.connection.execute("DROP TABLE \(table)") }
      try session.connection.execute("PRAGMA user_version = 12")
    }
    try database.close()
    let reader = try Database.open(at: store.path, key: store.key, options: .init(isReadOnly: true))
    let (declared, versions) = try reader.makeConnection().read { transaction in
      (try transaction.declaredSettings().count, try transaction.programVersions().count)
    }
    #expect(declared == 1 && versions == 0)
    try reader.close()
    let database = try store.open()
    try Preferences(database: database, collection: "shop").declare(
      Settings(version: "2") { Key("b", default: 1, formerly: .named("a")) })
    let (names, renames) = try database.makeConnection().read { transaction in
      (try transaction.programVersions().map(\.name), try transaction.renames().map(\.former.description))
    }
    #expect(names == ["shop 1", "shop 2"])
    #expect(renames == ["shop/a"])
    #expect(
      try database.makeConnection().perform { try Schema.version($0.connection) } == Schema.versionWithDeclarations)
  }

  @Test("in two ways is refused, within a program and between two, and both are named")
  func conflicts() throws {
    let twice = Settings {
      Key("a", default: 1)
      Key("a", default: "1")
    }
    #expect(
      throws: CofferError.conflictingDeclarations(
        setting: "shop/a", first: "shop: int, default 1", second: "shop: string, default 1")
    ) { try preferences().declare(twice) }
    #expect(try version() == Schema.version)
    let rate = Key("rate", in: "shared", default: 1)
    try preferences("one").declare(Settings { rate })
    try preferences("two").declare(Settings { Key("rate", in: "shared", default: 1, summary: "In other words") })
    #expect(
      throws: CofferError.conflictingDeclarations(
        setting: "shared/rate", first: "one: int, default 1", second: "three: int, 5 or less, default 1")
    ) { try preferences("three").declare(Settings { Key("rate", in: "shared", default: 1, limits: .range(...5)) }) }
    #expect(try declared().map(\.application) == ["one", "two"])
  }

  @Test("by an older version of a program keeps what a newer one declared")
  func versions() throws {
    let old = Settings(version: "1.9") { Key("a", default: 1) }
    let new = Settings(version: "1.10") { Key("a", default: 2) }
    for settings in [old, new, old, new] { try preferences().declare(settings) }
    #expect(try declared().map(\.declaration.defaultValue) == [2])
    #expect(try declared().map(\.version) == ["1.10"])
  }

  @Test("does nothing on a read-only store, and still reads it")
  func readOnly() throws {
    try preferences().declare(Settings { Key("a", default: 1) })
    try database.close()
    let database = try Database.open(at: store.path, key: store.key, options: .init(isReadOnly: true))
    let preferences = try Preferences(database: database, collection: "shop")
    try preferences.declare(Settings { Key("b", default: 1) })
    #expect(try database.makeConnection().read { try $0.declaredSettings() }.map(\.declaration.name) == ["a"])
  }

  @Test("strictly refuses to start, with a list of all problems")
  func strict() throws {
    let port = Key("http.port", default: 8080, limits: .range(1...65535))
    let name = Key("name", default: "x", limits: .notEmpty)
    let rate = Key("rate", in: "billing", default: 1)
    let settings = Settings {
      port
      name
      rate
    }
    let stored = try preferences()
    try stored.set("", forKey: "name")
    try stored.suite(named: "billing").set("many", forKey: "rate")
    let layered = Preferences(
      proxy: stored.proxy, collection: "shop", layers: [.variables(prefix: "SHOP_", ["SHOP_HTTP_PORT": "99999"])])
    #expect {
      try layered.declare(settings, strict: true)
    } throws: { error in
      guard case CofferError.invalidSettings(let problems) = error else { return false }
      return problems.map(\.description) == [
        "shop/http.port must be 1 to 65535, not 99999 (in the environment variable SHOP_HTTP_PORT)",
        "shop/name must be at least 1 long, not 0 (in collection \"shop\")",
        "billing/rate must be of type int, not string (in collection \"billing\")",
      ]
    }
    #expect(try version() == Schema.version)
    try stored.set("y", forKey: "name")
    try stored.suite(named: "billing").set(2, forKey: "rate")
    try stored.declare(settings, strict: true)
    #expect(try version() == Schema.versionWithDeclarations)
  }

  @Test("binds tools: a database that checks refuses a bad write as a whole, others do not")
  func checking() throws {
    try preferences().declare(
      Settings {
        Key("port", default: 80, limits: .range(1...65535))
        Key("rate", in: "billing", default: 1)
        Key("token", in: "api", isShared: true, default: "abc", limits: .count(3...))
      })
    let tool = try Database.open(at: store.path, key: store.key, options: .init(checksDeclarations: true))
    let connection = try tool.makeConnection()
    func refused(_ collection: String, _ key: String, _ reason: String, _ value: Value) {
      #expect(throws: CofferError.invalidValue(collection: collection, key: key, reason: reason)) {
        try connection.readWrite {
          try $0.setObject("kept back", forKey: "other", inCollection: "shop")
          try $0.setObject(value, forKey: key, inCollection: collection)
        }
      }
    }
    refused("shop", "port", "1 to 65535, not 99999", 99999)
    refused("shop", "port", "of type int, not string", "80")
    refused("billing", "rate", "of type int, not bool", true)
    // A tenant's part of a module; shared settings have none.
    refused("acme/billing", "rate", "of type int, not bool", true)
    try connection.readWrite { try $0.setObject("x", forKey: "token", inCollection: "acme/api") }
    #expect(try connection.read { try !$0.hasObject(forKey: "other", inCollection: "shop") })
    try connection.readWrite {
      try $0.setObject(443, forKey: "port", inCollection: "shop")
      try $0.setObject("anything", forKey: "undeclared", inCollection: "shop")
    }
    #expect(throws: CofferError.self) {
      try connection.readWrite { try $0.replaceObject("x", forKey: "port", inCollection: "shop") }
    }
    try database.makeConnection().readWrite { try $0.setObject("anything", forKey: "port", inCollection: "shop") }
    // In a sealed collection the value is not shown.
    try tool.vault.create(key: store.key)
    try tool.seal(collection: "billing")
    refused("billing", "rate", "of type int, not bool", true)
  }
}
