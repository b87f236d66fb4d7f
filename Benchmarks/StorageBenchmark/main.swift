// The encrypted store beside plain SQLite: the same statements through the same thin handle, in one run, taking turns.
//
//   make bench            a million rows, 7 rounds
//   make bench ROWS=100000 ROUNDS=3

import CofferCrypto
import CofferStorage
import Foundation

let arguments = CommandLine.arguments.dropFirst().compactMap { Int($0) }
let rowCount = arguments.first ?? 1_000_000
let roundCount = arguments.dropFirst().first ?? 7

let folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-benchmark-\(UUID().uuidString)").path
try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
defer { try? FileManager.default.removeItem(atPath: folder) }

let schema = """
  CREATE TABLE items(collection INTEGER NOT NULL, key TEXT NOT NULL, type INTEGER NOT NULL, data BLOB NOT NULL,
  metadata BLOB, version INTEGER NOT NULL, modified INTEGER NOT NULL, PRIMARY KEY(collection, key)) STRICT, WITHOUT ROWID
  """

/// One of the two competitors.
struct Competitor {
  let name: String
  let open: (_ path: String) throws -> SQLiteConnection
}

let key = KeySource.key(try SecretBytes.random(count: 32))
let competitors = [
  Competitor(name: "plain SQLite") { path in
    let isNew = !FileManager.default.fileExists(atPath: path)
    let connection = try SQLiteConnection(plainFileAt: path)
    if isNew { try connection.execute(schema) }
    return connection
  },
  Competitor(name: "Coffer") { path in
    if !FileManager.default.fileExists(atPath: path) {
      try Store.create(at: path, key: key) { connection, _ in try connection.execute(schema) }
    }
    return try SQLiteConnection(store: Store.open(at: path, key: key), busyTimeout: .zero)
  },
]

func seconds(_ body: () throws -> Void) rethrows -> Double {
  let start = DispatchTime.now().uptimeNanoseconds
  try body()
  return Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
}

/// Keys like `setting.key.000123`, which is their order too, and 100-byte values.
func fill(_ connection: SQLiteConnection, round: Int, keys: [Int]) throws {
  try connection.beginWrite(.full)
  let insert = try connection.statement(
    """
    INSERT INTO items VALUES (?1, ?2, ?3, ?4, NULL, 1, ?5) ON CONFLICT DO UPDATE
    SET type = ?3, data = ?4, version = successor(version), modified = ?5 WHERE type <> ?3 OR data <> ?4
    """)
  var value = [UInt8](repeating: UInt8(round), count: 100)
  for number in keys {
    withUnsafeBytes(of: number) { for (index, byte) in $0.enumerated() { value[index] = byte } }
    insert.bind(1, at: 1)
    insert.bind("setting.key.\(String(number + 10_000_000))", at: 2)
    insert.bind(5, at: 3)
    insert.bind(value, at: 4)
    insert.bind(Int64(number), at: 5)
    _ = try connection.runUpsert(insert)
  }
  try connection.commit()
}

func scan(_ connection: SQLiteConnection) throws -> Int {
  var sum = 0
  try connection.statement("SELECT key, type, data FROM items ORDER BY collection, key").query { row in
    sum += row.byteCount(0) + Int(row.integer(1)) + row.byteCount(2)
  }
  return sum
}

var times: [String: [String: [Double]]] = [:]
let inOrder = Array(0..<rowCount)
var generator = SystemRandomNumberGenerator()
for round in 1...roundCount {
  // Who goes first changes with each round.
  for competitor in round.isMultiple(of: 2) ? competitors.reversed() : competitors {
    func measure(_ work: String, _ body: () throws -> Void) rethrows {
      times[work, default: [:]][competitor.name, default: []].append(try seconds(body))
    }
    let path = "\(folder)/\(competitor.name).\(round)"
    var connection = try competitor.open(path)
    try measure("bulk insert") {
      try fill(connection, round: round, keys: inOrder)
      try connection.close()
    }
    connection = try competitor.open(path)
    var sums: [Int] = []
    try measure("full scan") { sums.append(try scan(connection)) }
    if sums[0] <= rowCount { print("the scan of \(competitor.name) read \(sums) in round \(round)"); exit(1) }
    try connection.close()
    for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
  }
}

func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  return sorted.count.isMultiple(of: 2)
    ? (sorted[sorted.count / 2 - 1] + sorted[sorted.count / 2]) / 2 : sorted[sorted.count / 2]
}

func text(_ value: Double) -> String { String(format: "%.3f", value) }

print("\(rowCount) rows of 100 bytes, \(roundCount) rounds, seconds as median (lowest–highest)\n")
print("| work | plain SQLite | Coffer | ratio |")
print("| --- | --- | --- | --- |")
for work in ["bulk insert", "full scan"] {
  let columns = competitors.map { times[work]![$0.name]! }
  let cells = columns.map { "\(text(median($0))) (\(text($0.min()!))–\(text($0.max()!)))" }
  let ratios = zip(columns[1], columns[0]).map { $0 / $1 }
  print("| \(work) | \(cells.joined(separator: " | ")) | \(text(median(ratios))) |")
}
