import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer
@testable import CofferFleet

/// Random histories of three hosts with two writers each.
///
/// Edits, removals, transactions, links that are cut, answers that are
/// lost, hosts that are cut off, clocks that run apart and are wrong by days, compactions, and a carrier that is put back; and the same with a
/// collection that is sealed, and vaults that are locked and unlocked. `COFFER_SOAK=1` runs 500 of each.
@Suite("Random histories of a fleet")
struct ModelTests {
  private struct CutOff: Error {}

  /// What happens at random.
  private final class Dice: Sendable {
    private let generator: Mutex<SplitMix64>

    init(seed: UInt64) { generator = Mutex(SplitMix64(state: seed)) }

    func roll(_ sides: Int) -> Int { generator.withLock { Int.random(in: 0..<sides, using: &$0) } }
    func chance(_ one: Int) -> Bool { roll(one) == 0 }
  }

  private struct Write {
    let host: Int
    let key: String
    let value: String
  }

  private static var historyCount: Int {
    ProcessInfo.processInfo.environment["COFFER_SOAK"] == "1" ? 500 : 12
  }

  @Test(
    "end with the same contents on all hosts, with nothing lost and no partial transaction seen",
    arguments: 0..<historyCount, [false, true])
  func histories(seed: Int, isSealed: Bool) async throws {
    let dice = Dice(seed: UInt64(seed))
    let carrier = MemoryCarrier(
      limits: CarrierLimits(operationCount: 16, requestByteCount: 70_000, objectByteCount: 2_000))
    let links = (0..<3).map { _ in Link(carrier) }
    let hosts = try ["a", "b", "c"].map { try Host($0) }
    if isSealed { for host in hosts { try host.seal() } }
    try await hosts[0].create(links[0])
    for index in 1..<3 { try await hosts[index].join(hosts[0], links[index]) }
    for host in hosts {
      try await host.connection.readWrite {
        try $0.setHistoryLimits(HistoryLimits(maximumCount: 10_000, maximumAge: nil), forCollection: "web")
      }
    }
    var writes: [Write] = []
    var time = (0..<3).map { _ in 2_000_000 + Int64(dice.roll(40_000)) }
    var backup = carrier.objects

    func checkGroups(_ index: Int) throws {
      // Each host has a group of keys that it alone sets, all of them in each transaction.
      let contents = try hosts[index].unlocked { try hosts[index].contents() }
      for owner in ["a", "b", "c"] {
        let values = contents.filter { $0.key.hasPrefix("group \(owner) ") }.map(\.value)
        #expect(values.isEmpty || values.count == 30 && Set(values).count == 1, "seed \(seed): a transaction half seen")
      }
    }

    func sync(_ index: Int, isLast: Bool = false) async throws {
      do {
        do {
          try await hosts[index].sync()
        } catch FleetError.rolledBack {
          try await hosts[index].fleet.acceptRollback()
        } catch FleetError.forked {
          try await hosts[index].fleet.acceptRollback()
        }
      } catch  where !isLast && (error is CutOff || error is CarrierError) {}
    }

    for step in 0..<60 {
      let index = dice.roll(3)
      let host = hosts[index]
      time[index] += Int64(dice.roll(20))
      // A clock that is wrong for a while: by minutes, hours, or long enough to forget all removals.
      let lead: Int64 = dice.chance(12) ? [240, 20 * 3_600, 100 * 86_400][dice.roll(3)] : 0
      host.setTime(time[index] + lead)
      // Two writers, each with a connection of its own.
      let connection = dice.chance(2) ? host.connection : try host.database.makeConnection()
      let isLocked = !host.database.vault.isUnlocked
      let choice = dice.roll(14)
      // The program that writes has the key of the vault, also if the one that syncs does not.
      if isSealed, isLocked, choice < 6 { try host.unlock() }
      defer { if isSealed, isLocked, choice < 6 { host.lock() } }
      switch choice {
      case 0..<4:
        let write = Write(host: index, key: "\(dice.roll(6))", value: "\(host.name)\(step)")
        try await connection.readWrite { try $0.setObject(write.value, forKey: write.key, inCollection: "web") }
        writes.append(write)
      case 4:
        let key = "\(dice.roll(6))"
        try await connection.readWrite { try $0.removeObject(forKey: key, inCollection: "web") }
      case 5:
        let value = "\(host.name)\(step)" + String(repeating: ".", count: 100)
        try await connection.readWrite { transaction in
          for number in 0..<30 {
            try transaction.setObject(value, forKey: "group \(host.name) \(number)", inCollection: "web")
          }
        }
      case 12:
        let limit = SettingLimit.range(minimum: nil, maximum: .int(Int64(step)))
        let declarations = dice.chance(3) ? [] : [Declaration("declared", in: "web", type: .int, limits: [limit])]
        try await connection.readWrite { try $0.declare(declarations, by: "shop") }
      case 6: links[index].cut(dice.chance(2))
      case 7:
        await host.fleet.setOnStep { _ in if dice.chance(6) { throw CutOff() } }
        try await sync(index)
        links[index].cut(false)
        try host.restart(links[index])
      case 8:
        carrier.fail { _ in dice.chance(4) ? (dice.chance(2) ? .before : .after) : nil }
        try await sync(index)
        carrier.fail(nil)
      case 10 where isSealed: if isLocked { try host.unlock() } else { host.lock() }
      case 9 where dice.chance(4): carrier.compact()
      case 9 where dice.chance(6): backup = carrier.objects
      case 9 where dice.chance(6): carrier.putBack(backup)
      default: try await sync(index)
      }
      try checkGroups(index)
    }
    // Quiet.
    for link in links { link.cut(false) }
    if isSealed { for host in hosts { try host.unlock() } }
    for _ in 0..<4 {
      for index in 0..<3 {
        try await sync(index, isLast: true)
        try checkGroups(index)
      }
    }
    let contents = try hosts[0].contents()
    for host in hosts { #expect(try host.contents() == contents, "seed \(seed): \(host.name) has something else") }
    let declared = try await hosts[0].connection.read { try $0.declaration(forKey: "declared", inCollection: "web") }
    for host in hosts {
      let other = try await host.connection.read { try $0.declaration(forKey: "declared", inCollection: "web") }
      #expect(other == declared, "seed \(seed): \(host.name) has another declaration")
    }
    for write in writes {
      let host = hosts[write.host]
      let isThere = try contents[write.key] == write.value || host.history(write.key).contains(write.value)
      #expect(isThere, "seed \(seed): \(write.value) for \(write.key) is lost")
    }
  }
}
