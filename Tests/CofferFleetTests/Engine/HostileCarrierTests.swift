import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("An untrusted carrier")
struct HostileCarrierTests {
  let carrier = MemoryCarrier()

  /// A fleet with some settings, and what its first host has.
  private func pair() async throws -> (a: Host, b: Host) {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for key in ["x", "y", "z"] { try hosts[0].set("old \(key)", key) }
    for host in hosts { try await host.sync() }
    return (hosts[0], hosts[1])
  }

  private var recordNames: [String] { carrier.objects.keys.filter { $0.hasPrefix("r/") }.sorted() }

  /// Whether a host refuses what the carrier has, and changes nothing.
  private func expectRefusal(
    by host: Host, _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let before = try host.contents()
    await #expect(throws: FleetError.self, what, sourceLocation: sourceLocation) { try await host.sync() }
    #expect(try host.contents() == before, what, sourceLocation: sourceLocation)
    guard case .stopped = try await host.fleet.status().condition else {
      Issue.record("it does not say so", sourceLocation: sourceLocation)
      return
    }
  }

  @Test("cannot change a byte of any object unnoticed")
  func flippedBytes() async throws {
    let (a, b) = try await pair()
    try a.set("new", "x")
    try await a.sync()
    let genuine = carrier.objects
    carrier.compact()
    for name in [Head.object] + recordNames {
      let bytes = try #require(genuine[name])
      for index in stride(from: 0, to: bytes.count, by: 7) {
        var changed = bytes
        changed[index] ^= 0x10
        carrier.objects = genuine.merging([name: changed]) { $1 }
        try await expectRefusal(by: b, "\(name), byte \(index)")
      }
    }
    carrier.objects = genuine
    try await b.sync()
    #expect(try b.get("x") == "new")
  }

  @Test("cannot drop, roll back, swap or add records")
  func mixedRecords() async throws {
    let (a, b) = try await pair()
    let early = carrier.objects
    try a.set("new", "x")
    try await a.sync()
    let genuine = carrier.objects
    carrier.compact()
    let names = recordNames
    let changed = try #require(names.first { early[$0] != genuine[$0] })
    for name in names {
      carrier.objects = genuine.filter { $0.key != name }
      try await expectRefusal(by: b, "dropped")
    }
    carrier.objects = genuine.merging([changed: early[changed]!]) { $1 }
    try await expectRefusal(by: b, "put back")
    carrier.objects = genuine.merging([names[0]: genuine[names[1]]!, names[1]: genuine[names[0]]!]) { $1 }
    try await expectRefusal(by: b, "swapped")
    let other = String(names[0].dropLast()) + (names[0].hasSuffix("0") ? "1" : "0")
    carrier.objects = genuine.merging([other: genuine[names[0]]!]) { $1 }
    try await expectRefusal(by: b, "added")
    carrier.objects = genuine
    try await b.sync()
    #expect(try b.contents() == a.contents())
  }

  @Test("that drops its changes, or one commit, hides nothing")
  func lostEvents() async throws {
    let (a, b) = try await pair()
    for round in 1...3 {
      try a.set("\(round)", "x")
      try a.set("\(round)", "new \(round)")
      try await a.sync()
      carrier.compact()
      try await b.sync()
      #expect(try b.contents() == a.contents())
    }
  }

  @Test("that is rolled back is noticed, and used again only once that is accepted: what it lost is pushed again")
  func rollback() async throws {
    let (a, b) = try await pair()
    let backup = carrier.objects
    try a.set("new", "x")
    try a.set(nil, "y")
    try a.set("added", "w")
    for host in [a, b] { try await host.sync() }
    let seen = try await b.fleet.status().commit
    let head = await a.fleet.membership.head
    #expect(head?.number == seen)
    carrier.putBack(backup)
    for host in [a, b] {
      try await expectRefusal(by: host, "back")
      guard case .stopped(let reason) = try await host.fleet.status().condition else { return }
      #expect(reason.contains("was rolled back"))
      // It serves what it has.
      #expect(try host.contents() == ["x": "new", "z": "old z", "w": "added"])
    }
    try await a.fleet.acceptRollback()
    // The other one has seen more than what this descends from.
    await #expect(throws: FleetError.self) { try await b.sync() }
    try await b.fleet.acceptRollback()
    for host in [a, b] {
      try await host.sync()
      #expect(try host.contents() == ["x": "new", "z": "old z", "w": "added"])
    }
    let late = try await Host("c").join(a, carrier)
    #expect(try late.contents() == a.contents())
    #expect(try await late.fleet.status().commit > seen)
  }

