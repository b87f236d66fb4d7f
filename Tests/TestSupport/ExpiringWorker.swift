import Coffer
import Foundation

/// Sets values that expire, each equal to its expiry, and expects none of them later.
///
/// - `time T`: the clock stands at `T`; reads everything, in both ways.
/// - `set KEY T`: through the proxy, a value that expires at `T`; 0 for one that stays.
/// - `write KEY T`: the same in a transaction.
/// - `told N`: waits for commit `N`, and prints the keys reported as expired, each with its commit.
package final class ExpiringWorker {
  private let database: Database
  private let proxy: ConnectionProxy
  private let connection: Connection
  private let told = Told()
  private var registration: CommitRegistration?

  package init(_ database: Database) throws {
    self.database = database
    proxy = try ConnectionProxy(database: database)
    connection = try database.makeConnection()
    database.core.clock.stop(at: 0)
    registration = try database.onCommit { [told] commit in
      let expired = commit.changedKeys().filter { commit.hasExpired(key: $0) }.map { "\(commit.number):\($0)" }
      told.add(expired, of: commit.number)
    }
  }

  package func perform(_ line: String) -> String {
    let words = line.split(separator: " ").map(String.init)
    do {
      switch words[0] {
      case "time": return try setTime(Int64(words[1])!)
      case "set":
        try proxy.setObject(Int(words[2])!, forKey: words[1], expires: expiry(words[2]))
      case "write":
        try proxy.writer.readWrite {
          try $0.setObject(Int(words[2])!, forKey: words[1], expires: expiry(words[2]))
        }
      case "told": return try toldKeys(through: CommitNumber(words[1])!)
      default: return "what is \(line)?"
      }
      return "ok"
    } catch {
      return "\(error)"
    }
  }

  private func expiry(_ text: String) -> Date? { text == "0" ? nil : Date(milliseconds: Int64(text)!) }

  private func setTime(_ time: Int64) throws -> String {
    database.core.clock.stop(at: time)
    database.core.expiries.check()
    let keys = try proxy.allKeys()
    let shown = try keys.map { try proxy.object(forKey: $0, as: Int.self) }
    let listed = try proxy.objects(as: Int.self).map(\.object)
    let committed = try connection.read { transaction in
      try transaction.allKeys().map { try transaction.object(forKey: $0, as: Int.self) }
    }
    // Another process whose clock is ahead may have removed it between list and read.
    let expired = (shown + listed + committed).compactMap(\.self).filter { $0 != 0 && $0 <= time }
    return expired.isEmpty ? "ok" : "at \(time) there are \(expired)"
  }

  private func toldKeys(through last: CommitNumber) throws -> String {
    try proxy.flushAndWait()
    return told.keys(through: last).joined(separator: " ")
  }

  /// What has been reported so far; the condition protects it.
  private final class Told: @unchecked Sendable {
    private let condition = NSCondition()
    private var keys: [String] = []
    private var last: CommitNumber = 0

    func add(_ expired: [String], of commit: CommitNumber) {
      condition.withLock {
        keys += expired
        last = commit
        condition.broadcast()
      }
    }

    /// Waits for a commit, a minute at most.
    func keys(through commit: CommitNumber) -> [String] {
      let deadline = Date(timeIntervalSinceNow: 60)
      return condition.withLock {
        while last < commit, condition.wait(until: deadline) {}
        return keys
      }
    }
  }
}
