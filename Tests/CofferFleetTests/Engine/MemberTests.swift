import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("The members of a fleet")
struct MemberTests {
  let carrier = MemoryCarrier()

  @Test("join by invitation, receive the fleet's settings, and are known to all")
  func joining() async throws {
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    try hosts[0].set("1", "x")
    for host in hosts { try await host.sync() }
    for host in hosts {
      #expect(await host.fleet.members.map(\.name) == ["a", "b", "c"])
      #expect(await host.fleet.members.map(\.role) == [.admin, .writer, .writer])
      #expect(await host.fleet.members.filter(\.isThisStore).map(\.name) == [host.name])
      #expect(try host.get("x") == "1")
    }
  }

  @Test("are changed only by admins")
  func roles() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    await #expect(throws: FleetError.notAllowed(role: .writer)) { try await hosts[1].fleet.invite("c", role: .reader) }
    await #expect(throws: FleetError.notAllowed(role: .writer)) { try await hosts[1].fleet.remove("a") }
    await #expect(throws: FleetError.lastAdmin) { try await hosts[0].fleet.remove("a") }
    await #expect(throws: FleetError.memberNotFound(name: "z")) { try await hosts[0].fleet.remove("z") }
    await #expect(throws: FleetError.memberExists(name: "b")) { try await hosts[0].fleet.invite("b", role: .reader) }
    for name in ["", "a\nb", String(repeating: "x", count: 65)] {
      await #expect(throws: FleetError.badName(name)) { try await hosts[0].fleet.invite(name, role: .reader) }
    }
    // An admin who was invited may do it, and can go on without the first.
    let second = try await Host("c").join(hosts[0], carrier, role: .admin)
    _ = try await second.fleet.invite("d", role: .reader)
    try await second.fleet.remove("a")
    try hosts[1].set("1", "x")
    try await hosts[1].sync()
    try await second.sync()
    #expect(try second.get("x") == "1")
    let late = try await Host("e").join(second, carrier)
    #expect(try late.get("x") == "1")
  }

  @Test("that only read may be many stores with one invitation, which are removed together")
  func oneInvitation() async throws {
    let admin = try await Host("a").create(carrier)
    let invitation = try await admin.fleet.invite("site", role: .reader, isForMany: true)
    let stores = [try await Host("x").join(invitation, carrier), try await Host("y").join(invitation, carrier)]
    try admin.set("1", "k")
    try await admin.sync()
    for store in stores {
      try await store.sync()
      #expect(try store.get("k") == "1")
    }
    try await admin.fleet.remove("site")
    for store in stores { await #expect(throws: FleetError.removed) { try await store.sync() } }
    await #expect(throws: FleetError.manyMayOnlyRead) {
      try await admin.fleet.invite("sites", role: .writer, isForMany: true)
    }
  }

  @Test("read nothing that is written after their removal, with all the keys they had")
  func removal() async throws {
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    try hosts[0].set("before", "x")
    for host in hosts { try await host.sync() }
    let membership = await hosts[1].fleet.membership
    let folder = membership.first.folder.hex
    try await hosts[0].fleet.remove("b")
    try hosts[0].set("after", "x")
    try await hosts[0].sync()
    try await hosts[2].sync()
    #expect(try hosts[2].get("x") == "after")
    await #expect(throws: FleetError.removed) { try await hosts[1].sync() }
    #expect(try hosts[1].get("x") == "before")
    // By hand, too: no record of the old key is left, and none of the new one opens.
    let head = carrier.objects[Head.object] ?? []
    let records = carrier.objects.filter { $0.key.hasPrefix("r/") }
    #expect(records.count == 1 && records.keys.allSatisfy { !$0.hasPrefix("r/\(folder)/") })
    for (name, bytes) in records {
      // Not even as one of the folder whose key it had.
      let digits = name.split(separator: "/").last ?? ""
      #expect(throws: FleetError.self) {
        try Record(opening: bytes, at: membership.first.folder + ([UInt8](hex: digits) ?? []), membership.keys)
      }
    }
    #expect(throws: FleetError.self) {
      try Head(
        opening: head, membership.keys, members: membership.members,
        authority: membership.authorityDigest)
    }
  }

  @Test("cannot return with a head of their own after their removal")
  func removedWriter() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    try hosts[0].set("1", "x")
    for host in hosts { try await host.sync() }
    let membership = await hosts[1].fleet.membership
    try await hosts[0].fleet.remove("b")
    let genuine = carrier.objects
    let head = try membership.nextHead(over: genuine).head
    for number in [head.number, head.number + 10] {
      var head = head
      head.number = number
      carrier.objects[Head.object] = try head.sealed(membership.keys, by: membership.identity)
      await #expect(throws: FleetError.self) { try await hosts[0].sync() }
    }
    carrier.objects = genuine
    try await hosts[0].sync()
  }

  @Test("cannot return with a head that others find together with their removal")
  func removedMeanwhile() async throws {
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    try hosts[0].set("1", "x")
    for host in hosts { try await host.sync() }
    let (membership, before) = (await hosts[1].fleet.membership, carrier.objects)
    let head = try membership.nextHead(over: before).head.sealed(membership.keys, by: membership.identity)
    try await hosts[0].fleet.remove("b")
    // All changes since, in one view.
    var objects: [String: [UInt8]?] = carrier.objects.filter { before[$0.key] != $0.value }
    objects[Head.object] = head
    let view = CarrierView(
      head: head, objects: objects, isComplete: false, revision: try await carrier.readAll { _ in })
    await #expect(throws: FleetError.self) {
      var report = SyncReport()
      try await hosts[2].fleet.take(view, report: &report)
    }
    try await hosts[2].sync()
    #expect(try hosts[2].get("x") == "1")
    #expect(await hosts[2].fleet.members.map(\.name) == ["a", "c"])
  }

  @Test("keep the changes they made while the key was renewed, and continue")
  func renewal() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for index in 0..<200 { try hosts[0].set("\(index)", "\(index)") }
    for host in hosts { try await host.sync() }
    try hosts[1].set("changed", "7")
    try await hosts[0].fleet.renewKey()
    try await hosts[1].sync()
    try await hosts[0].sync()
    #expect(try hosts[0].get("7") == "changed")
    #expect(try hosts[0].contents() == hosts[1].contents())
    #expect(try await hosts[1].fleet.conflicts() == [])
    let folders = Set(carrier.objects.keys.filter { $0.hasPrefix("r/") }.map { $0.split(separator: "/")[1] })
    #expect(folders.count == 1)
  }

  @Test("join with an invitation until it expires, once on one store, and only in its own fleet")
  func invitations() async throws {
    let hosts = try await fleet(of: "a", on: carrier)
    hosts[0].setTime(1_000_000)
    let invitation = try await hosts[0].fleet.invite(
      "b", role: .reader, expires: Date(timeIntervalSince1970: 1_000_100))
    let late = try Host("b")
    late.setTime(1_000_100)
    await #expect(throws: FleetError.invitationExpired(Date(timeIntervalSince1970: 1_000_100))) {
      try await Fleet.join(invitation, late.database, at: carrier)
    }
    #expect(try Fleet.carriers(of: late.database) == [])
    late.setTime(1_000_099)
    _ = try await Fleet.join(invitation, late.database, at: carrier)
    await #expect(throws: FleetError.alreadyJoined) { try await Fleet.join(invitation, late.database, at: carrier) }
    let other = MemoryCarrier("memory:other")
    _ = try await fleet(of: "x", on: other)
    let third = try Host("c")
    await #expect(throws: FleetError.damaged(object: "authority/0000000001", reason: "it belongs to another fleet")) {
      try await Fleet.join(invitation, third.database, at: other)
    }
    await #expect(throws: FleetError.fleetNotFound(carrier: "memory:none")) {
      try await Fleet.join(invitation, third.database, at: MemoryCarrier("memory:none"))
    }
    #expect(try Fleet.carriers(of: third.database) == [])
  }

  @Test("join no carrier that is older than their invitation, such as a former member's copy")
  func oldCarriers() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    try hosts[0].set("1", "x")
    for host in hosts { try await host.sync() }
    let withMember = carrier.objects
    try await hosts[0].fleet.remove("b")
    let invitation = try await hosts[0].fleet.invite("c", role: .reader)
    let genuine = carrier.objects
    carrier.objects = withMember
    await #expect(throws: FleetError.olderThanInvitation(carrier: carrier.description)) {
      try await Host("late").join(invitation, carrier)
    }
    carrier.objects = genuine
    #expect(try await Host("c").join(invitation, carrier).get("x") == "1")
  }

  @Test("share other collections when an admin chooses them, and each host accepts: existing settings are merged")
  func collections() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for host in hosts { try host.set("by \(host.name)", host.name, in: "flags") }
    for host in hosts { try await host.sync() }
    try await hosts[0].fleet.share(collections: ["web", "flags"])
    try await hosts[1].fleet.accept(collections: ["flags"])
    for host in hosts + hosts { try await host.sync() }
    for host in hosts { #expect(try host.contents("flags") == ["a": "by a", "b": "by b"]) }
  }
}
