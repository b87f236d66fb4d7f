import CofferCrypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

extension Declaration {
  /// A number from 1 to a maximum.
  fileprivate static func number(_ name: String, upTo maximum: Int64, in collection: String = "web") -> Declaration {
    Declaration(name, in: collection, type: .int, limits: [.range(minimum: .int(1), maximum: .int(maximum))])
  }
}

extension Host {
  fileprivate func declare(
    _ declarations: Declaration..., by application: String = "shop", version: String? = nil
  ) throws {
    try connection.readWrite { try $0.declare(declarations, by: application, version: version) }
  }

  /// The most that a setting may be here; nil if it is not declared.
  fileprivate func maximum(_ key: String = "workers", in collection: String = "web") throws -> Int64? {
    let declaration = try connection.read { try $0.declaration(forKey: key, inCollection: collection) }
    guard case .range(_, .int(let maximum)?)? = declaration?.limits.first else { return nil }
    return maximum
  }

  fileprivate func set(_ value: Int, _ key: String) throws {
    try connection.readWrite { try $0.setObject(value, forKey: key, inCollection: "web") }
  }

  fileprivate func value(_ key: String) throws -> Int? {
    try connection.read { try $0.object(forKey: key, inCollection: "web", as: Int.self) }
  }

  /// The settings and applications of all declarations that hold here.
  fileprivate func declared() throws -> [String] {
    try connection.read { try $0.declaredSettings() }.map {
      "\($0.declaration.collection)/\($0.declaration.name) by \($0.owner)"
    }
  }
}

@Suite("The declarations of a fleet's collections")
struct DeclarationTests {
  let carrier = MemoryCarrier()

  private func settle(_ hosts: Host...) async throws {
    for host in hosts + hosts { try await host.sync() }
  }

  // MARK: Travelling

  @Test("hold on a host without the program, whether they were declared before the collection was shared or later")
  func travelling() async throws {
    let a = try Host("a")
    try a.declare(.number("workers", upTo: 64))
    try await a.create(carrier)
    #expect(try await a.sync().pushedCount == 1)
    let b = try await Host("b").join(a, carrier)
    #expect(try b.maximum() == 64)
    #expect(try b.declared() == ["web/workers by shop"])
    // Nothing has changed then.
    for host in [a, b] { #expect(try await host.sync() == SyncReport()) }

    try a.declare(.number("workers", upTo: 64), .number("queue", upTo: 9), version: "1.1")
    #expect(try await a.fleet.status().unpushedDeclarationCount == 1)
    #expect(try await a.sync().pushedCount == 1)
    #expect(try await b.sync().pulledCount == 1)
    #expect(try b.maximum() == 64)
    #expect(try b.maximum("queue") == 9)
    #expect(try await b.fleet.changes().map(\.isDeclaration) == [true, true])
    let late = try await Host("c").join(a, carrier, role: .reader)
    #expect(try late.maximum("queue") == 9)
    // The log says where they came from.
    let actions = try #require(
      try await late.connection.read { try $0.session.changeLog.rows(after: -1) { row, _ in row.action } })
    #expect(actions.contains("took a fleet's declarations of\tshop"))
  }

  @Test("tell a host without the program which names there are, and whose administrators' files count")
  func names() async throws {
    let a = try Host("a")
    try a.declare(.number("workers", upTo: 64))
    try await a.create(carrier, collections: ["web", "open"])
    try await a.sync()
    let b = try await Host("b").join(a, carrier)
    func applications(_ collection: String) throws -> [String] {
      try b.connection.read { try $0.effectiveSettings(of: collection).applications }
    }
    func set(_ key: String, _ collection: String) throws {
      try b.connection.readWrite { transaction in
        transaction.session.settingRules = SettingRules(files: AdministratorFiles())
        try transaction.setObject(1, forKey: key, inCollection: collection)
      }
    }
    for collection in ["web", "web@staging", "acme/web"] {
      #expect(try applications(collection).contains("shop"))
      #expect(throws: CofferError.self) { try set("wrkers", collection) }
      try set("workers", collection)
    }
    #expect(try applications("open") == ["open"])
    try set("wrkers", "open")
    // What its own program declares counts as well.
    try b.declare(.number("threads", upTo: 4), by: "bar")
    #expect(try applications("web") == ["web", "bar", "shop"])
    try a.declare()
    for host in [a, b] { try await host.sync() }
    #expect(try applications("web") == ["web", "bar"])
  }

