import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("A sealed collection of a fleet")
struct SealedCollectionTests {
  let carrier = MemoryCarrier()

  /// Hosts that share `web` and `tokens`, which is sealed on all of them and in the fleet; the first is the admin.
  private func sealedFleet(_ names: String..., retentionDays: Int = 90) async throws -> [Host] {
    var hosts: [Host] = []
    for name in names {
      let host = try Host(name)
      try host.seal("tokens")
      if let admin = hosts.first {
        try await host.join(admin, carrier)
      } else {
        try await host.create(carrier, collections: ["web", "tokens"], retentionDays: retentionDays)
      }
      hosts.append(host)
    }
    return hosts
  }

  @Test("is sealed on each host with its own vault; its values are in no page of any store, and not on the carrier")
  func everywhereSealed() async throws {
    let hosts = try await sealedFleet("a", "b", "c")
    let canary = "canary-\(UUID().uuidString)"
    try hosts[0].set("readable", "theme")
    try await hosts[0].connection.readWrite { transaction in
      try transaction.setObject(Secret(canary), forKey: "secret", inCollection: "tokens", withMetadata: canary)
      try transaction.setObject(canary, forKey: "text", inCollection: "tokens")
    }
    for host in hosts { try await host.sync() }
    // Changed on two hosts at once: the loser is in the history.
    for host in hosts { try host.set("\(canary) of \(host.name)", "both", in: "tokens") }
    for host in hosts + hosts { try await host.sync() }
    for host in hosts {
      #expect(try host.get("text", in: "tokens") == canary && host.get("theme") == "readable")
      let secret = try await host.connection.read {
        try $0.object(forKey: "secret", inCollection: "tokens", as: Secret.self)
      }
      #expect(secret == Secret(canary))
      #expect(try host.get("both", in: "tokens") == hosts[0].get("both", in: "tokens"))
      for key in ["secret", "text", "both"] { #expect(try host.isSealed(key, in: "tokens")) }
      #expect(try await host.fleet.status().condition == .inStep)
      #expect(try !host.pagesHave(canary))
      // What would be found.
      #expect(try host.pagesHave("readable"))
    }
    #expect(try await hosts[1].fleet.conflicts().map(\.key) == ["both"])
    #expect(try hosts[1].history("both", in: "tokens").count == 1)
    #expect(Data(carrier.sent).range(of: Data(canary.utf8)) == nil)
  }

  @Test("waits while the vault is locked, and all others are exchanged; unlocked, it is taken and given")
  func locked() async throws {
    let hosts = try await sealedFleet("a", "b")
    for key in ["changed", "removed", "own"] { try hosts[0].set("1", key, in: "tokens") }
    for host in hosts { try await host.sync() }
    hosts[1].lock()
    // Nothing has changed, so nothing waits.
    try await hosts[1].sync()
    #expect(try await hosts[1].fleet.status().condition == .inStep)
    try hosts[0].set("2", "changed", in: "tokens")
    try hosts[0].set(nil, "removed", in: "tokens")
    try hosts[0].set("new", "new", in: "tokens")
    try hosts[0].set("dark", "theme")
    try await hosts[0].sync()
    try hosts[1].unlocked { try hosts[1].set("of b", "own", in: "tokens") }
    try hosts[1].set("8080", "port")
    for _ in 0..<2 {
      for host in [hosts[1], hosts[0]] { try await host.sync() }
      #expect(try hosts[1].get("theme") == "dark" && hosts[0].get("port") == "8080")
      let status = try await hosts[1].fleet.status()
      #expect(status.condition == .waiting && status.held == ["tokens": .vaultLocked] && status.unpushedCount == 1)
      #expect(try await hosts[1].fleet.isInStep())
      let present = try hosts[1].unlocked { try hosts[1].contents("tokens") }
      #expect(present == ["changed": "1", "removed": "1", "own": "of b"])
      // The same after a restart.
      try hosts[1].restart(carrier)
    }
    try hosts[0].set("3", "changed", in: "tokens")
    try await hosts[0].sync()
    try await hosts[1].sync()
    try hosts[1].unlock()
    #expect(try await !hosts[1].fleet.isInStep())
    try await hosts[1].sync()
    let status = try await hosts[1].fleet.status()
    #expect(status.condition == .inStep && status.waits == [] && status.unpushedCount == 0)
    try await hosts[0].sync()
    for host in hosts {
      #expect(try host.contents("tokens") == ["changed": "3", "new": "new", "own": "of b"])
      #expect(try await host.fleet.conflicts() == [])
    }
  }

  @Test("that was changed on both sides while the vault was locked is merged as any other", arguments: [false, true])
  func conflict(isOursLater: Bool) async throws {
    let hosts = try await sealedFleet("a", "b")
    for host in hosts { host.setTime(1_000) }
    try hosts[0].set("0", "x", in: "tokens")
    for host in hosts { try await host.sync() }
    hosts[0].setTime(1_100)
    hosts[1].setTime(isOursLater ? 1_200 : 1_050)
    hosts[1].lock()
    try hosts[0].set("of a", "x", in: "tokens")
    try await hosts[0].sync()
    try hosts[1].unlocked { try hosts[1].set("of b", "x", in: "tokens") }
    try await hosts[1].sync()
    try hosts[1].unlock()
    for host in [hosts[1], hosts[0]] { try await host.sync() }
    let (winner, loser) = isOursLater ? ("of b", "of a") : ("of a", "of b")
    for host in hosts { #expect(try host.get("x", in: "tokens") == winner) }
    let conflicts = try await hosts[1].fleet.conflicts()
    #expect(conflicts.map(\.key) == ["x"] && conflicts.first?.loser == String(loser.last ?? "-"))
    #expect(try hosts[1].history("x", in: "tokens").first == loser)
    #expect(try hosts[1].isSealed("x", in: "tokens"))
    // The loser is restored from there.
    try await hosts[1].fleet.restore(try #require(conflicts.first))
    for host in [hosts[1], hosts[0]] { try await host.sync() }
    for host in hosts { #expect(try host.get("x", in: "tokens") == loser) }
  }

  @Test("of a host that joins with a locked vault waits; then the fleet's values win, as on any host that joins")
  func joining() async throws {
    let admin = try await sealedFleet("a")[0]
    try admin.set("of the fleet", "both", in: "tokens")
    try admin.set("fleet", "theirs", in: "tokens")
    try admin.set("dark", "theme")
    try await admin.sync()
    let host = try Host("b")
    try host.seal("tokens")
    try host.set("of b, and later", "both", in: "tokens")
    try host.set("b", "ours", in: "tokens")
    host.lock()
    try await host.join(admin, carrier)
    #expect(try host.get("theme") == "dark")
    #expect(try await host.fleet.status().held == ["tokens": .vaultLocked])
    try host.restart(carrier)
    try host.unlock()
    for host in [host, admin] { try await host.sync() }
    for host in [host, admin] {
      #expect(try host.contents("tokens") == ["both": "of the fleet", "theirs": "fleet", "ours": "b"])
    }
    #expect(try await host.fleet.conflicts().map(\.key) == ["both"])
    #expect(try host.history("both", in: "tokens") == ["of b, and later"])
    // Joined again with a locked vault, it brings nothing back.
    try admin.set(nil, "theirs", in: "tokens")
    try await admin.sync()
    try await host.fleet.leave()
    try await admin.fleet.remove("b")
    host.lock()
    try await host.join(admin, carrier)
    try host.unlock()
    for host in [host, admin] { try await host.sync() }
    #expect(try host.contents("tokens") == admin.contents("tokens") && admin.get("theirs", in: "tokens") == nil)
  }

  @Test("is not taken where it is not sealed, until it is; no plaintext of it lands there before")
  func notSealedHere() async throws {
    let canary = "canary-\(UUID().uuidString)"
    let admin = try await sealedFleet("a")[0]
    try admin.set(canary, "x", in: "tokens")
    try await admin.sync()
    let (writer, reader) = (try Host("b"), try Host("r"))
    try writer.set("readable", "own", in: "tokens")
    try await writer.join(admin, carrier)
    try await reader.join(admin, carrier, role: .reader)
    try admin.set("dark", "theme")
    try admin.set("\(canary) again", "y", in: "tokens")
    for host in [admin, writer, reader, admin] { try await host.sync() }
    for host in [writer, reader] {
      let status = try await host.fleet.status()
      #expect(status.held == ["tokens": .notSealedHere] && status.condition == .waiting)
      #expect(status.sealedCollections == ["tokens"])
      #expect(try host.get("theme") == "dark" && host.get("x", in: "tokens") == nil)
    }
    #expect(try admin.get("own", in: "tokens") == nil)
    for host in [writer, reader] { try host.seal("tokens") }
    for host in [writer, admin, reader] { try await host.sync() }
    for host in [admin, writer, reader] {
      #expect(try host.contents("tokens") == ["x": canary, "y": "\(canary) again", "own": "readable"])
      #expect(try await host.fleet.status().waits == [])
      for key in ["x", "y", "own"] { #expect(try host.isSealed(key, in: "tokens")) }
      #expect(try !host.pagesHave(canary))
    }
    // Unsealed there, it waits, and nothing comes.
    try await reader.database.unseal(collection: "tokens")
    try admin.set("hidden", "z", in: "tokens")
    for host in [admin, reader] { try await host.sync() }
    #expect(try await reader.fleet.status().held == ["tokens": .notSealedHere])
    #expect(try reader.get("z", in: "tokens") == nil)
    // Unless an admin allows that.
    try await admin.fleet.unseal(collections: ["tokens"])
    for host in [reader, writer] { try await host.sync() }
    #expect(try reader.get("z", in: "tokens") == "hidden" && writer.get("z", in: "tokens") == "hidden")
    #expect(try await reader.fleet.status().waits == [])
  }

  @Test("is still taken if it is sealed after it was shared, and is given once it is sealed in the fleet")
  func sealedLater() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier, collections: ["web", "tokens"])
    for index in 1...3 { try hosts[0].set("\(index)", "\(index)", in: "tokens") }
    for host in hosts { try await host.sync() }
    try hosts[1].seal("tokens")
    try hosts[0].set("of a", "1", in: "tokens")
    try hosts[1].set("of b", "2", in: "tokens")
    try hosts[1].set("8080", "port")
    for host in [hosts[0], hosts[1], hosts[0]] { try await host.sync() }
    // Taken, and sealed; not given, as others would keep it unsealed.
    #expect(try hosts[1].get("1", in: "tokens") == "of a" && hosts[1].isSealed("1", in: "tokens"))
    #expect(try hosts[0].get("2", in: "tokens") == "2" && hosts[0].get("port") == "8080")
    let status = try await hosts[1].fleet.status()
    #expect(status.held == ["tokens": .notSealedInFleet] && status.unpushedCount == 1 && status.condition == .waiting)
    await #expect(throws: FleetError.notAllowed(role: .writer)) {
      try await hosts[1].fleet.seal(collections: ["tokens"])
    }
    await #expect(throws: FleetError.collectionNotShared("none")) {
      try await hosts[0].fleet.seal(collections: ["none"])
    }
    try hosts[0].seal("tokens")
    try await hosts[0].fleet.seal(collections: ["tokens"])
    for host in [hosts[1], hosts[0]] { try await host.sync() }
    for host in hosts {
      #expect(try host.contents("tokens") == ["1": "of a", "2": "of b", "3": "3"])
      #expect(try await host.fleet.status().waits == [])
    }
    // It stays sealed under another key.
    try await hosts[0].fleet.renewKey()
    #expect(await hosts[0].fleet.membership.members.sealedCollections == ["tokens"])
  }

  @Test("that a host shares later is accepted there before or after the vault is unlocked")
  func consent() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for host in hosts { try host.seal("tokens") }
    try hosts[0].set("of a", "x", in: "tokens")
    try hosts[1].set("of b", "y", in: "tokens")
    hosts[1].lock()
    try await hosts[0].fleet.share(collections: ["web", "tokens"])
    try await hosts[1].sync()
    #expect(try await hosts[1].fleet.status().waitingCollections == ["tokens"])
    try await hosts[1].fleet.accept(collections: ["tokens"])
    #expect(try await hosts[1].fleet.status().held == ["tokens": .vaultLocked])
    try hosts[0].set("later", "z", in: "tokens")
    for host in hosts { try await host.sync() }
    try hosts[1].unlock()
    for host in [hosts[1], hosts[0]] { try await host.sync() }
    for host in hosts { #expect(try host.contents("tokens") == ["x": "of a", "y": "of b", "z": "later"]) }
    // No longer shared, it waits for nothing.
    hosts[1].lock()
    try hosts[0].set("last", "z", in: "tokens")
    try await hosts[0].sync()
    try await hosts[1].sync()
    try await hosts[0].fleet.share(collections: ["web"])
    try await hosts[1].sync()
    #expect(try await hosts[1].fleet.status().waits == [])
    #expect(try await hosts[1].fleet.status().condition == .inStep)
  }

  @Test("is sealed under a new key by an admin whose vault is locked, with what that host has not taken")
  func renewal() async throws {
    let hosts = try await sealedFleet("a", "b", "c")
    for index in 0..<20 { try hosts[0].set("\(index)", "\(index)", in: "tokens") }
    for host in hosts { try await host.sync() }
    hosts[0].lock()
    // With nothing passed over, and then with some.
    try await hosts[0].fleet.renewKey()
    try await hosts[1].sync()
    try hosts[1].set("of b", "1", in: "tokens")
    try hosts[1].set(nil, "2", in: "tokens")
    try hosts[1].set("new", "new", in: "tokens")
    try await hosts[1].sync()
    try hosts[0].unlocked { try hosts[0].set("of a", "3", in: "tokens") }
    try await hosts[0].fleet.renewKey()
    try await hosts[0].fleet.remove("c")
    try hosts[1].set("of b", "4", in: "tokens")
    for host in [hosts[1], hosts[0], hosts[1]] { try await host.sync() }
    #expect(try hosts[1].get("3", in: "tokens") == "3")
    let late = try Host("d")
    try late.seal("tokens")
    try await late.join(hosts[0], carrier)
    #expect(try late.contents("tokens") == hosts[1].contents("tokens"))
    try hosts[0].unlock()
    for host in [hosts[0], hosts[1], late] { try await host.sync() }
    for host in [hosts[0], hosts[1], late] {
      #expect(try host.contents("tokens") == hosts[1].contents("tokens"))
      #expect(try await host.fleet.conflicts() == [])
      #expect(try await host.fleet.status().waits == [])
    }
    let expected: [String: String?] = ["1": "of b", "2": nil, "3": "of a", "4": "of b", "new": "new"]
    for (key, value) in expected { #expect(try hosts[0].get(key, in: "tokens") == value) }
  }

  @Test("is not sealed under a new key with a record that no writer has committed, also where it was passed over")
  func plantedDuringRenewal() async throws {
    let hosts = try await sealedFleet("a", "b")
    try hosts[0].set("1", "x", in: "tokens")
    for host in hosts { try await host.sync() }
    hosts[0].lock()
    let before = carrier.objects
    try hosts[1].set("2", "x", in: "tokens")
    try await hosts[1].sync()
    try await hosts[0].sync()
    // The carrier puts one record back.
    let name = try #require(before.keys.first { $0.hasPrefix("r/") && before[$0] != carrier.objects[$0] })
    carrier.objects[name] = before[name]
    await #expect(throws: FleetError.self) { try await hosts[0].fleet.renewKey() }
    #expect(await hosts[0].fleet.membership.members.version == hosts[1].fleet.membership.members.version)
  }

  @Test("forgets removals as any other, also while a host with a locked vault has not seen them")
  func forgetting() async throws {
    let day: Int64 = 86_400
    let hosts = try await sealedFleet("a", "b", retentionDays: 1)
    func setTime(_ time: Int64) { for host in hosts { host.setTime(time) } }
    setTime(100 * day)
    for key in ["removed", "again", "stays", "edited"] {
      for round in 0..<3 {
        try hosts[0].set("\(round)", key, in: "tokens")
        try await hosts[0].sync()
      }
    }
    for host in hosts { try await host.sync() }
    hosts[1].lock()
    for key in ["removed", "again", "edited"] { try hosts[0].set(nil, key, in: "tokens") }
    for host in hosts { try await host.sync() }
    try hosts[1].unlocked { try hosts[1].set("of b", "edited", in: "tokens") }
    setTime(110 * day)
    // Forgotten; one begins again at the first counter.
    for host in hosts { try await host.sync() }
    #expect(carrier.objects.keys.filter { $0.hasPrefix("r/") }.count == 1)
    try hosts[0].set("new", "again", in: "tokens")
    for host in hosts { try await host.sync() }
    try hosts[1].restart(carrier)
    try await hosts[1].sync()
    try hosts[1].unlock()
    for host in [hosts[1], hosts[0]] { try await host.sync() }
    for host in hosts {
      #expect(try host.contents("tokens") == ["again": "new", "stays": "2"])
      #expect(try await host.fleet.status().condition == .inStep)
    }
    #expect(try await hosts[1].fleet.conflicts().map(\.key) == ["edited"])
    #expect(try hosts[1].history("edited", in: "tokens").contains("of b"))
  }

  @Test("is merged after a rollback of the carrier that was accepted while the vault was locked")
  func rollback() async throws {
    let hosts = try await sealedFleet("a", "b")
    try hosts[0].set("1", "x", in: "tokens")
    for host in hosts { try await host.sync() }
    let backup = carrier.objects
    try hosts[0].set("2", "x", in: "tokens")
    try hosts[0].set("1", "lost", in: "tokens")
    try hosts[0].set("dark", "theme")
    for host in hosts { try await host.sync() }
    hosts[1].lock()
    carrier.putBack(backup)
    try await hosts[1].fleet.acceptRollback()
    #expect(try await hosts[1].fleet.status().held == ["tokens": .vaultLocked])
    try hosts[1].set("by b", "other")
    try await hosts[1].sync()
    try hosts[1].unlock()
    try await hosts[1].sync()
    try await hosts[0].fleet.acceptRollback()
    for host in hosts + hosts { try await host.sync() }
    for host in hosts {
      #expect(try host.contents("tokens") == ["x": "2", "lost": "1"])
      #expect(try host.contents() == ["theme": "dark", "other": "by b"])
      #expect(try await host.fleet.conflicts() == [])
    }
  }

  @Test("waits after the vault got a new key elsewhere, and a new key is no change")
  func rotation() async throws {
    let hosts = try await sealedFleet("a", "b")
    for index in 0..<5 { try hosts[0].set("\(index)", "\(index)", in: "tokens") }
    for host in hosts { try await host.sync() }
    let key = KeySource.keyFile("\(hosts[0].folder)/vault-key")
    try await hosts[0].database.vault.rotate(newKeyFor: [key])
    #expect(try await hosts[0].sync().pushedCount == 0)
    try hosts[0].set("new", "5", in: "tokens")
    for host in hosts { try await host.sync() }
    #expect(try hosts[1].get("5", in: "tokens") == "new")
    // Another program rotates; this one has a key that it cannot read again.
    let kept = try hosts[1].database.vault.vaultKey()
    hosts[1].lock()
    try hosts[1].database.vault.unlock(vaultKey: kept)
    let other = try await Database.open(
      at: "\(hosts[1].folder)/settings.coffer", key: .keyFile("\(hosts[1].folder)/key"))
    let otherKey = KeySource.keyFile("\(hosts[1].folder)/vault-key")
    try await other.vault.unlock(otherKey)
    try await other.vault.rotate(newKeyFor: [otherKey])
    try hosts[0].set("newer", "5", in: "tokens")
    try hosts[0].set("dark", "theme")
    for host in hosts { try await host.sync() }
    #expect(try await hosts[1].fleet.status().held == ["tokens": .vaultLocked])
    #expect(try hosts[1].get("theme") == "dark")
    try hosts[1].unlock()
    try await hosts[1].sync()
    #expect(try hosts[1].get("5", in: "tokens") == "newer")
    #expect(try await hosts[1].fleet.status().condition == .inStep)
    try await other.close()
  }

  @Test("waits with its declarations, expiry and environments, which arrive with it")
  func everythingElse() async throws {
    let (admin, host) = (try Host("a"), try Host("b"))
    func declaration(on host: Host) throws -> Declaration? {
      try host.connection.read { try $0.declaration(forKey: "key", inCollection: "tokens") }
    }
    for member in [admin, host] {
      try member.seal("tokens")
      member.setTime(1_000_000)
    }
    let names = ["web", "tokens", "tokens@prod"]
    try await admin.create(carrier, collections: names)
    #expect(await admin.fleet.membership.members.sealedCollections == ["tokens", "tokens@prod"])
    try await host.join(admin, carrier)
    host.lock()
    let lease = Date(timeIntervalSince1970: 2_000_000)
    try await admin.connection.readWrite { transaction in
      try transaction.setObject("leased", forKey: "lease", inCollection: "tokens", expires: lease)
      try transaction.setObject("of prod", forKey: "key", inCollection: "tokens@prod")
      try transaction.declare([Declaration("key", in: "tokens", type: .string)], by: "shop")
    }
    for member in [admin, host] { try await member.sync() }
    #expect(try declaration(on: host) == nil)
    let held = try await host.fleet.status().held
    #expect(held == ["tokens": .vaultLocked, "tokens@prod": .vaultLocked])
    try host.unlock()
    for member in [host, admin] { try await member.sync() }
    #expect(try host.get("key", in: "tokens@prod") == "of prod" && host.isSealed("key", in: "tokens@prod"))
    #expect(try host.get("lease", in: "tokens") == "leased")
    #expect(try declaration(on: host)?.type == .string)
    // What is declared there while it waits is pushed then.
    host.lock()
    host.setTime(1_000_100)
    let limited = Declaration("key", in: "tokens", type: .string, limits: [.count(minimum: 1, maximum: nil)])
    try await host.connection.readWrite { try $0.declare([limited], by: "shop", version: "2") }
    try host.set("1", "x")
    for member in [host, admin] { try await member.sync() }
    #expect(try await host.fleet.status().unpushedDeclarationCount > 0)
    try host.unlock()
    for member in [host, admin] { try await member.sync() }
    #expect(try declaration(on: admin)?.limits.count == 1)
    host.setTime(3_000_000)
    #expect(try host.get("lease", in: "tokens") == nil)
    #expect(try await host.sync().pushedCount == 0)
    #expect(try await host.fleet.status().condition == .inStep)
  }

  @Test("loses nothing if the host is cut off between any two steps of taking and giving what waited")
  func cutOff() async throws {
    struct CutOff: Error {}
    var count = 0
    while true {
      count += 1
      let carrier = MemoryCarrier()
      let hosts = try ["a", "b"].map { try Host($0) }
      for host in hosts { try host.seal() }
      try await hosts[0].create(carrier)
      try await hosts[1].join(hosts[0], carrier)
      for key in ["x", "y"] { try hosts[0].set("0", key) }
      for host in hosts { try await host.sync() }
      hosts[1].lock()
      try hosts[0].set("of a", "x")
      try await hosts[0].sync()
      try hosts[1].unlocked { try hosts[1].set("of b", "y") }
      let countdown = CrashTests.Countdown(count)
      await hosts[1].fleet.setOnStep { _ in try countdown.step() }
      do {
        try await hosts[1].sync()
        try hosts[1].unlock()
        try await hosts[1].sync()
      } catch is CrashTests.CutOff {}
      let hasEnded = countdown.hasEnded.withLock { $0 }
      try hosts[1].restart(carrier)
      try await hosts[1].sync()
      try hosts[1].unlock()
      for host in hosts + hosts { try await host.sync() }
      for host in hosts {
        #expect(try host.contents() == ["x": "of a", "y": "of b"], "cut off at step \(count)")
        #expect(try await host.fleet.conflicts() == [], "cut off at step \(count)")
      }
      guard hasEnded else { break }
      try #require(count < 100)
    }
    #expect(count > 4)
  }
}
