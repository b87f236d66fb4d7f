// The encrypted store beside plain SQLite, through the same thin handle: what `make bench` runs for P5, one measurement at a
// time, and what a profiler looks at.
//
//   StorageBenchmark insert-in-order plain|coffer PATH KEYFILE COUNT SEED      a new table, in one transaction
//   StorageBenchmark insert-at-random plain|coffer PATH KEYFILE COUNT SEED     (and a key file where there is none)
//   StorageBenchmark scan|read plain|coffer PATH KEYFILE COUNT SEED            an existing table
//   StorageBenchmark page-cache plain|coffer PATH KEYFILE COUNT MEGABYTES      an existing table; 0: the default size
//   StorageBenchmark replay COUNT ROUNDS      the cost of detecting pages that were put back
//   StorageBenchmark cipher                   the cipher's share of a page, without SQLite
//
// Prints the microseconds per row; for `page-cache` those of an opening, a random read and a random write, and how
// many megabytes the reads.

import CofferCrypto
import CofferStorage
import Foundation

func fail(_ reason: String) -> Never {
  FileHandle.standardError.write(Data("StorageBenchmark: \(reason)\n".utf8))
  exit(1)
}

let arguments = Array(CommandLine.arguments.dropFirst())

switch (arguments.first, arguments.count) {
case ("cipher", 1): print(try Work.pageCost())
case ("replay", 3):
  guard let count = Int(arguments[1]), let rounds = Int(arguments[2]) else { fail("COUNT and ROUNDS are numbers") }
  try Replay.measure(rowCount: count, rounds: rounds)
case ("page-cache", 6):
  guard let count = Int(arguments[4]), let megabytes = Int(arguments[5]) else {
    fail("COUNT and MEGABYTES are numbers")
  }
  let competitor = try Competitor(named: arguments[1], keyFile: arguments[3])
  try PageCache.measure(competitor, at: arguments[2], count: count, megabytes: megabytes)
case (let name?, 6):
  guard let work = Work(rawValue: name), let count = Int(arguments[4]), let seed = UInt64(arguments[5]) else {
    fail("there is no work like this: \(arguments.joined(separator: " "))")
  }
  let competitor = try Competitor(named: arguments[1], keyFile: arguments[3])
  print(try work.measure(competitor, at: arguments[2], count: count, seed: seed) / Double(count) * 1e6)
default: fail("arguments are missing; main.swift lists them")
}
