// A small company whose hosts share settings: an admin's host, an office laptop, ten servers, and a contractor who gets one collection.
// Then a host is lost, one comes back after weeks, and one was cloned.
//
//   Office [FOLDER [ADDRESS]]  in a temporary folder by default, through folders in it; or through other carriers, such as
//     etcd://127.0.0.1/office, with /servers behind it

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

func carrier(_ name: String) throws -> any Carrier {
  try Fleet.carrier(at: arguments.dropFirst().first.map { "\($0)/\(name)" } ?? "file://\(folder)/\(name)")
}

/// A host with its own store, which programs there use like any other.
struct Host {
  let name: String
  let path: String
  let database: Database
  let connection: Connection

  /// - Parameter image: A host that is off, of whose disk this one's is a copy.
  init(_ name: String, clonedFrom image: Host? = nil) throws {
    self.name = name
    path = "\(folder)/\(name).coffer"
    let key = "\(folder)/\(name).key"
    if let image {
      for (copy, original) in [(path, image.path), (key, image.path.replacing(".coffer", with: ".key"))] {
        try FileManager.default.copyItem(atPath: original, toPath: copy)
      }
    } else {
      try KeyFile.create(at: key)
    }
    database = try Database.openOrCreate(at: path, key: .keyFile(key))
    connection = try database.makeConnection()
  }

  func set(_ value: String?, _ key: String, in collection: String = "web") throws {
    try connection.readWrite { try $0.setObject(value, forKey: key, inCollection: collection) }
  }

  func get(_ key: String, in collection: String = "web") throws -> String {
    try connection.read { try $0.object(forKey: key, inCollection: collection, as: String.self) } ?? "not set"
  }

  func join(_ invitation: SecretBytes) async throws -> Fleet {
    let invitation = try Invitation(text: invitation)
    return try await Fleet.join(invitation, database, at: try Fleet.carrier(at: invitation.carrier))
  }
}

// MARK: - The admin's host, and a laptop

let admin = try Host("admin")
try admin.set("dark", "theme")
try admin.set("s3cret", "database password")
let adminFleet = try await Fleet.create(
  "servers", in: admin.database, at: try carrier("servers"), collections: ["web"], as: admin.name)
try await adminFleet.sync()

// The laptop is a second admin: if the first one's host is lost, someone can still remove it.
let laptop = try Host("laptop")
let laptopFleet = try await laptop.join(try await adminFleet.invite(laptop.name, role: .admin).text)
try await adminFleet.sync()
try await laptopFleet.sync()
print("The laptop has the theme \(try laptop.get("theme")).")

// MARK: - Ten servers, and one that also writes

// All are made from one image, which has the invitation. They only read.
let image = try await adminFleet.invite("servers", role: .reader, isForMany: true).text
var servers: [(host: Host, fleet: Fleet)] = []
for number in 1...10 {
  let host = try Host("server-\(number)")
  servers.append((host, try await host.join(image)))
}
var deploy = try Host("deploy")
var deployFleet = try await deploy.join(try await adminFleet.invite(deploy.name, role: .writer).text)
try await adminFleet.sync()
try await deployFleet.sync()
try deploy.set("42", "release")
try await deployFleet.sync()
for server in servers.dropLast() { try await server.fleet.sync() }
print("\(try servers.filter { try $0.host.get("release") == "42" }.count) servers have release 42, and one is away.")

// MARK: - A contractor for one collection

// Each collection has a key of its own, and the contractor gets one of them.
let contractor = try Host("contractor")
try admin.set("Welcome", "title", in: "site")
try await adminFleet.share(collections: ["web", "site"])
let contractorFleet = try await contractor.join(
  try await adminFleet.invite(contractor.name, role: .writer, collections: ["site"]).text)
try await adminFleet.sync()
try await contractorFleet.sync()
try contractor.set("Welcome back", "title", in: "site")
try await contractorFleet.sync()
try await adminFleet.sync()
print("The contractor has set the title: \(try admin.get("title", in: "site")).")
print("The database password is \(try contractor.get("database password")) there.")

// MARK: - The admin's host is lost

// Anyone who has it reads nothing that is written from now on. The secrets on it are changed.
try await laptopFleet.sync()
try await laptopFleet.remove(admin.name)
try laptop.set("n3w s3cret", "database password")
try await laptopFleet.sync()
do {
  try await adminFleet.sync()
} catch FleetError.removed {
  print("The lost host still has \(try admin.get("database password")), and gets no other.")
}

// MARK: - A server comes back after weeks

try laptop.set(nil, "theme")
try await laptopFleet.sync()
let late = servers[9]
try await late.fleet.sync()
print(
  "Back again, \(late.host.name) has release \(try late.host.get("release")), the theme is \(try late.host.get("theme")), and the "
    + "password \(try late.host.get("database password")).")

// MARK: - A machine was cloned

try deploy.database.close()
let clone = try Host("deploy-2", clonedFrom: deploy)
deploy = try Host("deploy")
deployFleet = try Fleet.open(in: deploy.database, at: try carrier("servers"))
let clonedFleet = try Fleet.open(in: clone.database, at: try carrier("servers"))
try clone.set("43", "release")
try await clonedFleet.sync()
try await deployFleet.sync()
print("Cloned, deploy takes release \(try deploy.get("release")) for its own.")
// Had the two hosts different names, they would be certain after the next change of each, see `FleetTwin`.
if try await deployFleet.status().twin != nil {
  print("It reports that its store was put back, or is in use on two hosts.")
}
// Each gets an identity of its own, and the copied keys open nothing new.
try await laptopFleet.remove(deploy.name)
try await deployFleet.leave()
try await clonedFleet.leave()
deployFleet = try await deploy.join(try await laptopFleet.invite("deploy-1", role: .writer).text)
let cloneFleet = try await clone.join(try await laptopFleet.invite("deploy-2", role: .writer).text)
for fleet in [laptopFleet, deployFleet, cloneFleet] { try await fleet.sync() }
try deploy.set("44", "release")
for fleet in [deployFleet, cloneFleet, laptopFleet] { try await fleet.sync() }
let releases = [try deploy.get("release"), try clone.get("release")]
print("As members of their own, deploy and its clone have release \(releases[0]) and \(releases[1]).")
for member in await laptopFleet.members { print("\(member.name): \(member.role), \(member.standing)") }
let hosts = [admin, laptop, deploy, contractor, clone] + servers.map(\.host)
for host in hosts { try host.database.close() }
