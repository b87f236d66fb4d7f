import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("A collection that a fleet shares later, or no longer")
struct SharingTests {
  let carrier = MemoryCarrier()

  @Test("and is shared again is deleted nowhere, also if a writer joined meanwhile")
  func sharedAgain() async throws {
    let admin = try await Host("a").create(carrier, collections: ["web", "flags"])
    for index in 1...5 { try admin.set("on", "f\(index)", in: "flags") }
    try await admin.sync()
    let writer = try await Host("b").join(admin, carrier)
    #expect(try writer.contents("flags").count == 5)
    try await admin.fleet.share(collections: ["web"])
    try await writer.sync()
    let newcomer = try await Host("c").join(admin, carrier)
    for host in [admin, writer] { try await host.sync() }
    try await admin.fleet.share(collections: ["web", "flags"])
    for host in [writer, newcomer] {
      try await host.sync()
      #expect(try await host.fleet.status().waitingCollections == ["flags"])
      try await host.fleet.accept(collections: ["flags"])
    }
    for host in [writer, newcomer, admin, writer, newcomer] { try await host.sync() }
    for host in [admin, writer, newcomer] {
      #expect(try host.contents("flags") == admin.contents("flags"))
      #expect(try host.contents("flags").count == 5)
      #expect(try await host.fleet.conflicts() == [])
      #expect(try await host.fleet.status().unpushedCount == 0)
    }
    // It is shared as before.
    try newcomer.set(nil, "f1", in: "flags")
    for host in [newcomer, admin, writer] { try await host.sync() }
    #expect(try admin.contents("flags").count == 4 && writer.contents("flags").count == 4)
  }

  @Test("and is shared again while a host is away is merged there as a new one")
  func sharedAgainMeanwhile() async throws {
    let admin = try await Host("a").create(carrier, collections: ["web", "flags"])
    for index in 1...3 { try admin.set("on", "f\(index)", in: "flags") }
    for _ in 0..<3 {
      try admin.set("\(try admin.history("f1", in: "flags").count)", "f1", in: "flags")
      try await admin.sync()
    }
    let away = try await Host("b").join(admin, carrier)
    try await admin.fleet.share(collections: ["web"])
    try admin.set(nil, "f2", in: "flags")
    try await admin.fleet.share(collections: ["web", "flags"])
    try await away.sync()
    #expect(try await away.fleet.status().waitingCollections == ["flags"])
    try await away.fleet.accept(collections: ["flags"])
    for host in [admin, away] { try await host.sync() }
    // What was removed while it was not shared, no one else knew.
    #expect(try admin.contents("flags") == away.contents("flags") && admin.contents("flags").count == 3)
    #expect(try await away.fleet.conflicts() == [])
  }

