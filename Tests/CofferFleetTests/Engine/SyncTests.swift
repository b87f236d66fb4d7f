import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("A fleet of hosts")
struct SyncTests {
  let carrier = MemoryCarrier()

  @Test("transfers a setting with its metadata from one host to another, and its removal")
  func settings() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let (a, b) = (hosts[0], hosts[1])
    let expiry = Date(timeIntervalSince1970: 4_000_000_000)
    try await a.connection.readWrite { transaction in
      try transaction.setObject(8080, forKey: "port", inCollection: "web", withMetadata: "by hand")
      try transaction.setObject(Secret("s3cret"), forKey: "token", inCollection: "web")
      try transaction.setObject(["x": [1, 2]], forKey: "map", inCollection: "web")
      try transaction.setObject("soon gone", forKey: "lease", inCollection: "web", expires: expiry)
      try transaction.setObject("not shared", forKey: "port", inCollection: "own")
    }
    #expect(try await a.sync().pushedCount == 4)
    #expect(try await b.sync().pulledCount == 4)
    try await b.connection.read { transaction in
      #expect(try transaction.object(forKey: "port", inCollection: "web", as: Int.self) == 8080)
      #expect(try transaction.metadata(forKey: "port", inCollection: "web", as: String.self) == "by hand")
      #expect(try transaction.object(forKey: "map", inCollection: "web", as: [String: [Int]].self) == ["x": [1, 2]])
      let token = try transaction.object(forKey: "token", inCollection: "web", as: Secret.self)
      #expect(token?.withUnsafeBytes { Array($0) } == Array("s3cret".utf8))
      #expect(try transaction.info(forKey: "lease", inCollection: "web")?.expires == expiry)
      #expect(try transaction.object(forKey: "port", inCollection: "own", as: String.self) == nil)
    }
    try a.set(nil, "lease")
    try await a.sync()
    try await b.sync()
    #expect(try b.get("lease") == nil)
    #expect(try await a.sync() == SyncReport())
    #expect(try await b.sync() == SyncReport())
  }

  @Test("syncs both ways, and only checks the head if nothing changed")
  func bothWays() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    try hosts[1].set("from b", "x")
    try await hosts[1].sync()
    try await hosts[0].sync()
    #expect(try hosts[0].get("x") == "from b")
    let requests = carrier.requestCount
    for host in hosts { try await host.sync() }
    #expect(carrier.requestCount == requests)
  }

  @Test("shows the author of a change in the history of another host")
  func authors() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    try await hosts[1].connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "web") }
    for value in ["1", "2"] {
      try hosts[0].set(value, "x")
      try await hosts[0].sync()
      try await hosts[1].sync()
    }
    #expect(try hosts[1].history("x") == ["1"])
    let item = try await hosts[1].connection.read { try $0.history(forKey: "x", inCollection: "web").first }
    #expect(item?.author?.program.isEmpty == false)
  }

  @Test("shows a transaction completely, even if it takes many requests")
  func largeTransactions() async throws {
    let carrier = MemoryCarrier(
      limits: CarrierLimits(operationCount: 8, requestByteCount: 100_000, objectByteCount: 100_000))
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let (a, b) = (hosts[0], hosts[1])
    // Whatever b sees after each request: all or nothing.
    for round in 1...2 {
      try await a.connection.readWrite { transaction in
        for index in 0..<500 {
          try transaction.setObject(
            "\(round)" + String(repeating: ".", count: 100), forKey: "\(index)", inCollection: "web")
        }
      }
      await a.fleet.setOnStep { _ in }
      try await a.sync()
      try await b.sync()
      #expect(try Set(b.contents().values).count == 1)
      #expect(try b.contents().count == 500)
    }
    #expect(carrier.objects.keys.allSatisfy { !$0.hasPrefix("s/") })
  }

  @Test("pushes what the change log has forgotten")
  func shortLog() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for index in 0..<300 { try hosts[0].set("\(index)", "\(index % 7)") }
    try hosts[0].connection.perform { try $0.connection.execute("DELETE FROM changes WHERE sequence < 250") }
    try hosts[0].set(nil, "3")
    try await hosts[0].sync()
    try await hosts[1].sync()
    #expect(try hosts[1].contents() == hosts[0].contents())
    #expect(try hosts[1].contents().count == 6)
  }

  @Test("pushes the removal of a collection as a whole")
  func clearedCollection() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for index in 0..<10 { try hosts[0].set("x", "\(index)") }
    try await hosts[0].sync()
    try await hosts[0].connection.readWrite { try $0.removeAllObjects(inCollection: "web") }
    try hosts[0].set("new", "1")
    try await hosts[0].sync()
    try await hosts[1].sync()
    #expect(try hosts[1].contents() == ["1": "new"])
  }

  @Test("leaves a value too large for the carrier on its host, reports it each time, and shares the rest")
  func tooLarge() async throws {
    let carrier = MemoryCarrier(
      limits: CarrierLimits(operationCount: 64, requestByteCount: 100_000, objectByteCount: 50_000))
    let hosts = try await fleet(of: "a", "b", on: carrier)
    try hosts[0].set(String(repeating: "x", count: 60_000), "large")
    try hosts[0].set("small", "small")
    for _ in 0..<2 {
      let report = try await hosts[0].sync()
      #expect(report.problems.count == 1)
      #expect(report.problems.first?.contains("\"large\" in \"web\" stays on this host") == true)
    }
    try await hosts[1].sync()
    #expect(try hosts[1].contents() == ["small": "small"])
    try hosts[0].set("smaller", "large")
    #expect(try await hosts[0].sync().problems == [])
    try await hosts[1].sync()
    #expect(try hosts[1].get("large") == "smaller")
  }

  @Test("lets a setting expire on each host separately, and pushes nothing for it")
  func expiry() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    for host in hosts { host.setTime(1_000_000) }
    try await hosts[0].connection.readWrite {
      try $0.setObject("x", forKey: "lease", inCollection: "web", expires: Date(timeIntervalSince1970: 1_000_100))
    }
    for host in hosts { try await host.sync() }
    #expect(try hosts[1].get("lease") == "x")
    for host in hosts { host.setTime(1_000_200) }
    for host in hosts {
      try host.set("later", "other by \(host.name)")
      #expect(try await host.sync().pushedCount == 1)
      #expect(try host.get("lease") == nil)
    }
    // Set again, it is there again.
    try hosts[1].set("y", "lease")
    for host in [hosts[1], hosts[0]] { try await host.sync() }
    #expect(try hosts[0].get("lease") == "y")
  }

  @Test("is created at most once on a carrier, and a store shares a collection in one fleet only")
  func twice() async throws {
    let hosts = try await fleet(of: "a", on: carrier)
    let other = try Host("b")
    await #expect(throws: FleetError.fleetExists(carrier: "memory:team")) { try await other.create(carrier) }
    #expect(try Fleet.carriers(of: other.database) == [])
    await #expect(throws: FleetError.collectionShared("web")) {
      try await Fleet.create(
        "other", in: hosts[0].database, at: MemoryCarrier("memory:2"), collections: ["web"], as: "a")
    }
    #expect(try Fleet.carriers(of: hosts[0].database) == ["memory:team"])
  }

  @Test("continues where it was after a restart, and reports nothing if a store belongs to no fleet")
  func restart() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    try hosts[0].set("1", "x")
    try hosts[0].restart(carrier)
    try await hosts[0].sync()
    try hosts[1].restart(carrier)
    try await hosts[1].sync()
    #expect(try hosts[1].get("x") == "1")
    let stranger = try Host("c")
    #expect(throws: FleetError.notJoined) { try Fleet.open(in: stranger.database, at: carrier) }
    try await hosts[1].fleet.leave()
    #expect(throws: FleetError.notJoined) { try Fleet.open(in: hosts[1].database, at: carrier) }
    #expect(try hosts[1].get("x") == "1")
  }

  @Test("receives and sends changes while it runs, until it is cancelled", .timeLimit(.minutes(10)))
  func staying() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let tasks = hosts.map { host in Task { [fleet = host.fleet] in try await fleet.run() } }
    let commits = try hosts[1].database.commits(inCollection: "web")
    for round in 1...5 {
      try hosts[0].set("\(round)", "x")
      for await _ in commits where try hosts[1].get("x") == "\(round)" { break }
    }
    let back = try hosts[0].database.commits(inCollection: "web")
    try hosts[1].set("back", "y")
    for await _ in back where try hosts[0].get("y") == "back" { break }
    for task in tasks {
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }

  @Test("serves its values while the carrier is unreachable, reports that, and syncs everything later")
  func offline() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    carrier.cut(true)
    for host in hosts {
      try host.set("by \(host.name)", host.name)
      await #expect(throws: CarrierError.self) { try await host.sync() }
      let status = try await host.fleet.status()
      #expect(status.unpushedCount == 1)
      guard case .offline = status.condition else { return #expect(Bool(false)) }
    }
    carrier.cut(false)
    for host in hosts + hosts { try await host.sync() }
    #expect(try hosts[0].contents() == ["a": "by a", "b": "by b"])
    #expect(try hosts[1].contents() == hosts[0].contents())
    #expect(try await hosts[0].fleet.status().condition == .inStep)
  }

  @Test("keeps its changes while the carrier is full, reports that, takes those of others, and pushes later")
  func full() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    try hosts[1].set("taken", "b")
    try await hosts[1].sync()
    carrier.fill(true)
    try hosts[0].set("waits", "a")
    await #expect(throws: CarrierError.self) { try await hosts[0].sync() }
    let status = try await hosts[0].fleet.status()
    guard case .full(let reason) = status.condition else { return #expect(Bool(false), "\(status.condition)") }
    #expect(reason.contains("has no space left") && status.unpushedCount == 1)
    #expect(try hosts[0].contents() == ["a": "waits", "b": "taken"])
    carrier.fill(false)
    for host in hosts + hosts { try await host.sync() }
    #expect(try hosts[1].contents() == hosts[0].contents())
    #expect(try await hosts[0].fleet.status().condition == .inStep)
  }

  @Test("adds the tables of FORMAT.md and the next table version to its stores, and to no others")
  func tables() async throws {
    func words(_ text: String) -> String { text.split { $0 == " " || $0 == "\n" }.joined(separator: " ") }
    let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../../FORMAT.md")
    let format = words(try String(contentsOf: page.standardized, encoding: .utf8))
    let host = try Host("a")
    func tables() throws -> [String] {
      try host.connection.perform { session in
        var tables: [String] = []
        try session.connection.statement("SELECT sql FROM sqlite_schema WHERE name LIKE 'fleet%'").query {
          tables.append(words($0.text(0)))
        }
        return tables
      }
    }
    #expect(try tables().isEmpty)
    try await host.create(carrier)
    #expect(try tables().count == 8)
    for table in try tables() { #expect(format.contains(table + ";")) }
    #expect(try host.connection.perform { try Schema.check($0.connection) } == Schema.versionWithSharedDeclarations)
    // And are taken as its own by the next program.
    try host.restart(carrier)
    try await host.sync()
  }

  @Test("works with a folder, too")
  func folder() async throws {
    let place = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: place) }
    let carrier = try FileCarrier(address: "file://\(place)")
    let a = try await Host("a").create(carrier)
    let b = try await Host("b").join(a, carrier)
    for round in 1...3 {
      for (host, other) in [(a, b), (b, a)] {
        try host.set("\(round)", host.name)
        try await host.sync()
        try await other.sync()
        #expect(try other.get(host.name) == "\(round)")
      }
    }
    try await a.fleet.renewKey()
    try await b.sync()
    let late = try await Host("c").join(a, carrier)
    for host in [b, late] { #expect(try host.contents() == ["a": "3", "b": "3"]) }
  }

  @Test("lets each of many writers that push at once get its turn")
  func manyWriters() async throws {
    let admin = try await Host("a").create(carrier)
    var writers: [Host] = []
    for index in 0..<20 { writers.append(try await Host("w\(index)").join(admin, carrier)) }
    for round in 0..<3 {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for writer in writers {
          try writer.set("\(round)", writer.name)
          group.addTask { try await writer.sync() }
        }
        try await group.waitForAll()
      }
    }
    for host in [admin] + writers {
      try await host.sync()
      #expect(try host.contents().count == 20 && Set(host.contents().values) == ["2"])
    }
  }

  @Test("sends no plaintext of names and values of settings, collections, members or the fleet")
  func canaries() async throws {
    let admin = try await Host("canary-host-1").create(carrier, collections: ["canary-collection"])
    let other = try await Host("canary-host-2").join(admin, carrier, role: .admin)
    for host in [admin, other] {
      try await host.connection.readWrite {
        try $0.setObject(
          "canary-value", forKey: "canary-key", inCollection: "canary-collection", withMetadata: "canary-meta")
        try $0.declare(
          [
            Declaration(
              "canary-declared", in: "canary-collection", type: .string, default: .string("canary-default"),
              limits: [.pattern("canary-.*")])
          ], by: "canary-application", version: "canary-version")
      }
      try await host.sync()
    }
    try await admin.fleet.remove("canary-host-2")
    #expect(carrier.sent.count > 1000)
    let sent = Data(carrier.sent)
    for canary in ["canary", "team"] { #expect(sent.range(of: Data(canary.utf8)) == nil) }
  }
}
