import ArgumentParser
import Coffer
import Foundation
import TestSupport
import Testing

@testable import CofferFleet
@testable import PrefsFleet

@Suite("Errors of prefs fleet")
struct FleetRefusalTests {
  @Test("Without a store, or without a fleet, each command says what to do")
  func nothingThere() throws {
    let host = try ToolHost("office")
    #expect(try host.fleet("status").code == 4)
    try host.set("web/theme", "dark")
    let commands = [
      ["status"], ["members"], ["sync"], ["run"], ["conflicts"], ["log"], ["leave"], ["accept-rollback"],
      ["accept", "web"],
      ["greatest-age", "1h"], ["remove", "web-17"], ["invite", "web-17", "--role", "reader"],
    ]
    for command in commands {
      let run = try host.prefs(["fleet"] + command)
      #expect(run.code == 3 && run.message.contains("prefs fleet join -"), "\(command): \(run)")
    }
    let error = try host.fleet("status", "--json").json()
    #expect(error["error"] as? String == "notFound" && error["code"] as? Int == 3)
  }

  @Test(
    "Wrong usage is 2, with the reason",
    arguments: [
      ["crate"], ["create"], ["create", "team", "--at", "file:///nowhere/x"], ["invite", "a"],
      ["invite", "a", "--role", "king"], ["invite", "a", "--role", "reader", "--expires", "2020-01-01"], ["join"],
      ["rule", "web", "mine"], ["greatest-age"], ["greatest-age", "0s"], ["greatest-age", "soon"],
      ["share"], ["conflicts", "--json", "--restore", "1"],
      ["create", "team", "--at", "http://a/b", "-c", "web"],
      ["create", "team", "--at", "etcd://u:pw@a/b", "-c", "web"],
      ["create", "team", "--at", "etcd://a", "-c", "web"],
    ])
  func usage(_ arguments: [String]) throws {
    let run = try ToolHost("office").prefs(["fleet"] + arguments)
    #expect(run.code == 2 && !run.message.isEmpty, "\(run)")
    #expect(run.output.isEmpty != arguments.contains("--json"))
    #expect(!run.message.contains("pw@"))
  }

  @Test("An invitation as an argument is refused, and not repeated")
  func invitationAsArgument() async throws {
    let place = try await CarrierPlace(.file)
    let office = try toolFleet("office", at: place.address)[0]
    let invitation = try office.succeed("invite", "lab", "--role", "writer")
    let run = try ToolHost("lab").fleet("join", String(invitation.dropLast()))
    #expect(run.code == 2 && run.message.contains("standard input"), "\(run)")
    #expect(!run.message.contains(invitation.dropFirst(40).prefix(20)))
  }

  @Test("An invitation that is truncated, mistyped or invalid is an error that does not show it")
  func badInvitation() async throws {
    let place = try await CarrierPlace(.file)
    let office = try toolFleet("office", at: place.address)[0]
    let invitation = try office.succeed("invite", "lab", "--role", "writer")
    let last = invitation.dropLast(2)
    let texts = [
      String(last.dropLast()), last + (invitation.hasSuffix("0\n") ? "1" : "0"), "hello", String(last) + "x",
    ]
    for text in texts {
      let lab = try ToolHost("lab")
      let run = try lab.fleet("join", "-", input: text)
      #expect(run.code == 8 && run.message.contains("Not an invitation"), "\(run)")
      #expect(!run.message.contains(invitation.dropFirst(40).prefix(20)))
      #expect(try lab.fleet("status").code == 4, "a store was made for nothing")
    }
    #expect(try ToolHost("lab").fleet("join", "-").code == 6)
    #expect(try ToolHost("lab").fleet("join", "/nowhere/invitation").code == 14)
  }

  @Test("An expired invitation, and one of a removed member, are refused")
  func staleInvitations() async throws {
    let place = try await CarrierPlace(.file)
    let admin = try Host("office")
    try await admin.create(Fleet.carrier(at: place.address))
    let expired = try await admin.fleet.invite("lab", role: .writer, expires: Date(timeIntervalSinceNow: -60))
    let lab = try ToolHost("lab")
    let run = try lab.fleet("join", "-", input: try text(expired))
    #expect(run.code == 11 && run.message.contains("expired"), "\(run)")

    let removed = try await admin.fleet.invite("web-17", role: .writer)
    try await admin.fleet.remove("web-17")
    let other = try lab.fleet("join", "-", input: try text(removed))
    #expect(other.code == 11 && other.message.contains("removed"), "\(other)")
    #expect(try lab.files().isEmpty)
  }

