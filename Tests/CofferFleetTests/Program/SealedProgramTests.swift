import Foundation
import TestSupport
import Testing

@testable import CofferFleet

@Suite("Sealed collections of a fleet, with the tool", .timeLimit(.minutes(10)))
struct SealedProgramTests {
  /// An admin and a writer that share `web` and `tokens`, which is sealed on the admin's host; the second one has joined and not sealed it.
  private func hosts() async throws -> (office: ToolHost, lab: ToolHost, place: CarrierPlace) {
    let place = try await CarrierPlace(.file)
    let (office, lab) = (try ToolHost("office"), try ToolHost("lab"))
    try office.set("web/theme", "dark")
    try seal(office)
    #expect(try secret(office, "tokens/github", "first").code == 0)
    let create = try office.prefs(
      ["fleet", "create", "team", "--at", place.address, "--as", "office", "-c", "web", "-c", "tokens"] + key(office))
    #expect(create.code == 0 && create.message.contains("2 settings"), "\(create)")
    let invitation = try office.fleet("invite", "lab", "--role", "writer").output
    let join = try lab.fleet("join", "-", input: invitation)
    #expect(join.code == 0 && join.message.contains("seal it with `prefs seal tokens`"), "\(join)")
    #expect(try office.prefs(["fleet", "sync"] + key(office)).code == 0)
    return (office, lab, place)
  }

  private func key(_ host: ToolHost) -> [String] { ["--vault-key-file", host.home.file("vault-key")] }

  private func seal(_ host: ToolHost) throws {
    let run = try host.prefs(["seal", "tokens"] + key(host))
    #expect(run.code == 0, "\(run)")
  }

  private func secret(_ host: ToolHost, _ name: String, _ value: String) throws -> ToolHost.Run {
    try host.prefs(["set", name, "--secret", "-"] + key(host), input: value)
  }

  @Test("They wait by name, with the reason and the command, until they are sealed and the vault is unlocked")
  func waitsByName() async throws {
    let (office, lab, place) = try await hosts()
    let unsealed = try lab.fleet("sync")
    #expect(unsealed.code == 11 && unsealed.message.contains("is sealed in the fleet, and not here"), "\(unsealed)")
    // The others do not wait.
    #expect(try lab.get("web/theme") == "dark")
    var status = try lab.fleet("status", "--json").json()
    #expect(status["condition"] as? String == "waiting" && status["sealed"] as? [String] == ["tokens"])
    #expect(status["waiting"] as? [[String: String]] == [["collection": "tokens", "reason": "notSealedHere"]])
    let text = try lab.fleet("status").output
    #expect(text.contains("tokens (sealed)") && text.contains("seal it with `prefs seal tokens`"), "\(text)")

    try seal(lab)
    let locked = try lab.fleet("sync")
    #expect(locked.code == 6 && locked.message.contains("`prefs unlock`"), "\(locked)")
    status = try lab.fleet("status", "--json").json()
    #expect(status["waiting"] as? [[String: String]] == [["collection": "tokens", "reason": "vaultLocked"]])
    let json = try lab.fleet("sync", "--json")
    #expect(json.code == 6 && json.output.contains("\"vaultLocked\""), "\(json)")

    let variable = ["PREFS_VAULT_KEY_FILE": lab.home.file("vault-key")]
    #expect(try lab.fleet("sync", environment: variable).code == 0)
    #expect(try lab.prefs(["get", "tokens/github"] + key(lab)).output == "first\n")
    #expect(try lab.prefs(["get", "tokens/github"]).code == 6)
    #expect(try secret(lab, "tokens/npm", "second").code == 0)
    #expect(try lab.fleet("sync").code == 6)
    #expect(try lab.prefs(["fleet", "sync"] + key(lab)).code == 0)
    #expect(try lab.fleet("status", "--json").json()["condition"] as? String == "inStep")
    #expect(try office.prefs(["fleet", "sync"] + key(office)).code == 0)
    #expect(try office.prefs(["get", "tokens/npm"] + key(office)).output == "second\n")
    // With nothing new, a locked vault keeps nothing waiting.
    #expect(try office.fleet("sync").code == 0)
    for host in [office, lab] {
      for file in try host.files() + carrierFiles(place) {
        let bytes = try Data(contentsOf: file)
        for value in ["first", "second"] {
          #expect(bytes.range(of: Data(value.utf8)) == nil, "\(file.path)")
        }
      }
    }
  }

