import Foundation
import TestSupport
import Testing

@testable import CofferFleet

@Suite("What a fleet sends to its carrier")
struct WireTests {
  @Test("Nothing ever sent or received is a name or a value")
  func canary() async throws {
    guard EtcdServer.isInstalled else { try Test.cancel("etcd is not installed") }
    let relay = try RecordingRelay(to: try await EtcdServer.common().members[0].clientPort)
    let prefix = "wire-\(UUID().uuidString.lowercased())"
    let hosts = try toolFleet(
      "canary-office", "canary-lab", named: "canary-team", at: "etcd://127.0.0.1:\(relay.port)/\(prefix)",
      collections: ["canary-collection"])
    let running = try hosts.map { try RunningFleet($0) }
    for host in running { try host.say("in step") }
    try hosts[0].set("canary-collection/canary-key", "canary-value-1")
    try await hosts[1].await("canary-collection/canary-key", "canary-value-1")
    // More than a request takes, so that it goes in pieces.
    let large = (0..<400).map { "\"canary-\($0)\":\"canary-\(String(repeating: "x", count: 5000))\"" }
    let file = hosts[1].home.file("large.json")
    try "{\(large.joined(separator: ","))}".write(toFile: file, atomically: true, encoding: .utf8)
    let imported = try hosts[1].prefs(["import", file, "-c", "canary-collection"])
    #expect(imported.code == 0, "\(imported.message)")
    try await hosts[0].await("canary-collection/canary-399", "canary-\(String(repeating: "x", count: 5000))")
    #expect(try hosts[0].prefs(["unset", "canary-collection/canary-key"]).code == 0)
    try await hosts[1].await("canary-collection/canary-key", nil)
    for host in running { #expect(host.end() == 0) }
    // A conflict, another member, and a new key.
    try hosts[0].set("canary-collection/both", "canary-a")
    try hosts[1].set("canary-collection/both", "canary-b")
    for host in hosts { try host.succeed("sync") }
    try hosts[0].succeed("invite", "canary-third", "--role", "reader")
    try hosts[0].succeed("remove", "canary-lab")

    let (sent, received) = (Wire(relay.sent), Wire(relay.received))
    // The record is one: the carrier's own names are in it.
    #expect(sent.contains("\(prefix)/head") && received.contains("\(prefix)/members"))
    #expect(sent.byteCount > 2_000_000)
    for wire in [sent, received] {
      for name in ["canary", "CANARY"] { #expect(!wire.contains(name), "\(name)") }
    }
  }

  @Test("libcurl writes no connection keys to a file, even if the environment asks for it")
  func keyLog() async throws {
    guard EtcdServer.isInstalled else { try Test.cancel("etcd is not installed") }
    let certificates = try TestCertificates()
    let server = try await EtcdServer(EtcdServer.Options(tls: certificates))
    let host = try ToolHost("office")
    let log = host.home.file("keys.log")
    let made = try host.fleet(
      "create", "team", "--at", server.address(prefix: "team", query: certificates.query()), "-c", "web",
      environment: ["SSLKEYLOGFILE": log])
    #expect(made.code == 0, "\(made)")
    #expect(!FileManager.default.fileExists(atPath: log))
  }
}

/// Bytes of HTTP with JSON in it, and its decoded base64.
private struct Wire {
  private let text: Data
  private let decoded: Data

  var byteCount: Int { text.count }

  init(_ bytes: [UInt8]) {
    text = Data(bytes)
    var decoded = Data()
    for part in bytes.split(separator: UInt8(ascii: "\"")) where part.count.isMultiple(of: 4) {
      if let data = Data(base64Encoded: Data(part)) {
        decoded += data
        decoded.append(0)
      }
    }
    self.decoded = decoded
  }

  func contains(_ word: String) -> Bool {
    text.range(of: Data(word.utf8)) != nil || decoded.range(of: Data(word.utf8)) != nil
  }
}
