import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("Keys by collection")
struct CollectionKeyTests {
  /// Small, so that a commit takes several pieces.
  let carrier = MemoryCarrier(
    limits: CarrierLimits(operationCount: 40, requestByteCount: 70_000, objectByteCount: 4_000))

  /// An admin whose fleet shares these collections, each with a setting `secret`.
  private func admin(_ collections: String...) async throws -> Host {
    let admin = try await Host("a").create(carrier, collections: collections)
    for collection in collections { try admin.set("in \(collection)", "secret", in: collection) }
    try await admin.sync()
    return admin
  }

  private func join(
    _ name: String, _ admin: Host, role: FleetRole = .writer, _ collections: [String]?
  ) async throws -> Host {
    let host = try await Host(name).join(
      try await admin.fleet.invite(name, role: role, collections: collections), carrier)
    try await admin.sync()
    try await host.sync()
    return host
  }

  /// The collections of the records on a carrier that open with a member's keys.
  private func readable(_ objects: [String: [UInt8]], with membership: Membership) throws -> Set<String> {
    let folders = membership.keys.collections.map(\.folder)
    return Set(
      objects.filter { $0.key.hasPrefix("r/") }.flatMap { name, bytes -> [String] in
        // Also as a record of any other folder whose key the member has.
        let hash = [UInt8](hex: name.split(separator: "/").last ?? "") ?? []
        return folders.compactMap { try? Record(opening: bytes, at: $0 + hash, membership.keys).collection }
      })
  }

  /// What all members can read of the list of members.
  private func list(_ membership: Membership) throws -> [UInt8] {
    let bytes = membership.stored.members
    let count = Int(bytes[37]) << 8 | Int(bytes[38])
    let sealed = Array(bytes.prefix(5) + bytes.dropFirst(39 + count * (16 + 104)))
    return try membership.keys.withOpened(sealed, behind: 5, for: .members) { Array($0.rest()) }
  }

  private func contains(_ bytes: [UInt8], _ text: String) -> Bool {
    Data(bytes).range(of: Data(text.utf8)) != nil
  }

