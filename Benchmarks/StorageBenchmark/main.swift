// The encrypted store beside plain SQLite: the same statements through the same thin handle, in one run, taking turns.
//
//   make bench                            a million rows, 7 rounds
//   make bench ROWS=100000 ROUNDS=3
//   StorageBenchmark 30000 1 Coffer       one competitor alone, for a profiler
//   StorageBenchmark 300000 5 replay      what it would cost to notice pages that were put back

import CofferCrypto
import CofferStorage
import Foundation

let arguments = Array(CommandLine.arguments.dropFirst())
let rowCount = arguments.first.flatMap { Int($0) } ?? 1_000_000
let roundCount = arguments.dropFirst().first.flatMap { Int($0) } ?? 7
let only = arguments.dropFirst(2).first

let folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-benchmark-\(UUID().uuidString)").path
try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
defer { try? FileManager.default.removeItem(atPath: folder) }

if only == "replay" {
  try Replay.measure(rowCount: rowCount, rounds: roundCount, folder: folder)
  exit(0)
}

var measurements = Measurements()
let competitors = try Competitor.all().filter { only == nil || $0.name == only }
precondition(!competitors.isEmpty, "there is no competitor \(only ?? "")")
let inOrder = Array(0..<rowCount)

for round in 1...roundCount {
  let shuffled = inOrder.shuffled()
  let probes = (0..<min(rowCount, 100_000)).map { _ in Int.random(in: 0..<rowCount) }
  // Who goes first changes with each round.
  for competitor in round.isMultiple(of: 2) ? competitors.reversed() : competitors {
    func measure(_ work: String, operations: Int, _ body: () throws -> Void) rethrows {
      let seconds = try seconds(body)
      measurements.add(seconds / Double(operations) * 1e6, to: work, of: competitor.name)
    }
    let path = "\(folder)/\(competitor.name).\(round)"
    var connection = try competitor.open(path)
    try measure("bulk insert in order (P5b)", operations: rowCount) {
      try Work.fill(connection, round: round, keys: inOrder)
      try connection.close()
    }
    connection = try competitor.open(path)
    try measure("full scan (P5)", operations: rowCount) {
      let sum = try Work.scan(connection)
      precondition(sum > rowCount, "the scan read nothing")
    }
    try connection.close()
    connection = try competitor.open(path)
    try measure("point reads (P5p)", operations: probes.count) { try Work.read(connection, keys: probes) }
    try connection.close()
    try measure("open, first read, close (P4)", operations: 20) {
      for _ in 0..<20 {
        let connection = try competitor.open(path)
        try Work.read(connection, keys: [rowCount / 2])
        try connection.close()
      }
    }
    try competitor.remove(path)

    connection = try competitor.open(path)
    try measure("bulk insert in random order (P5b)", operations: rowCount) {
      try Work.fill(connection, round: round, keys: shuffled)
      try connection.close()
    }
    try competitor.remove(path)

    connection = try competitor.open(path)
    try Work.fill(connection, round: 0, keys: Array(0..<1000))
    try measure("commit, NORMAL, 1,000 keys (P3)", operations: 5000) {
      for number in 0..<5000 { try Work.commit(connection, number: number, round: round, .normal) }
    }
    try measure("commit, FULL, 1,000 keys (P3)", operations: 500) {
      for number in 0..<500 { try Work.commit(connection, number: number, round: round + 100, .full) }
    }
    try connection.close()
    try competitor.remove(path)
  }
}

guard only == nil else { exit(0) }
print("\(rowCount) rows of 100 bytes, \(roundCount) rounds. Microseconds an operation: median (lowest–highest).\n")
measurements.printTable(competitors.map(\.name))
print("\nOne page of 4,048 bytes, XAES-256-GCM alone: \(try Work.pageCost())")
