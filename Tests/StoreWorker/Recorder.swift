import Coffer
import Foundation
import TestSupport

/// Runs random operations on registers shared with other processes, and records each with its times.
struct Recorder {
  /// Each is one key, or one object of two keys.
  private static let objects = [("a", 1), ("b", 1), ("pair", 2)]
  private static let collection = "registers"
  private let registers: any Registers
  private let seed: Int

  /// - Parameters:
  ///   - form: `proxy` or `connection`.
  ///   - seed: Distinguishes the values of this process from those of the others.
  init(_ database: Database, form: String, seed: Int) throws {
    let connection = try database.makeConnection()
    registers =
      try form == "proxy"
      ? ProxyRegisters(proxy: ConnectionProxy(database: database), connection: connection)
      : ConnectionRegisters(connection: connection)
    self.seed = seed
  }

  func run(_ count: Int) throws -> [RecordedOperation] {
    var random = SplitMix64(state: UInt64(seed))
    // The value of a key when this process last read it: what a comparison may expect.
    var seen: [String: [Int?]] = [:]
    return try (0..<count).map { number in
      let (object, size) = Self.objects[Int.random(in: 0..<Self.objects.count, using: &random)]
      let keys = (0..<size).map { "\(object)\($0)" }
      let known = seen[object] ?? Array(repeating: nil, count: size)
      let action = Self.action(known, value: seed * 1_000_000 + number, &random)
      // Without a pause each process would run all of its operations in one time slice.
      usleep(UInt32.random(in: 0..<2000, using: &random))
      let invoked = Self.now
      let result = try registers.run(action, on: keys, in: Self.collection)
      let responded = Self.now
      switch (action, result) {
      case (.get(let place), .value(let value)): seen[object, default: known][place] = value
      case (.getAll, .values(let values)): seen[object] = values
      default: break
      }
      return RecordedOperation(object: object, action: action, result: result, invoked: invoked, responded: responded)
    }
  }

  private static func action(
    _ known: [Int?], value: Int, _ random: inout SplitMix64
  ) -> RecordedOperation.Action {
    let place = Int.random(in: known.indices, using: &random)
    // Only an object of several keys is read and written as a whole.
    switch Int.random(in: 0..<(known.count == 1 ? 8 : 11), using: &random) {
    case 0...2: return .get(place)
    case 3, 4: return .set(place, to: value)
    case 5: return .increment(place)
    case 6, 7: return .compareAndSet(place, expected: known[place], new: value)
    case 8, 9: return .getAll
    default: return .exchangeAll(known.indices.map { value + $0 * 500_000 })
    }
  }

  private static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

/// Registers as keys of a store.
private protocol Registers {
  func run(_ action: RecordedOperation.Action, on keys: [String], in collection: String) throws
    -> RecordedOperation.Result
}

/// Each operation is one transaction.
private struct ConnectionRegisters: Registers {
  let connection: Connection

  func run(
    _ action: RecordedOperation.Action, on keys: [String], in collection: String
  ) throws -> RecordedOperation.Result {
    switch action {
    case .get, .getAll:
      return try connection.read { transaction in
        var values = try keys.map { try transaction.object(forKey: $0, inCollection: collection, as: Int.self) }
        return action.run(on: &values)
      }
    default:
      return try connection.readWrite { transaction in
        let old = try keys.map { try transaction.object(forKey: $0, inCollection: collection, as: Int.self) }
        var new = old
        let result = action.run(on: &new)
        for (index, key) in keys.enumerated() where new[index] != old[index] {
          try transaction.setObject(new[index], forKey: key, inCollection: collection)
        }
        return result
      }
    }
  }
}

/// Operations on one key go through the proxy, and are committed when they return.
private struct ProxyRegisters: Registers {
  let proxy: ConnectionProxy
  let connection: Connection

  func run(
    _ action: RecordedOperation.Action, on keys: [String], in collection: String
  ) throws -> RecordedOperation.Result {
    switch action {
    case .get(let place): return .value(try proxy.object(forKey: keys[place], inCollection: collection))
    case .set(let place, let value):
      try proxy.setObject(value, forKey: keys[place], inCollection: collection, durability: .committed)
      return .done
    case .compareAndSet(let place, let expected, let new):
      return .success(
        try proxy.compareAndSet(keys[place], inCollection: collection, expected: expected, new: new))
    case .increment(let place):
      return .value(try proxy.update(keys[place], inCollection: collection, as: Int.self) { ($0 ?? 0) + 1 })
    case .getAll, .exchangeAll:
      return try ConnectionRegisters(connection: connection).run(action, on: keys, in: collection)
    }
  }
}
