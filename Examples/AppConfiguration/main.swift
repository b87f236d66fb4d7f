// A service that follows its settings while it runs, whichever process changes them.
//
//   AppConfiguration [FOLDER]      the service; in a temporary folder by default
//   AppConfiguration FOLDER VISIT  the operator, who changes settings from another process
//
// The service starts its operator itself, as a second process of this program, so that the example runs as is.

import Coffer
import Foundation

// MARK: - The settings, each declared once, with its type and its default

extension Keys {
  static let greeting = Key("greeting", default: "Hello")
  static let workers = Key("workers", default: 2, limits: .range(1...64))
  static let origins = Key("origins", default: [URL(string: "https://example.org")].compactMap(\.self))
  static let isServing = Key("isServing", default: true)
}

func describe(_ settings: Preferences) -> String {
  let origins = settings[.origins].map(\.absoluteString).joined(separator: " ")
  return "\"\(settings[.greeting])\", \(settings[.workers]) workers, \(origins)"
}

// MARK: - Opening them

let arguments = CommandLine.arguments.dropFirst()
let temporary = FileManager.default.temporaryDirectory.appending(path: "coffer-\(UUID().uuidString)").path
let folder = arguments.first ?? temporary
defer { if arguments.isEmpty { try? FileManager.default.removeItem(atPath: temporary) } }

// The first process creates the key and the store; the others open them. Without a path and a key, both would be
// in the system's folders for this application. Environment variables take precedence over stored values.
try KeyFile.create(at: "\(folder)/key")
let settings = try Preferences.open(
  application: "org.example.greeter", at: "\(folder)/settings.coffer", key: .keyFile("\(folder)/key"),
  layers: [.variables(prefix: "GREETER_")])

// MARK: - The operator

if arguments.count > 1 {
  switch arguments.last {
  case "evening":
    // Atomic: listeners are notified once, and no one ever sees half of it.
    try settings.performBatch { batch in
      try batch.set("Good evening", for: .greeting)
      try batch.set(8, for: .workers)
    }
  case "stop": settings[.isServing] = false
  default: throw CocoaError(.featureUnsupported)
  }
  // No need to save: a process flushes its changes when it exits normally.
  exit(EXIT_SUCCESS)
}

/// Lets the operator change something, and waits until that process has ended.
func letOperator(_ visit: String) async throws {
  let process = Process()
  process.executableURL = Bundle.main.executableURL
  process.arguments = [folder, visit]
  let status = try await withCheckedThrowingContinuation { continuation in
    process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
    do { try process.run() } catch { continuation.resume(throwing: error) }
  }
  guard status == EXIT_SUCCESS else { throw CocoaError(.executableLoad) }
}

// MARK: - The service

// Starts with the defaults; removes what an earlier run in the same folder has left before this returns.
try settings.performBatch(durability: .committed) { batch in
  try batch.reset(.greeting)
  try batch.reset(.workers)
  try batch.reset(.isServing)
}
print("Started with \(describe(settings))")

// Started before anything can change, so that no change is missed. There is no polling.
let changes = try settings.changes(of: .greeting, .workers, .origins, .isServing)

// A value that its key does not allow is refused when it is set.
do {
  try settings.set(1000, for: .workers)
} catch CofferError.invalidValue(_, let key, let reason) {
  print("Refused: \(key) must be \(reason)")
}

var visits = ["evening", "stop"].makeIterator()
if let visit = visits.next() { try await letOperator(visit) }

for await change in changes {
  let who = change.origin == .elsewhere ? "another process" : "this process"
  print("Told of \(change.keys.joined(separator: ", ")) by \(who)")
  guard settings[.isServing] else { break }
  // The values are current: no file is read again, no call to synchronize.
  print("Now with \(describe(settings))")
  if let visit = visits.next() { try await letOperator(visit) }
}

try settings.close()
print("Stopped")
