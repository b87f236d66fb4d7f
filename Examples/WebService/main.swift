// A web service: two replicas on one store, configured by swift-configuration, changed while they run.
//
//   WebService [FOLDER]        prepares a store, starts two replicas, sends requests, and ends them
//   WebService FOLDER serve    one replica, until SIGTERM or SIGINT
//
// It starts its replicas itself, as processes of this program, so that the example runs as is. Under systemd, `serve` is
// what the unit starts; the two keys are credentials there, too.

import Coffer
import CofferConfiguration
import CofferMaintenance
import CofferMetrics
import CofferService
import Configuration
import Foundation
import Hummingbird
import Logging
import ServiceLifecycle

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

// MARK: - The service

func serve(_ store: String) async throws {
  let database = try await Database.open(
    at: store, key: .credential("prefs-key"), options: Database.Options(meter: StoreMetrics(store: "web")))
  // The sealed collection opens with a second key, which is not with the store.
  try await database.vault.unlock(.credential("vault-key"))
  let settings = try ConnectionProxy(database: database)
  let config = ConfigReader(providers: [
    EnvironmentVariablesProvider(), try CofferProvider(settings, collections: ["web", "web-secrets"]),
  ])

  let router = Router()
  // Read for each request, from memory: the answer follows the settings immediately.
  router.get("/") { _, _ in config.string(forKey: "greeting", default: "Hello") }
  router.get("/database") { _, _ in
    let password = try config.requiredString(forKey: "database.password", isSecret: true)
    return "connects with \(password.count) characters"
  }
  router.get("/health") { _, _ in
    let problem = try database.status().logProblem ?? "nothing wrong"
    return "\(settings.pendingChangeCount) changes pending, \(problem)"
  }
  var logger = Logger(label: "web")
  logger.logLevel = .error
  let server = Application(
    router: router,
    configuration: .init(address: .hostname("127.0.0.1", port: config.int(forKey: "http.port", default: 0))),
    onServerRunning: { channel in
      // The parent process waits for this line.
      FileHandle.standardOutput.write(Data("\(channel.localAddress?.port ?? 0)\n".utf8))
    }, logger: logger)
  // The store is closed last, with everything that requests have set.
  let group = ServiceGroup(
    services: [CofferService(database), server], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
  try await group.run()
}

// MARK: - A replica, from outside

struct Replica {
  let process = Process()
  let port: Int

  init(_ folder: String) throws {
    let output = Pipe()
    process.executableURL = Bundle.main.executableURL
    process.arguments = [folder, "serve"]
    process.environment = ["CREDENTIALS_DIRECTORY": "\(folder)/credentials"]
    process.standardOutput = output
    try process.run()
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    guard let port = Int(line.dropLast()) else { throw CocoaError(.executableLoad) }
    self.port = port
  }

  func get(_ path: String) async throws -> String {
    guard let url = URL(string: "http://127.0.0.1:\(port)\(path)") else { throw CocoaError(.featureUnsupported) }
    return String(decoding: try await URLSession.shared.data(from: url).0, as: UTF8.self)
  }

  /// Waits for its end.
  func end(by signal: Int32) -> String {
    kill(process.processIdentifier, signal)
    process.waitUntilExit()
    return process.terminationReason == .exit ? "exit code \(process.terminationStatus)" : "signal \(signal)"
  }
}

// MARK: - The operator

let arguments = Array(CommandLine.arguments.dropFirst())
let temporary = FileManager.default.temporaryDirectory.appending(path: "coffer-\(UUID().uuidString)").path
let folder = arguments.first ?? temporary
let store = "\(folder)/settings.coffer"
if arguments.last == "serve" {
  try await serve(store)
  exit(EXIT_SUCCESS)
}
defer { if arguments.isEmpty { try? FileManager.default.removeItem(atPath: temporary) } }

// As root would do with prefs: a store, its key and the vault's as credentials, and the settings.
let (key, vaultKey) = ("\(folder)/credentials/prefs-key", "\(folder)/credentials/vault-key")
try KeyFile.create(at: key)
try KeyFile.create(at: vaultKey)
let database = try Database.openOrCreate(at: store, key: .keyFile(key))
let isNew = try !database.vault.exists()
if isNew {
  try database.vault.create(key: .keyFile(vaultKey))
  try database.vault.unlock(.keyFile(vaultKey))
  try database.seal(collection: "web-secrets")
}
try database.vault.unlock(.keyFile(vaultKey))
let operatorsConnection = try database.makeConnection()

func set(_ text: String, _ key: String, in collection: String) throws {
  try operatorsConnection.readWrite { try $0.setObject(text, forKey: key, inCollection: collection) }
}

try set("Good morning", "greeting", in: "web")
try set("correct horse", "database.password", in: "web-secrets")

let replicas = [try Replica(folder), try Replica(folder)]
for replica in replicas { print("A visitor reads:", try await replica.get("/")) }
print("The database:", try await replicas[0].get("/database"))

// prefs set web/greeting 'Good evening', with two services running.
try set("Good evening", "greeting", in: "web")
for replica in replicas { print("The next one:", try await replica.get("/")) }

try set("battery staple", "database.password", in: "web-secrets")
print("A new password:", try await replicas[1].get("/database"))
print("Health:", try await replicas[0].get("/health"))

print("One is killed:", replicas[0].end(by: SIGKILL))
try set("Still here", "greeting", in: "web")
print("The other:", try await replicas[1].get("/"))
print("It shuts down:", replicas[1].end(by: SIGTERM))
try database.close()
