import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("An invitation to a fleet")
struct AdmissionTests {
  let carrier = MemoryCarrier()

  @Test("is used by one host, also before an admin's host has seen that: the next is refused, and takes nothing")
  func twice() async throws {
    let admin = try await Host("a").create(carrier)
    try admin.set("1", "x")
    try await admin.sync()
    let invitation = try await admin.fleet.invite("b", role: .writer)
    let first = try await Host("b").join(invitation, carrier)
    for _ in 0..<2 {
      let second = try Host("thief")
      await #expect(throws: FleetError.invitationUsed) { try await second.join(invitation, carrier) }
      #expect(try second.contents() == [:])
      #expect(try Fleet.carriers(of: second.database) == [])
      try await admin.sync()
    }
    try await first.sync()
    #expect(try await first.fleet.status().isAdmitted)
    #expect(await admin.fleet.members.map(\.standing) == [.admitted, .admitted])
    #expect(carrier.objects.keys.allSatisfy { !$0.hasPrefix(JoinRequest.prefix) })
  }

  @Test("lets a host read at once, and write once an admin's host has seen it")
  func waiting() async throws {
    let admin = try await Host("a").create(carrier)
    try admin.set("1", "x")
    try await admin.sync()
    let host = try await Host("b").join(try await admin.fleet.invite("b", role: .writer), carrier)
    #expect(try host.get("x") == "1")
    try host.set("2", "x")
    try host.restart(carrier)
    try await host.sync()
    #expect(try await !host.fleet.status().isAdmitted)
    #expect(try await host.fleet.status().unpushedCount == 1)
    try await admin.sync()
    #expect(try admin.get("x") == "1")
    try await host.sync()
    #expect(try await host.fleet.status().isAdmitted)
    try host.restart(carrier)
    try await host.sync()
    try await admin.sync()
    #expect(try admin.get("x") == "2")
  }

  @Test("signs and opens nothing new after a host has used it")
  func keys() async throws {
    let admin = try await Host("a").create(carrier)
    let invitation = try await admin.fleet.invite("b", role: .admin)
    let host = try await Host("b").join(invitation, carrier)
    let invited = try await Membership(host.fleet.membership.stored)
    try await admin.sync()
    try await host.sync()
    let identity = try Identity(member: invitation.member, seed: invitation.seed, fleet: invitation.fleet)
    let membership = await admin.fleet.membership
    #expect(throws: Members.WrappedForOtherKeys.self) {
      try Members.open(membership.stored.members, of: membership.authority, for: identity)
    }
    // A head, and another version of the members, by anyone who has seen the invitation.
    let genuine = carrier.objects
    var head = try membership.nextHead(time: 0).head
    head.author = identity.member
    carrier.objects[Head.object] = try head.sealed(membership.keys, by: identity)
    await #expect(throws: FleetError.self) { try await admin.sync() }
    carrier.objects = genuine
    var members = invited.members
    members.version += 1
    for object in try MembersEdition(members, after: invited, hasNewKey: false, time: 0).changes {
      guard case .put(let object) = object else { continue }
      carrier.objects[object.name] = object.bytes
    }
    let late = try Host("late")
    await #expect(throws: FleetError.self) {
      try await late.join(
        Invitation(
          carrier: carrier.description, expires: nil, fleet: invitation.fleet,
          firstAuthority: invitation.firstAuthority, version: 1, member: identity.member, seed: identity.seed), carrier)
    }
    carrier.objects = genuine
    try await admin.sync()
  }

  @Test("that a thief with the carrier has used is void on the host it was made for, which says so")
  func stolen() async throws {
    let admin = try await Host("a").create(carrier)
    let invitation = try await admin.fleet.invite("b", role: .writer)
    let before = carrier.objects
    let host = try await Host("b").join(invitation, carrier)
    // The carrier drops the host's keys.
    carrier.objects = before
    let thief = try await Host("thief").join(invitation, carrier)
    try await admin.sync()
    try await thief.sync()
    await #expect(throws: FleetError.invitationUsed) { try await host.sync() }
    try await admin.fleet.remove("b")
    await #expect(throws: FleetError.removed) { try await thief.sync() }
  }

  @Test("to a fleet whose list of members is malformed is not called used")
  func malformedMembers() async throws {
    let admin = try await Host("a").create(carrier)
    let invitation = try await admin.fleet.invite("b", role: .writer)
    let membership = await admin.fleet.membership
    var (members, authority) = (membership.stored.members, membership.authority)
    members[members.count - 1] ^= 1
    authority.members = try members.digest
    carrier.objects[Members.object] = members
    carrier.objects[Authority.object(authority.version)] = try authority.signed(by: membership.identity)
    let host = try Host("b")
    await #expect(throws: FleetError.damaged(object: Members.object, reason: "it does not authenticate")) {
      try await host.join(invitation, carrier)
    }
  }

  @Test("whose request is not signed with it admits no one")
  func forged() async throws {
    let admin = try await Host("a").create(carrier)
    let invitation = try await admin.fleet.invite("b", role: .writer)
    let own = try Identity(
      member: invitation.member, seed: .random(count: Identity.seedByteCount), fleet: invitation.fleet)
    let object = JoinRequest.object(invitation.member)
    for bytes in [try JoinRequest.signed(by: own, and: own, in: invitation.fleet), [], [1, 2, 3]] {
      carrier.objects[object] = bytes
      try await admin.sync()
      #expect(await admin.fleet.members.last?.standing == .invited)
    }
  }

  @Test("that has expired unused is withdrawn, with a new key, by the next sync of an admin's host")
  func expired() async throws {
    let admin = try await Host("a").create(carrier)
    admin.setTime(1_000_000)
    let expires = Date(timeIntervalSince1970: 1_000_100)
    let invitation = try await admin.fleet.invite("b", role: .writer, expires: expires)
    _ = try await admin.fleet.invite("c", role: .reader, expires: expires, isForMany: true)
    let folder = await admin.fleet.membership.keys.folder
    try await admin.sync()
    #expect(await admin.fleet.members.map(\.name) == ["a", "b", "c"])
    admin.setTime(1_000_101)
    try await admin.sync()
    #expect(await admin.fleet.members.map(\.name) == ["a", "c"])
    #expect(await admin.fleet.membership.keys.folder != folder)
    // For a program that ignores the time, too.
    let host = try Host("b")
    host.setTime(1_000_000)
    await #expect(throws: FleetError.removed) { try await host.join(invitation, carrier) }
  }

  @Test("can be used again if joining has failed")
  func failed() async throws {
    let admin = try await Host("a").create(carrier)
    try admin.set("1", "x")
    try await admin.sync()
    let invitation = try await admin.fleet.invite("b", role: .writer)
    let host = try await Host("b").create(MemoryCarrier("memory:other"))
    await #expect(throws: FleetError.collectionShared("web")) {
      try await Fleet.join(invitation, host.database, at: carrier)
    }
    let next = try await Host("c").join(invitation, carrier)
    #expect(try next.get("x") == "1")
    // An answer that is lost is no other host's.
    let late = try await admin.fleet.invite("d", role: .writer)
    carrier.fail { $0.contains { $0.name.hasPrefix(JoinRequest.prefix) } ? .after : nil }
    #expect(try await Host("d").join(late, carrier).get("x") == "1")
  }
}
