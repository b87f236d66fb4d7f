import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer
@testable import CofferFleet

/// Random histories of four hosts under everything at once: a carrier that changes, repeats and drops objects, is put back, and shows two
/// states for up to 200 commits; clocks that are wrong by days; clones; hosts that leave, join again, and get an old store back; new keys;
/// collections that are no longer shared, and again, or taken from a member, and given back; hosts that are killed.
///
/// And as many with a sealed collection, on hosts whose vault is locked during half of the syncs. `COFFER_SOAK=1` runs 1,000 of each.
@Suite("Random histories of a fleet under attack")
struct HostileModelTests {
  private static var historyCount: Int { ProcessInfo.processInfo.environment["COFFER_SOAK"] == "1" ? 1_000 : 10 }

  @Test(
    "end in step and the same, with nothing lost, nothing back that was removed, and no partial transaction seen",
    arguments: 0..<historyCount, [false, true])
  func histories(seed: Int, isSealed: Bool) async throws {
    let history = try await HostileHistory(seed: seed, isSealed: isSealed)
    for step in 0..<50 { try await history.step(step) }
    try await history.end()
  }
}

/// One history; used by one task.
private final class HostileHistory {
  private struct CutOff: Error {}

  private struct Write {
    let key: String
    let value: String
    let host: String
  }

  private let seed: Int
  private let isSealed: Bool
  private var generator: SplitMix64
  private let carrier = MemoryCarrier(
    limits: CarrierLimits(operationCount: 16, requestByteCount: 70_000, objectByteCount: 4_000))
  private let names = ["a", "b", "c", "d"]
  private var memberNames = ["a", "b", "c", "d"]
  private var hosts: [Host] = []
  private var isMember = [true, true, true, true]
  private var time: Int64 = 2_000_000
  private var writes: [Write] = []
  private var removed: Set<String> = []
  private var backup: [String: [UInt8]] = [:]
  private var olderObjects: [[UInt8]] = []
  private var joinCount = 0
  private var isShared = true

  init(seed: Int, isSealed: Bool) async throws {
    (self.seed, self.isSealed) = (seed, isSealed)
    generator = SplitMix64(state: UInt64(seed) &* 7919 &+ 1)
    for (index, name) in names.enumerated() {
      let host = try Host(name)
      host.setTime(time)
      if isSealed {
        try host.seal()
        host.unlocksVault = true
      }
      if index == 0 {
        try await host.create(carrier, collections: ["flags", "web"], retentionDays: 30)
      } else {
        try await host.join(hosts[0], carrier, role: index == 3 ? .reader : .writer)
      }
      try await keepHistory(of: host)
      hosts.append(host)
    }
    backup = carrier.objects
  }

  private func roll(_ sides: Int) -> Int { Int.random(in: 0..<sides, using: &generator) }
  private func chance(_ one: Int) -> Bool { roll(one) == 0 }

  private func keepHistory(of host: Host) async throws {
    for name in ["flags", "web"] {
      try await host.connection.readWrite {
        try $0.setHistoryLimits(HistoryLimits(maximumCount: 10_000, maximumAge: nil), forCollection: name)
      }
    }
  }

  // MARK: Steps

  func step(_ step: Int) async throws {
    time += Int64(roll(40))
    // One that may write, most of the time.
    let index = roll(4)
    let host = hosts[index]
    let lead: Int64 = chance(10) ? [-2 * 86_400, 240, 20 * 3_600, 100 * 86_400][roll(4)] : 0
    host.setTime(time + lead)
    defer { host.setTime(time) }
    switch roll(24) {
    case 0..<5 where index != 3: try await set("\(roll(6))", "\(host.name)\(step)", on: host)
    case 5 where index != 3:
      try await host.connection.readWrite { [key = "\(roll(6))"] in
        try $0.removeObject(forKey: key, inCollection: "web")
      }
    case 6..<8 where index != 3: try await setPair("\(host.name)\(step)", on: host)
    case 8 where index != 3:
      let value = "\(host.name)\(step)" + String(repeating: ".", count: 100)
      try await host.connection.readWrite { transaction in
        for number in 0..<30 {
          try transaction.setObject(value, forKey: "group \(host.name) \(number)", inCollection: "web")
        }
      }
    case 9: try await killed(index)
    case 10: try await hostile(index)
    case 11 where chance(2): try await putBack()
    case 11: backup = carrier.objects
    case 12 where index > 0: try await rejoin(index)
    case 13 where index > 0: try await clone(index, step)
    case 14: try await fork(step)
    case 15: try await reshare(step)
    case 16: try await asAdmin { try await $0.renewKey() }
    case 17: try await removeForGood(step)
    case 18 where index > 0: try await oldStore(index)
    case 19..<21 where index > 0: try await giveAndTake(index)
    default: try await sync(index)
    }
    // Removals were forgotten: no older state is put back.
    if lead > 30 * 86_400 { backup = carrier.objects }
    try check(index)
    if chance(3), let bytes = carrier.objects.values.randomElement(using: &generator) { olderObjects.append(bytes) }
  }

