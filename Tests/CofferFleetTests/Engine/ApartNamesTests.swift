import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("Names of one setting that were set apart in a fleet")
struct ApartNamesTests {
  private let width = Key("width", default: 800)
  private let windowWidth = Key("window.width", default: 800, formerly: .named("width"))
  private let delay = Key("delay", default: 1.5)
  private let milliseconds = Key(
    "delay.ms", default: 1500,
    formerly: .named("delay", as: Double.self, { Int($0 * 1000) }, back: { Double($0) / 1000 }))
  private let start = Int64(Date().timeIntervalSince1970)
  private let carrier = MemoryCarrier()

  private func one(_ host: Host) throws {
    try Preferences(database: host.database, collection: "web").declare(
      Settings(version: "1") {
        width
        delay
      })
  }

  private func two(_ host: Host) throws {
    try Preferences(database: host.database, collection: "web").declare(
      Settings(version: "2") {
        windowWidth
        milliseconds
      })
  }

  private func set(_ host: Host, _ value: Int, _ key: String) throws {
    try host.connection.readWrite { try $0.setObject(value, forKey: key, inCollection: "web") }
  }

  private func values(_ host: Host, _ keys: String...) throws -> [Int?] {
    try host.connection.read { transaction in
      try keys.map { try transaction.object(forKey: $0, inCollection: "web", as: Int.self) }
    }
  }

  private func seconds(_ host: Host) throws -> Double? {
    try host.connection.read { try $0.object(forKey: "delay", inCollection: "web", as: Double.self) }
  }

  private func expect(_ width: Int, on hosts: [Host], sourceLocation: SourceLocation = #_sourceLocation) throws {
    for host in hosts {
      let found = try values(host, "width", "window.width")
      #expect(found == [width, width], "\(host.name)", sourceLocation: sourceLocation)
      let behind = try host.connection.read { try $0.itemsBehind() }
      #expect(behind.isEmpty, "\(host.name)", sourceLocation: sourceLocation)
    }
  }

