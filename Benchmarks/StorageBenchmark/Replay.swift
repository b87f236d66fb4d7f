import CofferCrypto
import CofferStorage
import Foundation

/// The cost of detecting that an old version of a page was put back; see `SECURITY.md`, What is not covered.
///
/// Either way a sum of keyed hashes stands for a set that must be the one there is: of all rows, kept in the database, or of
/// all pages' tags, kept beside them (Clarke et al., "Incremental Multiset Hash Functions", 2003). Here only their work is
/// done, in the same loop as the inserts.
enum Replay {
  /// One element goes, or comes.
  private static func add(_ bytes: [UInt8], key: SecretBytes, to sum: inout [UInt64]) throws {
    let code = try bytes.withUnsafeBytes { try HMACSHA256.authenticate($0, key: key) }
    code.withUnsafeBytes { words in
      for index in sum.indices { sum[index] &+= words.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self) }
    }
  }

  static func measure(rowCount: Int, rounds: Int) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-replay-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let coffer = Competitor(key: .key(try SecretBytes.random(count: 32)))
    let key = try SecretBytes.random(count: 32)
    let keys = (0..<rowCount).map { "setting.key.\($0 + 10_000_000)" }
    var times: [[Double]] = [[], [], []]
    for round in 0..<rounds {
      for offset in 0..<3 {
        let variant = (round + offset) % 3
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let rows = Work.rows(keys, seed: UInt64(round))
        let connection = try coffer.create("\(folder)/store")
        var sum: [UInt64] = [0, 0, 0, 0]
        let row = [UInt8](repeating: 7, count: 140)
        let tag = [UInt8](repeating: 7, count: 44)
        times[variant].append(
          try seconds {
            try Work.fill(connection, rows) { number in
              // A row of 100 bytes with its key; of pages, each row's share of one: the old tag goes, the new one comes.
              if variant == 1 { try add(row, key: key, to: &sum) }
              if variant == 2, number % 27 == 0 {
                try add(tag, key: key, to: &sum)
                try add(tag, key: key, to: &sum)
              }
            }
            try connection.close()
          })
        precondition(variant == 0 || sum != [0, 0, 0, 0])
        try FileManager.default.removeItem(atPath: folder)
      }
    }
    print("| bulk insert of \(rowCount) rows | µs a row | ratio |\n| --- | --- | --- |")
    for (name, values) in zip(["as it is", "with a keyed hash of each row", "with one of each page's tag"], times) {
      let ratio = median(zip(values, times[0]).map { $0 / $1 })
      let cost = median(values) / Double(rowCount) * 1e6
      print("| \(name) | \(String(format: "%.2f | %.2f", cost, ratio)) |")
    }
  }
}