  private func carrierFiles(_ place: CarrierPlace) -> [URL] {
    let path = String(place.address.dropFirst("file://".count))
    let all = FileManager.default.enumerator(at: URL(fileURLWithPath: path), includingPropertiesForKeys: nil)
    return (all?.allObjects as? [URL] ?? []).filter { !$0.hasDirectoryPath }
  }

  @Test("A running program takes and gives them from prefs unlock to prefs lock")
  func running() async throws {
    let (office, lab, place) = try await hosts()
    defer { withExtendedLifetime(place) {} }
    let running = try RunningFleet(lab)
    try running.say("waiting: tokens is sealed in the fleet, and not here")
    try seal(lab)
    try running.say("waiting: tokens is sealed, and the vault is locked")
    let unlock = try lab.prefs(["unlock", "--ttl", "5m"] + key(lab))
    try #require(unlock.code == 0, "\(unlock)")
    try running.say("in step")
    #expect(try lab.prefs(["get", "tokens/github"]).output == "first\n")
    #expect(try secret(lab, "tokens/npm", "of lab").code == 0)
    try await waiting(upTo: .seconds(60)) {
      _ = try office.prefs(["fleet", "sync"] + key(office))
      return try office.prefs(["get", "tokens/npm"] + key(office)).output == "of lab\n"
    }
    #expect(try lab.prefs(["lock"]).code == 0)
    // Within two seconds.
    try await waiting(upTo: .seconds(60)) {
      _ = try secret(office, "tokens/npm", UUID().uuidString)
      _ = try office.prefs(["fleet", "sync"] + key(office))
      return try lab.fleet("status", "--json").json()["condition"] as? String == "waiting"
    }
    try running.say("waiting: tokens is sealed, and the vault is locked")
    // The others go on.
    try office.set("web/theme", "light")
    #expect(try office.fleet("sync").code == 0)
    try await lab.await("web/theme", "light")
    #expect(running.end() == 0)
  }

  @Test("An admin seals a shared one in the fleet, and unseals it")
  func sealing() async throws {
    let place = try await CarrierPlace(.file)
    let hosts = try toolFleet("office", "lab", at: place.address, collections: ["web", "tokens"])
    try hosts[0].set("tokens/github", "1")
    for host in hosts { try host.succeed("sync") }
    try seal(hosts[1])
    #expect(try secret(hosts[1], "tokens/npm", "of lab").code == 0)
    let run = try hosts[1].prefs(["fleet", "sync"] + key(hosts[1]))
    #expect(run.code == 11 && run.message.contains("`prefs fleet seal tokens`"), "\(run)")
    #expect(try hosts[1].fleet("seal", "tokens").code == 11)
    #expect(try hosts[0].fleet("seal", "none").code == 3)
    let sealed = try hosts[0].fleet("seal", "tokens")
    #expect(sealed.code == 0 && sealed.message.contains("`prefs seal tokens`"), "\(sealed)")
    #expect(try hosts[1].prefs(["fleet", "sync"] + key(hosts[1])).code == 0)
    #expect(try hosts[0].fleet("sync").code == 11)
    #expect(try hosts[0].get("tokens/npm") == nil)
    #expect(try hosts[0].fleet("unseal", "tokens").code == 0)
    #expect(try hosts[0].prefs(["get", "tokens/npm"]).output == "of lab\n")
  }
}
