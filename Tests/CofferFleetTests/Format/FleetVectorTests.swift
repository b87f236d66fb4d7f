import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

/// The vector of FLEET.md, which the reader in clients/reader reads as well.
///
/// `COFFER_FLEET_VECTOR=PATH` writes another one, of the same contents under new keys, and `COFFER_FLEET_FOLDER=PATH` a fleet into a
/// folder, with what is in it in PATH.json.
@Suite("The vector of FLEET.md")
struct FleetVectorTests {
  private struct CutOff: Error {}

  private struct Vector: Codable {
    var invitation: String
    var name: String
    var number: UInt64
    var collections: [String]
    var members: [String: String]
    var objects: [String: String]?
    var folder: String?
    var records: [String: RecordVector]
  }

  private struct RecordVector: Codable, Equatable {
    var counter: UInt64
    var kind: UInt8?
    var data: String?
    var metadata: String?
    var expires: Int64?
    var due: Int64?
    var application: String?
    var version: String?
    var declaration: String?

    init(_ record: Record) {
      counter = record.counter
      if let content = record.declaration {
        (application, version, declaration) = (content.application, content.version ?? "", content.json)
      }
      guard let value = record.value else { return }
      kind = value.object.kind.rawValue
      data = value.object.bytes.withUnsafeBytes { Array($0).hex }
      metadata = value.metadata.map { metadata in
        metadata.bytes.withUnsafeBytes { ([metadata.kind.rawValue] + Array($0)).hex }
      }
      (expires, due) = (value.dates.expires, value.dates.due)
    }
  }

  private static let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../../Interop/vectors/fleet-1.json").standardized

  /// What a membership has on a carrier, by collection and key.
  private func records(_ membership: Membership, _ objects: [String: [UInt8]]) throws -> [String: RecordVector] {
    var objects = objects
    for piece in membership.head?.pieces ?? [] {
      let name = Piece.object(piece.id, membership.keys)
      for change in try Piece.changes(in: objects[name] ?? [], name) {
        objects[FleetKeys.object(change.place)] = change.record
      }
    }
    var records: [String: RecordVector] = [:]
    for (object, bytes) in objects {
      guard let place = membership.keys.place(ofObject: object) else { continue }
      let record = try Record(opening: bytes, at: place, membership.keys)
      let purpose = record.isOfDeclaration ? "declaration " : ""
      records["\(purpose)\(record.collection)/\(record.key)"] = RecordVector(record)
    }
    return records
  }

