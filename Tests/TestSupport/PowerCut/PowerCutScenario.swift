import Coffer
import Foundation

/// The operations on a store while the power is cut.
package enum PowerCutScenario: String, CaseIterable, Sendable {
  case creation, commits, checkpoints, restarts, turns, slots, rotation, vacuum, backup, sealing, renaming, restoring

  package func run(_ script: PowerCutScript) throws {
    try script.create()
    switch self {
    case .creation: try script.set(["first": .int(1)])
    case .commits: try Self.commit(script)
    case .checkpoints: try Self.checkpoint(script)
    case .restarts: try Self.restart(script)
    case .turns: try Self.takeTurns(script)
    case .slots: try Self.changeSlots(script)
    case .rotation: try Self.rotate(script)
    case .vacuum: try Self.vacuum(script)
    case .backup: try Self.backUp(script)
    case .sealing: try Self.seal(script)
    case .renaming: try Self.rename(script)
    case .restoring: try Self.restore(script)
    }
    try script.close()
  }

  /// Values that take several pages.
  private static func values(_ round: Int, count: Int = 3, byteCount: Int = 3000) -> [String: Value?] {
    Dictionary(
      uniqueKeysWithValues: (0..<count).map { number in
        let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ round &+ number) }
        return ("key \(number)", .data(Data(bytes)))
      })
  }

  private static func commit(_ script: PowerCutScript) throws {
    for round in 0..<3 {
      try script.set(values(round))
      try script.set(values(round + 10, count: 2), isSynced: false)
      try script.set(["key 0": nil, "small": .int(Int64(round))], isSynced: false)
    }
    try script.set(["last": .bool(true)])
  }

  private static func checkpoint(_ script: PowerCutScript) throws {
    for (round, mode) in ["PASSIVE", "FULL", "RESTART", "TRUNCATE", "PASSIVE"].enumerated() {
      try script.set(values(round), isSynced: round % 2 == 0)
      try script.checkpoint(mode)
      // The log starts over at its beginning.
      try script.set(["after": .int(Int64(round))], isSynced: round % 2 != 0)
    }
    try script.reopen()
    try script.set(values(9), isSynced: false)
  }

  /// Commits that begin a log, in an empty file and over shorter ones of an earlier generation.
  private static func restart(_ script: PowerCutScript) throws {
    for (round, mode) in ["TRUNCATE", "RESTART", "TRUNCATE"].enumerated() {
      for number in 0..<3 { try script.set(["n": .int(Int64(10 * round + number))], isSynced: number != 1) }
      try script.checkpoint(mode)
      try script.set(values(round), isSynced: round != 0)
      try script.checkpoint("PASSIVE")
      try script.set(values(round + 10), isSynced: false)
      try script.reopen()
      try script.set(["reopened": .int(Int64(round))], isSynced: round == 0)
    }
  }

  /// Two connections: a sync of one makes durable what the other one committed before.
  private static func takeTurns(_ script: PowerCutScript) throws {
    for round in 0..<3 {
      try script.set(values(round), isSynced: round == 1)
      try script.takeTurns()
      try script.set(["n": .int(Int64(round))], isSynced: round != 1)
      if round == 1 { try script.checkpoint("RESTART") }
      try script.takeTurns()
      try script.set(values(round + 10, count: 1), isSynced: false)
      try script.takeTurns()
    }
    try script.add(1)
    try script.takeTurns()
    try script.set(["last": .bool(true)])
  }

  private static func changeSlots(_ script: PowerCutScript) throws {
    try script.set(values(0))
    try script.add(1)
    try script.set(values(1), isSynced: false)
    try script.change(1, to: 2)
    try script.remove(2)
    try script.add(1)
    try script.set(values(2))
  }

  private static func rotate(_ script: PowerCutScript) throws {
    try script.add(1)
    try script.set(values(0))
    try script.set(["n": .int(1)], isSynced: false)
    try script.keepingAll { database, _ in try database.rotate() }
    try script.set(values(1, count: 1))
    try script.rotate(dropping: 1, keeping: [0])
    try script.set(values(2, count: 1), isSynced: false)
  }

  private static func vacuum(_ script: PowerCutScript) throws {
    try script.set(values(0, count: 6))
    try script.set(["key 1": nil, "key 2": nil, "key 3": nil], isSynced: false)
    try script.keepingAll { _, connection in try connection.vacuum() }
    try script.checkpoint("TRUNCATE")
    try script.set(["n": .int(1)])
  }

  private static func backUp(_ script: PowerCutScript) throws {
    try script.set(values(0))
    try script.set(["n": .int(1)], isSynced: false)
    try script.backUp()
    try script.set(["n": .int(2)])
  }

  private static func restore(_ script: PowerCutScript) throws {
    try script.set(values(0))
    try script.copyFile()
    try script.set(values(1))
    try script.set(["n": .int(1)], isSynced: false)
    // The log of the old store is of the same keys as the restored one.
    try script.restore()
    try script.set(["n": .int(2)], isSynced: false)
    try script.set(values(2, count: 1))
  }

  private static func seal(_ script: PowerCutScript) throws {
    try script.set(["token": .string("a secret"), "other": .int(7)], in: "tokens")
    let vaultKey = script.vaultKey
    try script.keepingAll { database, _ in try database.vault.create(key: vaultKey) }
    try script.keepingAll { database, _ in try database.seal(collection: "tokens") }
    try script.set(["token": .string("another")], in: "tokens")
    try script.keepingAll { database, _ in try database.unseal(collection: "tokens") }
  }

  private static func rename(_ script: PowerCutScript) throws {
    let names = (0..<20).map { (old: "old\($0)", new: "new\($0)") }
    try script.set(Dictionary(uniqueKeysWithValues: names.enumerated().map { ($1.old, .int(Int64($0))) }), in: "shop")
    try script.declareRenamed(names, in: "shop")
    try script.set(["n": .int(1)], in: "shop", isSynced: false)
  }
}
