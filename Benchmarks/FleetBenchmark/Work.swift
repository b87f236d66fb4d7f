import Coffer
import CofferFleet
import Foundation

/// A store, on disk if a folder is named.
struct Host {
  let database: Database
  let connection: Connection
  /// Of its files, without `.coffer` and `.key`.
  let path: String

  init(in folder: String? = nil) throws {
    path = "\(folder ?? "")/\(UUID().uuidString)"
    if folder != nil {
      try KeyFile.create(at: "\(path).key")
      database = try Database.create(at: "\(path).coffer", key: .keyFile("\(path).key"))
    } else {
      database = try Database.inMemory()
    }
    connection = try database.makeConnection()
  }

  func set(_ value: String, _ key: String) throws {
    try connection.readWrite { try $0.setObject(value, forKey: key, inCollection: "web") }
  }

  func create(at address: String, _ key: S3Credentials? = nil) async throws -> Fleet {
    try await Fleet.create(
      "fleet", in: database, at: try Fleet.carrier(at: address, credentials: { key }), collections: ["web"],
      as: "office")
  }

  func join(_ invitation: Invitation, _ key: S3Credentials? = nil) async throws -> Fleet {
    try await Fleet.join(invitation, database, at: try Fleet.carrier(at: invitation.carrier, credentials: { key }))
  }

  /// Calls `handler` for each commit to the collection.
  func onCommit(_ handler: @escaping @Sendable () -> Void) throws -> CommitRegistration {
    try database.onCommit { commit in
      if commit.changedCollections.contains("web") { handler() }
    }
  }
}

/// Fleets that run until this is cancelled.
struct Running {
  private let tasks: [Task<Void, any Error>]

  /// Returns when all are in sync.
  init(_ fleets: [Fleet]) async throws {
    tasks = fleets.map { fleet in Task { try await fleet.run() } }
    for fleet in fleets {
      for await status in try await fleet.states() where status.condition == .inStep { break }
    }
  }

  func end() async {
    for task in tasks { task.cancel() }
    for task in tasks { _ = await task.result }
  }
}

/// Counts up to a number, and reports when it is reached.
final class Countdown: @unchecked Sendable {
  // Unchecked: the lock protects what changes.
  private let lock = NSLock()
  private var left = 0
  private var waiter: CheckedContinuation<Void, Never>?

  func start(at count: Int) { lock.withLock { left = count } }

  func count() {
    let due = lock.withLock { () -> CheckedContinuation<Void, Never>? in
      left -= 1
      guard left == 0 else { return nil }
      defer { waiter = nil }
      return waiter
    }
    due?.resume()
  }

  func wait() async {
    await withCheckedContinuation { continuation in
      let isDue = lock.withLock {
        if left <= 0 { return true }
        waiter = continuation
        return false
      }
      if isDue { continuation.resume() }
    }
  }
}

extension Duration {
  var milliseconds: Double {
    Double(components.seconds) * 1000 + Double(components.attoseconds) / 1_000_000_000_000_000
  }
}

/// Median and 99th percentile of times, in milliseconds.
func summary(_ times: [Duration]) -> String {
  let sorted = times.map(\.milliseconds).sorted()
  func at(_ part: Double) -> String {
    String(format: "%.1f ms", sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))])
  }
  return "median \(at(0.5)), p99 \(at(0.99)), of \(sorted.count)"
}
