import Synchronization

/// Swift's `Dictionary` behind a mutex, the yardstick: no disk, no other processes.
final class LockedDictionary: Peer, Sendable {
  let name = "locked Dictionary"
  private let integers = Mutex<[String: Int]>([:])
  private let texts = Mutex<[String: String]>([:])

  func sum(ofIntegersFor keys: [String]) throws -> Int {
    var sum = 0
    for key in keys { sum &+= integers.withLock { $0[key] } ?? 0 }
    return sum
  }

  func sum(ofLengthsFor keys: [String]) throws -> Int {
    var sum = 0
    for key in keys { sum &+= texts.withLock { $0[key] }?.utf8.count ?? 0 }
    return sum
  }

  func text(_ key: String) throws -> String? { texts.withLock { $0[key] } }

  func set(integersFor keys: [String], from first: Int) throws {
    var value = first
    for key in keys {
      integers.withLock { $0[key] = value }
      value += 1
    }
  }

  func set(_ newTexts: [String], for keys: [String]) throws {
    for (key, text) in zip(keys, newTexts) { texts.withLock { $0[key] = text } }
  }
}
