import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("The author of a record")
struct AuthorTests {
  let carrier = MemoryCarrier()

  private func text(_ text: String) -> Record.Content {
    .value(FleetValue(object: StoredValue(kind: .string, bytes: Array(text.utf8))))
  }

  /// What a writer can do by hand: commits a record, signed by it, whatever the record says.
  private func commit(_ record: Record, by writer: Host) async throws {
    try await writer.sync()
    let membership = await writer.fleet.membership
    var records = [record]
    try Record.sign(&records, by: membership.identity, in: membership.authority.fleet)
    let object = try records[0].sealed(membership.first)
    let objects = carrier.objects.merging([object.name: object.bytes]) { $1 }
    let next = try membership.nextHead(over: objects, time: 2_000_000_000)
    let head = CarrierChange.put(
      CarrierObject(name: Head.object, bytes: try next.head.sealed(membership.keys, by: membership.identity)))
    #expect(try await carrier.commit([.put(object), head] + next.blocks, if: membership.condition))
  }

  private func record(_ key: String, counter: UInt64, clock: Int64, by author: Host, _ content: String) async -> Record
  {
    Record(
      collection: "web", key: key, counter: counter, clock: HybridClock(milliseconds: clock),
      author: await author.fleet.membership.identity.member, writer: "", content: text(content))
  }

  @Test("is a fact: a writer cannot write in another's name")
  func forgery() async throws {
    let hosts = try await fleet(of: "a", "b", "w", on: carrier)
    try hosts[0].set("genuine", "x")
    for host in hosts { try await host.sync() }
    let invitation = try await hosts[0].fleet.invite("late", role: .reader)
    for host in hosts { try await host.sync() }
    try await commit(record("x", counter: 2, clock: 2_000_000_000, by: hosts[0], "forged"), by: hosts[2])
    for host in [hosts[0], hosts[1]] {
      let error = await #expect(throws: FleetError.self) { try await host.sync() }
      #expect("\(try #require(error))".contains("not signed by its author, a"))
      #expect(try host.get("x") == "genuine")
    }
    await #expect(throws: FleetError.self) { try await Host("late").join(invitation, carrier) }
  }

  @Test("cannot count so far that no one can change its setting again: it is refused, and removed")
  func greatCounter() async throws {
    let hosts = try await fleet(of: "a", "b", "w", on: carrier)
    try hosts[0].set("genuine", "x")
    for host in hosts { try await host.sync() }
    let last = Record.maximumCounter
    try await commit(record("x", counter: last, clock: 2_000_000_000, by: hosts[2], "last"), by: hosts[2])
    for host in [hosts[0], hosts[1]] {
      let error = await #expect(throws: FleetError.self) { try await host.sync() }
      #expect("\(try #require(error))".contains("its counter is above its collection's number"))
    }
    try await hosts[0].fleet.remove("w")
    try hosts[1].set("later", "x")
    for host in [hosts[1], hosts[0]] { try await host.sync() }
    for host in [hosts[0], hosts[1]] { #expect(try host.get("x") == "later") }
  }

  @Test(
    "who writes two contents of one change divides no one: all take the committed one, and have the other on record")
  func secondContent() async throws {
    let hosts = try await fleet(of: "a", "b", "w", on: carrier)
    for host in hosts { host.setTime(1_000_000) }
    try hosts[0].set("old", "x")
    for host in hosts { try await host.sync() }
    try await commit(record("x", counter: 2, clock: 1_000_001_000, by: hosts[2], "first"), by: hosts[2])
    try await hosts[0].sync()
    #expect(try hosts[0].get("x") == "first")
    try await commit(record("x", counter: 2, clock: 1_000_001_000, by: hosts[2], "second"), by: hosts[2])
    for host in hosts + hosts { try await host.sync() }
    for host in hosts { #expect(try host.get("x") == "second") }
    #expect(try hosts[0].history("x").first == "first")
    let conflict = try #require(try await hosts[0].fleet.conflicts().first)
    #expect(conflict.winner == "w" && conflict.loser == "w")
    #expect(try await hosts[1].fleet.conflicts() == [])
    // A new key changes nothing about that.
    try await hosts[0].fleet.renewKey()
    for host in hosts { try await host.sync() }
    for host in hosts { #expect(try host.get("x") == "second") }
    #expect(try await hosts[0].fleet.conflicts().count == 1)
  }

  @Test("stays known after its removal, and after a new key")
  func former() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for index in 0..<20 { try hosts[1].set("\(index)", "\(index)") }
    for host in hosts + hosts { try await host.sync() }
    try await hosts[0].fleet.remove("b")
    try await hosts[0].fleet.renewKey()
    let late = try await Host("late").join(hosts[0], carrier)
    #expect(try late.contents() == hosts[0].contents() && late.contents().count == 20)
  }
}
