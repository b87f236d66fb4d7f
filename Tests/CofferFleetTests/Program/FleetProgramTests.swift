import Coffer
import Foundation
import TestSupport
import Testing

@testable import CofferFleet

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

@Suite("The program prefs fleet")
struct FleetProgramTests {
  @Test("A fleet is created, joined and used by three stores", arguments: CarrierKind.ofProgram)
  func wholeFleet(_ kind: CarrierKind) async throws {
    let place = try await CarrierPlace(kind)
    let (office, web, lab) = (try ToolHost("office"), try ToolHost("web-17"), try ToolHost("lab"))
    try office.set("web/theme", "dark")
    let created = try office.fleet(
      "create", "team", "--at", place.address, "-c", "web", "-c", "flags", "--as", "office")
    #expect(created.code == 0 && created.message.contains("collection \"flags\" holds nothing yet"), "\(created)")
    try web.succeed("join", "-", input: try office.succeed("invite", "web-17", "--role", "reader"))
    let invitation = lab.home.file("invitation")
    #expect(try office.succeed("invite", "lab", "--role", "writer", "--expires", "1d", "-o", invitation).isEmpty)
    #expect(try FileManager.default.attributesOfItem(atPath: invitation)[.posixPermissions] as? Int == 0o600)
    #expect(try office.fleet("invite", "other", "--role", "reader", "-o", invitation).code == 9, "it is not replaced")
    try lab.succeed("join", invitation)
    for host in [web, lab] { #expect(try host.get("web/theme") == "dark") }
    #expect(try lab.fleet("status").output.contains("only reads until an admin's host has synced"))
    let used = try ToolHost("other").fleet("join", invitation)
    #expect(used.code == 9 && used.message.contains("used already"), "\(used)")
    try office.succeed("sync")
    try lab.succeed("sync")

    try lab.set("flags/beta", "on")
    try lab.succeed("sync")
    try web.succeed("sync")
    #expect(try web.get("flags/beta") == "on")
    try web.set("web/theme", "pink")
    #expect(try web.fleet("sync").message.contains("1 setting stays on this host only"))
    #expect(try web.fleet("status").output.contains("changed only here"))
    try web.set("web/theme", "dark")
    let log = try web.fleet("log", "--json").jsonArray()
    #expect(log.map { $0["member"] as? String } == ["lab", "office"])
    #expect(log.first?["key"] as? String == "beta" && log.first?["what"] as? String == "set")

    let members = try lab.fleet("members", "--json").jsonArray()
    #expect(members.map { $0["name"] as? String } == ["office", "web-17", "lab"])
    #expect(members.map { $0["role"] as? String } == ["admin", "reader", "writer"])
    #expect(members.map { $0["isThisStore"] as? Bool } == [false, false, true])
    #expect(members.map { $0["standing"] as? String } == ["admitted", "admitted", "admitted"])

    // After its removal it gets an error, and reads nothing written later.
    try office.succeed("remove", "lab")
    try office.set("web/theme", "light")
    try office.succeed("sync")
    let refused = try lab.fleet("sync")
    #expect(refused.code == 11 && refused.message.contains("removed from the fleet"), "\(refused)")
    #expect(try lab.get("web/theme") == "dark")
    try lab.succeed("leave")
    #expect(try lab.fleet("status").code == 3)
    #expect(try lab.get("web/theme") == "dark")
    try web.succeed("sync")
    #expect(try web.get("web/theme") == "light")

    // The common options come before `fleet`, and before its command, as well as at the end.
    let store = office.home.path + "/.local/share/prefs/settings.coffer"
    for words in [
      ["-q", "-d", store, "fleet", "status", "--json"], ["fleet", "-d", store, "status", "--json"],
      ["fleet", "status", "--json", "-d", store],
    ] {
      let run = try office.prefs(words)
      #expect(run.code == 0 && run.output.contains("\"team\""), "\(words) \(run)")
    }
    #expect(try office.prefs(["-d", office.home.file("none"), "fleet", "status"]).code == 4)
    // Without its last admin, a fleet has no one who could invite or remove members.
    let unasked = try office.fleet("leave")
    #expect(unasked.code == 11 && unasked.message.contains("last admin"), "\(unasked)")
    #expect(unasked.message.contains("prefs fleet leave --force"))
    #expect(try office.fleet("status").code == 0)
    let left = try office.fleet("leave", "--force")
    #expect(left.code == 0 && left.message.contains("has no admin any more"), "\(left)")
    #expect(try office.fleet("status").code == 3)
  }

  @Test(
    "A contractor gets the collections it is invited to, and an admin gives and takes others",
    arguments: CarrierKind.ofProgram)
  func contractor(_ kind: CarrierKind) async throws {
    let place = try await CarrierPlace(kind)
    let hosts = try toolFleet("office", "lab", at: place.address, collections: ["web", "payroll"])
    let (office, lab, contractor) = (hosts[0], hosts[1], try ToolHost("contractor"))
    try office.set("web/theme", "dark")
    try office.set("payroll/salary", "1000")
    try office.succeed("sync")
    try contractor.succeed(
      "join", "-", input: try office.succeed("invite", "contractor", "--role", "writer", "-c", "web"))
    for host in [office, contractor, lab] { try host.succeed("sync") }
    #expect(try contractor.get("web/theme") == "dark" && contractor.get("payroll/salary") == nil)
    let status = try contractor.fleet("status", "--json").json()
    #expect(status["collections"] as? [String] == ["web"] && status["allCollections"] as? Bool == false)
    #expect(try contractor.fleet("status").output.contains("web; this host was invited to no others"))
    #expect(try !lab.fleet("status").output.contains("no others"))
    let members = try contractor.fleet("members").output + contractor.fleet("members", "--json").output
    #expect(members.contains("contractor") && !members.contains("payroll"))
    let known = try lab.fleet("members", "--json").jsonArray()
    #expect(known.map { $0["allCollections"] as? Bool } == [true, true, false])
    #expect(known.last?["collections"] as? [String] == ["web"])
    try contractor.set("web/theme", "light")
    try contractor.set("payroll/bonus", "9999")
    try contractor.succeed("sync")
    for host in [lab, office] {
      try host.succeed("sync")
      #expect(try host.get("web/theme") == "light" && host.get("payroll/bonus") == nil)
    }
    // What it gets waits there, and what it loses stays as it was.
    try office.succeed("collections", "contractor", "-c", "payroll")
    try office.set("web/theme", "blue")
    for host in [office, contractor] { try host.succeed("sync") }
    #expect(try contractor.get("web/theme") == "light" && contractor.get("payroll/salary") == nil)
    try contractor.succeed("accept", "payroll")
    #expect(try contractor.get("payroll/salary") == "1000")
    try office.succeed("collections", "contractor", "--all")
    #expect(try contractor.fleet("collections", "office", "--all").code == 11)
    #expect(try office.fleet("collections", "contractor").code == 2)
    #expect(try office.fleet("collections", "contractor", "--all", "-c", "web").code == 2)
    #expect(try office.fleet("invite", "x", "--role", "admin", "-c", "web").code == 2)
    let none = try office.fleet("invite", "x", "--role", "reader", "-c", "sudo")
    #expect(none.code == 3 && none.message.contains("does not share the collection \"sudo\""), "\(none)")
  }

  @Test("A conflict is listed, and the losing value can be set again", arguments: CarrierKind.ofProgram)
  func conflicts(_ kind: CarrierKind) async throws {
    let place = try await CarrierPlace(kind)
    let hosts = try toolFleet("office", "lab", at: place.address)
    try hosts[0].set("web/theme", "dark")
    try hosts[1].set("web/theme", "light")
    try hosts[0].succeed("sync")
    let report = try hosts[1].fleet("sync", "--json").json()
    #expect(report["conflicts"] as? Int == 1)
    let listed = try hosts[1].fleet("conflicts", "--json").jsonArray()
    let conflict = try #require(listed.first)
    #expect(listed.count == 1)
    #expect(conflict["key"] as? String == "theme")
    #expect(conflict["winner"] as? String == "lab" && conflict["loser"] as? String == "office")
    #expect(try hosts[1].fleet("conflicts").output.contains("web/theme"))
    let number = try #require(conflict["conflict"] as? Int)
    #expect(try hosts[1].fleet("conflicts", "--restore", "\(number + 1)").code == 3)

    try hosts[1].succeed("conflicts", "--restore", "\(number)")
    #expect(try hosts[1].fleet("conflicts").output.isEmpty)
    try hosts[1].succeed("sync")
    try hosts[0].succeed("sync")
    for host in hosts { #expect(try host.get("web/theme") == "dark") }
  }

  @Test("A setting is checked also on a host without its program, and a bad value that comes is named")
  func declarations() async throws {
    let place = try await CarrierPlace(.file)
    let hosts = try toolFleet("server", "laptop", at: place.address)
    let (server, laptop) = (hosts[0], hosts[1])
    func declare(upTo maximum: Int, on host: ToolHost, version: String...) throws {
      let file = #"""
        [{"name": "workers", "collection": "web", "type": "int", "default": 4, "summary": "\u001b[31mHow many",
          "limits": [{"minimum": 1, "maximum": \#(maximum)}]}]
        """#
      let run = try host.prefs(
        ["schema", "load", "-", "--application", "shop"] + version.flatMap { ["--application-version", $0] },
        input: file)
      #expect(run.code == 0, "\(run.message)")
    }
    try declare(upTo: 64, on: server, version: "1.0")
    try server.succeed("sync")
    try laptop.succeed("sync")
    let refused = try laptop.prefs(["set", "web/workers", "500"])
    #expect(refused.code == 8 && refused.message.contains("1 to 64, not 500"), "\(refused)")
    let described = try laptop.prefs(["describe", "web/workers"]).output
    #expect(described.contains("shop 1.0") && !described.contains("\u{1b}"), "\(described)")
    #expect(try laptop.prefs(["get", "web/workers"]).output == "4\n")

    // By force, and on the server too: applied, and named by every door.
    #expect(try laptop.prefs(["set", "--force", "web/workers", "500"]).code == 0)
    #expect(try laptop.fleet("sync").code == 8)
    let sync = try server.fleet("sync")
    #expect(sync.code == 8 && sync.message.contains("web/workers must be 1 to 64, not 500"), "\(sync)")
    #expect(try server.get("web/workers") == "4")
    #expect(try server.prefs(["get", "web/workers"]).message.contains("must be 1 to 64, not 500"))
    let status = try server.fleet("status")
    #expect(status.code == 0 && status.output.contains("bad here") && status.output.contains("in step"), "\(status)")
    #expect((try server.fleet("status", "--json").json()["findings"] as? [String])?.count == 1)
    // Before the object of the error.
    let report = try #require(try server.fleet("sync", "--json").lines.first)
    #expect(report.contains(#""findings":["web/workers must be 1 to 64"#), "\(report)")
    let validated = try server.prefs(["validate", "web"])
    #expect(validated.code == 8 && validated.output.contains("web/workers must be 1 to 64, not 500."), "\(validated)")

    // A newer version elsewhere allows it; for the one that runs here it is as bad as before.
    try declare(upTo: 1000, on: laptop, version: "2.0")
    try laptop.succeed("sync")
    #expect(try laptop.prefs(["validate", "web"]).code == 0)
    #expect(try server.fleet("sync").code == 8)
    let old = try server.prefs(["validate", "web"])
    #expect(old.code == 8 && old.output.contains("not 500, as shop 1.0 declares it on this host"), "\(old)")
    let here = try server.prefs(["describe", "web/workers"]).output
    #expect(here.contains("shop 1.0 on this host: int"), "\(here)")

    // Two that disagree.
    try laptop.set("web/workers", "5")
    try declare(upTo: 10, on: laptop)
    try laptop.succeed("sync")
    try declare(upTo: 20, on: server)
    let disagreeing = try server.fleet("sync", "--json").json()
    #expect(disagreeing["conflicts"] as? Int == 1)
    let conflict = try #require(try server.fleet("conflicts", "--json").jsonArray().first)
    #expect(conflict["what"] as? String == "declaration" && conflict["loser"] as? String == "laptop", "\(conflict)")
    #expect(try server.fleet("conflicts").output.contains("declaration  laptop lost to server"))
    try server.succeed("conflicts", "--restore", "\(try #require(conflict["conflict"] as? Int))")
    #expect(try server.prefs(["set", "web/workers", "15"]).code == 8)
    #expect(try server.fleet("log").output.contains("declared"))
  }

  @Test("A host without the program refuses names that it does not declare, and follows the locks for it")
  func locks() async throws {
    let place = try await CarrierPlace(.file)
    let hosts = try toolFleet("server", "laptop", at: place.address)
    let declared = #"[{"name": "workers", "collection": "web", "type": "int", "limits": [{"maximum": 64}]}]"#
    #expect(try hosts[0].prefs(["schema", "load", "-", "--application", "shop"], input: declared).code == 0)
    try hosts[0].set("web/workers", "8")
    for host in [hosts[0], hosts[1]] { try host.succeed("sync") }
    for host in hosts {
      for command in [["set", "web/wrkers", "5"], ["increment", "web/wrkers"], ["append", "web/wrkers", "x"]] {
        let run = try host.prefs(command)
        #expect(run.code == 8 && run.message.contains("did you mean \"web/workers\"?"), "\(command) \(run)")
      }
      let imported = try host.prefs(["import", "-", "--format", "json"], input: #"{"web": {"wrkers": 1}}"#)
      #expect(imported.code == 8, "\(imported)")
      let folder = host.home.file("shop.d")
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
      func manage(_ text: String) throws {
        try Data(text.utf8).write(to: URL(filePath: "\(folder)/1.json"))
        #expect(chmod("\(folder)/1.json", 0o644) == 0)
      }
      let managed = ["PREFS_MANAGED_DIR": host.home.path]
      try manage(#"{"locked": {"web/workers": 11}}"#)
      #expect(try host.prefs(["get", "web/workers"], environment: managed).output == "11\n")
      #expect(try host.prefs(["set", "web/workers", "9"], environment: managed).code == 13)
      try manage(#"{"locked": {"web/workers": 999}}"#)
      let validated = try host.prefs(["validate"], environment: managed)
      #expect(validated.code == 8 && validated.output.contains("must be 64 or less, not 999"), "\(validated)")
    }
  }

  @Test("A change is shared immediately while both sides run, in either direction", arguments: CarrierKind.ofProgram)
  func running(_ kind: CarrierKind) async throws {
    let place = try await CarrierPlace(kind)
    let hosts = try toolFleet("office", "lab", "web-17", at: place.address)
    let running = try hosts.map { try RunningFleet($0) }
    for host in running { try host.say("in step") }
    for (index, host) in hosts.enumerated() {
      try host.set("web/from-\(index)", host.name)
      for other in hosts { try await other.await("web/from-\(index)", host.name) }
    }
    #expect(try hosts[0].prefs(["unset", "web/from-1"]).code == 0)
    for host in hosts { try await host.await("web/from-1", nil) }
    for host in running { #expect(host.end() == 0) }
  }

  @Test("SIGINT also ends it cleanly")
  func interrupted() async throws {
    let place = try await CarrierPlace(.file)
    let running = try RunningFleet(try toolFleet("office", at: place.address)[0])
    try running.say("in step")
    #expect(running.end(SIGINT) == 0)
  }

  @Test("Killed at any moment, it continues where it was", arguments: CarrierKind.ofProgram)
  func killed(_ kind: CarrierKind) async throws {
    let place = try await CarrierPlace(kind)
    let hosts = try toolFleet("office", "lab", at: place.address)
    let other = try RunningFleet(hosts[1])
    try other.say("in step")
    for round in 0..<5 {
      let running = try RunningFleet(hosts[0])
      for key in 0..<4 { try hosts[0].set("web/key-\(key)", "\(round)") }
      #expect(running.end(SIGKILL) == -SIGKILL)
    }
    let running = try RunningFleet(hosts[0])
    for key in 0..<4 { try await hosts[1].await("web/key-\(key)", "4") }
    try hosts[0].succeed("sync")
    #expect(try hosts[0].fleet("status", "--json").json()["unpushed"] as? Int == 0)
    for host in hosts { #expect(try host.fleet("conflicts").output.isEmpty) }
    #expect(running.end() == 0 && other.end() == 0)
  }

  @Test("An unreachable carrier is reported, and changes made meanwhile are shared when it is back")
  func away() async throws {
    guard EtcdServer.isInstalled else { try Test.cancel("etcd is not installed") }
    let server = try await EtcdServer.common()
    let relay = try RecordingRelay(to: server.members[0].clientPort)
    let hosts = try toolFleet(
      "office", "lab", at: "etcd://127.0.0.1:\(relay.port)/away-\(UUID().uuidString)")
    let running = try hosts.map { try RunningFleet($0) }
    for host in running { try host.say("in step") }

    relay.cut()
    try hosts[0].set("web/theme", "dark")
    try running[0].say("offline: ")
    let status = try hosts[0].fleet("status", "--json").json()
    #expect(status["condition"] as? String == "offline" && status["unpushed"] as? Int == 1)
    let sync = try hosts[0].fleet("sync", "--json")
    #expect(sync.code == 18 && sync.message.contains("is not available"), "\(sync)")
    #expect(try sync.json()["error"] as? String == "unreachable")

    relay.mend()
    try await hosts[1].await("web/theme", "dark")
    try running[0].say("in step")
    for host in running { #expect(host.end() == 0) }
  }

  @Test("A carrier that was rolled back is refused, until that is accepted")
  func rollback() async throws {
    let place = try await CarrierPlace(.file)
    let folder = String(place.address.dropFirst("file://".count))
    let hosts = try toolFleet("office", "lab", at: place.address)
    try FileManager.default.copyItem(atPath: folder, toPath: folder + ".backup")
    try hosts[0].set("web/theme", "dark")
    try hosts[0].succeed("sync")
    try hosts[1].succeed("sync")
    let running = try RunningFleet(hosts[0])
    try running.say("in step")

    try FileManager.default.removeItem(atPath: folder)
    try FileManager.default.moveItem(atPath: folder + ".backup", toPath: folder)
    let refused = try hosts[1].fleet("sync")
    #expect(refused.code == 7 && refused.message.contains("was rolled back"), "\(refused)")
    #expect(try hosts[1].fleet("status", "--json").json()["condition"] as? String == "stopped")
    #expect(try hosts[1].get("web/theme") == "dark")
    try hosts[0].set("web/later", "1")
    try running.say("stopped: The carrier was rolled back")
    #expect(running.end() == 0)

    // Each host that saw more has to accept it.
    try hosts[0].succeed("accept-rollback")
    #expect(try hosts[1].fleet("sync").code == 7)
    try hosts[1].succeed("accept-rollback")
    for host in hosts {
      #expect(try host.get("web/theme") == "dark")
      #expect(try host.get("web/later") == "1")
    }
  }

  @Test("It reports readiness and status to systemd")
  func notification() async throws {
    let place = try await CarrierPlace(.file)
    let host = try toolFleet("office", at: place.address)[0]
    let path = host.home.file("notify")
    let socket = try DatagramSocket(at: path)
    let running = try RunningFleet(host, environment: ["NOTIFY_SOCKET": path])
    #expect(try socket.next() == "READY=1\nSTATUS=in step")
    #expect(running.end() == 0)
    #expect(try socket.next() == "STOPPING=1")
  }
}

/// A socket of datagrams in a file, as systemd has one.
private final class DatagramSocket {
  private let descriptor: Int32

  init(at path: String) throws {
    #if canImport(Glibc)
      descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    #else
      descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
    #endif
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(result == 0)
  }

  deinit { close(descriptor) }

  func next() throws -> String {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    try #require(poll(&request, 1, 60_000) > 0, "no message came")
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    try #require(count > 0)
    return String(decoding: buffer[..<count], as: UTF8.self)
  }
}
