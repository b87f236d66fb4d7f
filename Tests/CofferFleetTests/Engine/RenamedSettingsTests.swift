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
}
