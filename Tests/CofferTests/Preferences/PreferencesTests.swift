import CofferCompat
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Preferences") struct PreferencesTests {
  private let store: TemporaryStore
  private let database: Database
  private let preferences: Preferences

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    preferences = try Preferences(database: database, collection: "org.example.app")
  }

  private func reopened() throws -> Preferences {
    try preferences.flushAndWait()
    return try Preferences(database: store.open(), collection: "org.example.app")
  }

  private func commitNumber() throws -> CommitNumber {
    try database.makeConnection().read { try $0.commitNumber() }
  }

  // MARK: 6.1

  @Test("6.1 return nil for a missing key, remove a key set to nil, and then return the registered default again")
  func missingAndRemoved() throws {
    let key = "removed \(UUID())"
    #expect(preferences.object(forKey: key) == nil)
    try preferences.removeObject(forKey: key)
    try preferences.set(1, forKey: key)
    #expect(preferences.object(forKey: key) as? Int == 1)
    try preferences.set(nil, forKey: key)
    #expect(preferences.object(forKey: key) == nil)
    try preferences.set(Int?.none, forKey: key)
    try preferences.set(String?.none as Any, forKey: key)
    #expect(preferences.object(forKey: key) == nil)
    try preferences.register(defaults: [key: "default"])
    try preferences.set("set", forKey: key)
    #expect(preferences.string(forKey: key) == "set")
    try preferences.removeObject(forKey: key)
    #expect(preferences.string(forKey: key) == "default")
    try preferences.flushAndWait()
    #expect(preferences.string(forKey: key) == "default")
  }

  @Test("6.1 accept any string as a key; dots, slashes and dashes have no meaning")
  func anyKey() throws {
    let keys = ["", "a.b", "a", "a/b", "-a", "\0", "é", "e\u{301}", "🗝", "TRUE", String(repeating: "k", count: 1000)]
    for (number, key) in keys.enumerated() { try preferences.set(number, forKey: key) }
    for (number, key) in keys.enumerated() { #expect(preferences.integer(forKey: key) == number) }
    let after = try reopened()
    for (number, key) in keys.enumerated() { #expect(after.integer(forKey: key) == number) }
  }

  @Test("6.1 keep types exactly, over reopening too: true is not 1, and every number survives")
  func exactTypes() throws {
    try preferences.set(true, forKey: "bool")
    try preferences.set(1, forKey: "int")
    try preferences.set(1.0, forKey: "double")
    try preferences.set(Int.max, forKey: "max")
    try preferences.set(Int.min, forKey: "min")
    try preferences.set(UInt64.max, forKey: "uint64")
    try preferences.set(Double.nan, forKey: "nan")
    try preferences.set(-Double.infinity, forKey: "infinity")
    for preferences in [preferences, try reopened()] {
      #expect(preferences.value(forKey: "bool") == .bool(true))
      #expect(preferences.value(forKey: "int") == .int(1))
      #expect(preferences.object(forKey: "bool") as? Int == nil)
      #expect(preferences.object(forKey: "int") as? Bool == nil)
      #expect(preferences.value(forKey: "double") == .double(1))
      #expect(preferences.integer(forKey: "max") == .max)
      #expect(preferences.object(forKey: "min") as? Int == .min)
      #expect(preferences.object(forKey: "uint64") as? UInt64 == .max)
      #expect(preferences.double(forKey: "nan").isNaN)
      #expect(preferences.double(forKey: "infinity") == -.infinity)
    }
  }

  @Test("6.1 commit nothing when the same value is set again")
  func sameValue() throws {
    try preferences.set(["a": 1], forKey: "k")
    try preferences.flushAndWait()
    let before = try commitNumber()
    try preferences.set(["a": 1], forKey: "k")
    try preferences.flushAndWait()
    #expect(try commitNumber() == before)
  }

  // MARK: 6.8

  @Test("6.8 register defaults for the whole process, the newest winning, and never write them")
  func registered() throws {
    let (key, other) = ("key \(UUID())", "other \(UUID())")
    let elsewhere = try Preferences(database: .inMemory(), collection: "another")
    let isolated = try Preferences.inMemory()
    try preferences.register(defaults: [key: 1, other: "kept"])
    try elsewhere.register(defaults: [key: 2])
    for preferences in [preferences, elsewhere, preferences.suite(named: "suite")] {
      #expect(preferences.integer(forKey: key) == 2)
      #expect(preferences.string(forKey: other) == "kept")
      #expect(preferences.origin(ofKey: key) == .registered)
    }
    #expect(isolated.object(forKey: key) == nil)
    try preferences.flushAndWait()
    #expect(try database.makeConnection().read { try $0.numberOfKeysInAllCollections() } == 0)
  }

  @Test("6.8, 6.11 register all given defaults or, if one cannot be a value, none")
  func registeredAtOnce() throws {
    let preferences = try Preferences.inMemory()
    #expect(throws: CofferError.self) {
      try preferences.register(defaults: ["a": 1, "b": { 1 } as @Sendable () -> Int])
    }
    #expect(throws: CofferError.self) { try preferences.register(defaults: ["a": 1, "b": Value.null]) }
    #expect(preferences.object(forKey: "a") == nil)
  }

  // MARK: 6.11

  private class Unknown {}

  @Test("6.11 refuse values neither Codable nor property list types, at any depth, and change nothing")
  func refused() throws {
    try preferences.set("old", forKey: "k")
    let closure: @Sendable () -> Int = { 1 }
    var deep: [Any] = []
    for _ in 0..<1000 { deep = [deep] }
    let refused: [Any] = [
      Unknown(), closure, [1, Unknown()], ["a": ["b": closure]] as [String: Any], NSNull(), [NSNull()], deep,
      Value.null,
      [1: Unknown()], (1, 2), Unknown.self,
    ]
    for object in refused {
      let error = #expect(throws: CofferError.self) { try preferences.set(object, forKey: "k") }
      guard case .notEncodable("org.example.app", "k", _) = error else {
        Issue.record("\(type(of: object)): \(String(describing: error))")
        continue
      }
    }
    #expect(preferences.string(forKey: "k") == "old")
  }

  @Test("6.11 accept values of static type Any: Swift's types, Codable ones, and Foundation's classes")
  func untyped() throws {
    struct Point: Codable, Equatable { var x = 1, y = 2.5 }
    let objects: [(Any, Value)] = [
      (1, 1), (UInt8(7), 7), (true, true), (1.5, 1.5), ("x", "x"), (Data([1]), .data(Data([1]))),
      (["a", 1, 2.5, false], ["a", 1, 2.5, false]),
      ([1, nil] as [Int?], [1, .null]), ([1, nil] as [Any?], [1, .null]), (["a": [["b": 1]]], ["a": [["b": 1]]]),
      (Point(), .json(#"{"x":1,"y":2.5}"#)), ([Point()], .json(#"[{"x":1,"y":2.5}]"#)),
      ([Point(), 1] as [Any], [.json(#"{"x":1,"y":2.5}"#), 1]), (3 as Any? as Any, 3),
      (NSNumber(value: true), true), (NSNumber(value: 1), 1), (NSNumber(value: 0), 0),
      (NSNumber(value: 1.0), .double(1)),
      (NSNumber(value: -2.5), -2.5), (NSNumber(value: UInt64.max), .uint64(.max)),
      (NSNumber(value: Int64.min), .int(.min)),
      (NSNumber(value: Double.infinity), .double(.infinity)), (NSNumber(value: 1e300), 1e300),
      (NSString("text"), "text"),
      (NSString("12"), "12"), (NSArray(array: [1, "a"]), [1, "a"]),
      (NSDictionary(dictionary: ["a": true]), ["a": true]),
      (NSData(data: Data([2])), .data(Data([2]))),
      (NSDate(timeIntervalSinceReferenceDate: 1), .date(Date(timeIntervalSinceReferenceDate: 1))),
      (try JSONSerialization.jsonObject(with: Data(#"{"a":[true,1,1.5,"x"]}"#.utf8)), ["a": [true, 1, 1.5, "x"]]),
    ]
    for (object, value) in objects {
      try preferences.set(object, forKey: "k")
      #expect(preferences.value(forKey: "k") == value, "\(type(of: object))")
    }
    try preferences.set(Point(x: 3), forKey: "point")
    #expect(preferences.object(forKey: "point", as: Point.self) == Point(x: 3))
    #expect((preferences.object(forKey: "point") as? [String: Any])?["x"] as? Int == 3)
  }

  // MARK: 6.12

  @Test("of an application that must exist create no store if the path is wrong")
  func existing() throws {
    let store = try TemporaryStore()
    func open(mode: Database.OpeningMode?, options: Database.Options = .init()) throws -> Preferences {
      try Preferences.open(
        application: "org.example.app", at: store.path, key: store.key, mode: mode, options: options)
    }
    #expect(throws: CofferError.storeNotFound(path: store.path)) { try open(mode: .existing) }
    #expect(throws: CofferError.storeNotFound(path: store.path)) {
      try open(mode: nil, options: .init(mode: .existing))
    }
    #expect(!FileManager.default.fileExists(atPath: store.path))
    try open(mode: .createIfMissing, options: .init(mode: .existing)).close()
    try open(mode: .existing).close()
  }

  @Test("6.12 are never opened empty instead of a damaged store, or with a wrong key, and leave every byte unchanged")
  func notOpened() throws {
    try preferences.set("v", forKey: "k")
    try preferences.close()
    try database.close()
    let original = try store.bytes()

    let other = try TemporaryStore()
    #expect(throws: CofferError.wrongKey) {
      try Preferences.open(application: "org.example.app", at: store.path, key: other.key)
    }
    #expect(throws: CofferError.wrongKey) {
      try Preferences.open(
        application: "org.example.app", at: store.path, key: .passphrase(SecretBytes(copying: Array("no".utf8))))
    }
    #expect(throws: CofferError.self) {
      try Preferences.open(application: "org.example.app", at: store.path, key: .keyFile(store.folder + "/missing"))
    }
    #expect(try store.bytes() == original)

    for damaged in [Data(), original.prefix(100), Data(repeating: 0, count: 8192), Data("<plist/>".utf8)] {
      try damaged.write(to: URL(filePath: other.path))
      #expect(throws: CofferError.self) {
        try Preferences.open(application: "org.example.app", at: other.path, key: store.key)
      }
      #expect(try other.bytes() == damaged)
    }
    let again = try Preferences.open(application: "org.example.app", at: store.path, key: store.key)
    #expect(again.string(forKey: "k") == "v")
  }

  // MARK: 6.13

  @Test("6.13 are created for a test with one call, and share nothing with others")
  func isolated() throws {
    let (one, two) = (try Preferences.inMemory(), try Preferences.inMemory())
    try one.set(1, forKey: "k")
    try one.register(defaults: ["registered": 1])
    try one.suite(named: Preferences.globalCollection).set(1, forKey: "global")
    #expect(one.dictionaryRepresentation().count == 3)
    #expect(two.dictionaryRepresentation().isEmpty)
    try two.register(defaults: ["k": 2])
    #expect(one.integer(forKey: "k") == 1)
    #expect(two.integer(forKey: "k") == 2)
  }

  @Test("6.13 can be the standard preferences of a task")
  func standard() async throws {
    let (one, two) = (try Preferences.inMemory(), try Preferences.inMemory())
    try one.set(1, forKey: "k")
    try two.set(2, forKey: "k")
    Preferences.withStandard(one) {
      #expect(Preferences.standard.integer(forKey: "k") == 1)
      Preferences.withStandard(two) { #expect(Preferences.standard.integer(forKey: "k") == 2) }
      #expect(Preferences.standard === one)
    }
    await Preferences.withStandard(two) {
      await Task { #expect(Preferences.standard === two) }.value
    }
  }

  // MARK: 6.14

  /// Makes the value for a key such that it cannot be read.
  private func spoil(_ key: String) throws {
    try preferences.flushAndWait()
    try database.makeConnection().perform { session in
      try session.connection.execute(
        "UPDATE items SET data = x'ff' WHERE key = CAST('\(key)' AS BLOB) OR key = '\(key)'")
    }
  }

  @Test("6.14 return the registered default if a value cannot be read, and report it; the throwing variants throw")
  func unreadable() async throws {
    try preferences.set("text", forKey: "spoilt")
    try spoil("spoilt")
    let spoilt = try Preferences(database: store.open(), collection: "org.example.app")
    let errors = spoilt.errors
    #expect(spoilt.string(forKey: "spoilt") == nil)
    #expect(spoilt.integer(forKey: "spoilt") == 0)
    #expect(spoilt.object(forKey: "spoilt", as: String.self) == nil)
    #expect(spoilt.origin(ofKey: "spoilt") == nil)
    try spoilt.register(defaults: ["spoilt": "12 by default"])
    #expect(spoilt.string(forKey: "spoilt") == "12 by default")
    #expect(spoilt.integer(forKey: "spoilt") == 12)
    #expect(spoilt.object(forKey: "spoilt", as: String.self) == "12 by default")
    #expect(spoilt.origin(ofKey: "spoilt") == .registered)
    #expect(spoilt.dictionaryRepresentation()["spoilt"] as? String == "12 by default")
    var reports: [Preferences.Failure] = []
    for await report in errors {
      reports.append(report)
      if reports.count == 9 { break }
    }
    #expect(reports.allSatisfy { $0.collection == "org.example.app" })
    #expect(reports.map(\.key) == Array(repeating: "spoilt", count: 8) + [nil])
    for report in reports {
      guard case CofferError.notDecodable(_, "spoilt", _, _, _) = report.error else {
        Issue.record(report.error)
        continue
      }
    }
    #expect(throws: CofferError.self) { try spoilt.throwing.value(forKey: "spoilt") }
    #expect(throws: CofferError.self) { try spoilt.throwing.object(forKey: "spoilt", as: String.self) }
  }

  @Test("6.14 throw when set after closing, and return defaults, reported")
  func closed() async throws {
    let preferences = try Preferences.inMemory()
    try preferences.register(defaults: ["k": true])
    try preferences.set(false, forKey: "k")
    let errors = preferences.errors
    try await preferences.close()
    #expect(preferences.bool(forKey: "k"))
    #expect(throws: CofferError.closed) { try preferences.set(1, forKey: "k") }
    #expect(throws: CofferError.closed) { try preferences.removeObject(forKey: "k") }
    #expect(throws: CofferError.closed) { try preferences.throwing.value(forKey: "k") }
    #expect(await errors.first { _ in true }?.error as? CofferError == .closed)
  }

  @Test("6.14 read a value of another type as the default of a typed getter, and report it")
  func otherType() async throws {
    let preferences = try Preferences.inMemory()
    try preferences.register(defaults: ["k": 7])
    try preferences.set("text", forKey: "k")
    let errors = preferences.errors
    #expect(preferences.object(forKey: "k", as: Int.self) == 7)
    #expect(await errors.first { _ in true }?.key == "k")
    #expect(throws: CofferError.self) { try preferences.throwing.object(forKey: "k", as: Int.self) }
    #expect(try preferences.throwing.object(forKey: "k", as: String.self) == "text")
    #expect(try preferences.throwing.object(forKey: "missing", as: String.self) == nil)
  }

  // MARK: 6.15

  @Test("6.15 are the collections of the application, of suites, and the global one, all in one store")
  func collections() throws {
    let preferences = try Preferences.open(application: "org.example.app", at: store.path, key: store.key)
    try preferences.set("app", forKey: "k")
    try preferences.suite(named: "suite").set("suite", forKey: "k")
    try preferences.suite(named: Preferences.globalCollection).set("global", forKey: "k")
    try preferences.close()
    let found = try database.makeConnection().read { transaction in
      try ["org.example.app", "suite", "global"].map {
        try transaction.object(forKey: "k", inCollection: $0, as: String.self)
      }
    }
    #expect(found == ["app", "suite", "global"])
    #expect(try database.makeConnection().read { try $0.numberOfKeysInAllCollections() } == 3)
  }

  @Test("6.15 are in the user's folders by default")
  func standardPlaces() throws {
    let folder = store.folder
    func run(_ arguments: String...) throws -> Child {
      try Child.run(
        "/usr/bin/env",
        ["XDG_DATA_HOME=\(folder)/data", "XDG_CONFIG_HOME=\(folder)/config", TemporaryStore.worker] + arguments)
    }
    // Not an identifier: it would name another folder.
    for identifier in ["", "..", "a/b"] {
      #expect(try run("set-preference", "-", "-", identifier, "k", "v").status != 0)
    }
    #expect(try run("set-preference", "-", "-", "org.example.app", "k", "v").status == 0)
    #expect(try run("get-preference", "-", "-", "org.example.app", "k").text == "v\n")
    // As with UserDefaults, an argument of the program goes before.
    #expect(try run("get-preference", "-", "-", "org.example.app", "k", "-k", "argument").text == "argument\n")
    let path = "\(folder)/data/org.example.app/settings.coffer"
    let keyFile = "\(folder)/config/org.example.app/key"
    let database = try Database.open(at: path, key: .keyFile(keyFile))
    #expect(
      try database.makeConnection().read { try $0.object(forKey: "k", inCollection: "org.example.app") } == "v")
    try database.close()
    // A store whose key is gone gets no new one.
    try FileManager.default.removeItem(atPath: keyFile)
    let locked = try run("get-preference", "-", "-", "org.example.app", "k")
    #expect(locked.status == 1)
    #expect(!FileManager.default.fileExists(atPath: keyFile))
  }

  // MARK: Flushing

  @Test("are written to the store by the time synchronize, flush and flushAndWait return")
  func flushes() async throws {
    func committed() throws -> Int? {
      try database.makeConnection().read { try $0.object(forKey: "k", inCollection: "org.example.app") }
    }
    try preferences.set(1, forKey: "k")
    #expect(preferences.synchronize())
    #expect(try committed() == 1)
    try preferences.set(2, forKey: "k")
    try await preferences.flush()
    #expect(try committed() == 2)
    try preferences.set(3, forKey: "k")
    try preferences.flushAndWait()
    #expect(try committed() == 3)
    let impatient = try Preferences(database: store.open(busyTimeout: .zero), collection: "org.example.app")
    let errors = impatient.errors
    try await database.makeConnection().readWrite { _ in
      // No flush gets the write lock.
      try impatient.set(4, forKey: "k")
      #expect(!impatient.synchronize())
    }
    #expect(await errors.first { _ in true }?.error as? CofferError == .busy)
    #expect(impatient.integer(forKey: "k") == 4)
    #expect(impatient.synchronize())
    #expect(try committed() == 4)
  }
}
