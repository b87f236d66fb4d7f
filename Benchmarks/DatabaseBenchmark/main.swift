// What transactions and keys of the library cost, and how soon another process hears of a commit.
//
//   make bench-database                   all of it
//   DatabaseBenchmark commits ROUNDS      commits with and without listeners
//   DatabaseBenchmark latency COUNT       the latency between processes
//   DatabaseBenchmark keys MB ROUNDS      slots, opening, and re-encrypting so many megabytes
//   DatabaseBenchmark sealing ROUNDS      values in a sealed collection beside others

import Coffer
import Foundation

let arguments = Array(CommandLine.arguments.dropFirst())

func nanoseconds() -> UInt64 { DispatchTime.now().uptimeNanoseconds }

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

/// A folder with a store and its key file, gone with the process.
func withStore<Result>(_ body: (_ path: String, _ key: KeySource, _ keyFile: String) throws -> Result) throws -> Result
{
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-benchmark-\(UUID().uuidString)")
    .path
  try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(atPath: folder) }
  try KeyFile.create(at: "\(folder)/key")
  return try body("\(folder)/store", .keyFile("\(folder)/key"), "\(folder)/key")
}

// MARK: - Commits

final class Indifferent: TransactionObserver {
  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { false }
}

final class Attentive: TransactionObserver {
  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { true }
}

/// One set in a transaction of its own, through a connection, in memory so that no disk blurs the figures.
func measureCommits(rounds: Int) throws {
  let count = 2000
  var times: [(name: String, times: [Double])] = [
    ("nobody listens", []), ("an observer who wants nothing", []), ("an observer of everything", []),
    ("a handler of commits", []), ("a long-lived read", []),
  ]
  for round in 0..<rounds {
    for offset in times.indices {
      let index = (round + offset) % times.count
      let database = try Database.inMemory()
      let connection = try database.makeConnection()
      let observer: (any TransactionObserver)? = index == 1 ? Indifferent() : index == 2 ? Attentive() : nil
      if let observer { database.add(transactionObserver: observer) }
      let registration = index == 3 ? try database.onCommit { _ in } : nil
      let reader = try database.makeConnection()
      if index == 4 { try reader.beginLongLivedReadTransaction() }
      let value = Data(count: 100)
      for number in 0..<1000 { try connection.readWrite { try $0.setObject(value, forKey: "setting.key.\(number)") } }
      let start = nanoseconds()
      for number in 0..<count {
        try connection.readWrite { try $0.setObject(number, forKey: "setting.key.\(number % 1000)") }
      }
      times[index].times.append(Double(nanoseconds() - start) / Double(count) / 1000)
      registration?.cancel()
      withExtendedLifetime(observer) {}
      if index == 4 { try reader.endLongLivedReadTransaction() }
    }
  }
  print("| one set, one commit, in memory | µs | beside nobody listening |\n| --- | --- | --- |")
  for (name, values) in times {
    let ratios = zip(values, times[0].times).map { $0 / $1 }
    print("| \(name) | \(String(format: "%.1f | %.2f", median(values), median(ratios))) |")
  }
}

// MARK: - Latency

/// The other process: commits with a pause, and says when each had returned.
func writeStamps(path: String, keyFile: String, count: Int) throws {
  let connection = try Database.open(at: path, key: .keyFile(keyFile)).makeConnection()
  for number in 0..<count {
    try connection.readWrite { try $0.setObject(number, forKey: "k") }
    let returned = nanoseconds()
    let snapshot = try connection.read { try $0.snapshot() }
    print("\(snapshot) \(returned)")
    usleep(2000)
  }
}

func measureLatency(count: Int) throws {
  try withStore { path, key, keyFile in
    let database = try Database.openOrCreate(at: path, key: key)
    let arrivals = Arrivals()
    let registration = try database.onCommit { arrivals.add($0.snapshot, nanoseconds()) }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
    process.arguments = ["stamps", path, keyFile, "\(count)"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    let stamps = text.split(separator: "\n").map { $0.split(separator: " ").compactMap { UInt64($0) } }
    guard arrivals.wait(for: count) else { throw CofferError.busy }
    registration.cancel()
    let latencies = stamps.compactMap { stamp in
      arrivals.time(stamp[0]).map { (Double($0) - Double(stamp[1])) / 1000 }
    }.sorted()
    precondition(latencies.count == count, "a commit was not heard of")
    print("| commit returned → handler in another process, \(count) commits | µs |\n| --- | --- |")
    print("| median | \(Int(latencies[count / 2])) |\n| 99th percentile | \(Int(latencies[count * 99 / 100])) |")
    print("| longest | \(Int(latencies[count - 1])) |")
  }
}

/// When commits were heard of.
final class Arrivals: @unchecked Sendable {
  // Unchecked: the condition guards the times.
  private let condition = NSCondition()
  private var times: [UInt64: UInt64] = [:]

  func add(_ snapshot: UInt64, _ time: UInt64) {
    condition.withLock {
      times[snapshot] = time
      condition.signal()
    }
  }

  func wait(for count: Int) -> Bool {
    condition.withLock {
      let deadline = Date(timeIntervalSinceNow: 30)
      while times.count < count { guard condition.wait(until: deadline) else { return false } }
      return true
    }
  }

  func time(_ snapshot: UInt64) -> UInt64? { condition.withLock { times[snapshot] } }
}

switch arguments.first {
case "stamps": try writeStamps(path: arguments[1], keyFile: arguments[2], count: Int(arguments[3])!)
case "commits": try measureCommits(rounds: Int(arguments[1])!)
case "latency": try measureLatency(count: Int(arguments[1])!)
case "keys": try measureKeys(megabytes: Int(arguments[1])!, rounds: Int(arguments[2])!)
case "sealing": try measureSealing(rounds: Int(arguments[1])!)
default:
  try measureCommits(rounds: 9)
  try measureLatency(count: 500)
  try measureKeys(megabytes: 100, rounds: 9)
  try measureSealing(rounds: 9)
}