  @Test(
    "A contractor reads its collections, and neither the contents nor the names of others, alone or with another contractor"
  )
  func contractors() async throws {
    let admin = try await admin("web", "flags", "payroll")
    let web = try await join("web-contractor", admin, ["web"])
    let flags = try await join("flags-contractor", admin, role: .reader, ["flags"])
    let full = try await join("b", admin, nil)
    for host in [web, flags] { try await host.sync() }
    for (host, collection) in [(web, "web"), (flags, "flags")] {
      let membership = await host.fleet.membership
      #expect(try readable(carrier.objects, with: membership) == [collection])
      #expect(membership.members.collections == [collection] && membership.members.shared.count == 3)
      #expect(try host.get("secret", in: collection) == "in \(collection)")
      #expect(try host.contents("payroll") == [:])
      let list = try list(membership)
      #expect(contains(list, "web-contractor") && !contains(list, "payroll"))
      let status = try await host.fleet.status()
      #expect(status.collections == [collection] && !status.hasAllCollections && status.waitingCollections.isEmpty)
      let members = await host.fleet.members
      #expect(members.first { $0.name == host.name }?.collections == [collection])
    }
    #expect(carrier.objects.values.allSatisfy { !contains($0, "payroll") })
    #expect(try readable(carrier.objects, with: await full.fleet.membership) == ["web", "flags", "payroll"])
    let members = await admin.fleet.members
    #expect(members.map(\.hasAllCollections) == [true, false, false, true])
    #expect(
      members.map(\.collections) == [["flags", "payroll", "web"], ["web"], ["flags"], ["flags", "payroll", "web"]])
    #expect(await web.fleet.members[2].collections == [])
    // Its own settings of a collection that it does not have stay its own.
    try web.set("here", "secret", in: "payroll")
    try await web.sync()
    try await admin.sync()
    #expect(try admin.get("secret", in: "payroll") == "in payroll" && web.get("secret", in: "payroll") == "here")
  }

  @Test("Members of some collections and members of all stay in step, in both directions, also by large commits")
  func inStep() async throws {
    let admin = try await admin("web", "flags", "payroll")
    let full = try await join("b", admin, nil)
    let some = try await join("w", admin, ["flags", "web"])
    let one = try await join("r", admin, role: .reader, ["web"])
    for round in 0..<6 {
      for (host, collections) in [
        (admin, ["web", "payroll"]), (some, ["web", "flags"]), (full, ["flags", "payroll"]),
      ] {
        try await host.connection.readWrite { transaction in
          for collection in collections {
            for key in 0..<(round == 3 ? 60 : 5) {
              try transaction.setObject("\(host.name) \(round)", forKey: "\(key * round)", inCollection: collection)
            }
            try transaction.setObject(nil as String?, forKey: "\(round * 3)", inCollection: collection)
          }
        }
        try await host.sync()
      }
      if round == 2 { try await admin.fleet.renewKey() }
    }
    for _ in 0..<2 { for host in [admin, full, some, one] { try await host.sync() } }
    for collection in ["web", "flags", "payroll"] {
      #expect(try admin.contents(collection) == full.contents(collection))
    }
    for collection in ["web", "flags"] { #expect(try admin.contents(collection) == some.contents(collection)) }
    #expect(try admin.contents() == one.contents() && one.contents("flags") == [:] && some.contents("payroll") == [:])
    for host in [admin, full, some, one] { #expect(try await host.fleet.isInStep()) }
    let late = try await join("late", admin, ["payroll"])
    #expect(try late.contents("payroll") == admin.contents("payroll") && late.contents() == [:])
  }

  @Test(
    "Taking a collection from a member renews its key and no other: what is written later does not open with the keys it had"
  )
  func taking() async throws {
    let admin = try await admin("web", "payroll")
    let full = try await join("b", admin, nil)
    let member = try await join("m", admin, ["web", "payroll"])
    for host in [admin, full, member] { host.setTime(2_000_000_000) }
    let before = carrier.objects
    let keys = await member.fleet.membership
    try await admin.fleet.setCollections(["web"], of: "m")
    let web = try #require(keys.keys.collection(named: "web")).folder.hex
    let payroll = try #require(keys.keys.collection(named: "payroll")).folder.hex
    func folder(_ objects: [String: [UInt8]], _ folder: String) -> [String: [UInt8]] {
      objects.filter { $0.key.hasPrefix("r/\(folder)/") }
    }
    #expect(folder(carrier.objects, web) == folder(before, web) && !folder(before, web).isEmpty)
    #expect(folder(carrier.objects, payroll).isEmpty && !folder(before, payroll).isEmpty)
    try member.set("mine", "secret", in: "payroll")
    admin.setTime(2_000_000_001)
    try admin.set("raise", "secret", in: "payroll")
    try await admin.sync()
    #expect(try readable(carrier.objects, with: keys) == ["web"])
    try member.set("8080", "port")
    for host in [member, full, admin] { try await host.sync() }
    #expect(try await member.fleet.status().collections == ["web"])
    #expect(try readable(carrier.objects, with: await member.fleet.membership) == ["web"])
    #expect(try member.get("secret", in: "payroll") == "mine")
    for host in [admin, full] {
      #expect(try host.get("secret", in: "payroll") == "raise" && host.get("port") == "8080")
    }
    // Given back, it waits there as any other that is new.
    try await admin.fleet.setCollections(["payroll", "web"], of: "m")
    try await member.sync()
    #expect(try await member.fleet.status().waitingCollections == ["payroll"])
    #expect(try member.get("secret", in: "payroll") == "mine")
    try await member.fleet.accept(collections: ["payroll"])
    #expect(
      try member.get("secret", in: "payroll") == "raise" && member.history("secret", in: "payroll").contains("mine"))
    try await admin.sync()
    #expect(try admin.get("secret", in: "payroll") == "raise")
  }

  @Test("Removing a member renews the keys that it had, and leaves other collections as they are")
  func removal() async throws {
    let admin = try await admin("web", "payroll")
    let contractor = try await join("c", admin, ["web"])
    let keys = await contractor.fleet.membership
    let payroll = try #require(await admin.fleet.membership.keys.collection(named: "payroll")).folder
    try await admin.fleet.remove("c")
    let after = await admin.fleet.membership
    #expect(after.keys.collection(named: "payroll")?.folder == payroll)
    #expect(after.keys.collection(named: "web")?.folder != keys.first.folder)
    #expect(try readable(carrier.objects, with: keys) == [])
    #expect(throws: FleetError.self) {
      try Head(opening: after.stored.head, keys.keys, members: after.members, authority: after.authorityDigest)
    }
    let late = try await join("d", admin, ["web"])
    #expect(try late.contents() == ["secret": "in web"])
    await #expect(throws: FleetError.removed) { try await contractor.sync() }
  }

  @Test("A collection that is shared again has another key, and only those who are invited to it have that")
  func sharingAgain() async throws {
    let admin = try await admin("web", "payroll")
    let member = try await join("m", admin, ["payroll"])
    let keys = await member.fleet.membership
    let (earlier, full) = (carrier.objects, try await join("b", admin, nil))
    try await admin.fleet.share(collections: ["web"])
    try await member.sync()
    // A member of none.
    #expect(try await member.fleet.status().collections == [])
    #expect(try await member.fleet.isInStep())
    let late = try await join("late", admin, nil)
    #expect(try readable(earlier, with: await late.fleet.membership) == ["web"])
    try await admin.fleet.share(collections: ["web", "payroll"])
    try await admin.sync()
    #expect(try readable(carrier.objects, with: keys) == [])
    for host in [member, full, late] { try await host.sync() }
    #expect(try await member.fleet.status().collections == [])
    #expect(try await full.fleet.status().waitingCollections == ["payroll"])
    #expect(try readable(carrier.objects, with: await full.fleet.membership) == ["web", "payroll"])
  }

  @Test(
    "A member joins with none, and gets some later; an admin has all, and what is not shared can be given to no one")
  func none() async throws {
    let admin = try await admin("web", "payroll")
    let host = try await join("n", admin, [])
    #expect(try host.contents() == [:])
    #expect(try readable(carrier.objects, with: await host.fleet.membership) == [])
    try host.set("8080", "port")
    try await host.sync()
    try await admin.fleet.renewKey()
    try await admin.fleet.setCollections(["web"], of: "n")
    try await host.sync()
    try await host.fleet.accept(collections: ["web"])
    try await admin.sync()
    #expect(try host.contents() == admin.contents() && admin.get("port") == "8080")
    try await admin.fleet.setCollections(nil, of: "n")
    try await host.sync()
    #expect(try await host.fleet.status().waitingCollections == ["payroll"])
    #expect(try await host.fleet.status().hasAllCollections)
    await #expect(throws: FleetError.adminsHaveAll) {
      try await admin.fleet.invite("x", role: .admin, collections: ["web"])
    }
    await #expect(throws: FleetError.adminsHaveAll) { try await admin.fleet.setCollections(["web"], of: "a") }
    await #expect(throws: FleetError.collectionNotShared("sudo")) {
      try await admin.fleet.invite("x", role: .reader, collections: ["sudo"])
    }
    await #expect(throws: FleetError.collectionNotShared("sudo")) {
      try await admin.fleet.setCollections(["sudo"], of: "n")
    }
    await #expect(throws: FleetError.memberNotFound(name: "x")) { try await admin.fleet.setCollections(nil, of: "x") }
    await #expect(throws: FleetError.tooManyCollections(limit: 100)) {
      try await admin.fleet.share(collections: (0...100).map { "\($0)" })
    }
  }

  @Test("A writer cannot change a collection that it does not have, nor put it back: all refuse its head, and name it")
  func foreignCollection() async throws {
    let admin = try await admin("web", "payroll")
    let full = try await join("b", admin, nil)
    let other = try await join("o", admin, ["web"])
    let writer = try await join("w", admin, ["web"])
    let hosts = [admin, full, other]
    let earlier = try #require(await writer.fleet.membership.head)
    try admin.set("raise", "secret", in: "payroll")
    try await admin.sync()
    for host in hosts + [writer] { try await host.sync() }
    let genuine = carrier.objects
    let membership = await writer.fleet.membership
    let payroll = try #require(await admin.fleet.membership.keys.collection(named: "payroll")).folder
    let index = try #require(membership.members.shared.firstIndex { $0.folder == payroll })
    let piece = Array("\u{1}".utf8) + payroll + [UInt8](repeating: 7, count: 20) + [0, 0, 0, 1, 9]
    let id = [UInt8](repeating: 3, count: 8)
    let attacks: [(String, (inout Head) throws -> Void)] = [
      (
        "w, has changed a collection of others",
        { head in
          head.collections[index] = try CollectionHead(
            folder: payroll, set: RecordSet(), recordCount: 0, horizon: 0, number: head.number,
            by: membership.identity, in: membership.stored.fleet)
        }
      ),
      ("w, has changed a collection of others", { $0.collections[index].recordCount += 1 }),
      ("w, has put back a collection of others", { $0.collections[index] = earlier.collections[index] }),
      ("w, has other collections than the members", { $0.collections.remove(at: index) }),
      (
        "it changes a collection that its commit leaves as it is",
        {
          $0.pieces = [Head.PieceReference(id: id, digest: try piece.digest)]
        }
      ),
    ]
    for (reason, attack) in attacks {
      var next = try membership.nextHead(time: 2_000_000)
      try attack(&next.head)
      carrier.objects = genuine
      let head = CarrierObject(name: Head.object, bytes: try next.head.sealed(membership.keys, by: membership.identity))
      let put = CarrierObject(name: Piece.object(id, membership.keys), bytes: piece)
      #expect(try await carrier.commit([.put(head), .put(put)] + next.blocks, if: membership.condition))
      for host in hosts {
        let error = await #expect(throws: FleetError.self, "\(reason)") { try await host.sync() }
        #expect("\(try #require(error))".contains(reason))
      }
    }
    carrier.objects = genuine
    carrier.compact()
    for host in hosts { try await host.sync() }
    #expect(try full.get("secret", in: "payroll") == "raise")
  }
}