  private func text(_ invitation: Invitation) throws -> String {
    try invitation.text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
  }

  @Test("An unreachable or invalid carrier is an error that says what to do")
  func deadCarrier() async throws {
    let office = try ToolHost("office")
    let port = try LoopbackPort.free(count: 1)[0]
    let dead = try office.fleet("create", "team", "--at", "etcd://127.0.0.1:\(port)/x", "-c", "web")
    #expect(dead.code == 18 && dead.message.contains("127.0.0.1:\(port)"), "\(dead)")
    #expect(try office.files().isEmpty)
    // It can be made elsewhere then.
    let place = try await CarrierPlace(.file)
    try office.succeed("create", "team", "--at", place.address, "-c", "web")
    let other = try ToolHost("other")
    let taken = try other.fleet("create", "team", "--at", place.address, "-c", "web")
    #expect(taken.code == 9 && taken.message.contains("already"), "\(taken)")
    #expect(try other.files().isEmpty)
    let third = try ToolHost("third")
    let missing = try third.fleet("create", "team", "--at", "file:///nowhere/at/all", "-c", "web")
    #expect(missing.code == 18 && missing.message.contains("/nowhere/at/all"), "\(missing)")
    #expect(try third.files().isEmpty)
    // An existing store stays.
    try third.set("web/theme", "dark")
    #expect(try third.fleet("create", "team", "--at", "file:///nowhere/at/all", "-c", "web").code == 18)
    #expect(try third.get("web/theme") == "dark")
  }

  @Test("A new store is removed again if the carrier refuses the fleet")
  func refusedFleet() async throws {
    guard EtcdServer.isInstalled else { try Test.cancel("etcd is not installed") }
    let etcd = try await EtcdServer()
    try etcd.enableUsers(prefix: "team", permission: "read")
    let office = try ToolHost("office")
    let password = office.home.file("password")
    try #"se"cr\et"#.write(toFile: password, atomically: true, encoding: .utf8)
    let address = etcd.address(prefix: "team", user: "web")
    let refused = try office.fleet("create", "team", "--at", address, "-c", "web", "--password-file", password)
    #expect(refused.code == 11 && refused.message.contains("permission denied"), "\(refused)")
    // Another store may have been made with the key file.
    #expect(try office.files().map(\.lastPathComponent).sorted() == ["key", "password"], "\(refused)")
    // An existing store stays.
    try office.set("web/theme", "dark")
    #expect(try office.fleet("create", "team", "--at", address, "-c", "web", "--password-file", password).code == 11)
    #expect(try office.get("web/theme") == "dark")
  }

  @Test("A user in the carrier's address needs a password, which comes only from a file")
  func password() throws {
    let office = try ToolHost("office")
    let create = ["fleet", "create", "team", "--at", "etcd://coffer@127.0.0.1:9/x", "-c", "web"]
    let without = try office.prefs(create)
    #expect(without.code == 6 && without.message.contains("--password-file"), "\(without)")
    let missing = try office.prefs(create, environment: ["PREFS_FLEET_PASSWORD_FILE": "/nowhere/password"])
    #expect(missing.code == 6 && missing.message.contains("/nowhere/password"), "\(missing)")
    let file = office.home.file("prefs-fleet-password")
    try "secret-\(UUID())\n".write(toFile: file, atomically: true, encoding: .utf8)
    for (options, environment) in [
      (["--password-file", file], [:]), ([], ["PREFS_FLEET_PASSWORD_FILE": file]),
      ([], ["CREDENTIALS_DIRECTORY": office.home.path]),
    ] {
      let run = try office.prefs(create + options, environment: environment)
      // It gets as far as the carrier, which is not there.
      #expect(run.code == 18 && !run.message.contains("secret-"), "\(run)")
    }
  }

