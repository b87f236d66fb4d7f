import Coffer
import Foundation
import Synchronization

/// One process of four threads, and a watcher of all changes.
///
/// One thread reads and sets through a proxy, one writes transactions, one reads snapshots, and one rotates or vacuums now
/// and then.
final class UsingProcess: Sendable {
  private static let keyCount = 500
  private static let kinds = ["proxy read", "proxy set", "transaction", "snapshot"]
  private let database: Database
  private let store: String
  private let number: Int
  private let latencies = Dictionary(uniqueKeysWithValues: kinds.map { ($0, Latencies()) })
  private let isOver = Atomic(false)
  private let noticeCount = Atomic(0)
  private let failure = Mutex<String?>(nil)
  private let threads = DispatchGroup()

  init(store: String, keyFile: String, number: Int) throws {
    database = try Database.open(at: store, key: .keyFile(keyFile), options: .init(busyTimeout: .seconds(60)))
    self.store = store
    self.number = number
  }

  func run(for seconds: Double) throws {
    let proxy = try ConnectionProxy(database: database)
    let changes = try proxy.changes()
    let watcher = Task { [self] in
      for await event in changes { noticeCount.wrappingAdd(event.changes.count, ordering: .relaxed) }
    }
    let (writer, reader, keeper) = try (database.makeConnection(), database.makeConnection(), database.makeConnection())
    start { try self.useProxy(proxy, $0) }
    start { try self.write(writer, $0) }
    start { _ in try self.read(reader) }
    start { try self.keep(keeper, $0) }
    try report(for: seconds)
    isOver.store(true, ordering: .relaxed)
    threads.wait()
    watcher.cancel()
    try proxy.close()
    if let failure = failure.withLock({ $0 }) { throw LoadFailure(reason: failure) }
  }

  /// Runs `body` again and again in a thread of its own, with a number that counts up.
  private func start(_ body: @escaping @Sendable (Int) throws -> Void) {
    threads.enter()
    let thread = Thread { [self] in
      var round = 0
      do {
        while !isOver.load(ordering: .relaxed) {
          try body(round)
          round += 1
        }
      } catch {
        failure.withLock { $0 = $0 ?? "\(error)" }
      }
      threads.leave()
    }
    thread.start()
  }

  private func measure<Result>(_ kind: String, _ body: () throws -> Result) rethrows -> Result {
    try latencies[kind]?.measure(body) ?? body()
  }

  // MARK: Threads

  private func useProxy(_ proxy: ConnectionProxy, _ round: Int) throws {
    for step in 0..<50 {
      let _: String? = try measure("proxy read") {
        try proxy.object(forKey: "\((round * 50 + step) % Self.keyCount)", inCollection: "settings")
      }
    }
    try measure("proxy set") {
      try proxy.setObject(
        "value \(round) of process \(number)", forKey: "\(round % Self.keyCount)", inCollection: "settings")
    }
    usleep(5000)
  }

  private func write(_ connection: Connection, _ round: Int) throws {
    try measure("transaction") {
      try connection.readWrite { transaction in
        for step in 0..<3 {
          try transaction.setObject(
            Data(repeating: UInt8(truncatingIfNeeded: round), count: 100 + 37 * step),
            forKey: "\(number).\((round * 3 + step) % Self.keyCount)", inCollection: "data")
        }
      }
    }
    usleep(20_000)
  }

  private func read(_ connection: Connection) throws {
    _ = try measure("snapshot") {
      try connection.read { transaction in
        try transaction.allKeys(inCollection: "settings").prefix(20).map {
          try transaction.object(forKey: $0, inCollection: "settings", as: String.self)
        }
      }
    }
    usleep(20_000)
  }

  /// Every half minute, one process after the other.
  private func keep(_ connection: Connection, _ round: Int) throws {
    usleep(500_000)
    guard round % 60 == 15 * number else { return }
    if number == 0 { try database.rotate() } else { try connection.vacuum() }
  }

  // MARK: Reporting

  private func report(for seconds: Double) throws {
    let start = ContinuousClock.now
    let encoder = JSONEncoder()
    var elapsed = 0.0
    while elapsed < seconds, failure.withLock({ $0 == nil }) {
      Thread.sleep(forTimeInterval: min(2, seconds - elapsed))
      elapsed = Double((ContinuousClock.now - start).components.seconds)
      let sample = LoadSample(
        process: number, time: elapsed, residentKilobytes: try Self.residentKilobytes(),
        descriptorCount: try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count,
        logByteCount: logByteCount, latencies: latencies.mapValues { $0.take() },
        noticeCount: noticeCount.exchange(0, ordering: .relaxed))
      FileHandle.standardOutput.write(try encoder.encode(sample) + Data("\n".utf8))
    }
  }

  private var logByteCount: Int {
    let attributes = try? FileManager.default.attributesOfItem(atPath: store + "-wal")
    return (attributes?[.size] as? Int) ?? 0
  }

  /// VmRSS in proc_pid_status(5).
  private static func residentKilobytes() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
    return Int(line.filter(\.isNumber)) ?? 0
  }
}

/// Why a load run ended early.
struct LoadFailure: Error {
  let reason: String
}