  private func set(_ key: String, _ value: String, on host: Host) async throws {
    try await host.connection.readWrite { try $0.setObject(value, forKey: key, inCollection: "web") }
    writes.append(Write(key: key, value: value, host: host.name))
  }

  private func setPair(_ value: String, on host: Host) async throws {
    try await host.connection.readWrite { transaction in
      for key in ["pair user", "pair password"] {
        try transaction.setObject(value, forKey: key, inCollection: "web")
      }
    }
    writes.append(Write(key: "pair user", value: value, host: host.name))
  }

  /// - Parameter isLast: Whether it has to succeed.
  private func sync(_ index: Int, isLast: Bool = false) async throws {
    guard isMember[index] else { return }
    try await locking(index, unless: isLast) { try await syncAsItIs(index, isLast: isLast) }
  }

  /// Runs `body`, half of the time while the vault is locked.
  private func locking(_ index: Int, unless isLast: Bool = false, _ body: () async throws -> Void) async throws {
    let locks = isSealed && !isLast && chance(2)
    if locks { hosts[index].lock() }
    defer { if locks, !hosts[index].database.vault.isUnlocked { try? hosts[index].unlock() } }
    try await body()
  }

  private func syncAsItIs(_ index: Int, isLast: Bool) async throws {
    do {
      do {
        try await hosts[index].sync()
      } catch FleetError.rolledBack(_, let found) where found != nil {
        try await hosts[index].fleet.acceptRollback()
      } catch FleetError.forked {
        try await hosts[index].fleet.acceptRollback()
      }
    } catch  where !isLast && (error is CutOff || error is CarrierError) {}
  }

  private func asAdmin(_ body: (Fleet) async throws -> Void) async throws {
    hosts[0].setTime(time)
    try await sync(0)
    try await body(hosts[0].fleet)
  }

  /// A host that is killed between any two steps of a sync.
  private func killed(_ index: Int) async throws {
    guard isMember[index] else { return }
    let kill = roll(6)
    let count = Mutex(0)
    await hosts[index].fleet.setOnStep { _ in
      let number = count.withLock { count in
        count += 1
        return count
      }
      if number > kill { throw CutOff() }
    }
    try await sync(index)
    try hosts[index].restart(carrier)
  }

  /// A carrier that changes one object while a host looks.
  private func hostile(_ index: Int) async throws {
    guard isMember[index] else { return }
    let genuine = carrier.objects
    guard let name = genuine.keys.sorted().randomElement(using: &generator), let bytes = genuine[name] else { return }
    var shown = genuine
    switch roll(3) {
    case 0: shown[name] = nil
    case 1:
      shown[name]?[roll(bytes.count)] ^= 0x20
    default: shown[name] = olderObjects.randomElement(using: &generator) ?? bytes
    }
    carrier.putBack(shown)
    let before = try (await hosts[index].fleet.membership.stored.head, hosts[index].contents())
    do {
      try await hosts[index].sync()
    } catch  where error is FleetError || error is CarrierError {
      // Nothing may be taken from it.
      let now = try (await hosts[index].fleet.membership.stored.head, hosts[index].contents())
      #expect(now.0 != before.0 || now.1 == before.1, "seed \(seed): taken from a carrier that was refused")
    }
    // Objects that no state needs may be changed.
    if carrier.objects[Head.object] == shown[Head.object] {
      carrier.putBack(genuine)
    } else if carrier.objects[name] == shown[name] {
      carrier.putBack(carrier.objects.merging([name: bytes]) { $1 })
    }
  }

  private func putBack() async throws {
    // Not to before members changed: they would be others.
    guard backup["members"] == carrier.objects["members"] else { return }
    carrier.putBack(backup)
    for index in [0, 1, 2].shuffled(using: &generator) { try await sync(index) }
  }

  private func rejoin(_ index: Int) async throws {
    let host = hosts[index]
    if isMember[index] {
      try await host.fleet.leave()
      isMember[index] = false
    }
    guard chance(2) else { return }
    try await join(index)
  }

