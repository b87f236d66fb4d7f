import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("The age of a fleet's last commit")
struct AgeTests {
  let carrier = MemoryCarrier()
  private static let start: Int64 = 2_000_000

  private func hosts(greatestAge: Duration?) async throws -> [Host] {
    let admin = try Host("a")
    admin.setTime(Self.start)
    try await admin.create(carrier, greatestAge: greatestAge)
    var hosts = [admin]
    for (name, role) in [("b", FleetRole.writer), ("c", .reader)] {
      let host = try Host(name)
      host.setTime(Self.start)
      hosts.append(try await host.join(admin, carrier, role: role))
    }
    for host in hosts { try await host.sync() }
    return hosts
  }

  @Test("is limited: a host from which the carrier withholds later ones reports that, and is in step once it sees one")
  func withholding() async throws {
    let hosts = try await hosts(greatestAge: .seconds(3600))
    let kept = carrier.objects
    for host in hosts { host.setTime(Self.start + 3500) }
    try await hosts[2].sync()
    #expect(try await hosts[2].fleet.status().condition == .inStep)
    try await hosts[1].sync()
    let shown = carrier.objects
    #expect(shown[Head.object] != kept[Head.object])
    // The carrier withholds it.
    carrier.objects = kept
    for host in hosts { host.setTime(Self.start + 3700) }
    try await hosts[2].sync()
    let status = try await hosts[2].fleet.status()
    #expect(status.condition == .stale(since: Date(timeIntervalSince1970: Double(Self.start))) && status.isStale)
    #expect(status.committer == "a")
    carrier.objects = shown
    try await hosts[2].sync()
    #expect(try await hosts[2].fleet.status().condition == .inStep)
    #expect(try await hosts[2].fleet.status().committer == "b")
  }

  @Test("is kept low by hosts that write, with a commit in a quarter of the limit, and only then")
  func signs() async throws {
    let hosts = try await hosts(greatestAge: .seconds(3600))
    func commit(after seconds: Int64) async throws -> UInt64 {
      for host in hosts { host.setTime(Self.start + seconds) }
      for host in hosts.reversed() { try await host.sync() }
      return try await hosts[0].fleet.status().commit
    }
    let first = try await commit(after: 0)
    #expect(try await commit(after: 890) == first)
    #expect(try await commit(after: 910) == first + 1)
    #expect(try await commit(after: 920) == first + 1)
    // A clock far ahead does not hide for how long nothing was committed.
    hosts[1].setTime(Self.start + 100_000)
    try await hosts[1].sync()
    for host in hosts { host.setTime(Self.start + 1000) }
    try await hosts[2].sync()
    #expect(try await hosts[2].fleet.status().isStale)
    try await hosts[0].sync()
    try await hosts[2].sync()
    #expect(try await !hosts[2].fleet.status().isStale)
  }

  @Test("is limited in another way once an admin has changed that, and no one else can")
  func changing() async throws {
    let hosts = try await hosts(greatestAge: nil)
    func stale() async throws -> [Bool] {
      var stale: [Bool] = []
      for host in hosts { stale.append(try await host.fleet.status().isStale) }
      return stale
    }
    await #expect(throws: FleetError.notAllowed(role: .writer)) {
      try await hosts[1].fleet.setGreatestAge(.seconds(60))
    }
    try await hosts[0].fleet.setGreatestAge(.seconds(3600))
    for host in hosts.reversed() { try await host.sync() }
    for host in hosts { #expect(try await host.fleet.status().greatestAge == .seconds(3600)) }
    for host in hosts { host.setTime(Self.start + 3700) }
    #expect(try await stale() == [true, true, true])
    try await hosts[0].fleet.setGreatestAge(nil)
    for host in hosts { try await host.sync() }
    for host in hosts { host.setTime(Self.start + 100_000_000) }
    #expect(try await stale() == [false, false, false])
    for host in hosts { #expect(try await host.fleet.status().greatestAge == nil) }
  }

  @Test("does not matter to a fleet without a limit")
  func noLimit() async throws {
    let hosts = try await hosts(greatestAge: nil)
    let head = carrier.objects[Head.object]
    for host in hosts { host.setTime(Self.start + 100_000_000) }
    for host in hosts { try await host.sync() }
    #expect(carrier.objects[Head.object] == head)
    for host in hosts { #expect(try await host.fleet.status().condition == .inStep) }
  }
}
