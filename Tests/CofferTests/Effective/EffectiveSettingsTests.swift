import Foundation
import Testing

@testable import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("The settings in force in a collection") struct EffectiveSettingsTests {
  private let root = FileManager.default.temporaryDirectory.appendingPathComponent("effective-\(UUID().uuidString)")
    .path
  private let database: Database

  init() throws {
    try FileManager.default.createDirectory(
      atPath: "\(root)/org.x.d", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    database = try .inMemory()
  }

  private func files(_ text: String, application: String? = "org.x") throws -> AdministratorFiles {
    try text.write(toFile: "\(root)/org.x.d/10.json", atomically: false, encoding: .utf8)
    chmod("\(root)/org.x.d/10.json", 0o644)
    return AdministratorFiles(application: application, roots: [ManagedFolder(root)])
  }

  /// A database as a tool opens it.
  private func tool(_ files: AdministratorFiles, allowsUndeclared: Bool = false) throws -> Database {
    var options = Database.Options(checksDeclarations: true)
    options.settingRules = SettingRules(files: files, allowsUndeclared: allowsUndeclared)
    return try Database.inMemory(options: options)
  }

  private func declare(_ names: [(String, String)], in database: Database) throws {
    try database.makeConnection().readWrite { transaction in
      try transaction.declare(
        names.map { Declaration($0.0, in: $0.1, type: .int, default: .int(1)) }, by: "org.x")
    }
  }

  @Test("A key is found by its place in the store, and by its application, named or declaring")
  func names() throws {
    let files = try files(#"{"own": 2, "org.x/spelt": 3, "net/port": 4, "org.x/net/host": 5, "acme/net/port": 6}"#)
    func value(_ key: String, _ collection: String, _ files: AdministratorFiles = files) throws -> Value? {
      try EffectiveSettings(of: collection, files).managedDefault(key)?.value
    }
    #expect(try value("own", "org.x") == 2 && value("spelt", "org.x") == 3 && value("own", "org.x@staging") == 2)
    #expect(try value("port", "net") == 4 && value("host", "net") == 5 && value("port", "net@staging") == 4)
    // As a program reads it that takes the whole name for a key.
    #expect(try value("net/port", "org.x") == 4)
    // A suite's part of a collection is a collection of its own.
    #expect(try value("port", "acme/net") == 6 && value("port", "other/net") == nil)
    // Without a named application, those that declare settings there count.
    let unnamed = AdministratorFiles(application: nil, roots: [ManagedFolder(root)])
    #expect(try value("own", "org.x", unnamed) == 2 && value("port", "net", unnamed) == nil)
    let store = try tool(unnamed)
    try declare([("port", "net")], in: store)
    try store.makeConnection().read { transaction in
      let settings = try transaction.effectiveSettings(of: "net")
      #expect(settings.managedDefault("port")?.value == 4 && settings.applications == ["net", "org.x"])
      #expect(try transaction.effectiveSettings(of: "acme/net").managedDefault("port")?.value == 6)
      #expect(settings.managedKeys == ["host", "port"])
      // What is known to be in another collection is not listed for this one.
      let own = try transaction.effectiveSettings(of: "org.x")
      #expect(own.managedKeys == ["own", "spelt"] && own.managedDefault("net/port") == nil)
    }
  }

  @Test("A program and its suites take the administrator's values of their own places")
  func suites() throws {
    _ = try files(
      #"{"net/port": 4, "acme/net/port": 6, "theme": "a", "acme/theme": "b", "locked": {"acme/net/host": "h"}}"#)
    let source = try ManagedSource(
      following: ManagedSettings.Folders(ofApplication: "org.x", in: [ManagedFolder(root)]))
    let settings = Preferences(
      proxy: try ConnectionProxy(database: database), collection: "org.x", overrides: Overrides([], managed: source),
      registered: RegisteredDefaults())
    let (port, host) = (Key("port", in: "net", default: 0), Key("host", in: "net", default: ""))
    let shared = Key("port", in: "net", isShared: true, default: 0)
    let (acme, other) = (settings.suite(named: "acme"), settings.suite(named: "other"))
    #expect(settings[port] == 4 && acme[port] == 6 && other[port] == 0 && other[shared] == 4)
    #expect(settings.string(forKey: "theme") == "a" && acme.string(forKey: "theme") == "b")
    #expect(other.string(forKey: "theme") == nil && acme[host] == "h" && settings[host] == "")
    #expect(Set(acme.dictionaryRepresentation().keys) == ["theme", "net/port", "net/host"])
    #expect(throws: CofferError.self) { try acme.set("x", for: host) }
    try settings.set("x", for: host)
    #expect(settings[host] == "x" && acme[host] == "h")
  }

  @Test("A suite that is named like its application has the application's locks, in each form of reading")
  func suiteOfTheSameName() throws {
    let files = try files(#"{"locked": {"net/port": 4}}"#)
    let source = try ManagedSource(following: files.folders(of: "org.x"))
    let settings = Preferences(
      proxy: try ConnectionProxy(database: database), collection: "org.x", overrides: Overrides([], managed: source),
      registered: RegisteredDefaults())
    let port = Key("port", in: "net", default: 0)
    let suite = settings.suite(named: "org.x")
    #expect(suite.place(of: port) == "org.x/net" && suite[port] == 4)
    let tool = try EffectiveSettings(of: "org.x/net", files)
    #expect(tool.locked("port")?.value == 4 && tool.managedKeys == ["port"])
    #expect(settings.suite(named: "org.x/net").dictionaryRepresentation().keys.contains("port"))
    #expect(try EffectiveSettings(of: "acme/net", files).managedKeys.isEmpty)
  }

  @Test(
    "What follows the files of administrators finds what a transaction finds, also for suites of known applications")
  func followed() throws {
    let files = try files(
      #"{"acme/own": 5, "acme/net/port": 6, "locked": {"acme/theme": 7}}"#, application: nil)
    let store = try tool(files)
    try declare([("own", "org.x"), ("port", "net")], in: store)
    let places = [("acme", "own"), ("acme", "theme"), ("acme/net", "port"), ("acme", "port"), ("net", "port")]
    for (collection, key) in places {
      let known = try store.makeConnection().read { transaction in
        let settings = try transaction.effectiveSettings(of: collection)
        return (settings.locked(key) ?? settings.managedDefault(key))?.value
      }
      var found: Value?
      try FollowedSettings(of: [collection], in: store).find(key, in: collection) {
        nil
      } managed: {
        $0
      } isGood: { value, _ in
        found = value
        return true
      }
      #expect(found == known, "\(collection)/\(key)")
      #expect((known != nil) == (collection != "net" && (collection, key) != ("acme", "port")))
    }
  }

  @Test("A tool sets nothing that is locked, by any operation, and may remove it")
  func locks() throws {
    let store = try tool(try files(#"{"locked": {"net/port": 8}}"#))
    let plain = try Database.inMemory()
    let connection = try store.makeConnection()
    let refused = CofferError.lockedByAdministrator(
      collection: "net", key: "port", file: "\(root)/org.x.d/10.json")
    try connection.readWrite { try $0.setObject(1, forKey: "other", inCollection: "net") }
    for operation: (borrowing ReadWriteTransaction) throws -> Void in [
      { try $0.setObject(1, forKey: "port", inCollection: "net") },
      { try $0.setObject(1, forKey: "port", inCollection: "net@staging") },
      { try $0.moveObject(forKey: "other", inCollection: "net", toKey: "port", inCollection: "net") },
      { try $0.setKeepingRest(1, forKey: "port", inCollection: "net") },
    ] {
      #expect(throws: CofferError.self) { try connection.readWrite { try operation($0) } }
    }
    #expect(throws: refused) {
      try connection.read { try $0.requireSettable(.int(1), forKey: "port", inCollection: "net") }
    }
    try connection.readWrite { try $0.removeObject(forKey: "port", inCollection: "net") }
    // Programs know their settings themselves.
    try plain.makeConnection().readWrite { try $0.setObject(1, forKey: "port", inCollection: "net") }
  }

  @Test("A key that is not declared is refused where settings are declared, unless it is there or may be")
  func undeclared() throws {
    let store = try tool(AdministratorFiles(application: nil, roots: []))
    let connection = try store.makeConnection()
    try connection.readWrite { try $0.setObject(1, forKey: "old", inCollection: "net") }
    try declare([("port", "net")], in: store)
    func set(_ key: String, _ collection: String) throws {
      try connection.readWrite { try $0.setObject(2, forKey: key, inCollection: collection) }
    }
    let refused = CofferError.undeclaredSetting(
      collection: "net", key: "prot", reason: "not declared; did you mean \"net/port\"?")
    #expect(throws: refused) { try set("prot", "net") }
    #expect(refused.description == "net/prot is not declared; did you mean \"net/port\"?")
    for collection in ["net@staging", "acme/net"] { #expect(throws: CofferError.self) { try set("prot", collection) } }
    for (key, collection) in [("old", "net"), ("port", "acme/net"), ("prot", "other")] { try set(key, collection) }
    try connection.readWrite { transaction in
      transaction.session.settingRules?.allowsUndeclared = true
      try transaction.setObject(2, forKey: "prot", inCollection: "net")
    }
    try set("prot", "net")
  }
}
