import Coffer
import Foundation

/// The cost of listeners for a commit: one set in its own transaction, in memory, without the noise of a disk.
enum Listeners {
  private static let nobody = "nobody listens"
  private static let work = Work(
    row: "listeners", name: "one set, one commit, in memory", unit: .microseconds, baseline: nobody)
  private static let commitCount = 2000

  private final class Indifferent: TransactionObserver {
    func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { false }
  }

  private final class Attentive: TransactionObserver {
    func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { true }
  }

  static func row(_ folder: Folder) throws -> Row {
    Row(measurements: [
      Measurement(work, nobody) { _ in try time { _ in {} } },
      Measurement(work, "an observer who wants nothing") { _ in try time { try observe($0, Indifferent()) } },
      Measurement(work, "an observer of everything") { _ in try time { try observe($0, Attentive()) } },
      Measurement(work, "a handler of commits") { _ in
        try time { database in
          let registration = try database.onCommit { _ in }
          return { registration.cancel() }
        }
      },
      Measurement(work, "a long-lived read") { _ in
        try time { database in
          let reader = try database.makeConnection()
          try reader.beginLongLivedReadTransaction()
          return { try reader.endLongLivedReadTransaction() }
        }
      },
    ])
  }

  /// The database does not keep its observer.
  private static func observe(_ database: Database, _ observer: any TransactionObserver) throws -> () throws -> Void {
    database.add(transactionObserver: observer)
    return { withExtendedLifetime(observer) {} }
  }

  /// - Parameter listen: Begins to listen, and returns how to stop.
  private static func time(listen: (Database) throws -> () throws -> Void) throws -> Double {
    let database = try Database.inMemory()
    let connection = try database.makeConnection()
    let end = try listen(database)
    let value = Data(count: 100)
    for number in 0..<1000 { try connection.readWrite { try $0.setObject(value, forKey: Samples.key(number)) } }
    let start = Measure.nanoseconds()
    for number in 0..<commitCount {
      try connection.readWrite { try $0.setObject(number, forKey: Samples.key(number % 1000)) }
    }
    let time = Measure.nanoseconds() - start
    try end()
    let last: Int? = try connection.read { try $0.object(forKey: Samples.key((commitCount - 1) % 1000)) }
    try require(last == commitCount - 1, "the last commit is not visible")
    try database.close()
    return Double(time) / Double(commitCount) / 1000
  }
}
