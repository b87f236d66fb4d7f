import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("Renamed settings in a fleet")
struct RenamedSettingsTests {
  private let width = Key("width", default: 800)
  private let delay = Key("delay", default: 1.5)
  private let windowWidth = Key("window.width", default: 800, formerly: .named("width"))
  private let milliseconds = Key(
    "delay.ms", default: 1500,
    formerly: .named("delay", as: Double.self, { Int($0 * 1000) }, back: { Double($0) / 1000 }))

  @Test(
    "are heard by version 1 on one host and version 2 on another, each under its own names, until nothing is left to sync"
  )
  func versionsOnTwoHosts() async throws {
    let carrier = MemoryCarrier()
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let (a, b) = (hosts[0], hosts[1])
    let old = try Preferences(database: a.database, collection: "web")
    let versionOne = Settings(version: "1") {
      width
      delay
    }
    try await old.declare(versionOne)
    // Version 1 ran here before.
    try await Preferences(database: b.database, collection: "web").declare(versionOne)
    let new = try Preferences(database: b.database, collection: "web")
    try await new.declare(
      Settings(version: "2") {
        windowWidth
        milliseconds
      })
    try await old.set(900, for: width, durability: .committed)
    try await old.set(2.5, for: delay, durability: .committed)
    try await a.sync()
    try await b.sync()
    #expect(new[windowWidth] == 900 && new[milliseconds] == 2500)
    try await new.set(1000, for: windowWidth, durability: .committed)
    try await new.set(3500, for: milliseconds, durability: .committed)
    try await b.sync()
    try await a.sync()
    #expect(old[width] == 1000 && old[delay] == 3.5)
    // Rounded for version 2, and left alone for version 1.
    try await old.set(0.0004, for: delay, durability: .committed)
    for _ in 0..<2 { for host in hosts { try await host.sync() } }
    #expect(new[milliseconds] == 0 && old[delay] == 0.0004)
    for host in hosts { #expect(try await host.sync() == SyncReport()) }
  }

  @Test("keep their type while another host's version reads it: a later version does not start with another one")
  func retyped() async throws {
    let hosts = try await fleet(of: "a", "b", on: MemoryCarrier())
    let (a, b) = (hosts[0], hosts[1])
    try await Preferences(database: a.database, collection: "web").declare(versionOne())
    try await a.sync()
    try await b.sync()
    let new = try Preferences(database: b.database, collection: "web")
    let later = Settings(version: "2") { Key("delay", default: 1500) }
    let error = await #expect(throws: CofferError.self) { try await new.declare(later) }
    #expect(error?.description.contains("web 1 in a fleet reads it as double") == true, "\(String(describing: error))")
  }

  private func versionOne() -> Settings {
    Settings(version: "1") {
      width
      delay
    }
  }

  private func versionTwo() -> Settings {
    Settings(version: "2") {
      windowWidth
      milliseconds
    }
  }

  /// Until nothing is left to sync.
  private func sync(_ hosts: [Host]) async throws {
    for _ in 0..<4 { for host in hosts { try await host.sync() } }
    for host in hosts { #expect(try await host.sync() == SyncReport()) }
  }

  @Test("keep the names of a version that only another host runs, and each hears the other from then on")
  func versionOneElsewhere() async throws {
    let carrier = MemoryCarrier()
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let (a, b) = (hosts[0], hosts[1])
    let old = try Preferences(database: a.database, collection: "web")
    try await old.declare(versionOne())
    try await old.set(500, for: width, durability: .committed)
    try await old.set(2.5, for: delay, durability: .committed)
    try await sync(hosts)
    let new = try Preferences(database: b.database, collection: "web")
    try await new.declare(versionTwo())
    #expect(new[windowWidth] == 500 && new[milliseconds] == 2500)
    try await sync(hosts)
    #expect(old[width] == 500 && old[delay] == 2.5)
    try await new.set(700, for: windowWidth, durability: .committed)
    try await new.set(900, for: milliseconds, durability: .committed)
    try await sync(hosts)
    #expect(old[width] == 700 && old[delay] == 0.9)
    try await old.set(300, for: width, durability: .committed)
    try await sync(hosts)
    #expect(new[windowWidth] == 300)
    // A removal, too: the host of version 1 knows both names.
    try old.reset(width)
    try old.flushAndWait()
    try await sync(hosts)
    #expect(new[windowWidth] == 800 && new.object(forKey: "window.width") == nil)
    for host in hosts { #expect(try await host.connection.read { try $0.itemsBehind().isEmpty }) }
  }

  @Test("that end on one host stay on one where they are kept, and nothing is lost")
  func endedElsewhere() async throws {
    let carrier = MemoryCarrier()
    let hosts = try await fleet(of: "a", "b", on: carrier, retentionDays: 365)
    let (a, b) = (hosts[0], hosts[1])
    let one = Settings(version: "1") { width }
    let two = Settings(version: "2") { windowWidth }
    let start = Int64(Date().timeIntervalSince1970)
    for host in hosts { host.setTime(start) }
    let old = try Preferences(database: b.database, collection: "web")
    try await old.declare(one)
    try await Preferences(database: a.database, collection: "web").declare(one)
    let new = try Preferences(database: a.database, collection: "web")
    try await new.declare(two)
    try await new.set(500, for: windowWidth, durability: .committed)
    try await sync(hosts)
    // Version 1 is started again on the one host, and may not run any more on the other.
    for host in hosts { host.setTime(start + 39 * 86_400) }
    try await Preferences(database: b.database, collection: "web").declare(one)
    for host in hosts { host.setTime(start + 45 * 86_400) }
    let ended = try await a.connection.readWrite { try $0.contract { _ in true } }
    // The one that contracts is warned that others may keep the name.
    #expect(ended.map(\.isInFleet) == [true])
    try await sync(hosts)
    #expect(old[width] == 500 && new[windowWidth] == 500)
    try await old.set(600, for: width, durability: .committed)
    try await sync(hosts)
    #expect(new[windowWidth] == 600)
    // Now it may not run there either.
    for host in hosts { host.setTime(start + 120 * 86_400) }
    try await Preferences(database: b.database, collection: "web").declare(two)
    for host in hosts { _ = try await host.connection.readWrite { try $0.contract { _ in true } } }
    try await sync(hosts)
    for host in hosts { _ = try await host.connection.readWrite { try $0.contract { _ in true } } }
    try await sync(hosts)
    for host in hosts {
      #expect(try await host.connection.read { try $0.allKeys(inCollection: "web") } == ["window.width"])
      #expect(try await host.connection.read { try $0.object(forKey: "window.width", inCollection: "web") } == 600)
    }
  }

  // MARK: A host that only pulls

  /// A host with both versions, and one to which only the declarations have come, with version 1 already gone from them.
  private func pullingHost(on carrier: MemoryCarrier) async throws -> (a: Host, b: Host) {
    let hosts = try await fleet(of: "a", "b", on: carrier, retentionDays: 365)
    let (a, b) = (hosts[0], hosts[1])
    for host in hosts { host.setTime(Int64(Date().timeIntervalSince1970)) }
    let old = try Preferences(database: a.database, collection: "shop")
    func settings(_ version: String, _ names: [Keys]) -> Settings { Settings(version: version) { names } }
    try await old.declare(
      settings("1", [Key("width", in: "web", default: 800), Key("delay", in: "web", default: 1.5)]))
    let milliseconds = Key(
      "delay.ms", in: "web", default: 1500,
      formerly: .named("delay", as: Double.self, { Int($0 * 1000) }, back: { Double($0) / 1000 }))
    try await Preferences(database: a.database, collection: "shop").declare(
      settings("2", [Key("window.width", in: "web", default: 800, formerly: .named("width")), milliseconds]))
    try await sync(hosts)
    return (a, b)
  }

  private func values(_ host: Host, _ keys: String...) throws -> [Int?] {
    try host.connection.read { transaction in
      try keys.map { try transaction.object(forKey: $0, inCollection: "web", as: Int.self) }
    }
  }

  @Test("follow each other in the same commit where no program declares them, and one lock binds both names")
  func pulledNames() async throws {
    let (a, b) = try await pullingHost(on: MemoryCarrier())
    #expect(try await b.connection.read { try $0.renames() }.filter(\.isOfFleet).count == 2)
    func set(_ value: Int?, _ key: String) throws {
      try b.connection.readWrite { try $0.setObject(value, forKey: key, inCollection: "web") }
    }
    try set(700, "width")
    #expect(try values(b, "width", "window.width") == [700, 700])
    try set(600, "window.width")
    #expect(try values(b, "width", "window.width") == [600, 600])
    try set(nil, "width")
    #expect(try values(b, "width", "window.width") == [nil, nil])
    // Only the program of the other host can convert it.
    try await b.connection.readWrite { try $0.setObject(2.5, forKey: "delay", inCollection: "web") }
    #expect(try await b.connection.read { try $0.itemsBehind() }.map(\.place.key.string) == ["delay.ms"])
    try await sync([b, a])
    #expect(try values(b, "delay.ms") == [2500])
    #expect(try await b.connection.read { try $0.itemsBehind() }.isEmpty)
    // What the fleet keeps is ended where it began.
    let endings = try await b.connection.readWrite { try $0.contract { _ in true } }
    #expect(endings.count == 2)
    for ending in endings {
      if case .inFleet = ending.outcome { continue }
      Issue.record("\(ending)")
    }

    for (locked, other) in [("width", "window.width"), ("window.width", "width")] {
      let root = "\(b.folder)/\(locked)"
      try FileManager.default.createDirectory(
        atPath: "\(root)/shop.d", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      let file = "\(root)/shop.d/1.json"
      try #"{"locked": {"web/\#(locked)": 5}}"#.write(toFile: file, atomically: false, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
      let rules = SettingRules(files: AdministratorFiles(application: nil, roots: [ManagedFolder(root)]))
      for key in [locked, other] {
        await #expect(throws: CofferError.self, "\(key), \(locked) locked") {
          try await b.connection.readWrite { transaction in
            transaction.session.settingRules = rules
            try transaction.requireUnlocked(forKey: key, inCollection: "web")
          }
        }
      }
    }
  }

  @Test("end on a host where no program declares them when the fleet keeps them no longer")
  func pulledEnd() async throws {
    let (a, b) = try await pullingHost(on: MemoryCarrier())
    try await b.connection.readWrite { try $0.setObject(700, forKey: "width", inCollection: "web") }
    try await sync([a, b])
    let later = Int64(Date().timeIntervalSince1970) + 45 * 86_400
    for host in [a, b] { host.setTime(later) }
    // A program that begins here now keeps the names as long as the fleet, and moves nothing.
    try await Preferences(database: b.database, collection: "shop").declare(
      Settings(version: "2") { Key("window.width", in: "web", default: 800, formerly: .named("width")) })
    #expect(try values(b, "width", "window.width") == [700, 700])
    try await b.connection.readWrite { try $0.setObject(2.5, forKey: "delay", inCollection: "web") }
    _ = try await a.connection.readWrite { try $0.contract { _ in true } }
    #expect(try values(a, "width", "window.width") == [nil, 700])
    #expect(try await a.connection.read { try $0.renames().isEmpty })
    try await sync([a, b])
    for host in [a, b] {
      #expect(try values(host, "width", "window.width") == [nil, 700], "\(host.name)")
      #expect(try await host.connection.read { try $0.renames().isEmpty && $0.itemsBehind().isEmpty })
    }
  }

  @Test("are kept in the fleet by each host that has run both versions, whichever of them began")
  func keptByBoth() async throws {
    let hosts = try await fleet(of: "a", "b", on: MemoryCarrier())
    let (a, b) = (hosts[0], hosts[1])
    for host in hosts {
      try await Preferences(database: host.database, collection: "web").declare(Settings(version: "1") { width })
    }
    for host in hosts {
      try await Preferences(database: host.database, collection: "web").declare(Settings(version: "2") { windowWidth })
      try await sync(hosts)
      for host in [a, b] {
        let kept = try await host.connection.read { try $0.declaration(forKey: "width", inCollection: "web") }
        #expect(kept?.renamed?.key.string == "window.width")
      }
    }
  }

  @Test("have their own names in a fleet that shares only a suite's part of a collection, or an environment")
  func namesInParts() throws {
    for part in ["acme/web", "web@staging"] {
      let a = try Host("a")
      let program = try Preferences(database: a.database, collection: "shop")
      try program.declare(Settings(version: "1") { Key("width", in: "web", default: 800) })
      try program.declare(
        Settings(version: "2") { Key("window.width", in: "web", default: 800, formerly: .named("width")) })
      let new = try a.connection.read { try $0.session.declarations.own("window.width", in: part) }
      let old = try a.connection.read { try $0.session.declarations.own("width", in: part) }
      let declarations = [new?.declaration(of: "window.width", in: part), old?.declaration(of: "width", in: part)]
      #expect(declarations[0]?.formerNames.map(\.place.description) == ["\(part)/width"])
      #expect(declarations[1]?.renamed?.description == "\(part)/window.width")
    }
  }
}
