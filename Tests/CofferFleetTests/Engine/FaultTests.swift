import Foundation
import TestSupport
import Testing

@testable import CofferFleet

@Suite("A fleet on an etcd that fails", .enabled(if: EtcdServer.isInstalled), .timeLimit(.minutes(30)))
struct FleetFaultTests {
  /// Two hosts, of which each has a carrier of its own, while both run.
  private func running<R>(
    _ first: any Carrier, _ second: any Carrier, _ body: (Host, Host) async throws -> R
  ) async throws -> R {
    let (office, lab) = (try Host("office"), try Host("lab"))
    try await office.create(first)
    try await lab.join(office, second)
    let tasks = [office, lab].map { host in Task { [fleet = host.fleet] in try await fleet.run() } }
    defer { for task in tasks { task.cancel() } }
    return try await body(office, lab)
  }

  private func converge(_ hosts: Host..., to contents: [String: String]) async throws {
    try await waiting(upTo: .seconds(600)) { try hosts.allSatisfy { try $0.contents() == contents } }
  }

  @Test("continues while leaders are killed and restarted, and loses nothing")
  func leaders() async throws {
    let server = try await EtcdServer(.init(memberCount: 3))
    let address = server.address(prefix: "fleet")
    try await running(try EtcdCarrier(address: address), try EtcdCarrier(address: address)) { office, lab in
      var contents: [String: String] = [:]
      for round in 0..<3 {
        let leader = try #require(try server.leader())
        leader.kill()
        for (host, name) in [(office, "office"), (lab, "lab")] {
          for number in 0..<5 {
            let key = "\(name)-\(round)-\(number)"
            try host.set("\(round)", key)
            contents[key] = "\(round)"
          }
        }
        // A setting that both change, and the later one wins; the carrier has no leader yet, or just one.
        try office.set("\(round)", "same")
        try lab.set("\(round)", "same")
        contents["same"] = "\(round)"
        try await converge(office, lab, to: contents)
        try leader.start()
        try await server.waitUntilReady()
      }
    }
  }

  @Test("is edited on both sides of a partition, and converges when it heals")
  func partition() async throws {
    let server = try await EtcdServer(.init(memberCount: 3))
    let relay = try RecordingRelay(to: server.members[0].clientPort)
    let cut = try EtcdCarrier(address: "etcd://127.0.0.1:\(relay.port)/fleet")
    try await running(try EtcdCarrier(address: server.address(prefix: "fleet")), cut) { office, lab in
      try office.set("before", "key")
      try await converge(office, lab, to: ["key": "before"])
      let start = Int64(Date().timeIntervalSince1970)
      for round in 0..<3 {
        relay.cut()
        try office.set("office \(round)", "key")
        try office.set("\(round)", "office")
        try lab.set("\(round)", "lab")
        // Later than the other side's, by the clock of each.
        lab.setTime(start + 60 * Int64(round + 1))
        try lab.set("lab \(round)", "key")
        try await waiting(upTo: .seconds(60)) {
          if case .offline = try await lab.fleet.status().condition { return true }
          return false
        }
        relay.mend()
        try await converge(
          office, lab, to: ["key": "lab \(round)", "office": "\(round)", "lab": "\(round)"])
        // What lost is kept where it lost.
        #expect(try lab.history("key").contains("office \(round)") || office.history("key").contains("office \(round)"))
      }
      // On the host that pushed later.
      let (there, here) = (try await lab.fleet.conflicts().count, try await office.fleet.conflicts().count)
      #expect(there + here >= 3)
    }
  }

  @Test(
    "compacts its history while a host is disconnected; the host then reads everything, and keeps hearing of changes")
  func compaction() async throws {
    let server = try await EtcdServer()
    let relay = try RecordingRelay(to: server.members[0].clientPort)
    let cut = try EtcdCarrier(address: "etcd://127.0.0.1:\(relay.port)/fleet")
    try await running(try EtcdCarrier(address: server.address(prefix: "fleet")), cut) { office, lab in
      for round in 0..<2 {
        try office.set("before \(round)", "key")
        try await converge(office, lab, to: ["key": "before \(round)"])
        relay.cut()
        for value in ["1", "2"] {
          try office.set(value, "key")
          try await waiting(upTo: .seconds(30)) { try await office.fleet.status().unpushedCount == 0 }
        }
        try await server.compact()
        relay.mend()
        try await converge(office, lab, to: ["key": "2"])
      }
      try lab.set("after", "key")
      try await converge(office, lab, to: ["key": "after"])
    }
  }

  @Test("has reached its quota: the tool says so, and pushes what waits once there is room")
  func quota() async throws {
    let server = try await EtcdServer(.init(arguments: ["--quota-backend-bytes=1000000"]))
    let office = try toolFleet("office", at: server.address(prefix: "fleet"))[0]
    try office.succeed("greatest-age", "1h")
    #expect(try office.fleet("status", "--json").json()["greatestAge"] as? Int == 3600)
    for number in 0..<4 {
      let value = String(repeating: "\(number)", count: 100_000)
      for part in 0..<4 { try office.set("web/\(number)-\(part)", value) }
      if try office.fleet("sync").code != 0 { break }
    }
    let run = try office.fleet("sync")
    #expect(run.code == 14 && run.message.contains("has no space left"), "\(run)")
    let status = try office.fleet("status", "--json").json()
    #expect(status["condition"] as? String == "waiting" && status["unpushed"] as? Int != 0, "\(status)")
    #expect(try office.fleet("status").output.contains("are not pushed yet"))
    for number in 0..<4 { for part in 0..<4 { _ = try office.prefs(["unset", "web/\(number)-\(part)"]) } }
    try office.set("web/theme", "dark")
    try await server.compact()
    _ = try server.control(["defrag"])
    _ = try server.control(["alarm", "disarm"])
    try office.succeed("sync")
    #expect(try office.fleet("status", "--json").json()["condition"] as? String == "inStep")
  }
}
