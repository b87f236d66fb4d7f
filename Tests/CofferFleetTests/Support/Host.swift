import Foundation
import Logging
import Testing

@testable import Coffer
@testable import CofferFleet

/// A host: a store on disk, in a folder that goes with this object, and its place in a fleet.
final class Host: @unchecked Sendable {
  // Unchecked: `fleet` is set by the one task that makes the host, or reopens it.
  let name: String
  let folder: String
  private(set) var database: Database
  private(set) var connection: Connection
  private var membership: Fleet?
  private var time: Int64?
  /// Whether the program unlocks the vault whenever it starts.
  var unlocksVault = false

  /// There is one once it was made or joined.
  var fleet: Fleet { membership! }

  init(_ name: String, store folder: String? = nil) throws {
    self.name = name
    self.folder =
      folder ?? FileManager.default.temporaryDirectory.appendingPathComponent("coffer-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(
      atPath: self.folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    (database, connection) = try Self.open(self.folder)
  }

  deinit {
    try? database.close()
    try? FileManager.default.removeItem(atPath: folder)
  }

  private static func open(_ folder: String) throws -> (Database, Connection) {
    try KeyFile.create(at: "\(folder)/key")
    let database = try Database.openOrCreate(
      at: "\(folder)/settings.coffer", key: .keyFile("\(folder)/key"),
      options: .init(
        busyTimeout: .seconds(120), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
    return (database, try database.makeConnection())
  }

  /// Restarts the program, with `store` in place of its store unless nil.
  ///
  /// - Returns: The store file as it was.
  @discardableResult
  func restart(_ carrier: any Carrier, with store: Data? = nil, isMember: Bool = true) throws -> Data {
    try database.close()
    let file = URL(fileURLWithPath: "\(folder)/settings.coffer")
    let old = try Data(contentsOf: file)
    try store?.write(to: file)
    (database, connection) = try Self.open(folder)
    if let time { setTime(time) }
    if unlocksVault { try unlock() }
    membership = isMember ? try Fleet.open(in: database, at: carrier) : nil
    return old
  }

  // MARK: Fleets

  @discardableResult
  func create(
    _ carrier: any Carrier, collections: [String] = ["web"], retentionDays: Int = 90, greatestAge: Duration? = nil
  ) async throws -> Host {
    membership = try await Fleet.create(
      "team", in: database, at: carrier, collections: collections, as: name, retentionDays: retentionDays,
      greatestAge: greatestAge)
    return self
  }

  @discardableResult
  func join(_ admin: Host, _ carrier: any Carrier, role: FleetRole = .writer) async throws -> Host {
    try await join(try await admin.fleet.invite(name, role: role), carrier)
    // Which admits it.
    try await admin.sync()
    try await sync()
    return self
  }

  @discardableResult
  func join(_ invitation: Invitation, _ carrier: any Carrier) async throws -> Host {
    membership = try await Fleet.join(invitation, database, at: carrier)
    return self
  }

  @discardableResult
  func sync() async throws -> SyncReport { try await fleet.sync() }

  // MARK: Settings

  func set(_ value: String?, _ key: String, in collection: String = "web") throws {
    try connection.readWrite { try $0.setObject(value, forKey: key, inCollection: collection) }
  }

  func get(_ key: String, in collection: String = "web") throws -> String? {
    try connection.read { try $0.object(forKey: key, inCollection: collection, as: String.self) }
  }

  /// Everything in a collection.
  func contents(_ collection: String = "web") throws -> [String: String] {
    try connection.read { transaction in
      var contents: [String: String] = [:]
      for key in try transaction.allKeys(inCollection: collection) {
        contents[key] = try transaction.object(forKey: key, inCollection: collection, as: String.self)
      }
      return contents
    }
  }

  /// The earlier values of a key, newest first.
  func history(_ key: String, in collection: String = "web") throws -> [String] {
    try connection.read { transaction in
      try transaction.history(forKey: key, inCollection: collection).compactMap { version in
        guard case .string(let text) = version.value else { return nil }
        return text
      }
    }
  }

  /// Stops the clock at a time, in seconds since 1970.
  func setTime(_ seconds: Int64) {
    time = seconds
    database.core.clock.stop(at: seconds * 1000)
  }
}

/// A fleet of hosts on one carrier: the first is its admin.
func fleet(
  of names: String..., on carrier: MemoryCarrier, collections: [String] = ["web"], retentionDays: Int = 90
) async throws -> [Host] {
  var hosts: [Host] = []
  for name in names {
    let host = try Host(name)
    if let admin = hosts.first {
      try await host.join(admin, carrier)
    } else {
      try await host.create(carrier, collections: collections, retentionDays: retentionDays)
    }
    hosts.append(host)
  }
  return hosts
}
