import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("A host that loses its connection")
struct CrashTests {
  struct CutOff: Error {}

  /// Ends a host at the `count`th step.
  final class Countdown: Sendable {
    private let left: Mutex<Int>
    let hasEnded = Mutex(false)

    init(_ count: Int) { left = Mutex(count) }

    func step() throws {
      let isNow = left.withLock { left in
        left -= 1
        return left == 0
      }
      if isNow {
        hasEnded.withLock { $0 = true }
        throw CutOff()
      }
    }
  }

  /// Runs `body` on fresh hosts again and again, cut off one step later each time, until it comes to its end.
  private func cuttingOff(
    limits: CarrierLimits, _ prepare: (Host, Host) async throws -> Void, _ body: (Host) async throws -> Void,
    _ check: (Host, Host) async throws -> Void
  ) async throws {
    var count = 0
    while true {
      count += 1
      let carrier = MemoryCarrier(limits: limits)
      let hosts = try await fleet(of: "a", "b", on: carrier)
      try await prepare(hosts[0], hosts[1])
      let countdown = Countdown(count)
      await hosts[0].fleet.setOnStep { _ in try countdown.step() }
      do { try await body(hosts[0]) } catch is CutOff {}
      let hasEnded = countdown.hasEnded.withLock { $0 }
      // Others meanwhile see all or nothing, and continue.
      try await hosts[1].sync()
      try await check(hosts[0], hosts[1])
      try hosts[0].restart(carrier)
      if hasEnded { try await body(hosts[0]) }
      for host in hosts + hosts { try await host.sync() }
      #expect(try hosts[0].contents() == hosts[1].contents(), "cut off at step \(count)")
      for host in hosts { #expect(try await host.fleet.conflicts() == [], "cut off at step \(count)") }
      guard hasEnded else { break }
      try #require(count < 100)
    }
    #expect(count > 2)
  }

  private static let narrow = CarrierLimits(operationCount: 8, requestByteCount: 80_000, objectByteCount: 4_000)

  @Test(
    "between any two steps of a commit loses nothing, shows no partial commit, and causes no conflict",
    arguments: [3, 120])
  func pushing(keyCount: Int) async throws {
    try await cuttingOff(limits: Self.narrow) { a, b in
      try a.set("old", "0")
      for host in [a, b] { try await host.sync() }
      try await a.connection.readWrite { transaction in
        for index in 0..<keyCount { try transaction.setObject("new", forKey: "\(index)", inCollection: "web") }
      }
    } _: { a in
      let report = try await a.sync()
      #expect(report.recoveredCount == 0)
    } _: { _, b in
      let contents = try b.contents()
      #expect(contents == ["0": "old"] || contents.count == keyCount && Set(contents.values) == ["new"])
    }
  }

  @Test("and changes the pushed setting before it retries has no conflict with itself")
  func changedMeanwhile() async throws {
    try await cuttingOff(limits: Self.narrow) { a, _ in
      try a.set("first", "x")
    } _: { a in
      defer { try? a.set("second", "x") }
      try await a.sync()
    } _: { _, b in
      let value = try b.get("x")
      #expect([nil, "first"].contains(value))
    }
  }

  @Test("and removes what it was pushing before the retry has it removed everywhere", arguments: [false, true])
  func removedMeanwhile(isKnown: Bool) async throws {
    let carrier = MemoryCarrier()
    let hosts = try await fleet(of: "a", "b", on: carrier)
    if isKnown {
      try hosts[0].set("in step", "x")
      for host in hosts { try await host.sync() }
    }
    try hosts[0].set("pushed", "x")
    await hosts[0].fleet.setOnStep { if $0 == .didCommit { throw CutOff() } }
    await #expect(throws: CutOff.self) { try await hosts[0].sync() }
    try hosts[0].restart(carrier)
    try hosts[0].set(nil, "x")
    for host in hosts { try await host.sync() }
    for host in hosts { #expect(try host.get("x") == nil) }
  }

  @Test("between any two steps of a pull repeats it, once")
  func pulling() async throws {
    try await cuttingOff(limits: Self.narrow) { a, b in
      for index in 0..<5 { try b.set("\(index)", "\(index)") }
      try a.set("own", "own")
      try await b.sync()
    } _: { a in
      try await a.sync()
    } _: { _, _ in
    }
  }

  @Test("between any two steps of removing a member leaves the member in or out, and the others in sync")
  func removing() async throws {
    try await cuttingOff(limits: Self.narrow) { a, b in
      for index in 0..<150 { try a.set("\(index)", "\(index)") }
      for host in [a, b] { try await host.sync() }
      _ = try await a.fleet.invite("c", role: .reader)
      try await b.sync()
    } _: { a in
      do { try await a.fleet.remove("c") } catch FleetError.memberNotFound {}
    } _: { _, b in
      let contents = try b.contents()
      #expect(contents.count == 150)
    }
  }

  @Test("before or after its commit took effect finds out which the next time")
  func lostAnswers() async throws {
    for failure in [MemoryCarrier.Failure.before, .after] {
      let carrier = MemoryCarrier()
      let hosts = try await fleet(of: "a", "b", on: carrier)
      try hosts[0].set("1", "x")
      carrier.fail { _ in failure }
      await #expect(throws: CarrierError.self) { try await hosts[0].sync() }
      carrier.fail(nil)
      try await hosts[0].sync()
      try await hosts[1].sync()
      #expect(try hosts[1].get("x") == "1")
      #expect(try await hosts[0].fleet.conflicts() == [])
      #expect(try hosts[0].history("x") == [])
    }
  }

  @Test("while it creates a fleet has none, or a complete one")
  func creating() async throws {
    for failure in [MemoryCarrier.Failure.before, .after] {
      let carrier = MemoryCarrier()
      let host = try Host("a")
      carrier.fail { _ in failure }
      if failure == .before {
        await #expect(throws: CarrierError.self) { try await host.create(carrier) }
        #expect(try Fleet.carriers(of: host.database) == [])
        carrier.fail(nil)
        try await host.create(carrier)
      } else {
        try await host.create(carrier)
        carrier.fail(nil)
      }
      try host.set("1", "x")
      #expect(try await host.sync().pushedCount == 1)
    }
  }

  @Test("is not disturbed by another program of the same host that also syncs")
  func twoPrograms() async throws {
    let carrier = MemoryCarrier()
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let other = try Fleet.open(in: hosts[0].database, at: carrier)
    for round in 0..<5 {
      try hosts[0].set("\(round)", "x")
      try await other.sync()
      try hosts[1].set("\(round)", "y")
      try await hosts[1].sync()
      try await hosts[0].sync()
      try await other.sync()
    }
    for host in hosts { try await host.sync() }
    #expect(try hosts[0].contents() == ["x": "4", "y": "4"])
    #expect(try hosts[1].contents() == hosts[0].contents())
    #expect(try await other.conflicts() == [])
  }

  /// True once.
  private final class Flag: Sendable {
    private let isUp = Atomic(true)

    func take() -> Bool { isUp.exchange(false, ordering: .relaxed) }
  }

  /// Lets another program of the host sync, once, as this one reaches a step.
  private func overtake(_ host: Host, at step: Fleet.Step, by other: Fleet) async {
    let isFirst = Flag()
    await host.fleet.setOnStep {
      guard $0 == step, isFirst.take() else { return }
      try await other.sync()
    }
  }

  @Test(
    "changes the members, though another program of the same host is faster",
    arguments: [Fleet.Step.willApply, .willCommit, .didCommit])
  func overtakenChange(_ step: Fleet.Step) async throws {
    let carrier = MemoryCarrier()
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    let other = try Fleet.open(in: hosts[0].database, at: carrier)
    try hosts[1].set("1", "x")
    try await hosts[1].sync()
    await overtake(hosts[0], at: step, by: other)
    if step == .willCommit { try hosts[0].set("2", "y") }
    try await hosts[0].fleet.edit { members, _ in
      try members.remove(try #require(members.member(named: "b")))
      return true
    }
    for fleet in [hosts[0].fleet, other] {
      try await fleet.sync()
      #expect(await fleet.members.map(\.name) == ["a", "c"])
    }
    await #expect(throws: FleetError.removed) { try await hosts[1].sync() }
    try await hosts[2].sync()
    #expect(try hosts[2].contents() == hosts[0].contents() && hosts[2].get("x") == "1")
  }

  @Test("accepts a collection, and a rollback, though another program of the same host is faster")
  func overtakenAcceptance() async throws {
    let carrier = MemoryCarrier()
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let other = try Fleet.open(in: hosts[1].database, at: carrier)
    try hosts[0].set("1", "x", in: "flags")
    try await hosts[0].fleet.share(collections: ["web", "flags"])
    try await hosts[0].sync()
    await overtake(hosts[1], at: .willApply, by: other)
    try await hosts[1].fleet.accept(collections: ["flags"])
    #expect(try hosts[1].get("x", in: "flags") == "1")
    try hosts[0].set("2", "x")
    try await hosts[0].sync()
    await overtake(hosts[1], at: .willApply, by: other)
    try await hosts[1].fleet.acceptRollback()
    #expect(try hosts[1].get("x") == "2")
  }
}
