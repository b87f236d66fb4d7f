import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("A setting changed concurrently on two hosts")
struct MergeTests {
  let carrier = MemoryCarrier()

  /// Two hosts in step, with "old" for "x".
  private func pair(b role: FleetRole = .writer) async throws -> (a: Host, b: Host) {
    let a = try await Host("a").create(carrier)
    let b = try await Host("b").join(a, carrier, role: role)
    a.setTime(1_000_000)
    b.setTime(1_000_000)
    try a.set("old", "x")
    for host in [a, b] { try await host.sync() }
    return (a, b)
  }

  private func settle(_ hosts: Host...) async throws {
    for host in hosts + hosts { try await host.sync() }
  }

  @Test("gets the later value everywhere; the earlier one is in its key's history and on the list, and can be restored")
  func laterWins() async throws {
    for isFirstLater in [true, false] {
      let (a, b) = try await pair()
      a.setTime(isFirstLater ? 1_000_020 : 1_000_010)
      b.setTime(isFirstLater ? 1_000_010 : 1_000_020)
      try a.set("by a", "x")
      try b.set("by b", "x")
      try await settle(a, b)
      let (winner, loser) = isFirstLater ? ("a", "b") : ("b", "a")
      #expect(try a.get("x") == "by \(winner)")
      #expect(try b.get("x") == "by \(winner)")
      // b came second, and settled it.
      #expect(try b.history("x").first == "by \(loser)")
      let conflict = try #require(try await b.fleet.conflicts().first)
      #expect(conflict.winner == winner && conflict.loser == loser && conflict.key == "x")
      #expect(try await b.fleet.status().conflictCount == 1)
      b.setTime(1_000_030)
      try await b.fleet.restore(conflict)
      try await settle(b, a)
      #expect(try a.get("x") == "by \(loser)")
      #expect(try await b.fleet.conflicts() == [])
      await #expect(throws: FleetError.conflictNotFound(id: conflict.id)) { try await b.fleet.restore(conflict) }
      carrier.putBack([:])
    }
  }

  @Test("has no conflict if both set the same value, or both removed it")
  func equal() async throws {
    let (a, b) = try await pair()
    for value in ["same", nil] {
      try a.set(value, "x")
      try b.set(value, "x")
      try await settle(a, b)
      #expect(try a.get("x") == value)
      #expect(try b.get("x") == value)
    }
    #expect(try await a.fleet.conflicts() == [])
    #expect(try await b.fleet.conflicts() == [])
  }

  @Test("keeps the change if the other host removed it, in either order")
  func changeBeatsRemoval() async throws {
    for isFirstRemoving in [true, false] {
      let (a, b) = try await pair()
      let (remover, changer) = isFirstRemoving ? (a, b) : (b, a)
      try remover.set(nil, "x")
      try changer.set("changed", "x")
      try await settle(a, b)
      #expect(try a.get("x") == "changed")
      #expect(try b.get("x") == "changed")
      carrier.putBack([:])
    }
  }

  @Test("converges if the clocks are equal")
  func ties() async throws {
    let (a, b) = try await pair()
    try a.set("by a", "x")
    try b.set("by b", "x")
    try await settle(a, b)
    #expect(try a.get("x") == b.get("x"))
    #expect(try await b.fleet.conflicts().count == 1)
  }

  @Test("is not won by a clock more than five minutes ahead, but by one less than that ahead")
  func wrongClocks() async throws {
    for (lead, winner) in [(2 * 86_400, "b"), (330, "b"), (290, "a")] {
      let (a, b) = try await pair()
      a.setTime(1_000_000 + Int64(lead))
      try a.set("by a", "x")
      try await a.sync()
      b.setTime(1_000_010)
      try b.set("by b", "x")
      try await settle(b, a)
      #expect(try a.get("x") == "by \(winner)")
      #expect(try b.get("x") == "by \(winner)")
      carrier.putBack([:])
    }
  }

  @Test("takes theirs or keeps ours if a rule says so")
  func rules() async throws {
    for (rule, winner) in [(FleetRule.theirsWins, "a"), (.oursWins, "b")] {
      let (a, b) = try await pair()
      try await b.fleet.setRule(rule, forCollection: "web")
      a.setTime(rule == .theirsWins ? 1_000_001 : 1_000_020)
      try a.set("by a", "x")
      b.setTime(1_000_010)
      try b.set("by b", "x")
      try await settle(a, b)
      #expect(try a.get("x") == "by \(winner)")
      #expect(try b.get("x") == "by \(winner)")
      #expect(try b.history("x").first == (winner == "a" ? "by b" : "by a"))
      carrier.putBack([:])
    }
  }

  @Test("stays local to a reader until the fleet changes it, too")
  func readers() async throws {
    let (a, b) = try await pair(b: .reader)
    try b.set("own", "x")
    try b.set("own", "y")
    try await settle(b, a)
    #expect(try a.contents() == ["x": "old"])
    #expect(try b.get("x") == "own")
    #expect(try await b.fleet.status().unpushedCount == 2)
    try a.set("fleet's", "x")
    try await settle(a, b)
    #expect(try b.get("x") == "fleet's")
    #expect(try b.history("x").first == "own")
    #expect(try await b.fleet.conflicts().map(\.loser) == ["b"])
  }

  @Test("keeps a reader's own value on its host, and only there, if a rule of that host says so")
  func readersRule() async throws {
    let (a, b) = try await pair(b: .reader)
    try await b.fleet.setRule(.oursWins, forCollection: "web")
    a.setTime(1_000_020)
    b.setTime(1_000_010)
    try b.set("own", "x")
    for value in ["fleet's", "later"] {
      try a.set(value, "x")
      try await settle(a, b)
      #expect(try a.get("x") == value)
      #expect(try b.get("x") == "own")
      #expect(try b.history("x").first == value)
    }
    #expect(try await b.fleet.conflicts().map(\.winner) == ["b", "b"])
    // Without the rule, the fleet's next change wins again.
    try await b.fleet.setRule(.theirsWins, forCollection: "web")
    try a.set("latest", "x")
    try await settle(a, b)
    #expect(try b.get("x") == "latest")
  }

  @Test("is merged when a store joins that already has the collection")
  func joining() async throws {
    let (a, _) = try await pair()
    let c = try Host("c")
    c.setTime(1_000_050)
    try c.set("old", "x")
    try c.set("own", "z")
    try await c.join(a, carrier)
    try await settle(c, a)
    #expect(try a.contents() == ["x": "old", "z": "own"])
    #expect(try await c.fleet.conflicts() == [])
  }

  @Test(
    "is resolved for a host that was away longer than removals are kept: its changes are offered as conflicts")
  func longAway() async throws {
    let a = try await Host("a").create(carrier, retentionDays: 1)
    let b = try await Host("b").join(a, carrier)
    for host in [a, b] { host.setTime(1_000_000) }
    for key in ["removed", "changed here", "kept"] { try a.set("old", key) }
    for host in [a, b] { try await host.sync() }
    for key in ["removed", "changed here"] { try a.set(nil, key) }
    try await a.sync()
    // Two days later it is no longer remembered.
    for host in [a, b] { host.setTime(1_000_000 + 2 * 86_400) }
    let count = carrier.objects.count
    try await a.sync()
    #expect(carrier.objects.count == count - 2)
    try b.set("mine", "changed here")
    try b.set("new", "new")
    try await settle(b, a)
    for host in [a, b] { #expect(try host.contents() == ["kept": "old", "new": "new"]) }
    #expect(try b.history("changed here").first == "mine")
    #expect(try await b.fleet.conflicts().map(\.key) == ["changed here"])
  }
}