  @Test("come from several applications, each setting with its own")
  func applications() async throws {
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    try hosts[0].declare(.number("workers", upTo: 64), by: "shop", version: "1.0")
    try hosts[1].declare(.number("queue", upTo: 9), by: "mail")
    try await settle(hosts[0], hosts[1], hosts[2])
    for host in hosts { #expect(try host.declared() == ["web/queue by mail", "web/workers by shop 1.0"]) }
    // A second application that declares the same is no disagreement.
    try hosts[1].declare(.number("queue", upTo: 9), .number("workers", upTo: 64), by: "mail")
    try await settle(hosts[1], hosts[0], hosts[2])
    for host in hosts { #expect(try await host.fleet.conflicts() == []) }
    for host in hosts { #expect(try host.maximum() == 64) }
  }

  @Test("stay at home for collections that are not shared, and hold on no other host once one is no longer shared")
  func collections() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier, collections: ["web", "flags"])
    try hosts[0].declare(
      .number("workers", upTo: 64), .number("n", upTo: 2, in: "flags"), .number("x", upTo: 3, in: "own"))
    try await settle(hosts[0], hosts[1])
    #expect(try hosts[1].declared() == ["flags/n by shop", "web/workers by shop"])
    try await hosts[0].fleet.share(collections: ["flags"])
    try await settle(hosts[1], hosts[0])
    #expect(try hosts[1].declared() == ["flags/n by shop"])
    #expect(try hosts[0].maximum() == 64)
    // Shared again, they hold again once that is accepted.
    try await hosts[0].fleet.share(collections: ["flags", "web"])
    try await settle(hosts[1], hosts[0])
    #expect(try hosts[1].declared() == ["flags/n by shop"])
    try await hosts[1].fleet.accept(collections: ["web"])
    #expect(try hosts[1].maximum() == 64)
    // A host that leaves has only what its own programs declare.
    try await hosts[1].fleet.leave()
    #expect(try hosts[1].declared() == [])
    #expect(try hosts[0].maximum() == 64)
  }

  @Test("hold in environments; an environment shared alone has what is declared for its parent")
  func environments() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier, collections: ["web@dev"])
    try hosts[0].declare(.number("workers", upTo: 64))
    try await settle(hosts[0], hosts[1])
    #expect(try hosts[1].maximum(in: "web@dev") == 64)
    #expect(try hosts[1].maximum(in: "web") == nil)
    // With its parent, once.
    try await hosts[0].fleet.share(collections: ["web", "web@dev", "web@prod"])
    try await hosts[1].fleet.accept(collections: ["web", "web@prod"])
    for collection in ["web", "web@dev", "web@prod", "web@other"] {
      #expect(try hosts[1].maximum(in: collection) == 64, "\(collection)")
    }
    try hosts[0].declare(.number("workers", upTo: 65))
    try await settle(hosts[0], hosts[1])
    for collection in ["web", "web@dev", "web@prod"] {
      #expect(try hosts[1].maximum(in: collection) == 65, "\(collection)")
    }
  }

  @Test("are pushed and taken while both sides run, as soon as they are declared", .timeLimit(.minutes(10)))
  func running() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let commits = try hosts[1].database.commits()
    let tasks = hosts.map { host in Task { [fleet = host.fleet] in try await fleet.run() } }
    for maximum in [64, 65] as [Int64] {
      try hosts[0].declare(.number("workers", upTo: maximum))
      for await _ in commits where try hosts[1].maximum() == maximum { break }
    }
    for task in tasks {
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }

  @Test("are kept under a new key, by a host that joins later, and after a rollback of the carrier")
  func lasting() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let (a, b) = (hosts[0], hosts[1])
    try a.set(3, "workers")
    let old = carrier.objects
    try a.declare(.number("workers", upTo: 64))
    try await settle(a, b)
    carrier.putBack(old)
    for host in hosts { await #expect(throws: FleetError.self) { try await host.sync() } }
    try await b.fleet.acceptRollback()
    try await a.fleet.acceptRollback()
    let c = try await Host("c").join(a, carrier)
    #expect(try c.maximum() == 64)
    try await a.fleet.renewKey()
    try a.restart(carrier)
    try await settle(a, b, c)
    let d = try await Host("d").join(a, carrier)
    for host in [a, b, c, d] { #expect(try host.maximum() == 64) }
    for host in [b, c, d] { #expect(try await host.fleet.conflicts() == []) }
  }

  // MARK: Removing

  @Test("end when no program declares them any more, not when one of two hosts stops; the carrier forgets them later")
  func removal() async throws {
    let a = try await Host("a").create(carrier, retentionDays: 1)
    let b = try await Host("b").join(a, carrier)
    let c = try await Host("c").join(a, carrier)
    for host in [a, b, c] { host.setTime(1_000_000) }
    for host in [a, b] { try host.declare(.number("workers", upTo: 64)) }
    try await settle(a, b, c)
    try a.declare()
    try await settle(a, b, c)
    for host in [a, b, c] { #expect(try host.maximum() == 64) }
    try b.declare()
    try await settle(b, a, c)
    for host in [a, b, c] {
      #expect(try host.maximum() == nil)
      #expect(try await host.sync() == SyncReport())
    }
    let count = carrier.objects.count
    for host in [a, b, c] { host.setTime(1_000_000 + 2 * 86_400) }
    try await settle(a, b, c)
    #expect(carrier.objects.count == count - 1)
    #expect(try await c.fleet.changes() == [])
  }

  // MARK: Disagreeing

  @Test("are a conflict if two hosts disagree: the later holds everywhere, and the other is listed and can be restored")
  func conflicts() async throws {
    for isFirstLater in [true, false] {
      let hosts = try await fleet(of: "a", "b", "c", on: carrier)
      let (a, b, c) = (hosts[0], hosts[1], hosts[2])
      a.setTime(isFirstLater ? 1_000_100 : 1_000_000)
      b.setTime(isFirstLater ? 1_000_000 : 1_000_100)
      c.setTime(1_000_100)
      try a.declare(.number("workers", upTo: 64))
      try b.declare(.number("workers", upTo: 65))
      try await settle(a, b, c)
      let (winner, loser) = isFirstLater ? (64, 65) : (65, 64)
      for host in [a, b, c] { #expect(try host.maximum() == Int64(winner), "\(host.name)") }
      let conflict = try #require(try await b.fleet.conflicts().first)
      #expect(conflict.isDeclaration && conflict.key == "workers" && conflict.version == 0)
      #expect(conflict.winner == (isFirstLater ? "a" : "b") && conflict.loser == (isFirstLater ? "b" : "a"))
      #expect(try await a.fleet.conflicts().map(\.loser) == (isFirstLater ? [] : ["a"]))
      // Both programs are as they are: nothing is pushed back and forth.
      for host in [a, b, c] { #expect(try await host.sync() == SyncReport()) }

      try await b.fleet.restore(conflict)
      #expect(try b.maximum() == Int64(loser))
      #expect(try await b.fleet.status().unpushedDeclarationCount == 1)
      try await settle(b, a, c)
      for host in [a, b, c] { #expect(try host.maximum() == Int64(loser), "\(host.name)") }
      // The program of the host that lost now still declares it as it did.
      #expect(try await a.fleet.conflicts().map(\.loser) == ["a"])
      #expect(try await b.fleet.conflicts().map(\.loser) == [])
      #expect(try await c.fleet.conflicts() == [])
      carrier.putBack([:])
    }
  }

  @Test("that differ only in words are no conflict, and neither are those that are the same")
  func words() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    var described = Declaration.number("workers", upTo: 64)
    described.summary = "How many"
    try hosts[0].declare(.number("workers", upTo: 64), .number("same", upTo: 3))
    try hosts[1].declare(described, .number("same", upTo: 3))
    try await settle(hosts[0], hosts[1])
    for host in hosts { #expect(try await host.fleet.conflicts() == []) }
  }

  @Test("follow a rule of a host as values do")
  func rules() async throws {
    for (rule, maximum) in [(FleetRule.theirsWins, 64), (.oursWins, 65)] {
      let hosts = try await fleet(of: "a", "b", on: carrier)
      try await hosts[1].fleet.setRule(rule, forCollection: "web")
      hosts[0].setTime(rule == .theirsWins ? 1_000_000 : 1_000_100)
      hosts[1].setTime(rule == .theirsWins ? 1_000_100 : 1_000_000)
      try hosts[0].declare(.number("workers", upTo: 64))
      try hosts[1].declare(.number("workers", upTo: 65))
      try await settle(hosts[0], hosts[1])
      for host in hosts { #expect(try host.maximum() == Int64(maximum)) }
      carrier.putBack([:])
    }
  }

  @Test("of an older version of a program do not replace those of a newer one, even if later, and are no conflict")
  func versions() async throws {
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    let (a, b, c) = (hosts[0], hosts[1], hosts[2])
    a.setTime(1_000_000)
    for host in [b, c] { host.setTime(1_000_100) }
    try a.declare(.number("workers", upTo: 500), version: "2.0")
    try b.declare(.number("workers", upTo: 64), version: "1.0")
    try await settle(a, b, c)
    for host in hosts { #expect(try host.maximum() == 500, "\(host.name)") }
    // Another old one, and one that is newer than all.
    try b.declare(.number("workers", upTo: 32), version: "0.9")
    try await settle(b, a, c)
    for host in hosts { #expect(try host.maximum() == 500, "\(host.name)") }
    #expect(try await b.fleet.status().unpushedDeclarationCount == 0)
    try b.declare(.number("workers", upTo: 1000), version: "2.1")
    try await settle(b, a, c)
    for host in hosts { #expect(try host.maximum() == 1000, "\(host.name)") }
    for host in hosts { #expect(try await host.fleet.conflicts() == []) }
  }

  @Test("of a reader stay on its host, where those of the fleet hold once there are any")
  func readers() async throws {
    let a = try await Host("a").create(carrier)
    let b = try await Host("b").join(a, carrier, role: .reader)
    try b.declare(.number("workers", upTo: 64))
    try await settle(b, a)
    #expect(try b.maximum() == 64)
    #expect(try a.maximum() == nil)
    #expect(try await b.fleet.status().unpushedDeclarationCount == 1)
    try a.declare(.number("workers", upTo: 500))
    try await settle(a, b)
    #expect(try b.maximum() == 500)
    #expect(try await b.fleet.conflicts().map(\.isDeclaration) == [true])
    #expect(try await b.fleet.status().unpushedDeclarationCount == 0)
    // No one takes a record that only a reader could have written.
    #expect(try await a.sync() == SyncReport())
  }

  // MARK: Values

  @Test("name a pulled value that violates them, or what a program of this host declares; it is applied anyway")
  func badValues() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let (a, b) = (hosts[0], hosts[1])
    try b.declare(.number("workers", upTo: 64), by: "shop", version: "1.0")
    // Before the declaration has come.
    try a.set(500, "workers")
    try await a.connection.readWrite { try $0.setObject(Secret("hunter2"), forKey: "token", inCollection: "web") }
    try await settle(a, b)
    for host in hosts {
      #expect(try host.value("workers") == 500)
      #expect(try await host.fleet.findings() == ["web/workers must be 1 to 64, not 500 (in the store)"])
    }
    // A newer version has another limit: bad only where the older one runs.
    try a.declare(.number("workers", upTo: 1000), by: "shop", version: "2.0")
    try await settle(a, b)
    #expect(try await a.fleet.findings() == [])
    #expect(
      try await b.fleet.findings() == [
        "web/workers must be 1 to 64, not 500 (in the store, as shop 1.0 declares it on this host)"
      ])
    try a.set(60, "workers")
    try await settle(a, b)
    #expect(try await b.fleet.findings() == [])
  }

  // MARK: Hostile members

  /// What a member writes who is not bound by this program.
  private func push(_ json: String, of key: String, in collection: String = "web", by host: Host) async throws {
    try await host.connection.readWrite { transaction in
      try transaction.declare([.number(key, upTo: 1, in: collection)], by: "shop")
      let statement = try transaction.session.connection.statement(
        "UPDATE declarations SET declaration = ?1 WHERE key = ?2")
      statement.bind(json, at: 1)
      statement.bind(key, at: 2)
      try statement.run()
    }
    try await host.sync()
  }

  @Test("that cannot be read are not used, named, and kept as they are: a later version may have written them")
  func unreadable() async throws {
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    let (a, b, c) = (hosts[0], hosts[1], hosts[2])
    let patterns = Array(repeating: #"{"pattern":"x"}"#, count: 17).joined(separator: ",")
    for json in [
      #"{"name":"n","collection":"web","type":"complex"}"#, #"{"name":"n","collection":"other","type":"int"}"#, "", "{",
      #"{"name":"n","collection":"web","type":"int","limits":[{"prime":true}]}"#,
      #"{"name":"n","collection":"web","type":"string","limits":[{"pattern":"(?=x)"}]}"#,
      #"{"name":"n","collection":"web","type":"string","limits":[\#(patterns)]}"#,
      String(repeating: " ", count: 300_000),
    ] {
      try await push(json, of: "n", by: a)
      try await b.sync()
      #expect(try b.declared() == [])
      let findings = try await b.fleet.findings()
      #expect(findings.count == 1)
      #expect(findings.first?.hasPrefix("The declaration of web/n by shop cannot be read here") == true)
      try b.set(7, "n")
      try await b.sync()
    }
    // It goes on as it is, also under a new key, and a value has nothing to fear from it.
    let json = #"{"collection":"web","later":{"x":1},"limits":[{"maximum":3}],"name":"n","type":"int"}"#
    try await push(json, of: "n", by: a)
    for host in [a, b] { try await host.sync() }
    try await a.fleet.renewKey()
    for host in [b, c] { try await host.sync() }
    let record = try c.connection.readFleets { try $0.declaration("n", in: "web", of: 1) }
    #expect(record?.declaration?.content?.json == json)
    #expect(try c.maximum("n") == 3)
  }

  @Test(
    "keep no program from starting that has run on a host, nor change what it reads; a new one of another type is refused"
  )
  func programs() async throws {
    let hosts = try await fleet(of: "a", "b", "c", on: carrier)
    let (a, b, c) = (hosts[0], hosts[1], hosts[2])
    let workers = Key("workers", in: "web", default: 4, limits: .range(1...64))
    let preferences = try Preferences(database: b.database, collection: "shop")
    try await preferences.declare(Settings { workers }, strict: true)
    a.setTime(Int64(Date().timeIntervalSince1970) + 100)
    try a.declare(Declaration("workers", in: "web", type: .string), by: "other")
    try await settle(a, b, c)
    let held = try await b.connection.read { try $0.declaration(forKey: "workers", inCollection: "web") }
    #expect(held?.type == .string)
    #expect(try await b.fleet.conflicts().map(\.loser) == ["b"])
    // It starts again. One that begins on a host that knows the other's does not, as on one host.
    try b.restart(carrier)
    let again = try Preferences(database: b.database, collection: "shop")
    try await again.declare(Settings { workers }, strict: true)
    try b.set(8, "workers")
    #expect(again[workers] == 8)
    let other = try Preferences(database: c.database, collection: "mail")
    let error = await #expect(throws: CofferError.self) { try await other.declare(Settings { workers }) }
    #expect(error?.description.contains("in a fleet reads it as string") == true, "\(String(describing: error))")
    // A bad value from elsewhere does not replace the last good one.
    try a.set(500, "workers")
    try await settle(a, b)
    #expect(try b.value("workers") == 500)
    #expect(again[workers] == 8)
    // It, and that the types differ.
    #expect(try await b.fleet.findings().count == 2)
  }
}