  @Test("before is neither taken nor given, until someone on the host agrees")
  func consent() async throws {
    let admin = try await Host("a").create(carrier)
    let (writer, reader) = (try Host("b"), try Host("r"))
    try writer.set("ghp_topsecret", "github-token", in: "personal")
    try writer.set("mine", "theme", in: "personal")
    try reader.set("no", "allow", in: "sudo")
    try await writer.join(admin, carrier)
    try await reader.join(admin, carrier, role: .reader)
    try await admin.fleet.share(collections: ["web", "personal", "sudo"])
    try admin.set("yes", "allow", in: "sudo")
    try admin.set("admin's", "theme", in: "personal")
    for host in [admin, writer, reader, writer, admin, reader] { try await host.sync() }
    #expect(try admin.get("github-token", in: "personal") == nil)
    #expect(try reader.get("allow", in: "sudo") == "no" && writer.get("allow", in: "sudo") == nil)
    #expect(try writer.contents("personal") == ["github-token": "ghp_topsecret", "theme": "mine"])
    let status = try await writer.fleet.status()
    #expect(status.collections == ["web"] && status.waitingCollections == ["personal", "sudo"])
    #expect(status.unpushedCount == 0 && status.condition == .inStep)
    // What waits is neither counted as removed, nor lost by what follows.
    try writer.set("1", "port")
    try admin.set(nil, "allow", in: "sudo")
    try admin.set("later", "other", in: "sudo")
    for host in [admin, writer, admin] { try await host.sync() }
    try await admin.fleet.renewKey()
    try writer.restart(carrier)
    for host in [writer, reader, admin] { try await host.sync() }
    #expect(try admin.contents("sudo") == ["other": "later"] && admin.get("theme", in: "personal") == "admin's")
    await #expect(throws: FleetError.collectionWaits("sudo")) {
      try await writer.fleet.setRule(.theirsWins, forCollection: "sudo")
    }
    for name in ["web", "other"] {
      await #expect(throws: FleetError.collectionNotWaiting(name)) {
        try await writer.fleet.accept(collections: [name])
      }
    }
    // Agreed to, it is merged.
    try await writer.fleet.accept(collections: ["personal"])
    for host in [admin, writer] { try await host.sync() }
    #expect(try admin.contents("personal") == writer.contents("personal"))
    #expect(try admin.get("github-token", in: "personal") == "ghp_topsecret")
    #expect(try await writer.fleet.conflicts().map(\.key) == ["theme"])
    #expect(try writer.contents("sudo") == [:])
    #expect(try await writer.fleet.status().waitingCollections == ["sudo"])
    // No longer shared, nothing waits.
    try await admin.fleet.share(collections: ["web"])
    try await reader.sync()
    #expect(try await reader.fleet.status().waitingCollections == [])
    #expect(try reader.get("allow", in: "sudo") == "no")
  }

  @Test("and is taken from a member and given back brings nothing back there that was removed meanwhile")
  func givenBack() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for key in ["revoked-token", "kept", "changed"] { try hosts[0].set("old", key) }
    for host in hosts { try await host.sync() }
    try await hosts[0].fleet.setCollections([], of: "b")
    try await hosts[1].sync()
    try hosts[0].set(nil, "revoked-token")
    try hosts[0].set("new", "changed")
    try hosts[1].set("own", "local")
    try await hosts[0].sync()
    try await hosts[0].fleet.setCollections(nil, of: "b")
    try await hosts[1].sync()
    try await hosts[1].fleet.accept(collections: ["web"])
    for host in hosts { try await host.sync() }
    for host in hosts { #expect(try host.contents() == ["kept": "old", "changed": "new", "local": "own"]) }
    #expect(try hosts[1].history("revoked-token") == ["old"])
  }

  @Test("and is given back after removals were forgotten brings nothing back: only what was set there since is merged")
  func givenBackLate() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier, retentionDays: 1)
    for host in hosts { host.setTime(1_000_000) }
    for key in ["revoked-token", "kept"] { try hosts[0].set("old", key) }
    for host in hosts { try await host.sync() }
    try await hosts[0].fleet.setCollections([], of: "b")
    try await hosts[1].sync()
    try hosts[0].set(nil, "revoked-token")
    try await hosts[0].sync()
    for host in hosts { host.setTime(1_000_000 + 10 * 86_400) }
    try hosts[0].set("1", "other")
    for _ in 0..<2 { try await hosts[0].sync() }
    try hosts[1].set("own", "local")
    for host in hosts { try await host.sync() }
    try await hosts[0].fleet.setCollections(nil, of: "b")
    try await hosts[1].sync()
    try await hosts[1].fleet.accept(collections: ["web"])
    for host in hosts { try await host.sync() }
    for host in hosts { #expect(try host.contents() == ["kept": "old", "other": "1", "local": "own"]) }
    #expect(try hosts[1].history("revoked-token") == ["old"])
  }

  @Test("and waits where the host leaves and joins again is taken whole there, with what was removed")
  func joinedAgain() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for key in ["revoked-token", "kept", "changed"] { try hosts[0].set("old", key) }
    for host in hosts { try await host.sync() }
    try await hosts[0].fleet.setCollections([], of: "b")
    try await hosts[1].sync()
    try hosts[0].set(nil, "revoked-token")
    try hosts[0].set("new", "changed")
    try hosts[0].set("1", "added")
    try hosts[0].set("on", "dark", in: "flags")
    try await hosts[0].fleet.share(collections: ["web", "flags"])
    try await hosts[0].fleet.setCollections(nil, of: "b")
    try await hosts[1].sync()
    #expect(try await hosts[1].fleet.status().waitingCollections == ["flags", "web"])
    try await hosts[1].fleet.leave()
    let invitation = try await hosts[0].fleet.invite("b-2", role: .writer)
    try await hosts[1].join(invitation, carrier)
    for host in [hosts[0], hosts[1], hosts[0]] { try await host.sync() }
    for host in hosts {
      #expect(try host.contents() == ["kept": "old", "changed": "new", "added": "1"])
      #expect(try host.get("dark", in: "flags") == "on")
      #expect(try await host.fleet.status().condition == .inStep)
    }
  }

  @Test("leaves the carrier, so that no one who is invited later reads it; hosts keep it")
  func leavesTheCarrier() async throws {
    let admin = try await Host("a").create(carrier, collections: ["web", "payroll"])
    try admin.set("hunter2", "db-password", in: "payroll")
    try admin.set("8080", "port")
    try await admin.sync()
    let writer = try await Host("b").join(admin, carrier)
    try await admin.fleet.share(collections: ["web"])
    #expect(carrier.objects.keys.filter { $0.hasPrefix("r/") }.count == 1)
    let contractor = try await Host("contractor").join(admin, carrier, role: .reader)
    try await writer.sync()
    #expect(try contractor.contents() == ["port": "8080"])
    #expect(try contractor.contents("payroll") == [:])
    for host in [admin, writer] { #expect(try host.get("db-password", in: "payroll") == "hunter2") }
    let keys = await contractor.fleet.membership.keys
    for (name, bytes) in carrier.objects where name.hasPrefix("r/") {
      let place = try #require(keys.place(ofObject: name))
      #expect(try Record(opening: bytes, at: place, keys).collection == "web")
    }
    try await admin.fleet.renewKey()
    #expect(try await Host("late").join(admin, carrier).contents("payroll") == [:])
  }
}
