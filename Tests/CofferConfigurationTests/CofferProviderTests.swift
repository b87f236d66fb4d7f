#if Configuration && ServiceLifecycle
  import Coffer
  import CofferConfiguration
  import CofferService
  import Configuration
  import ConfigurationTesting
  import Foundation
  import Logging
  import ServiceLifecycleTestKit
  import Testing

  @Suite("A provider for swift-configuration")
  struct CofferProviderTests {
    /// What swift-configuration's own test expects to find.
    private static let settings: [(String, Value)] = [
      ("string", "Hello"), ("other.string", "Other Hello"), ("int", 42), ("other.int", 24), ("double", 3.14),
      ("other.double", 2.72), ("bool", true), ("other.bool", false), ("bytes", magic), ("other.bytes", magic2),
      ("stringy.array", ["Hello", "World"]), ("other.stringy.array", ["Hello", "Swift"]), ("inty.array", [42, 24]),
      ("other.inty.array", [16, 32]), ("doubly.array", [3.14, 2.72]), ("other.doubly.array", [0.9, 1.8]),
      ("booly.array", [true, false]), ("other.booly.array", [false, true, true]),
      ("byteChunky.array", .array([magic, magic2])), ("other.byteChunky.array", .array([magic, magic2, magic])),
    ]
    private static let magic = Value.data(Data("magic".utf8))
    private static let magic2 = Value.data(Data("magic2".utf8))

    private let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    // MARK: - What swift-configuration asks of a provider

    enum Place: CaseIterable {
      case pendingInMemory, flushedInMemory, pendingOnDisk, flushedOnDisk
    }

    @Test("passes swift-configuration's own test", arguments: Place.allCases)
    func compatibility(_ place: Place) async throws {
      let isOnDisk = place == .pendingOnDisk || place == .flushedOnDisk
      let database = try isOnDisk ? store.open() : Database.inMemory()
      let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
      for (key, value) in Self.settings { try proxy.setObject(value, forKey: key, inCollection: "web") }
      if place == .flushedInMemory || place == .flushedOnDisk { try proxy.flushAndWait() }
      try await ProviderCompatTest(provider: try CofferProvider(proxy, collections: ["none", "web"])).runTest()
      try await proxy.close()
    }

    // MARK: - Conversions

    @Test("reads text as the environment variable provider does, since prefs sets text by default")
    func texts() throws {
      let (proxy, config) = try reader()
      for (key, text) in [
        ("port", "8080"), ("ratio", "0.5"), ("on", "Yes"), ("off", "0"), ("bytes", "aGk="), ("names", "a, b"),
        ("ports", "1,2"),
      ] { try proxy.setObject(text, forKey: key) }
      #expect(config.int(forKey: "port") == 8080 && config.double(forKey: "ratio") == 0.5)
      #expect(config.bool(forKey: "on") == true && config.bool(forKey: "off") == false)
      #expect(config.bytes(forKey: "bytes") == Array("hi".utf8))
      #expect(config.stringArray(forKey: "names") == ["a", "b"] && config.intArray(forKey: "ports") == [1, 2])
    }

    @Test("reads what Codable has stored, URLs and UUIDs")
    func codable() throws {
      let (proxy, config) = try reader()
      try proxy.setObject([1, 2], forKey: "ints")
      try proxy.setObject(["a": 1], forKey: "object")
      let id = UUID()
      try proxy.setObject(id, forKey: "id")
      try proxy.setObject(URL(filePath: "/a"), forKey: "url")
      #expect(config.intArray(forKey: "ints") == [1, 2])
      #expect(config.string(forKey: "url") == "file:///a" && config.string(forKey: "id") == id.uuidString)
      #expect(throws: CofferError.self) { try config.requiredString(forKey: "object") }
    }

    @Test("names the key whose value has another type, without showing the value")
    func mismatch() throws {
      let (proxy, _) = try reader()
      try proxy.setObject("hunter2", forKey: "port", inCollection: "")
      let error = #expect(throws: CofferError.self) { try CofferProvider(proxy).value(forKey: "port", type: .int) }
      guard case .notDecodable("", "port", "string", "int", _) = error else {
        return #expect(Bool(false), "\(error as Any)")
      }
      #expect(error.map { "\($0)".contains("hunter2") } == false)
    }

    private func reader() throws -> (ConnectionProxy, ConfigReader) {
      let proxy = try ConnectionProxy(database: .inMemory())
      return (proxy, ConfigReader(provider: try CofferProvider(proxy)))
    }

    // MARK: - Collections

    @Test("searches its collections in order, also in a consistent snapshot")
    func collections() throws {
      let proxy = try ConnectionProxy(database: .inMemory())
      try proxy.setObject("here", forKey: "place", inCollection: "web@staging")
      try proxy.setObject("there", forKey: "place", inCollection: "web")
      try proxy.setObject("common", forKey: "name", inCollection: "web")
      let provider = try CofferProvider(proxy, collections: ["web@staging", "web"])
      let snapshot = provider.snapshot()
      try proxy.performBatch { batch in
        try batch.setObject("later", forKey: "place", inCollection: "web@staging")
        try batch.setObject("later", forKey: "name", inCollection: "web")
      }
      #expect(try snapshot.value(forKey: "place", type: .string).value?.content == .string("here"))
      #expect(try snapshot.value(forKey: "name", type: .string).value?.content == .string("common"))
      #expect(try provider.value(forKey: "name", type: .string).encodedKey == "web/name")
      #expect(try provider.value(forKey: "name", type: .string).value?.content == .string("later"))
    }

    @Test("marks secrets and sealed values, and has an error for each key of a sealed collection that is locked")
    func secrets() throws {
      let database = try store.open()
      let proxy = try ConnectionProxy(database: database)
      try database.vault.create(key: store.key)
      try database.vault.unlock(store.key)
      try database.seal(collection: "vault")
      try proxy.setObject(Secret("hunter2"), forKey: "password")
      try proxy.setObject("plain", forKey: "name")
      try proxy.setObject("sealed", forKey: "token", inCollection: "vault")
      try proxy.flushAndWait()
      let provider = try CofferProvider(proxy, collections: ["", "vault"])
      for source in [provider.value, provider.snapshot().value]
        as [(AbsoluteConfigKey, ConfigType) throws -> LookupResult]
      {
        #expect(try source("password", .string).value == ConfigValue(.string("hunter2"), isSecret: true))
        #expect(try source("token", .string).value == ConfigValue(.string("sealed"), isSecret: true))
        #expect(try source("name", .string).value == ConfigValue(.string("plain"), isSecret: false))
      }
      database.vault.lock()
      for source in [provider.value, provider.snapshot().value]
        as [(AbsoluteConfigKey, ConfigType) throws -> LookupResult]
      {
        #expect(throws: CofferError.self) { try source("token", .string) }
        #expect(try source("name", .string).value?.content == .string("plain"))
      }
    }

    // MARK: - Declared settings

    @Test("skips a value that does not match its declaration for a valid one; without one, its key has an error")
    func declared() throws {
      let proxy = try ConnectionProxy(database: .inMemory())
      try proxy.database.makeConnection().readWrite { transaction in
        try transaction.declare(
          [
            Declaration("port", in: "web", type: .int, limits: [.range(minimum: 1, maximum: 65535)]),
            Declaration("name", in: "web", type: .string),
          ], by: "web")
      }
      let config = ConfigReader(provider: try CofferProvider(proxy, collections: ["web@staging", "web"]))
      try proxy.setObject(8080, forKey: "port", inCollection: "web")
      #expect(config.int(forKey: "port") == 8080)
      for bad: Value in ["8081", 0] {
        try proxy.setObject(bad, forKey: "port", inCollection: "web@staging")
        #expect(config.int(forKey: "port") == 8080)
      }
      try proxy.setObject(99_999, forKey: "port", inCollection: "web")
      #expect(config.int(forKey: "port") == 8080)
      let later = ConfigReader(provider: try CofferProvider(proxy, collections: ["web@staging", "web"]))
      let error = #expect(throws: CofferError.self) { try later.requiredInt(forKey: "port") }
      // The first one in the order of the collections is the one to mend.
      guard case .invalidValue("web@staging", "port", let reason) = error else {
        return #expect(Bool(false), "\(error as Any)")
      }
      #expect(reason.contains("65535"))
      try proxy.setObject("later", forKey: "name", inCollection: "web")
      #expect(config.string(forKey: "name") == "later")
    }

    // MARK: - Last good values

    @Test("keeps the last good value when a bad one comes, on every way to read it, and reports the bad one once")
    func lastGood() async throws {
      let proxy = try ConnectionProxy(database: .inMemory())
      let provider = try CofferProvider(proxy, collections: ["web"])
      let errors = proxy.errors
      func read() throws -> [Int?] {
        let snapshot = provider.snapshot()
        return try [provider.value, snapshot.value].map { source in
          guard case .int(let number)? = try source("port", .int).value?.content else { return nil }
          return number
        }
      }
      #expect(try read() == [nil, nil])
      try proxy.setObject(8080, forKey: "port", inCollection: "web")
      #expect(try read() == [8080, 8080])
      let earlier = provider.snapshot()
      try proxy.setObject(9090, forKey: "port", inCollection: "web")
      #expect(try read() == [9090, 9090])
      // It shows its own moment, and what it shows is not the last good value.
      #expect(try earlier.value(forKey: "port", type: .int).value?.content == .int(8080))
      try proxy.setObject("http", forKey: "port", inCollection: "web")
      for _ in 0..<3 { #expect(try read() == [9090, 9090]) }
      // As text it is good.
      #expect(try provider.value(forKey: "port", type: .string).value?.content == .string("http"))
      try proxy.setObject("none", forKey: "port", inCollection: "web")
      #expect(try read() == [9090, 9090])
      var reasons: [String] = []
      for await failure in errors {
        reasons.append("\(failure.problem?.description ?? "\(failure.error)"): \(failure.instead ?? "")")
        if reasons.count == 2 { break }
      }
      let report = "web/port must be of type int, not string (in collection \"web\"): the last good value"
      #expect(reasons == [report, report])
      try proxy.removeObject(forKey: "port", inCollection: "web")
      #expect(try read() == [nil, nil])
      try proxy.setObject(1, forKey: "port", inCollection: "web")
      #expect(try read() == [1, 1])
    }

    @Test("remembers nothing of a sealed collection")
    func sealedIsForgotten() throws {
      let database = try store.open()
      let proxy = try ConnectionProxy(database: database)
      try database.vault.create(key: store.key)
      let provider = try CofferProvider(proxy, collections: ["pins"])
      try proxy.setObject(1234, forKey: "pin", inCollection: "pins")
      #expect(try provider.value(forKey: "pin", type: .int).value?.content == .int(1234))
      try proxy.flushAndWait()
      try database.seal(collection: "pins")
      #expect(try provider.value(forKey: "pin", type: .int).value?.content == .int(1234))
      try proxy.setObject("none", forKey: "pin", inCollection: "pins")
      #expect(throws: CofferError.self) { try provider.value(forKey: "pin", type: .int) }
      database.vault.lock()
      #expect(throws: CofferError.vaultLocked(collection: "pins")) { try provider.value(forKey: "pin", type: .int) }
    }

    // MARK: - Watching

    @Test("reports a value when another program commits it, and not when something else changes")
    func watch() async throws {
      let (mine, others) = (try ConnectionProxy(database: store.open()), try store.open())
      let provider = try CofferProvider(mine, collections: ["web"])
      try await provider.watchValue(forKey: "port", type: .int) { updates in
        var values = updates.makeAsyncIterator()
        #expect(try await values.next()?.get().value == nil)
        try await others.makeConnection().readWrite { try $0.setObject("x", forKey: "other", inCollection: "web") }
        try await others.makeConnection().readWrite { try $0.setObject(8080, forKey: "port", inCollection: "web") }
        #expect(try await values.next()?.get().value?.content == .int(8080))
        try mine.setObject(9090, forKey: "port", inCollection: "web")
        #expect(try await values.next()?.get().value?.content == .int(9090))
        // The last good value stays.
        try mine.setObject("no number", forKey: "port", inCollection: "web")
        try mine.setObject(7070, forKey: "port", inCollection: "web")
        #expect(try await values.next()?.get().value?.content == .int(7070))
      }
      try await provider.watchSnapshot { updates in
        var snapshots = updates.makeAsyncIterator()
        #expect(try await snapshots.next()?.value(forKey: "other", type: .string).value?.content == .string("x"))
        try mine.setObject("y", forKey: "other", inCollection: "web")
        #expect(try await snapshots.next()?.value(forKey: "other", type: .string).value?.content == .string("y"))
      }
    }

    @Test("reports a sealed value when the vault is unlocked")
    func watchSealed() async throws {
      let database = try store.open()
      let proxy = try ConnectionProxy(database: database)
      try await database.vault.create(key: store.key)
      try await database.vault.unlock(store.key)
      try await database.seal(collection: "vault")
      try proxy.setObject("sealed", forKey: "token", inCollection: "vault")
      database.vault.lock()
      let provider = try CofferProvider(proxy, collections: ["vault"])
      let key = store.key
      try await provider.watchValue(forKey: "token", type: .string) { updates in
        var values = updates.makeAsyncIterator()
        let locked = try #require(await values.next())
        #expect(throws: CofferError.vaultLocked(collection: "vault")) { try locked.get() }
        try await database.vault.unlock(key)
        #expect(try await values.next()?.get().value?.content == .string("sealed"))
      }
    }

    @Test("stops watching when its task or its proxy ends")
    func watchEnds() async throws {
      let proxy = try ConnectionProxy(database: .inMemory())
      let provider = try CofferProvider(proxy)
      /// How many values there are until the watching ends; `onFirst` runs after the first one.
      let count = { @Sendable (onFirst: @escaping @Sendable () throws -> Void) async throws -> Int in
        try await provider.watchValue(forKey: "a", type: .int) { updates in
          var count = 0
          for await _ in updates {
            count += 1
            if count == 1 { try onFirst() }
          }
          return count
        }
      }
      let task = Task { try await count { withUnsafeCurrentTask { $0?.cancel() } } }
      #expect(try await task.value == 1)
      #expect(try await count { try proxy.close() } == 1)
      #expect(throws: CofferError.closed) { try provider.snapshot().value(forKey: "a", type: .int) }
    }

    // MARK: - A service

    @Test("flushes and closes at a graceful shutdown, and reports a failure")
    func service() async throws {
      let database = try store.open()
      let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
      try proxy.setObject("last", forKey: "word")
      try await testGracefulShutdown { trigger in
        async let run: Void = CofferService(database).run()
        trigger.triggerGracefulShutdown()
        try await run
      }
      #expect(throws: CofferError.closed) { try proxy.value(forKey: "word") }
      #expect(!FileManager.default.fileExists(atPath: store.path + "-wal"))
      #expect(try await store.open().makeConnection().read { try $0.object(forKey: "word") } == "last")
    }
  }

  /// A folder that goes away, with a key file and a store in it.
  final class TemporaryStore {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-\(UUID().uuidString)")
    var path: String { folder.appendingPathComponent("settings.coffer").path }
    var key: KeySource { .keyFile(folder.appendingPathComponent("key").path) }

    init() throws {
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      try KeyFile.create(at: folder.appendingPathComponent("key").path)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func open() throws -> Database { try Database.openOrCreate(at: path, key: key) }
  }
#endif
