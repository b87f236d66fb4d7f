import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

/// Fleets that Tests/Interop/fleet_writer.py wrote, which has FLEET.md alone, and attacks on them with the keys of their members.
@Suite("Fleets of another writer")
struct FleetAttackTests {
  struct Case: Decodable, Sendable, CustomTestStringConvertible {
    struct Listed: Decodable, Sendable {
      let name: String
      let bytes: String
      let times: Int
    }

    let name: String
    let invitation: String
    let objects: [String: String]
    /// What the carrier lists in addition.
    let listed: [Listed]
    /// Nil for what everyone must refuse.
    let contents: [String: String]?
    /// Whether they are sealed in the fleet.
    let sealed: Bool?

    enum CodingKeys: String, CodingKey {
      case name = "case"
      case invitation, objects, listed, contents, sealed
    }

    var testDescription: String { name }
  }

  private static let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../../Interop/vectors/fleet-attacks.json").standardized

  /// Empty if the file cannot be read.
  static let cases = (try? JSONDecoder().decode([Case].self, from: Data(contentsOf: path))) ?? []

  @Test("are of all kinds")
  func allCases() {
    #expect(
      Self.cases.count > 15 && Self.cases.contains { $0.contents == nil } && Self.cases.contains { $0.contents != nil })
  }

  @Test(
    "are joined if they are genuine; an attacker's are refused, and nothing of them is taken", arguments: cases,
    [nil] + CarrierKind.allCases)
  func joining(_ attack: Case, _ kind: CarrierKind?) async throws {
    let objects = attack.objects.map { CarrierObject(name: $0.key, bytes: [UInt8](hex: $0.value) ?? []) }
    let listed = attack.listed.flatMap { entry in
      Array(repeating: CarrierObject(name: entry.name, bytes: [UInt8](hex: entry.bytes) ?? []), count: entry.times)
    }
    let host = try Host("victim")
    host.setTime(1_790_000_100)
    let invitation = try Invitation(text: SecretBytes(copying: attack.invitation))
    let listing = ListingCarrier(carrier: try await carrier(kind, with: objects), listed: listed)
    guard let contents = attack.contents else {
      await #expect(throws: (any Error).self) { try await host.join(invitation, listing) }
      #expect(try host.contents() == [:])
      return
    }
    let isSealed = attack.sealed ?? false
    if isSealed { try host.seal() }
    try await host.join(invitation, listing)
    #expect(try host.contents() == contents)
    #expect(await host.fleet.membership.members.sealedCollections == (isSealed ? ["web"] : []))
  }

  /// A carrier that holds the objects; in memory if nil.
  private func carrier(_ kind: CarrierKind?, with objects: [CarrierObject]) async throws -> any Carrier {
    guard let kind else {
      let carrier = MemoryCarrier()
      carrier.objects = Dictionary(uniqueKeysWithValues: objects.map { ($0.name, $0.bytes) })
      return carrier
    }
    let carrier = try await TestCarrier(kind)
    var rest = objects.map(CarrierChange.put)[...]
    while !rest.isEmpty {
      let head = try await carrier.bytes(Head.object)
      _ = try await carrier.commit(
        Array(rest.prefix(carrier.limits.operationCount)), if: CarrierCondition(name: Head.object, bytes: head))
      rest = rest.dropFirst(carrier.limits.operationCount)
    }
    return carrier
  }
}
