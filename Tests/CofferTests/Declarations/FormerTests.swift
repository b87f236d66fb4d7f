import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("The former name or type of a setting") struct FormerTests {
  private let store: TemporaryStore
  private let database: Database
  private let preferences: Preferences

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    preferences = try Preferences(database: database, collection: "shop")
  }

  private func declare(_ keys: Keys...) throws {
    try preferences.declare(Settings { keys })
  }

  private func write(_ body: (borrowing ReadWriteTransaction) throws -> Void) throws {
    try database.makeConnection().readWrite(body)
  }

  private func history(_ key: String, _ collection: String = "shop") throws -> [Value] {
    try database.makeConnection().read { transaction in
      try transaction.history(forKey: key, inCollection: collection).map(\.value)
    }
  }

  @Test("is migrated when declared: another name, another type, once, and kept in the history")
  func takenOver() throws {
    let size = Key("text.size", default: 12, formerly: .named("fontSize"))
    let delay = Key("delay", default: 1.5, formerly: .type(String.self) { Double($0) })
    let port = Key("port", in: "http", default: 80, formerly: .named("listen", in: "old", as: String.self) { Int($0) })
    try write {
      try $0.setObject(14, forKey: "fontSize", inCollection: "shop", withMetadata: "mine")
      try $0.setObject("2.5", forKey: "delay", inCollection: "shop")
      try $0.setObject("8080", forKey: "listen", inCollection: "old")
      try $0.setObject("9090", forKey: "listen", inCollection: "acme/old")
      try $0.setObject("x", forKey: "other", inCollection: "acme/http")
    }
    try declare(size, delay, port)
    #expect(preferences[size] == 14)
    #expect(preferences[delay] == 2.5)
    #expect(preferences[port] == 8080)
    #expect(preferences.suite(named: "acme")[port] == 9090)
    #expect(preferences.object(forKey: "fontSize") == nil)
    #expect(try preferences.proxy.metadata(forKey: "text.size", inCollection: "shop") == "mine")
    #expect(try history("fontSize") == [14])
    #expect(try history("delay") == ["2.5"])
    #expect(try history("listen", "old") == ["8080"])
    // Nothing is left to do.
    let commits = try database.makeConnection().read { try $0.commitNumber() }
    try declare(size, delay, port)
    #expect(try database.makeConnection().read { try $0.commitNumber() } == commits)
  }

  @Test("stays, and is reported, if it cannot be migrated, or the setting has a value")
  func kept() async throws {
    let size = Key("text.size", default: 12, limits: .range(6...72), formerly: .named("fontSize"))
    let delay = Key("delay", default: 1.5, formerly: .type(String.self) { Double($0) })
    let name = Key("name", default: "x", formerly: .named("title"))
    try write {
      try $0.setObject(400, forKey: "fontSize", inCollection: "shop")
      try $0.setObject("soon", forKey: "delay", inCollection: "shop")
      try $0.setObject("old", forKey: "title", inCollection: "shop")
      try $0.setObject("new", forKey: "name", inCollection: "shop")
    }
    let strictly = Result { try preferences.declare(Settings { [size, delay] }, strict: true) }
    #expect(throws: CofferError.self) { try strictly.get() }
    let errors = preferences.errors
    try declare(size, delay, name)
    var reports: [String] = []
    for await report in errors {
      reports.append("\(report.problem?.collection ?? "")/\(report.problem?.key ?? "")")
      if reports.count == 2 { break }
    }
    #expect(reports == ["shop/fontSize", "shop/delay"])
    #expect(preferences.integer(forKey: "fontSize") == 400)
    #expect(preferences.string(forKey: "delay") == "soon")
    #expect(preferences[name] == "new")
    #expect(preferences.string(forKey: "title") == "old")
  }

  @Test("is also migrated by strict opening, which throws for nothing that it can migrate")
  func strict() throws {
    try preferences.set("2.5", forKey: "delay")
    try preferences.flushAndWait()
    let delay = Key("delay", default: 1.5, formerly: .type(String.self) { Double($0) })
    try preferences.declare(Settings { delay }, strict: true)
    #expect(preferences[delay] == 2.5)
  }

  @Test("in a sealed collection is migrated with the vault unlocked, and kept and reported with it locked")
  func sealed() throws {
    try database.vault.create(key: store.key)
    try write {
      try $0.setObject("abc", forKey: "old", inCollection: "shop")
    }
    try database.seal(collection: "shop")
    database.vault.lock()
    let token = Key<String?>("token", formerly: .named("old"))
    try declare(token)
    try database.vault.unlock(store.key)
    #expect(preferences.string(forKey: "old") == "abc")
    try declare(token)
    #expect(preferences[token] == "abc")
    #expect(preferences.string(forKey: "old") == nil)
    #expect(try history("old") == ["abc"])
  }

  @Test("is complete under the old names or under the new ones, wherever a migrating process is killed")
  func killed() throws {
    let count = 50
    var random = SystemRandomNumberGenerator()
    var (oldCount, newCount) = (0, 0)
    for _ in 0..<20 {
      let store = try TemporaryStore()
      let database = try store.open()
      try database.makeConnection().readWrite { transaction in
        for number in 0..<count { try transaction.setObject(number, forKey: "old\(number)", inCollection: "shop") }
      }
      let worker = try store.startWorker("rename", "\(count)")
      #expect(worker.readLine() == "begins")
      usleep(UInt32.random(in: 0..<12_000, using: &random))
      worker.kill()
      let isDone = worker.readLine() != nil
      let (keys, declared) = try database.makeConnection().read {
        (try $0.allKeys(inCollection: "shop"), try $0.declaredSettings().count)
      }
      let isNew = keys.allSatisfy { $0.hasPrefix("new") }
      #expect(keys.count == count && (isNew || keys.allSatisfy { $0.hasPrefix("old") }))
      #expect(declared == (isNew ? count : 0))
      #expect(isNew || !isDone)
      if isNew { newCount += 1 } else { oldCount += 1 }
      // The next process finds all of it.
      #expect(try store.worker("rename", "\(count)").status == 0)
      #expect(try database.makeConnection().read { try $0.object(forKey: "new7", inCollection: "shop") } == 7)
    }
    print("killed 20 times: \(oldCount) before the commit, \(newCount) after it")
  }

  @Test("loses nothing if an old and a new version of a program take turns on one store, even if both stay open")
  func turns() async throws {
    let width = Key("width", default: 800)
    let renamed = Key("window.width", default: 800, limits: .range(100...2000), formerly: .named("width"))
    let old = Settings(version: "1.0") { width }
    let new = Settings(version: "2.0") { renamed }
    /// As a process of its own has it: another database.
    func start(_ settings: Settings) throws -> Preferences {
      let preferences = try Preferences(database: store.open(), collection: "shop")
      try preferences.declare(settings)
      return preferences
    }
    let first = try start(old)
    try await first.set(900, for: width, durability: .committed)
    let second = try start(new)
    #expect(second[renamed] == 900 && first[width] == 900)
    // The old one, still open, may set what the new one does not allow.
    try await first.set(3000, for: width, durability: .committed)
    #expect(try start(old)[width] == 3000 && second[renamed] == 900)
    // The declarations in force are the newer ones, with the former name.
    let third = try start(new)
    #expect(third[renamed] == 900 && third.integer(forKey: "width") == 3000)
    let declared = try await database.makeConnection().read { try $0.declaredSettings() }
    #expect(declared.map(\.version) == ["2.0", "2.0"])
    #expect(declared.map(\.declaration.renamed) == [SettingPlace("window.width", in: "shop"), nil])
    // A removal is seen under both names.
    try third.reset(renamed)
    try third.flushAndWait()
    #expect(first.object(forKey: "width") == nil)
    // A value that the new name does not allow stays where it is, and is reported.
    try await first.set(3000, for: width, durability: .committed)
    let fourth = try Preferences(database: store.open(), collection: "shop")
    var errors = fourth.errors.makeAsyncIterator()
    try await fourth.declare(new)
    #expect(await errors.next()?.problem?.key == "width")
    #expect(fourth[renamed] == 800 && fourth.integer(forKey: "width") == 3000)
    #expect(throws: CofferError.self) { try fourth.declare(new, strict: true) }
    try await first.set(1000, for: width, durability: .committed)
    #expect(fourth[renamed] == 1000)
  }
}
