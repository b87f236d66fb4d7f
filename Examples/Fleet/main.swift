// Three hosts that share settings through a carrier, which cannot read them.
//
//   Fleet [FOLDER [ADDRESS]]  in a temporary folder by default, through a folder in it; or through another carrier, such as
//     etcd://127.0.0.1/stores

import Coffer
import CofferFleet
import Foundation

let arguments = CommandLine.arguments.dropFirst()
let temporary = FileManager.default.temporaryDirectory.appending(path: "coffer-\(UUID().uuidString)").path
let folder = arguments.first ?? temporary
// The example starts over each time.
try? FileManager.default.removeItem(atPath: folder)
try FileManager.default.createDirectory(
  atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
defer { if arguments.isEmpty { try? FileManager.default.removeItem(atPath: temporary) } }

let address = arguments.dropFirst().first ?? "file://\(folder)/carrier"

/// A host with its own store, which programs there use like any other.
struct Host {
  let name: String
  let database: Database
  let connection: Connection

  init(_ name: String, in folder: String) throws {
    self.name = name
    try KeyFile.create(at: "\(folder)/\(name).key")
    database = try Database.create(at: "\(folder)/\(name).coffer", key: .keyFile("\(folder)/\(name).key"))
    connection = try database.makeConnection()
  }

  func set(_ value: String, _ key: String) throws {
    try connection.readWrite { try $0.setObject(value, forKey: key, inCollection: "web") }
  }

  func get(_ key: String) throws -> String {
    try connection.read { try $0.object(forKey: key, inCollection: "web", as: String.self) } ?? "not set"
  }

  /// Returns once a setting has this value.
  func hears(_ key: String, _ value: String) async throws {
    let commits = try database.commits(inCollection: "web", key: key)
    if try get(key) == value { return }
    for await _ in commits where try get(key) == value { return }
  }
}

let office = try Host("office", in: folder)
let shop = try Host("shop", in: folder)
let kiosk = try Host("kiosk", in: folder)

// MARK: - Creating and joining a fleet

try office.set("dark", "theme")
let fleet = try await Fleet.create(
  "stores", in: office.database, at: try Fleet.carrier(at: address), collections: ["web"], as: office.name)
try await fleet.sync()

/// The output of `prefs fleet invite`, and the input of `prefs fleet join`: a secret of one line.
func join(_ host: Host, as role: FleetRole, invitedBy fleet: Fleet) async throws -> Fleet {
  let line = try await fleet.invite(host.name, role: role).text
  let invitation = try Invitation(text: line)
  return try await Fleet.join(invitation, host.database, at: try Fleet.carrier(at: invitation.carrier))
}

let shopFleet = try await join(shop, as: .writer, invitedBy: fleet)
let kioskFleet = try await join(kiosk, as: .reader, invitedBy: fleet)
// The office's host sees that they have joined. From now on the shop may set settings.
try await fleet.sync()
try await shopFleet.sync()
for member in await fleet.members { print("\(member.name) is a member: \(member.role)") }
print("The shop has the theme \(try shop.get("theme")).")

// MARK: - Sharing a setting

// As `prefs fleet run` does on each host.
let running = [fleet, shopFleet, kioskFleet].map { fleet in Task { try await fleet.run() } }
try shop.set("light", "theme")
for host in [office, kiosk] {
  try await host.hears("theme", "light")
  print("The \(host.name) hears that the theme is \(try host.get("theme")).")
}
for task in running { task.cancel() }
for task in running { _ = await task.result }

// MARK: - A conflict

// Both set it, without knowing of the other.
try office.set("9 to 5", "hours")
try await fleet.sync()
try shop.set("10 to 8", "hours")
try await shopFleet.sync()
for conflict in try await shopFleet.conflicts() {
  print("\(conflict.key): \(conflict.winner) was later, and \(conflict.loser) lost: \(try shop.get("hours")).")
  try await shopFleet.restore(conflict)
}
try await shopFleet.sync()
try await fleet.sync()
print("Restored, it is \(try office.get("hours")) everywhere.")

// MARK: - Removing a member

try await kioskFleet.sync()
try await fleet.remove(kiosk.name)
try office.set("blue", "theme")
try await fleet.sync()
do {
  try await kioskFleet.sync()
} catch FleetError.removed {
  print("The kiosk is out, and goes on with the theme \(try kiosk.get("theme")).")
}

// MARK: - What the carrier sees

/// The number of objects, and of those that contain one of these words.
func count(on carrier: any Carrier, showing words: [String]) async throws -> (all: Int, legible: Int) {
  var counts = (all: 0, legible: 0)
  _ = try await carrier.readAll { objects in
    for object in objects {
      let bytes = Data(object.name.utf8) + Data(object.bytes)
      counts.all += 1
      if words.contains(where: { bytes.range(of: Data($0.utf8)) != nil }) { counts.legible += 1 }
    }
  }
  return counts
}

let counts = try await count(
  on: try Fleet.carrier(at: address), showing: ["web", "theme", "hours", "light", "stores", "kiosk"])
print("The carrier holds \(counts.all) objects; \(counts.legible) of them show a name or a value.")
for host in [office, shop, kiosk] { try host.database.close() }
