import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("Clocks that run apart")
struct TimeTests {
  let carrier = MemoryCarrier()

  /// The time at which all clocks were right, in seconds.
  private let start: Int64 = 1_000_000

  @Test("tear no transaction: all of its settings win, or none", arguments: [60, 240, 3_600, 20 * 3_600], [0, 1, 2])
  func transactions(lead: Int64, delay: Int64) async throws {
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    for host in hosts { host.setTime(start) }
    for key in ["user", "password"] { try hosts[0].set("nobody's", key) }
    for host in hosts { try await host.sync() }
    // c's clock once set one of the two.
    hosts[2].setTime(start + lead)
    try hosts[2].set("by c", "user")
    for host in [hosts[2], hosts[0], hosts[1], hosts[0]] { try await host.sync() }
    for round in 1...3 {
      for (index, host) in hosts.prefix(2).enumerated() {
        host.setTime(start + Int64(10 * round) + (index == 0 ? 0 : delay))
        try await host.connection.readWrite { transaction in
          for key in ["user", "password"] {
            try transaction.setObject("\(host.name) \(round)", forKey: key, inCollection: "web")
          }
        }
      }
      for host in hosts + hosts { try await host.sync() }
      for host in hosts { #expect(try Set(host.contents().values).count == 1) }
    }
  }

  @Test("forget removals early without harm: what was removed is gone everywhere, no one stops, and nothing is back")
  func forgetting() async throws {
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    for host in hosts { host.setTime(start) }
    for key in ["removed", "changed by b", "kept"] { try hosts[0].set("old", key) }
    for host in hosts { try await host.sync() }
    for key in ["removed", "changed by b"] { try hosts[0].set(nil, key) }
    for host in [hosts[0], hosts[2]] { try await host.sync() }
    hosts[2].setTime(start + 100 * 86_400)
    // Its first commit dates the head wrongly, the second one forgets.
    for _ in 0..<2 {
      try hosts[2].set("\(try hosts[2].history("own").count)", "own")
      try await hosts[2].sync()
    }
    hosts[2].setTime(start + 10)
    hosts[1].setTime(start + 20)
    try hosts[1].set("mine", "changed by b")
    for host in hosts.reversed() + hosts { try await host.sync() }
    for host in hosts {
      #expect(try host.get("removed") == nil && host.get("kept") == "old")
      #expect(try host.contents() == hosts[0].contents())
      #expect(try await host.fleet.status().condition == .inStep)
    }
    let isKept = try hosts[0].get("changed by b") == "mine" || hosts[1].history("changed by b").contains("mine")
    #expect(isKept)
    // A setting can begin again after its removal was forgotten.
    try hosts[0].set("again", "removed")
    for host in hosts { try await host.sync() }
    for host in hosts { #expect(try host.get("removed") == "again") }
  }

  @Test("that are minutes ahead are reported by those who see it, with the member's name")
  func reported() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for host in hosts { host.setTime(start) }
    hosts[1].setTime(start + 3_600)
    try hosts[1].set("early", "x")
    #expect(try await hosts[1].sync().problems == [])
    let problem = try #require(try await hosts[0].sync().problems.first)
    #expect(problem.contains("The clock of b is 60 minutes ahead"))
    #expect(try hosts[0].get("x") == "early")
  }

  @Test("that were wrong, and are right again, win nothing by what was changed meanwhile")
  func rightAgain() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for host in hosts { host.setTime(start) }
    hosts[1].setTime(start + 20 * 3_600)
    for key in ["both", "own"] { try hosts[1].set("early", key) }
    for host in hosts { host.setTime(start + 60) }
    try hosts[0].set("later", "both")
    try await hosts[0].sync()
    #expect(try await hosts[1].sync().conflictCount == 1)
    try await hosts[0].sync()
    for host in hosts { #expect(try host.contents() == ["both": "later", "own": "early"]) }
    #expect(try hosts[1].history("both") == ["early"])
  }

  @Test("bring nothing back that was removed, as a host leaves and joins again")
  func rejoining() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for key in ["k1", "revoked-token"] { try hosts[0].set("old", key) }
    for host in hosts { try await host.sync() }
    try await hosts[0].fleet.remove("b")
    try await hosts[1].fleet.leave()
    try hosts[0].set(nil, "revoked-token")
    try hosts[0].set("new", "k1")
    try await hosts[0].sync()
    try hosts[1].set("own", "local")
    try await hosts[1].join(hosts[0], carrier)
    for host in hosts + hosts { try await host.sync() }
    for host in hosts { #expect(try host.contents() == ["k1": "new", "local": "own"]) }
    #expect(try await hosts[1].fleet.conflicts() == [])
  }

  @Test("bring nothing back after the removal was forgotten; what the host changed meanwhile is offered as a conflict")
  func rejoiningLate() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier, retentionDays: 1)
    for host in hosts { host.setTime(start) }
    for key in ["revoked-token", "changed", "kept"] { try hosts[0].set("old", key) }
    for host in hosts { try await host.sync() }
    try await hosts[1].fleet.leave()
    for key in ["revoked-token", "changed"] { try hosts[0].set(nil, key) }
    try await hosts[0].sync()
    for host in hosts { host.setTime(start + 10 * 86_400) }
    try await hosts[0].sync()
    #expect(carrier.objects.keys.filter { $0.hasPrefix("r/") }.count == 1)
    try hosts[1].set("mine", "changed")
    try hosts[1].set("new", "local")
    try hosts[1].restart(carrier, isMember: false)
    try await hosts[0].fleet.remove("b")
    try await hosts[1].join(hosts[0], carrier)
    for host in hosts + hosts { try await host.sync() }
    for host in hosts { #expect(try host.contents() == ["kept": "old", "local": "new"]) }
    #expect(try hosts[1].history("changed").first == "mine")
    #expect(try await hosts[1].fleet.conflicts().map(\.key) == ["changed"])
  }

  @Test("win over what a store that was never a member has under the same keys, also removals")
  func firstJoining() async throws {
    let admin = try await Host("a").create(carrier)
    try admin.set("fleet's", "x")
    try admin.set("1", "removed")
    try await admin.sync()
    try admin.set(nil, "removed")
    try await admin.sync()
    let host = try Host("b")
    for key in ["x", "removed", "own"] { try host.set("copy", key) }
    try await host.join(admin, carrier)
    for host in [host, admin] { try await host.sync() }
    for host in [host, admin] { #expect(try host.contents() == ["x": "fleet's", "own": "copy"]) }
    for key in ["x", "removed"] { #expect(try host.history(key).first == "copy") }
    #expect(try await Set(host.fleet.conflicts().map(\.key)) == ["x", "removed"])
  }
}
