// A service that follows its settings while it runs, whoever changes them.
//
//   AppConfiguration [FOLDER]      the service; in a temporary folder unless one is named
//   AppConfiguration FOLDER VISIT  the operator, who changes settings from another process
//
// The service starts its operator itself, as a second process of this program, so that the example runs as it stands.

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

// The first one to come makes the key and the store; everyone else opens them. Without a path and a key, both would be
// where the system keeps such files for this application. What the environment says goes before what is stored.
try KeyFile.create(at: "\(folder)/key")
let settings = try Preferences.open(
  application: "org.example.greeter", at: "\(folder)/settings.coffer", key: .keyFile("\(folder)/key"),
  layers: [.environment(prefix: "GREETER_")])

// MARK: - The operator

if arguments.count > 1 {
  switch arguments.last {
  case "evening":
    // One step: whoever listens is told once, and no one ever sees half of it.
    try settings.performBatch { batch in
      try batch.set("Good evening", for: .greeting)
      try batch.set(8, for: .workers)
    }
  case "stop": settings[.isServing] = false
  default: throw CocoaError(.featureUnsupported)
  }
  // Nothing to save: the normal end of a process flushes what it has set.
  exit(EXIT_SUCCESS)
}

/// Has the operator change something, and waits until that process has ended.
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

// As they come; what an earlier run in the same folder has left goes first, and has gone when this returns.
try settings.performBatch(durability: .committed) { batch in
  try batch.reset(.greeting)
  try batch.reset(.workers)
  try batch.reset(.isServing)
}
print("Started with \(describe(settings))")

// Asked for before anything can change, so that no change is missed. There is no polling behind it.
let changes = try settings.changes(of: .greeting, .workers, .origins, .isServing)

// A value that its key does not allow is refused where it is set.
do {
  try settings.set(1000, for: .workers)
} catch CofferError.invalidValue(_, let key, let reason) {
  print("Refused: \(key) is \(reason)")
}

var visits = ["evening", "stop"].makeIterator()
if let visit = visits.next() { try await letOperator(visit) }

for await change in changes {
  let who = change.origin == .elsewhere ? "another process" : "this process"
  print("Told of \(change.keys.joined(separator: ", ")) by \(who)")
  guard settings[.isServing] else { break }
  // The values are there already: no file is read again, no call to synchronize.
  print("Now with \(describe(settings))")
  if let visit = visits.next() { try await letOperator(visit) }
}

try settings.close()
print("Stopped")