  @Test("The password of an etcd user is accepted, and a wrong one is refused")
  func users() async throws {
    guard EtcdServer.isInstalled else { try Test.cancel("etcd is not installed") }
    let server = try await EtcdServer()
    for words in [["user", "add", "root:root"], ["user", "grant-role", "root", "root"], ["auth", "enable"]] {
      #expect(try server.control(words).status == 0)
    }
    server.hasUsers.set()
    let office = try ToolHost("office")
    let create = [
      "fleet", "create", "team", "--at", server.address(prefix: "team", user: "root"), "-c", "web", "--password-file",
    ]
    let (right, wrong) = (office.home.file("right"), office.home.file("wrong"))
    try "root\n".write(toFile: right, atomically: true, encoding: .utf8)
    try "toor\n".write(toFile: wrong, atomically: true, encoding: .utf8)
    let refused = try office.prefs(create + [wrong])
    #expect(refused.code == 11 && refused.message.contains("refuses access"), "\(refused)")
    let made = try office.prefs(create + [right])
    #expect(made.code == 0, "\(made)")
    #expect(try office.fleet("sync", "--password-file", right).code == 0)
  }

  @Test(
    "The access key of a storage is found where AWS's tools find it, or in a file, and what is wrong with it is said")
  func accessKey() async throws {
    guard let server = try await S3Server.common() else { try Test.cancel("moto is not installed") }
    let office = try ToolHost("office")
    try? FileManager.default.removeItem(atPath: office.home.file(".aws"))
    let prefix = UUID().uuidString
    let create = ["fleet", "create", "team", "--at", server.address(prefix: prefix), "-c", "web", "--as", "office"]
    let without = try office.prefs(create)
    #expect(without.code == 6 && without.message.contains("AWS_ACCESS_KEY_ID"), "\(without)")
    let key = server.writer
    let wrong = ["AWS_ACCESS_KEY_ID": key.name, "AWS_SECRET_ACCESS_KEY": "wrong-\(prefix)"]
    let refused = try office.prefs(create, environment: wrong)
    #expect(refused.code == 11 && refused.message.contains("secret access key is wrong"), "\(refused)")
    #expect(!refused.message.contains("wrong-\(prefix)"))
    let file = office.home.file("prefs-fleet-password")
    try "[team]\n\(S3Server.file(key).dropFirst("[default]\n".count))".write(
      toFile: file, atomically: true, encoding: .utf8)
    let section = try office.prefs(create + ["--password-file", file])
    #expect(section.code == 6 && section.message.contains("in the section [default]"), "\(section)")
    let profile = try office.prefs(create + ["--password-file", file], environment: ["AWS_PROFILE": "team"])
    #expect(profile.code == 0 && profile.message.contains("chmod 600"), "\(profile)")

    let variables = ["AWS_ACCESS_KEY_ID": key.name, "AWS_SECRET_ACCESS_KEY": key.secret]
    #expect(try office.fleet("sync", environment: variables).code == 0)
    let credential = ["CREDENTIALS_DIRECTORY": office.home.path, "AWS_PROFILE": "team"]
    #expect(try office.fleet("sync", environment: credential).code == 0)
    // A service has other credentials in such a folder.
    #expect(
      try office.fleet("sync", environment: variables.merging(["CREDENTIALS_DIRECTORY": "/nowhere"]) { $1 }).code == 0)
    try office.write(s3Key: S3Server.file(key))
    #expect(try office.fleet("sync").code == 0)
    let bucket = try office.fleet(
      "create", "x", "--at", server.address(bucket: "nothing-here", prefix: "x"), "-c", "web")
    #expect(bucket.code == 18 && bucket.message.contains("no bucket nothing-here"), "\(bucket)")
  }

  @Test("A value that is too large stays, the rest is shared, and the exit code shows it")
  func tooLarge() async throws {
    let place = try await CarrierPlace(.file)
    let hosts = try toolFleet("office", "lab", at: place.address)
    let large = hosts[0].home.file("large")
    try String(repeating: "x", count: 2 << 20).write(toFile: large, atomically: true, encoding: .utf8)
    #expect(try hosts[0].prefs(["set", "web/large", "--value-file", large]).code == 0)
    try hosts[0].set("web/small", "1")
    let run = try hosts[0].fleet("sync")
    #expect(run.code == 11 && run.message.contains("\"large\" in \"web\" stays on this host"), "\(run)")
    #expect(run.message.contains("Make it smaller"))
    try hosts[1].succeed("sync")
    #expect(try hosts[1].get("web/small") == "1")
    let running = try RunningFleet(hosts[0])
    try running.say("\"large\" in \"web\" stays on this host")
    #expect(running.end() == 0)
  }

  @Test("A read-only store shows its status, and pulls nothing")
  func readOnly() async throws {
    let place = try await CarrierPlace(.file)
    let host = try toolFleet("office", at: place.address)[0]
    // Root would not feel that a right is missing.
    let carrier = String(place.address.dropFirst("file://".count))
    let script = """
      if [ "$(id -u)" = 0 ]; then chown -R 65534:65534 "$1" "$2"; fi
      chmod 400 "$1"/.local/share/prefs/settings.coffer* && chmod 500 "$1/.local/share/prefs"
      """
    #expect(try Child.run("/bin/sh", ["-c", script, "sh", host.home.path, carrier]).status == 0)
    let runner = getuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
    func run(_ arguments: String...) throws -> Int32 {
      try Child.run(
        "/usr/bin/env", ["HOME=\(host.home.path)"] + runner + [ToolHost.tool.path, "fleet"] + arguments
      ).status
    }
    guard try run("--help") == 0 else { try Test.cancel("another user cannot start what was built here") }
    #expect(try run("status", "--json") == 0)
    #expect(try run("members") == 0)
    #expect(try run("log") == 0)
    #expect(try run("sync") == 14)
  }

  @Test("Several fleets of one store are synced together, and named to choose one")
  func severalFleets() async throws {
    let (first, second) = (try await CarrierPlace(.file), try await CarrierPlace(.file))
    let host = try toolFleet("office", at: first.address)[0]
    try host.succeed("create", "other", "--at", second.address, "-c", "flags", "--as", "office")
    let both = try host.fleet("create", "third", "--at", "file:///tmp/never", "-c", "flags")
    #expect(both.code == 9 && both.message.contains("already shared with another fleet"), "\(both)")
    #expect(try host.fleet("sync", "--json").lines.count == 2)
    let unclear = try host.fleet("members")
    #expect(unclear.code == 2 && unclear.message.contains("other, team"), "\(unclear)")
    #expect(try host.fleet("members", "--fleet", "other").code == 0)
    #expect(try host.fleet("members", "--fleet", "none").code == 3)
  }

  @Test("The help of every command has an example, which parses")
  func examples() throws {
    for command in FleetCommand.configuration.subcommands {
      let discussion = command.configuration.discussion
      let examples = discussion.split(separator: "\n").filter { $0.hasPrefix("  prefs fleet ") }
      #expect(!examples.isEmpty, "\(command)")
      for example in examples {
        let line = example.dropFirst("  prefs fleet ".count)
        let words = line.prefix { !"<>|".contains($0) }.split(separator: " ").prefix { $0 != "||" }.map {
          $0.trimmingCharacters(in: ["'"])
        }
        #expect(throws: Never.self, "\(line)") { try FleetCommand.parseAsRoot(words) }
      }
      #expect(command.configuration.abstract.hasSuffix("."))
    }
  }

  @Test("prefs shows it in its help, and help fleet is its help")
  func shownInHelp() throws {
    let host = try ToolHost("office")
    #expect(try host.prefs(["--help"]).output.contains("  fleet  "))
    let help = try host.prefs(["help", "fleet"])
    #expect(help.code == 0 && help.output.contains("prefs fleet <subcommand>"))
    #expect(try host.fleet("--help").output == help.output)
    #expect(try host.fleet().output == help.output)
    let version = try host.fleet("--version").output
    #expect(version.hasPrefix("prefs-fleet "))
    let versions = try host.fleet("--version", "--verbose").output
    #expect(versions.hasPrefix(version) && versions.contains("\nSQLite ") && versions.contains("\nlibcurl/"))
  }
}
