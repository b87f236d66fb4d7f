import Coffer
import Foundation

/// The cost of sealing for a value of 100 bytes: one set in a transaction of many, one read of it from the table.
enum Sealing {
  private static let plain = "plain collection"
  private static let count = 5000
  private static let sets = Work(row: "sealing", name: "set, 100 bytes", unit: .microseconds, baseline: plain)
  private static let reads = Work(row: "sealing", name: "read, 100 bytes", unit: .microseconds, baseline: plain)

  static func row(_ folder: Folder) throws -> Row {
    let database = try CofferPeer(creating: folder.subfolder("sealing").file("Coffer")).proxy.database
    try database.vault.create(key: .key(.random(count: 32)))
    try database.seal(collection: "sealed")
    let connection = try database.makeConnection()
    try connection.setCacheLimit(0)
    func value(_ round: Int) -> Data { Data(repeating: UInt8(round & 255), count: 100) }
    return Row(
      measurements: [(plain, "plain"), ("sealed collection", "sealed")].flatMap { name, collection in
        [
          Measurement(sets, name) { round in
            let start = Measure.nanoseconds()
            try connection.readWrite { transaction in
              for number in 0..<count {
                try transaction.setObject(value(round), forKey: Samples.key(number), inCollection: collection)
              }
            }
            return Double(Measure.nanoseconds() - start) / Double(count) / 1000
          },
          // After the sets of the same round.
          Measurement(reads, name) { round in
            let expected = value(round)
            let start = Measure.nanoseconds()
            try connection.read { transaction in
              for number in 0..<count {
                let found: Data? = try transaction.object(forKey: Samples.key(number), inCollection: collection)
                try require(found == expected, "another value was read")
              }
            }
            return Double(Measure.nanoseconds() - start) / Double(count) / 1000
          },
        ]
      })
  }
}
