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
}
