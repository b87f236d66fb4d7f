import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

/// Lists more objects than it has.
struct ListingCarrier: Carrier {
  let carrier: any Carrier
  let listed: [CarrierObject]

  var description: String { carrier.description }
  var limits: CarrierLimits { carrier.limits }

  func readAll(_ body: ([CarrierObject]) throws -> Void) async throws -> CarrierRevision {
    let revision = try await carrier.readAll(body)
    for start in stride(from: 0, to: listed.count, by: 1024) {
      try body(Array(listed[start..<min(start + 1024, listed.count)]))
    }
    return revision
  }

  func read(_ names: [String]) async throws -> [CarrierObject] { try await carrier.read(names) }

  func commit(_ changes: [CarrierChange], if condition: CarrierCondition) async throws -> Bool {
    try await carrier.commit(changes, if: condition)
  }

  func changes(after revision: CarrierRevision) -> AsyncThrowingStream<CarrierEvent, any Error> {
    carrier.changes(after: revision)
  }
}

@Suite("Records that no writer has committed")
struct PlantedRecordTests {
  let carrier = MemoryCarrier()

  /// A fleet whose reader `r` seals a record that opens.
  private func planting() async throws -> (admin: Host, reader: Host, planted: CarrierObject) {
    let admin = try await Host("a").create(carrier)
    let reader = try await Host("r").join(admin, carrier, role: .reader)
    try admin.set("genuine", "x")
    for host in [admin, reader] { try await host.sync() }
    let membership = await reader.fleet.membership
    let planted = Record(
      collection: "web", key: "planted", counter: 1, clock: HybridClock(milliseconds: 2_000_000),
      author: await admin.fleet.membership.identity.member, writer: "",
      content: .value(FleetValue(object: StoredValue(kind: .string, bytes: Array("planted".utf8)))))
    return (admin, reader, try planted.sealed(membership.first))
  }

  @Test("are refused however often the carrier lists them", arguments: [1, 2, 65_536])
  func copies(count: Int) async throws {
    let (admin, _, planted) = try await planting()
    let listing = ListingCarrier(carrier: carrier, listed: Array(repeating: planted, count: count))
    let invitation = try await admin.fleet.invite("late", role: .writer)
    let late = try Host("late")
    await #expect(throws: (any Error).self) { try await late.join(invitation, listing) }
    #expect(try late.contents() == [:])
    let other = try await Host("b").join(admin, carrier)
    try other.restart(listing)
    await #expect(throws: (any Error).self) { try await other.fleet.acceptRollback() }
    #expect(try other.contents() == ["x": "genuine"])
  }

  @Test("are not read without end")
  func endless() async throws {
    let (admin, _, planted) = try await planting()
    let invitation = try await admin.fleet.invite("late", role: .writer)
    let folder = planted.name.prefix(2 + 16 + 1)
    for prefix in [String(folder), "r/0000000000000000/", "s/", "x/"] {
      let endless = ListingCarrier(
        carrier: carrier,
        listed: (0..<200_000).map { CarrierObject(name: "\(prefix)\(1_000_000 + $0)", bytes: planted.bytes) })
      let late = try Host("late")
      await #expect(
        throws: CarrierError.garbled(carrier: carrier.description, reason: "it lists more objects than were written")
      ) {
        try await late.join(invitation, endless)
      }
    }
  }

  @Test("do not replace an earlier record, however often the carrier lists that")
  func rolledBackRecord() async throws {
    let (admin, _, _) = try await planting()
    let name = try #require(carrier.objects.keys.first { $0.hasPrefix("r/") })
    let earlier = CarrierObject(name: name, bytes: try #require(carrier.objects[name]))
    try admin.set("newer", "x")
    try await admin.sync()
    let invitation = try await admin.fleet.invite("late", role: .writer)
    for count in [1, 65_535, 65_536] {
      let late = try Host("late")
      let listing = ListingCarrier(carrier: carrier, listed: Array(repeating: earlier, count: count))
      await #expect(throws: (any Error).self) { try await late.join(invitation, listing) }
      #expect(try late.contents() == [:])
    }
  }

  @Test("are not sealed under a new key, and do not prevent one", arguments: [true, false])
  func renewal(isRemoval: Bool) async throws {
    let (admin, reader, planted) = try await planting()
    let writer = try await Host("w").join(admin, carrier)
    try await admin.sync()
    carrier.objects[planted.name] = planted.bytes
    if isRemoval { try await admin.fleet.remove(reader.name) } else { try await admin.fleet.renewKey() }
    #expect(carrier.objects.keys.filter { $0.hasPrefix("r/") }.count == 1)
    for host in [admin, writer] {
      try await host.sync()
      #expect(try host.contents() == ["x": "genuine"])
    }
    let late = try await Host("late").join(admin, carrier)
    #expect(try late.contents() == ["x": "genuine"])
  }

  @Test(
    "do not take the place of a verified one during a renewal: the admin writes that again, also if it is gone",
    arguments: [true, false])
  func replaced(isChanged: Bool) async throws {
    let (admin, reader, _) = try await planting()
    let membership = await reader.fleet.membership
    let changed = Record(
      collection: "web", key: "x", counter: 7, clock: HybridClock(milliseconds: 2_000_000),
      author: await admin.fleet.membership.identity.member, writer: "", content: .tombstone)
    let object = try changed.sealed(membership.first)
    carrier.objects[object.name] = isChanged ? object.bytes : nil
    try await admin.fleet.renewKey()
    let late = try await Host("late").join(admin, carrier)
    for host in [admin, reader, late] {
      try await host.sync()
      #expect(try host.contents() == ["x": "genuine"])
      #expect(try await host.fleet.status().condition == .inStep)
    }
  }
}