  @Test("reads as documented, and an invited host can join")
  func reading() async throws {
    let vector = try JSONDecoder().decode(Vector.self, from: Data(contentsOf: Self.path))
    let carrier = MemoryCarrier()
    carrier.objects = try #require(vector.objects).mapValues { [UInt8](hex: $0) ?? [] }
    let host = try Host("reader")
    // Before the expiry in it.
    host.setTime(1_800_000_000)
    let invitation = try Invitation(text: SecretBytes(copying: vector.invitation))
    let fleet = try await Fleet.join(invitation, host.database, at: carrier)
    let membership = await fleet.membership
    #expect(membership.members.fleetName == vector.name && membership.members.collections == vector.collections)
    #expect(membership.stored.number == vector.number)
    #expect(
      Dictionary(uniqueKeysWithValues: membership.members.members.map { ($0.name, $0.role.description) })
        == vector.members)
    #expect(try records(membership, carrier.objects) == vector.records)
    #expect(try host.contents("large").count == 40)
    #expect(try await host.connection.read { try $0.declaration(forKey: "int", inCollection: "web") }?.type == .int)
    let port = try host.connection.readFleets { try $0.item("int", in: "web") }
    #expect(port?.value.object == StoredValue(kind: .int, bytes: [0, 0, 0, 0, 0, 0, 0x1f, 0x90]))
  }

  @Test("can be created again", .enabled(if: ProcessInfo.processInfo.environment["COFFER_FLEET_VECTOR"] != nil))
  func writing() async throws {
    let limits = CarrierLimits(operationCount: 16, requestByteCount: 70_000, objectByteCount: 4_000)
    let carrier = MemoryCarrier("file:///srv/team", limits: limits)
    let admin = try Host("admin")
    admin.setTime(1_800_000_000)
    try await admin.create(carrier, collections: ["web", "large"])
    let declarations = [
      Declaration(
        "int", in: "web", type: .int, default: .int(80), limits: [.range(minimum: .int(1), maximum: .int(65_535))]),
      Declaration("größer", in: "web", type: .any),
    ]
    try await admin.connection.readWrite { transaction in
      try transaction.setObject(Value.bool(true), forKey: "bool", inCollection: "web")
      try transaction.setObject(8080, forKey: "int", inCollection: "web", withMetadata: "by hand")
      try transaction.setObject(Value.uint64(.max), forKey: "uint64", inCollection: "web")
      try transaction.setObject(-0.5, forKey: "double", inCollection: "web")
      try transaction.setObject("größer", forKey: "string", inCollection: "web")
      try transaction.setObject(Data([0, 255]), forKey: "data", inCollection: "web")
      try transaction.setObject(Date(timeIntervalSince1970: 1), forKey: "date", inCollection: "web")
      try transaction.setObject(["a": [1, 2]], forKey: "dictionary", inCollection: "web")
      try transaction.setObject(Secret("hunter2"), forKey: "secret", inCollection: "web")
      try transaction.setObject(
        "lease", forKey: "expiring", inCollection: "web", expires: Date(timeIntervalSince1970: 4_000_000_000),
        due: Date(timeIntervalSince1970: 3_000_000_000))
      try transaction.setObject("x", forKey: "removed", inCollection: "web")
      try transaction.setObject("", forKey: "", inCollection: "web")
      try transaction.declare(
        declarations + [Declaration("removed", in: "web", type: .string)], by: "shop", version: "1.0")
    }
    try await admin.sync()
    try admin.set(nil, "removed")
    try await admin.connection.readWrite { try $0.declare(declarations, by: "shop", version: "1.0") }
    try await admin.sync()
    let former = try await Host("former").join(admin, carrier)
    try await admin.fleet.remove(former.name)
    let invitation = try await admin.fleet.invite("reader", role: .reader)
    _ = try await admin.fleet.invite("writer", role: .writer)
    // A large commit that is not settled.
    try await admin.connection.readWrite { transaction in
      for index in 0..<40 {
        try transaction.setObject(String(repeating: "x", count: 100), forKey: "\(index)", inCollection: "large")
      }
    }
    await admin.fleet.setOnStep { if $0 == .didAcknowledge { throw CutOff() } }
    await #expect(throws: CutOff.self) { try await admin.sync() }
    let membership = await admin.fleet.membership
    #expect(membership.head?.pieces.isEmpty == false)
    let path = ProcessInfo.processInfo.environment["COFFER_FLEET_VECTOR"] ?? ""
    try write(membership, invitation, carrier.objects, to: path)
  }

  @Test("can be stored in a folder", .enabled(if: ProcessInfo.processInfo.environment["COFFER_FLEET_FOLDER"] != nil))
  func writingFolder() async throws {
    let path = ProcessInfo.processInfo.environment["COFFER_FLEET_FOLDER"] ?? ""
    let carrier = try FileCarrier(address: "file://\(path)")
    let admin = try await Host("admin").create(carrier)
    let writer = try await Host("writer").join(admin, carrier)
    for round in 0..<20 {
      for host in [admin, writer] {
        try await host.connection.readWrite { transaction in
          for index in 0..<10 {
            try transaction.setObject("\(host.name) \(round)", forKey: "\(round * index % 37)", inCollection: "web")
          }
        }
        try host.set(nil, "\(round * 3 % 37)")
        try await host.sync()
      }
    }
    let invitation = try await admin.fleet.invite("reader", role: .reader)
    try await admin.fleet.renewKey()
    var objects: [String: [UInt8]] = [:]
    _ = try await carrier.readAll { for object in $0 { objects[object.name] = object.bytes } }
    try write(await admin.fleet.membership, invitation, objects, to: "\(path).json", folder: path)
  }

  private func write(
    _ membership: Membership, _ invitation: Invitation, _ objects: [String: [UInt8]], to path: String,
    folder: String? = nil
  ) throws {
    let vector = Vector(
      invitation: try invitation.text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) },
      name: membership.members.fleetName, number: membership.seen, collections: membership.members.collections,
      members: Dictionary(
        uniqueKeysWithValues: membership.members.members.map { ($0.name, $0.role.description) }),
      objects: folder == nil ? objects.mapValues(\.hex) : nil, folder: folder,
      records: try records(membership, objects))
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
    try (encoder.encode(vector) + Data("\n".utf8)).write(to: URL(fileURLWithPath: path))
  }
}