  private func join(_ index: Int) async throws {
    joinCount += 1
    let name = "\(names[index])-\(joinCount)"
    memberNames[index] = name
    var invitation: Invitation?
    try await asAdmin { invitation = try await $0.invite(name, role: index == 3 ? .reader : .writer) }
    try await locking(index) { try await hosts[index].join(try #require(invitation), carrier) }
    isMember[index] = true
    try await sync(0)
    try await sync(index)
  }

  /// Two hosts with one store, for a while.
  private func clone(_ index: Int, _ step: Int) async throws {
    guard isMember[index] else { return }
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let store = try hosts[index].restart(carrier)
    try store.write(to: folder.appendingPathComponent("settings.coffer"))
    try FileManager.default.copyItem(
      atPath: "\(hosts[index].folder)/key", toPath: folder.appendingPathComponent("key").path)
    let vaultKey = "\(hosts[index].folder)/vault-key"
    if isSealed {
      try FileManager.default.copyItem(atPath: vaultKey, toPath: folder.appendingPathComponent("vault-key").path)
    }
    let copy = try Host("clone", store: folder.path)
    copy.setTime(time)
    copy.unlocksVault = isSealed
    try copy.restart(carrier)
    let both = [hosts[index], copy].shuffled(using: &generator)
    for (number, host) in (both + both).enumerated() where index != 3 {
      try await set("\(roll(6))", "\(host.name) \(step) \(number)", on: host)
      do {
        do { try await host.sync() } catch FleetError.forked { try await host.fleet.acceptRollback() } catch FleetError
          .rolledBack
        { try await host.fleet.acceptRollback() }
      } catch FleetError.damaged {}
    }
    clones.append(copy)
  }

  private var clones: [Host] = []

  /// The carrier shows a host and the others two states.
  private func fork(_ step: Int) async throws {
    let index = 1 + roll(2)
    guard isMember[index] else { return }
    try await sync(index)
    let shared = carrier.objects
    let count = [1, 5, 40, 200][roll(4)]
    for number in 0..<count {
      try await set("\(roll(6))", "fork \(step) \(number)", on: hosts[index]);
      if number % 4 == 0 { try await sync(index) }
    }
    try await sync(index)
    carrier.putBack(shared)
    try await set("\(roll(6))", "other side \(step)", on: hosts[0])
    try await sync(0)
    try await sync(index)
    try await sync(0)
  }

  private func reshare(_ step: Int) async throws {
    try await asAdmin { [isShared] in try await $0.share(collections: isShared ? ["web"] : ["flags", "web"]) }
    isShared.toggle()
    for index in 1..<4 { try await accept(index) }
    try await hosts[0].connection.readWrite {
      try $0.setObject("\(step)", forKey: "flag", inCollection: "flags")
    }
  }

  /// An admin sets which collections a member has.
  private func giveAndTake(_ index: Int) async throws {
    guard isMember[index] else { return }
    try await give([nil, ["web"], [], isShared ? ["flags"] : []][roll(4)], to: index)
    if chance(2) { try await accept(index) }
  }

  private func give(_ collections: [String]?, to index: Int) async throws {
    try await asAdmin { [name = memberNames[index]] in try await $0.setCollections(collections, of: name) }
  }

  /// A host syncs, and agrees to all that waits there.
  private func accept(_ index: Int) async throws {
    guard isMember[index] else { return }
    try await sync(index)
    let waiting = try await hosts[index].fleet.status().waitingCollections
    if !waiting.isEmpty { try await hosts[index].fleet.accept(collections: waiting) }
  }

  /// A key that all have had, and that is removed.
  private func removeForGood(_ step: Int) async throws {
    let key = "gone \(step)"
    hosts[0].setTime(time)
    try await hosts[0].connection.readWrite { try $0.setObject("x", forKey: key, inCollection: "web") }
    for index in 0..<4 { try await sync(index) }
    try await hosts[0].connection.readWrite { try $0.removeObject(forKey: key, inCollection: "web") }
    try await sync(0)
    removed.insert(key)
  }

  /// A host gets back its store from before a sync.
  private func oldStore(_ index: Int) async throws {
    guard isMember[index] else { return }
    try await sync(index)
    let store = try hosts[index].restart(carrier)
    for other in [0, index] { try await sync(other) }
    try hosts[index].restart(carrier, with: store)
    try await sync(index)
  }

  // MARK: Checks

  private func check(_ index: Int) throws {
    let contents = try hosts[index].contents()
    for owner in names {
      let values = contents.filter { $0.key.hasPrefix("group \(owner) ") }.map(\.value)
      #expect(values.isEmpty || values.count == 30 && Set(values).count == 1, "seed \(seed): a transaction half seen")
    }
    #expect(contents["pair user"] == contents["pair password"], "seed \(seed): a transaction torn on \(names[index])")
  }

  func end() async throws {
    for host in hosts { host.setTime(time) }
    for index in 1..<4 where !isMember[index] { try await join(index) }
    for index in 1..<4 {
      try await give(nil, to: index)
      try await accept(index)
    }
    for _ in 0..<4 {
      for index in 0..<4 {
        try await sync(index, isLast: true)
        try check(index)
      }
    }
    let contents = try hosts[0].contents()
    for host in hosts {
      let other = try host.contents()
      #expect(other == contents, "seed \(seed): \(host.name) has something else")
      let condition = try await host.fleet.status().condition
      #expect(condition == .inStep, "seed \(seed): \(host.name)")
    }
    for key in removed { #expect(contents[key] == nil, "seed \(seed): \(key) is back") }
    for write in writes where contents[write.key] != write.value {
      let isKept = try (hosts + clones).contains {
        try $0.get(write.key) == write.value || $0.history(write.key).contains(write.value)
      }
      #expect(isKept, "seed \(seed): \(write.value) of \(write.host) for \(write.key) is lost")
    }
  }
}