  /// Until nothing is left to sync.
  private func sync(_ hosts: Host...) async throws {
    for _ in 0..<4 { for host in hosts { try await host.sync() } }
    for host in hosts { #expect(try await host.sync() == SyncReport()) }
  }

  /// A host on which version 1 has ended, and the former names with it.
  private func contracted() async throws -> Host {
    let a = try await Host("a").create(carrier, retentionDays: 365)
    a.setTime(start)
    try one(a)
    try set(a, 8, "width")
    try await a.connection.readWrite { try $0.setObject(1.5, forKey: "delay", inCollection: "web") }
    try two(a)
    a.setTime(start + 45 * 86_400)
    let ended = try await a.connection.readWrite { try $0.contract { _ in true } }
    #expect(ended.count == 2)
    return a
  }

  @Test("have the fleet's value when a host joins that has only the former name, which has ended, pushed before or not")
  func joining() async throws {
    for isPushed in [false, true] {
      let a: Host
      if isPushed {
        a = try await Host("a").create(carrier, retentionDays: 365)
        a.setTime(start)
        try one(a)
        try set(a, 8, "width")
        try await a.connection.readWrite { try $0.setObject(1.5, forKey: "delay", inCollection: "web") }
        try await a.sync()
        try two(a)
        try await a.sync()
        a.setTime(start + 45 * 86_400)
        _ = try await a.connection.readWrite { try $0.contract { _ in true } }
      } else {
        a = try await contracted()
      }
      try await a.sync()
      let c = try Host("c")
      // Later than all that the fleet has.
      c.setTime(start + 45 * 86_400 + 60)
      try one(c)
      try set(c, 33, "width")
      try await c.connection.readWrite { try $0.setObject(2.5, forKey: "delay", inCollection: "web") }
      a.setTime(start + 45 * 86_400 + 120)
      try await c.join(a, carrier)
      #expect(try values(c, "width", "window.width") == [8, 8])
      try await sync(a, c)
      try expect(8, on: [a, c])
      // Only the program of the other host can convert this one.
      for host in [a, c] { #expect(try seconds(host) == 1.5 && values(host, "delay.ms") == [1500], "\(host.name)") }
      let conflicts = try await c.fleet.conflicts()
      #expect(conflicts.filter { !$0.isDeclaration }.map(\.key).sorted() == ["delay", "width"])
      #expect(conflicts.allSatisfy { $0.winner == "a" && $0.loser == "c" })
      let history = try await c.connection.read { try $0.history(forKey: "width", inCollection: "web").map(\.value) }
      #expect(history.contains(.int(33)))
      #expect(try await a.fleet.conflicts() == [])
      // The names follow from then on, and what was lost can be restored.
      let conflict = try #require(conflicts.first { $0.key == "width" })
      try await c.fleet.restore(conflict)
      try await sync(c, a)
      try expect(33, on: [a, c])
      carrier.putBack([:])
    }
  }

  @Test("have the fleet's value when a host joins that has only the new name")
  func joiningWithNewName() async throws {
    let a = try await Host("a").create(carrier)
    try one(a)
    try set(a, 8, "width")
    try await a.sync()
    let c = try Host("c")
    try two(c)
    try set(c, 33, "window.width")
    try await c.join(a, carrier)
    try await sync(a, c)
    try expect(8, on: [a, c])
    #expect(try await c.fleet.conflicts().map(\.key) == ["window.width"])
  }

  @Test("have one value when a host joins with more than two names, whichever of them the fleet has")
  func joiningWithChain() async throws {
    func declaration(_ name: String, _ formerly: String...) -> Declaration {
      var declaration = Declaration(name, in: "web", type: .int)
      declaration.formerNames = formerly.map { .init(place: SettingPlace($0, in: "web")) }
      return declaration
    }
    func declare(_ host: Host, _ version: String, _ declaration: Declaration) throws {
      try host.connection.readWrite { try $0.declare([declaration], by: "shop", version: version) }
    }
    let a = try await Host("a").create(carrier)
    try declare(a, "3", declaration("z", "y", "x"))
    try set(a, 8, "z")
    try await a.sync()
    let c = try Host("c")
    try declare(c, "1", declaration("x"))
    try set(c, 33, "x")
    try declare(c, "2", declaration("y", "x"))
    #expect(try values(c, "x", "y") == [33, 33])
    try await c.join(a, carrier)
    #expect(try values(c, "x", "y", "z") == [8, 8, 8])
    try await sync(a, c)
    for host in [a, c] { #expect(try values(host, "x", "y", "z") == [8, 8, 8], "\(host.name)") }
    #expect(try await c.fleet.conflicts().isEmpty == false)
    try set(c, 5, "x")
    try await sync(c, a)
    for host in [a, c] { #expect(try values(host, "x", "y", "z") == [5, 5, 5], "\(host.name)") }
  }

  @Test("have what a host has set itself and not pushed, on a reader as on a writer, at once")
  func ownChange() async throws {
    for role in [FleetRole.reader, .writer] {
      let a = try await Host("a").create(carrier)
      try one(a)
      try set(a, 8, "width")
      try await a.sync()
      let b = try await Host("b").join(a, carrier, role: role)
      if role == .writer { try one(b) }
      try set(b, 10, "width")
      try two(a)
      try await a.sync()
      try await b.sync()
      try expect(10, on: [b])
      if role == .writer {
        try await sync(a, b)
        try expect(10, on: [a, b])
      } else {
        // A later change from elsewhere replaces it, as always on a reader's host.
        try await sync(a)
        try expect(8, on: [a])
        try set(a, 9, "window.width")
        try await sync(a)
        try await b.sync()
        try expect(9, on: [a, b])
      }
      carrier.putBack([:])
    }
  }

  @Test(
    "have the value that a host has set meanwhile when it comes back, or joins again, after the former name has ended elsewhere",
    arguments: [false, true])
  func longAway(hasLeft: Bool) async throws {
    for day in [20, 50] as [Int64] {
      let a = try await Host("a").create(carrier, retentionDays: 365)
      let b = try await Host("b").join(a, carrier)
      for host in [a, b] { host.setTime(start) }
      for host in [a, b] { try one(host) }
      try set(a, 8, "width")
      try await sync(a, b)
      if hasLeft { try await b.fleet.leave() }
      try two(a)
      try await a.sync()
      a.setTime(start + 45 * 86_400)
      _ = try await a.connection.readWrite { try $0.contract { _ in true } }
      try await a.sync()
      b.setTime(start + day * 86_400)
      try set(b, 33, "width")
      for host in [a, b] { host.setTime(start + 60 * 86_400) }
      if hasLeft {
        try await b.join(try await a.fleet.invite("b again", role: .writer), carrier)
        try await a.sync()
      }
      try await sync(b, a)
      // A change beats a removal, whichever was later.
      try expect(33, on: [a, b])
      carrier.putBack([:])
    }
  }

  @Test("have the fleet's value when a collection is accepted in which this host has had the former name")
  func acceptedCollection() async throws {
    for isOwnLater in [false, true] {
      let a = try await Host("a").create(carrier, collections: ["other"])
      let b = try await Host("b").join(a, carrier)
      a.setTime(start + (isOwnLater ? 0 : 100))
      b.setTime(start + (isOwnLater ? 100 : 0))
      try two(a)
      try set(a, 8, "window.width")
      try one(b)
      try set(b, 33, "width")
      for host in [a, b] { host.setTime(start + 200) }
      try await a.fleet.share(collections: ["other", "web"])
      try await sync(a, b)
      try await b.fleet.accept(collections: ["web"])
      try expect(8, on: [b])
      try await sync(a, b)
      try expect(8, on: [a, b])
      #expect(try await b.fleet.conflicts().contains { $0.key == "width" && $0.winner == "a" })
      carrier.putBack([:])
    }
  }

  @Test("have the value set last when the fleet has had both before it knew that they are one setting")
  func bothShared() async throws {
    for isFormerLater in [false, true] {
      let a = try await Host("a").create(carrier)
      let b = try await Host("b").join(a, carrier)
      let keys = isFormerLater ? ["window.width", "width"] : ["width", "window.width"]
      for value in 0...1 {
        for host in [a, b] { host.setTime(start + Int64(value) * 100) }
        try set(a, value, keys[value])
        try await sync(a, b)
      }
      for host in [a, b] { host.setTime(start + 300) }
      try one(b)
      try two(a)
      #expect(try values(a, "width", "window.width") == (isFormerLater ? [1, 0] : [0, 1]))
      try await sync(a, b)
      try expect(1, on: [a, b])
      carrier.putBack([:])
    }
  }
}
