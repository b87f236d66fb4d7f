import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("A change that a carrier has lost")
struct LostChangeTests {
  let carrier = MemoryCarrier()
  private static let start: Int64 = 1_000_000

  private enum Order: CaseIterable {
    case remover, other
    /// Also the other one, but cut off before it can push, so that it follows the remover.
    case otherCutOff
  }

  private struct CutOff: Error {}

  private func pair() async throws -> (a: Host, b: Host) {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for host in hosts { host.setTime(Self.start) }
    return (hosts[0], hosts[1])
  }

  /// Two hosts accept that the carrier was put back, in an order, and sync until they are in step.
  private func accept(_ a: Host, _ b: Host, _ order: Order) async throws {
    for host in [a, b] { host.setTime(Self.start + 100) }
    if order == .otherCutOff {
      await b.fleet.setOnStep { if $0 == .willCommit { throw CutOff() } }
      await #expect(throws: CutOff.self) { try await b.fleet.acceptRollback() }
      await b.fleet.setOnStep { _ in }
    }
    for host in order == .other ? [b, a] : [a, b] {
      do {
        try await host.sync()
      } catch  where Fleet.isRollback(error) {
        try await host.fleet.acceptRollback()
      }
    }
    for host in [a, b, a, b] { try await host.sync() }
    for host in [a, b] { #expect(try await host.fleet.status().condition == .inStep) }
  }

  /// The first host sets `x`, and changes it; the second one sees the first change, later, and not the second.
  ///
  /// Then the carrier loses both.
  private func losing(_ change: String?, _ a: Host, _ b: Host) async throws {
    let before = carrier.objects
    a.setTime(Self.start + 10)
    try a.set("first", "x")
    try await a.sync()
    a.setTime(Self.start + 20)
    try a.set(change, "x")
    b.setTime(Self.start + 30)
    try await b.sync()
    #expect(try b.get("x") == "first")
    a.setTime(Self.start + 40)
    try await a.sync()
    carrier.putBack(before)
  }

  @Test(
    "with its removal stays removed, also if a host that missed the removal is the first to push again",
    arguments: Order.allCases)
  private func removal(_ order: Order) async throws {
    let (a, b) = try await pair()
    try await losing(nil, a, b)
    try await accept(a, b, order)
    for host in [a, b] { #expect(try host.get("x") == nil) }
  }

  @Test("with a later one does not win over that", arguments: Order.allCases)
  private func laterChange(_ order: Order) async throws {
    let (a, b) = try await pair()
    try await losing("second", a, b)
    try await accept(a, b, order)
    for host in [a, b] { #expect(try host.get("x") == "second") }
  }

  @Test("is pushed again as the change that it was, and what is changed since as a new one")
  func changedSince() async throws {
    let (a, b) = try await pair()
    let before = carrier.objects
    a.setTime(Self.start + 10)
    for key in ["x", "y", "z"] { try a.set("first", key) }
    for host in [a, b] { try await host.sync() }
    carrier.putBack(before)
    for host in [a, b] { host.setTime(Self.start + 50) }
    try a.set("second", "y")
    try a.set(nil, "z")
    try await accept(a, b, .other)
    for host in [a, b] {
      #expect(try host.contents() == ["x": "first", "y": "second"])
      let rows = try host.connection.readFleets { [id = await host.fleet.membership.id] in try $0.records(of: id) }
      let clocks = Dictionary(
        uniqueKeysWithValues: rows.map { ($0.key, $0.hybridClock.milliseconds / 1000 - Self.start) })
      #expect(clocks == ["x": 10, "y": 50, "z": 50])
    }
  }

  @Test("comes back to a reader that accepts the rollback only once a writer has it")
  func reader() async throws {
    let a = try await Host("a").create(carrier)
    let b = try await Host("b").join(a, carrier, role: .reader)
    let before = carrier.objects
    try a.set("1", "x")
    for host in [a, b] { try await host.sync() }
    carrier.putBack(before)
    try await b.fleet.acceptRollback()
    #expect(try b.get("x") == "1")
    try await a.fleet.acceptRollback()
    try a.set(nil, "x")
    for host in [a, b] { try await host.sync() }
    for host in [a, b] { #expect(try host.get("x") == nil) }
  }

  @Test("stays lost on a host whose clock is days behind, if it was removed meanwhile")
  func clockBehind() async throws {
    let (a, b) = try await pair()
    try a.set("1", "x")
    for host in [a, b] { try await host.sync() }
    let before = carrier.objects
    try b.set("1", "y")
    try await b.sync()
    carrier.putBack(before)
    a.setTime(Self.start + 10)
    try a.set(nil, "x")
    try await a.sync()
    // For this host the removal is far ahead, and so wins over no change that was made here; but there was none.
    b.setTime(Self.start - 2 * 86_400)
    try await b.fleet.acceptRollback()
    for host in [a, b, a] { try await host.sync() }
    for host in [a, b] { #expect(try host.contents() == ["y": "1"]) }
  }
}
