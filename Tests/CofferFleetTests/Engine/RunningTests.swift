import Dispatch
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("A running host", .timeLimit(.minutes(10)))
struct RunningTests {
  private let carrier = MemoryCarrier()

  /// Runs `body` while all hosts stay in step.
  private func running(_ hosts: [Host], _ body: () async throws -> Void) async throws {
    let tasks = hosts.map { host in Task { [fleet = host.fleet] in try await fleet.run() } }
    defer { for task in tasks { task.cancel() } }
    for host in hosts {
      for await status in try await host.fleet.states() where status.condition == .inStep { break }
    }
    try await body()
  }

  private func hears(_ host: Host, _ value: String, _ key: String, in collection: String = "web") async throws {
    let commits = try host.database.commits()
    if try host.get(key, in: collection) == value { return }
    for await _ in commits where try host.get(key, in: collection) == value { return }
  }

  @Test("reads everything again when the carrier has dropped its changes, and keeps hearing of later ones")
  func forgottenChanges() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    try await running(hosts) {
      for round in 0..<3 {
        carrier.forget()
        try hosts[0].set("\(round)", "x")
        try await hears(hosts[1], "\(round)", "x")
        try hosts[1].set("\(round)", "y")
        try await hears(hosts[0], "\(round)", "y")
      }
    }
  }

  @Test("hears of a collection that is shared later, and pushes its contents once it is accepted")
  func laterCollections() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    try hosts[1].set("before", "x", in: "flags")
    try await running(hosts) {
      try await hosts[0].fleet.share(collections: ["web", "flags"])
      for await status in try await hosts[1].fleet.states() where status.waitingCollections == ["flags"] { break }
      try await hosts[1].fleet.accept(collections: ["flags"])
      try await hears(hosts[0], "before", "x", in: "flags")
      try hosts[1].set("b", "y", in: "flags")
      try await hears(hosts[0], "b", "y", in: "flags")
      try hosts[0].set("a", "y", in: "flags")
      try await hears(hosts[1], "a", "y", in: "flags")
    }
  }

  @Test("reports that its carrier is unreachable, and when it is back, even if nothing is set meanwhile")
  func interruption() async throws {
    let hosts = try await fleet(of: "a", on: carrier)
    try await running(hosts) {
      let states = try await hosts[0].fleet.states()
      carrier.cut(true)
      carrier.interrupt()
      for await status in states { if case .offline = status.condition { break } }
      carrier.cut(false)
      for await status in states where status.condition == .inStep { break }
    }
  }

  @Test("ends its states when it is removed, or leaves")
  func lastState() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let states = try await hosts[1].fleet.states()
    try await hosts[0].fleet.remove("b")
    await #expect(throws: FleetError.removed) { try await hosts[1].fleet.run() }
    var last: FleetCondition?
    for await status in states { last = status.condition }
    #expect(last == .stopped("\(FleetError.removed)"))
    carrier.cut(true)
    await #expect(throws: CarrierError.self) { try await hosts[1].fleet.sync() }
    for await _ in try await hosts[1].fleet.states() {}
    carrier.cut(false)
    let own = try await hosts[0].fleet.states()
    await #expect(throws: FleetError.lastAdminLeaves) { try await hosts[0].fleet.leave() }
    try await hosts[0].fleet.leave(evenAsLastAdmin: true)
    for await status in own { last = status.condition }
    #expect(last == .left)
  }

  @Test("leaves once the running sync has ended, and does not sync again")
  func leavingDuringSync() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let (steps, step) = AsyncStream.makeStream(of: Void.self)
    let (asked, ask) = AsyncStream.makeStream(of: Void.self)
    await hosts[1].fleet.setOnStep {
      guard $0 == .willCommit else { return }
      step.yield()
      for await _ in asked { break }
    }
    try hosts[1].set("1", "x")
    let (syncing, store) = (Task { [fleet = hosts[1].fleet] in try await fleet.sync() }, hosts[1].database)
    for await _ in steps { break }
    let leaving = Task { [fleet = hosts[1].fleet] in try await fleet.leave() }
    ask.yield()
    #expect(try await syncing.value.pushedCount == 1)
    try await leaving.value
    #expect(try Fleet.carriers(of: store) == [])
    await #expect(throws: FleetError.notJoined) { try await hosts[1].sync() }
    try await hosts[0].sync()
    #expect(try hosts[0].get("x") == "1" && hosts[1].get("x") == "1")
  }

  @Test(
    "ends its sync if another program leaves the fleet meanwhile, and the store stays out",
    arguments: [Fleet.Step.willCommit, .didCommit, .willApply])
  func leftDuringSync(_ last: Fleet.Step) async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    try hosts[0].set("1", "x")
    try await hosts[0].sync()
    let other = try hosts[1].database.makeConnection()
    let id = await hosts[1].fleet.membership.id
    await hosts[1].fleet.setOnStep { if $0 == last { try other.writeFleets { try $0.remove(id) } } }
    try hosts[1].set("2", "y")
    await #expect(throws: FleetError.notJoined) { try await hosts[1].sync() }
    #expect(try Fleet.carriers(of: hosts[1].database) == [])
    await #expect(throws: FleetError.notJoined) { try await hosts[1].fleet.run() }
    #expect(try hosts[1].get("y") == "2")
    // Whatever reached the carrier is whole.
    try await hosts[0].sync()
    #expect(try hosts[0].get("x") == "1")
  }
}
