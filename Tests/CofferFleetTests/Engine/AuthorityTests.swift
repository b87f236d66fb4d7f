import CofferCrypto
import Synchronization
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("An admin of a fleet")
struct AuthorityTests {
  let carrier = MemoryCarrier()

  /// Four hosts, of which the third commits before each commit of the first.
  private func crowd() async throws -> (hosts: [Host], crowded: TestCarrier) {
    let crowded = TestCarrier(over: carrier)
    let admin = try await Host("a").create(crowded)
    var hosts = [admin]
    for name in ["b", "c", "d"] { hosts.append(try await Host(name).join(admin, carrier)) }
    try admin.set("1", "x")
    for host in hosts { try await host.sync() }
    let member = hosts[2]
    let number = Mutex(0)
    crowded.happens {
      let next = number.withLock { number in
        number += 1
        return number
      }
      try member.set("\(next)", "y")
      do { try await member.sync() } catch FleetError.removed {}
    }
    return (hosts, crowded)
  }

  @Test("removes a member that keeps committing, and no one has to accept anything")
  func crowding() async throws {
    let (hosts, crowded) = try await crowd()
    try await hosts[0].fleet.remove("c")
    crowded.happens(nil)
    await #expect(throws: FleetError.removed) { try await hosts[2].sync() }
    for _ in 0..<2 { for host in [hosts[0], hosts[1], hosts[3]] { try await host.sync() } }
    #expect(await hosts[1].fleet.members.map(\.name) == ["a", "b", "d"])
    for host in hosts { #expect(try host.get("x") == "1") }
    #expect(try hosts[0].contents() == hosts[1].contents() && hosts[1].contents() == hosts[3].contents())
    let count = try hosts[0].contents().count
    #expect(carrier.objects.keys.filter { $0.hasPrefix("r/") }.count == count)
  }

  @Test("cuts off what others commit meanwhile: they push their own changes again, and lose none")
  func cutOff() async throws {
    let (hosts, crowded) = try await crowd()
    let (b, c, d) = (hosts[1], hosts[2], hosts[3])
    // Many commits, among them those of honest hosts that see the other's.
    let rounds = Mutex(0)
    let last = Mutex<(b: [String: String], d: [String: String])>(([:], [:]))
    crowded.happens {
      do { try await c.sync() } catch FleetError.removed { return }
      let round = rounds.withLock { round in
        round += 1
        return round
      }
      for number in 0..<8 {
        for host in [c, b, d] {
          try await host.connection.readWrite { transaction in
            for part in 0..<3 {
              try transaction.setObject(
                "\(host.name) \(round) \(number)", forKey: "\(host.name) \(part)", inCollection: "web")
            }
          }
          try host.set(round % 2 == 0 ? "\(round)" : nil, "new by \(host.name)")
          try await host.sync()
        }
      }
      let contents = try (b.contents(), d.contents())
      last.withLock { $0 = contents }
    }
    try await hosts[0].fleet.remove("c")
    crowded.happens(nil)
    for _ in 0..<3 { for host in [b, d, hosts[0]] { try await host.sync() } }
    let contents = try b.contents()
    for host in [hosts[0], d] { #expect(try host.contents() == contents) }
    let (ofB, ofD) = last.withLock { ($0.b, $0.d) }
    for (name, own) in [("b", ofB), ("d", ofD)] {
      for key in (0..<3).map({ "\(name) \($0)" }) + ["new by \(name)"] { #expect(contents[key] == own[key], "\(key)") }
    }
    // What the removed member committed last does not hold, and is in the history of those who had it.
    for part in 0..<3 {
      let lost = try #require(ofB["c \(part)"])
      #expect(try contents["c \(part)"] != lost && b.history("c \(part)").contains(lost))
    }
    #expect(Set((0..<3).map { contents["c \($0)"] }).count == 1, "a transaction half taken")
    for host in [b, d, hosts[0]] { #expect(try await host.fleet.conflicts() == []) }
  }

  /// What a member that is to be removed does to the carrier.
  enum Damage: CaseIterable {
    case setDigest, recordCount, number, head, noHead, earlierHead, newerHead, authority, overwritten, deleted, junk
  }

  @Test(
    "removes a member whose last commit cannot be verified: it is cut off, and others push again",
    arguments: Damage.allCases)
  func damage(_ damage: Damage) async throws {
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    let (admin, b, c) = (hosts[0], hosts[1], hosts[2])
    let earlier = try #require(carrier.objects[Head.object])
    try admin.set("1", "x")
    for host in hosts { try await host.sync() }
    // The admin has not seen this one.
    try b.set("2", "y")
    if damage == .overwritten { try b.set("3", "x") }
    for host in [b, c] { try await host.sync() }
    let membership = await c.fleet.membership
    let records = carrier.objects.keys.filter { $0.hasPrefix("r/") }
    switch damage {
    case .setDigest, .recordCount, .overwritten, .deleted:
      let (folder, count) = (membership.first.folder, try #require(membership.head?.collections[0].recordCount))
      let set = damage == .recordCount ? try #require(membership.sets[folder]) : RecordSet()
      let change = Membership.CollectionChange(set: set, recordCount: damage == .recordCount ? count + 1 : count)
      carrier.objects[Head.object] = try membership.nextHead([folder: change], time: 0).head
        .sealed(membership.keys, by: membership.identity)
      if damage == .deleted { for name in records { carrier.objects[name] = nil } }
    case .number:
      var head = try membership.nextHead(time: 0).head
      head.number = Record.maximumCounter
      carrier.objects[Head.object] = try head.sealed(membership.keys, by: membership.identity)
    case .head: carrier.objects[Head.object]?[20] ^= 1
    case .noHead: carrier.objects[Head.object] = nil
    case .earlierHead: carrier.objects[Head.object] = earlier
    case .newerHead: carrier.objects[Head.object]?[0] = 2
    case .junk:
      let folder = try #require(records.first).prefix { $0 != "/" } + "/" + membership.first.folder.hex
      for number in 0..<3_000 {
        let digits = String(number, radix: 16)
        carrier.objects["\(folder)/" + String(repeating: "0", count: 64 - digits.count) + digits] = [0]
      }
    case .authority: carrier.objects[Authority.object(membership.authority.version + 1)] = [1, 2, 3]
    }
    // What no head counts is seen only by those who read all.
    for host in [admin, b] where damage != .junk {
      await #expect(throws: FleetError.self) { try await host.sync() }
    }
    try await admin.fleet.remove("c")
    await #expect(throws: FleetError.removed) { try await c.sync() }
    for _ in 0..<2 { for host in [b, admin] { try await host.sync() } }
    let contents = ["x": damage == .overwritten ? "3" : "1", "y": "2"]
    for host in [admin, b] {
      #expect(try host.contents() == contents)
      #expect(try await host.fleet.status().condition == .inStep)
    }
    let late = try await Host("late").join(admin, carrier)
    #expect(try late.contents() == contents)
  }

  @Test("says that a fleet is stale whose last commit has an impossible time", arguments: [Int64.min, 0, Int64.max])
  func impossibleTime(_ time: Int64) async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    try await hosts[0].fleet.setGreatestAge(.seconds(3_600))
    try await hosts[1].sync()
    let membership = await hosts[1].fleet.membership
    carrier.objects[Head.object] = try membership.nextHead(time: time).head
      .sealed(membership.keys, by: membership.identity)
    carrier.compact()
    try await hosts[0].fleet.takeAll()
    guard case .stale = try await hosts[0].fleet.status().condition else {
      return #expect(Bool(false), "an impossible time counts as recent")
    }
    // A commit of any host is a sign of life.
    for host in hosts {
      try await host.sync()
      #expect(try await host.fleet.status().condition == .inStep)
    }
  }

  @Test("is obeyed also by hosts that see the removed member's next commit first")
  func formerHead() async throws {
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    try hosts[0].set("1", "x")
    for host in hosts { try await host.sync() }
    let before = carrier.objects
    try await hosts[0].fleet.remove("b")
    let after = carrier.objects
    carrier.objects = before
    try hosts[1].set("2", "x")
    try await hosts[1].sync()
    // It puts its own head and records back, over the new ones.
    carrier.objects = after.merging(carrier.objects.filter { $0.key == Head.object || $0.key.hasPrefix("r/") }) { $1 }
    await #expect(
      throws: FleetError.damaged(object: Head.object, reason: "it was made under members that an admin has replaced")
    ) { try await hosts[2].sync() }
    #expect(try hosts[2].get("x") == "1")
    carrier.objects = after
    try await hosts[2].sync()
  }

  @Test("removes none of what another admin has sealed under new keys meanwhile")
  func sealedMeanwhile() async throws {
    let (first, second) = (TestCarrier(over: carrier), TestCarrier(over: carrier))
    let admin = try await Host("a").create(first)
    let other = try await Host("e").join(admin, second, role: .admin)
    let reader = try await Host("r").join(admin, carrier, role: .reader)
    for number in 0..<10 { try admin.set("v", "\(number)") }
    for host in [admin, other, reader] { try await host.sync() }
    let (sealed, isSealed) = AsyncStream<Never>.makeStream()
    let (removed, isRemoved) = AsyncStream<Never>.makeStream()
    // Before its second commit, the other has sealed all records, and has not published them.
    let count = Mutex(0)
    second.happens {
      guard
        count.withLock({
          $0 += 1; return $0
        }) == 2
      else { return }
      isSealed.finish()
      for await _ in removed {}
    }
    // The first one's second commit publishes; what it leaves behind goes with the third.
    let commits = Mutex(0)
    let renewal = Mutex<Task<Void, any Error>?>(nil)
    first.happensAfterwards {
      guard
        commits.withLock({
          $0 += 1; return $0
        }) == 2
      else { return }
      renewal.withLock { $0 = Task { try await other.fleet.renewKey() } }
      for await _ in sealed {}
    }
    try await admin.fleet.renewKey()
    isRemoved.finish()
    try await renewal.withLock { $0 }?.value
    for host in [admin, other, reader] {
      try await host.sync()
      #expect(try await host.fleet.status().condition == .inStep && host.contents().count == 10)
    }
    #expect(carrier.objects.keys.filter { $0.hasPrefix("r/") }.count == 10)
  }
}