  @Test(
    "that is rolled back to before a change of the members is refused for good: no host can push that change again",
    arguments: [true, false])
  func rollbackOfMembers(isRemoval: Bool) async throws {
    let (a, b) = try await pair()
    _ = try await a.fleet.invite("c", role: .reader)
    try await b.sync()
    let backup = carrier.objects
    if isRemoval { try await a.fleet.remove("c") } else { try await a.fleet.renewKey() }
    try await b.sync()
    carrier.putBack(backup)
    for host in [a, b] {
      try await expectRefusal(by: host, "back")
      let seen = try await host.fleet.status().commit
      await #expect(throws: FleetError.rolledBack(seen: seen, found: nil)) { try await host.fleet.acceptRollback() }
    }
    await #expect(throws: FleetError.self) { try await a.fleet.renewKey() }
    #expect(carrier.objects == backup)
  }

  @Test("that loses everything is noticed")
  func emptied() async throws {
    let (a, _) = try await pair()
    carrier.putBack([:])
    let seen = try await a.fleet.status().commit
    await #expect(throws: FleetError.rolledBack(seen: seen, found: nil)) { try await a.sync() }
  }

  @Test(
    "that shows two hosts different states is detected when one sees the other's",
    arguments: [1, 2, 15, 16, 17, 40, 270])
  func fork(count: Int) async throws {
    let (a, b) = try await pair()
    let common = carrier.objects
    try a.set("seen by a", "x")
    try await a.sync()
    carrier.putBack(common)
    for round in 0..<count {
      try b.set("seen by b \(round)", "z")
      try await b.sync()
    }
    try await expectRefusal(by: a, "the other state, \(count) commits on")
    #expect(try a.get("x") == "seen by a")
    // Accepted, both sides come together, and nothing is lost.
    try await a.fleet.acceptRollback()
    try await b.sync()
    for host in [a, b] {
      #expect(try host.contents() == ["x": "seen by a", "y": "old y", "z": "seen by b \(count - 1)"])
    }
  }

  @Test("that withholds commits shows no partial commit")
  func withheldHead() async throws {
    let (a, b) = try await pair()
    let old = carrier.objects
    try a.set("new", "x")
    try await a.sync()
    carrier.compact()
    // Records without their head, and a head without its records.
    carrier.objects[Head.object] = old[Head.object]
    try await b.sync()
    #expect(try b.get("x") == "old x")
    try await expectRefusal(by: a, "an earlier head")
  }

  @Test("cannot pass off a head made by a reader, even a reader who controls the carrier")
  func forgingReader() async throws {
    let (a, b) = try await pair()
    let reader = try await Host("r").join(a, carrier, role: .reader)
    try await b.sync()
    try reader.set("forged", "x")
    try await reader.sync()
    #expect(try reader.get("x") == "forged")
    let before = carrier.objects
    // What the program refuses can be done by hand.
    let membership = await reader.fleet.membership
    var forged = [
      Record(
        collection: "web", key: "x", counter: 99, clock: HybridClock(milliseconds: 2_000_000),
        author: membership.identity.member,
        writer: "", content: .value(FleetValue(object: StoredValue(kind: .string, bytes: Array("forged".utf8)))))
    ]
    try Record.sign(&forged, by: membership.identity, in: membership.authority.fleet)
    let object = try forged[0].sealed(membership.first)
    let objects = before.merging([object.name: object.bytes]) { $1 }
    for author in [membership.identity.member, await a.fleet.membership.identity.member] {
      var head = try membership.nextHead(over: objects).head
      head.author = author
      carrier.objects[object.name] = object.bytes
      carrier.objects[Head.object] = try head.sealed(membership.keys, by: membership.identity)
      carrier.compact()
      try await expectRefusal(by: b, "a reader's head")
    }
    carrier.objects = before
    try await b.sync()
  }

  @Test("cannot insert its own key: members that no admin signed are refused")
  func forgedMembers() async throws {
    let (a, b) = try await pair()
    let before = carrier.objects
    _ = try await a.fleet.invite("c", role: .reader)
    let genuine = carrier.objects
    let version2 = try #require(genuine.keys.filter { $0.hasPrefix("authority/") }.max())
    for name in [version2, Members.object] {
      let bytes = try #require(genuine[name])
      for index in stride(from: 0, to: bytes.count, by: 11) {
        var changed = bytes
        changed[index] ^= 1
        carrier.objects = genuine.merging([name: changed]) { $1 }
        carrier.compact()
        try await expectRefusal(by: b, "\(name), byte \(index)")
      }
    }
    carrier.objects = genuine.merging([Members.object: before[Members.object]!]) { $1 }
    try await expectRefusal(by: b, "earlier members")
    carrier.objects = genuine
    try await b.sync()
    #expect(await b.fleet.members.map(\.name).contains("c"))
  }
}
