import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("A collection that is taken from a member and given back")
struct GivenBackTests {
  private let carrier = MemoryCarrier()

  enum State: CaseIterable { case open, sealed, locked }

  /// An admin, `a`, and `b`, which has the collection in this state when it loses it.
  private func hosts(_ state: State, retentionDays: Int = 90) async throws -> [Host] {
    let hosts = [try Host("a"), try Host("b")]
    if state != .open { for host in hosts { try host.seal() } }
    try await hosts[0].create(carrier, retentionDays: retentionDays)
    try await hosts[1].join(hosts[0], carrier)
    return hosts
  }

  /// Takes it from `b`, lets `meanwhile` happen, and gives it back.
  private func takeAndGive(_ hosts: [Host], _ state: State, meanwhile: () async throws -> Void) async throws
    -> SyncReport
  {
    if state == .locked { hosts[1].lock() }
    try await hosts[0].fleet.setCollections([], of: "b")
    try await hosts[1].sync()
    try await meanwhile()
    try await hosts[0].fleet.setCollections(nil, of: "b")
    if state == .locked { try hosts[1].unlock() }
    try await hosts[1].sync()
    let report = try await hosts[1].fleet.accept(collections: ["web"])
    for host in hosts + hosts {
      try await host.sync()
      #expect(try await host.fleet.status().condition == .inStep)
    }
    return report
  }

  @Test(
    "brings back nothing that was removed and forgotten meanwhile, whatever kept it from being exchanged",
    arguments: State.allCases)
  func forgotten(_ state: State) async throws {
    let hosts = try await hosts(state, retentionDays: 1)
    func setTime(_ day: Int64) { for host in hosts { host.setTime((20_000 + day) * 86_400) } }
    setTime(0)
    for key in ["gone", "kept"] { try hosts[0].set("old", key) }
    for host in hosts { try await host.sync() }
    _ = try await takeAndGive(hosts, state) {
      try hosts[0].set(nil, "gone")
      try await hosts[0].sync()
      setTime(10)
      try await hosts[0].sync()
    }
    for host in hosts { #expect(try host.contents() == ["kept": "old"]) }
  }

  @Test(
    "brings back nothing also if its host leaves before, and joins again without it, or with a locked vault",
    arguments: [State.open, .locked])
  func forgottenAfterLeaving(_ state: State) async throws {
    let hosts = try await hosts(state, retentionDays: 1)
    func setTime(_ day: Int64) { for host in hosts { host.setTime((20_000 + day) * 86_400) } }
    setTime(0)
    for key in ["gone", "kept"] { try hosts[0].set("old", key) }
    for host in hosts { try await host.sync() }
    try await hosts[1].fleet.leave()
    try await hosts[0].fleet.remove("b")
    if state == .locked { hosts[1].lock() }
    let invitation = try await hosts[0].fleet.invite("b", role: .writer, collections: state == .open ? [] : nil)
    try await hosts[1].join(invitation, carrier)
    try await hosts[0].sync()
    _ = try await takeAndGive(hosts, state) {
      try hosts[0].set(nil, "gone")
      try await hosts[0].sync()
      setTime(10)
      try await hosts[0].sync()
    }
    for host in hosts { #expect(try host.contents() == ["kept": "old"]) }
  }

  @Test("merges what was changed and removed there, and not pushed, before it was taken", arguments: State.allCases)
  func notPushed(_ state: State) async throws {
    let hosts = try await hosts(state)
    for key in ["of a", "changed", "both"] { try hosts[0].set("A1", key) }
    for host in hosts { try await host.sync() }
    for key in ["of b", "unchanged"] { try hosts[1].set("B1", key) }
    for host in [hosts[1], hosts[0]] { try await host.sync() }
    for key in ["of a", "of b"] { try hosts[1].set(nil, key) }
    for key in ["changed", "both"] { try hosts[1].set("B2", key) }
    try hosts[1].set("B2", "new")
    let report = try await takeAndGive(hosts, state) {
      try hosts[0].set("A3", "unchanged")
      try hosts[0].set("A3", "both")
      try await hosts[0].sync()
    }
    // Its own store has lost nothing.
    #expect(report.recoveredCount == 0)
    for host in hosts {
      let contents = try host.contents()
      #expect(contents == ["changed": "B2", "new": "B2", "unchanged": "A3", "both": "A3"])
    }
    #expect(try hosts[1].history("both").contains("B2"))
    // What it had not changed is no conflict.
    #expect(try await hosts[1].fleet.conflicts().map(\.key) == ["both"])
  }

  @Test("keeps what was first set there, though it was not pushed, when removals were forgotten")
  func newKeys() async throws {
    let hosts = try await hosts(.open, retentionDays: 1)
    func setTime(_ day: Int64) { for host in hosts { host.setTime((20_000 + day) * 86_400) } }
    setTime(0)
    try hosts[0].set("old", "gone")
    for host in hosts { try await host.sync() }
    try hosts[1].set("B", "new")
    _ = try await takeAndGive(hosts, .open) {
      try hosts[0].set(nil, "gone")
      try await hosts[0].sync()
      setTime(10)
      try await hosts[0].sync()
    }
    for host in hosts { #expect(try host.contents() == ["new": "B"]) }
  }
}
