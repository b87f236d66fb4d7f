import Coffer
import Foundation

/// The cost of lists of names, and of clearing collections, in memory, without the noise of a disk.
enum Lists {
  private static let collectionCount = 100
  private static let keyCount = 1000

  static func row(_ folder: Folder) throws -> Row {
    Row(measurements: [
      try pendingCollections(1000), try pendingCollections(4000), try keysOfLargeValues(),
      measurement("clear one key of \((collectionCount * keyCount).grouped)") { database in
        let connection = try database.makeConnection()
        try fill(connection)
        try connection.readWrite { try $0.setObject("x", forKey: "k", inCollection: "one") }
        return try time { try connection.readWrite { try $0.removeAllObjects(inCollection: "one") } }
      },
      measurement("clear \(collectionCount) collections of \(keyCount.grouped) keys") { database in
        let connection = try database.makeConnection()
        try fill(connection)
        return try time {
          for collection in 0..<collectionCount {
            try connection.readWrite { try $0.removeAllObjects(inCollection: "\(collection)") }
          }
        }
      },
    ])
  }

  private static func pendingCollections(_ count: Int) throws -> Measurement {
    measurement("list collections, each of \(count.grouped) with one pending key") { database in
      let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
      defer { try? proxy.reset() }
      for number in 0..<count { try proxy.setObject(number, forKey: "k", inCollection: "\(number)") }
      return try time {
        try require(try proxy.allCollections().count == count, "collections are missing in the list")
      }
    }
  }

  private static func keysOfLargeValues() throws -> Measurement {
    measurement("list \(keyCount.grouped) keys with values of 64 KB") { database in
      let connection = try database.makeConnection()
      let value = Data(count: 64 << 10)
      try connection.readWrite { transaction in
        for number in 0..<keyCount { try transaction.setObject(value, forKey: Samples.key(number)) }
      }
      let proxy = try ConnectionProxy(database: database)
      return try time { try require(try proxy.allKeys().count == keyCount, "keys are missing in the list") }
    }
  }

  private static func fill(_ connection: Connection) throws {
    for collection in 0..<collectionCount {
      try connection.readWrite { transaction in
        for number in 0..<keyCount {
          try transaction.setObject(number, forKey: Samples.key(number), inCollection: "\(collection)")
        }
      }
    }
  }

  private static func measurement(_ name: String, _ body: @escaping (Database) throws -> Double) -> Measurement {
    Measurement(Work(row: "lists", name: name, unit: .milliseconds), "Coffer", lastRound: 3) { _ in
      let database = try Database.inMemory()
      let time = try body(database)
      try? database.close()
      return time
    }
  }

  private static func time(_ body: () throws -> Void) rethrows -> Double {
    let start = Measure.nanoseconds()
    try body()
    return Double(Measure.nanoseconds() - start) / 1e6
  }
}
