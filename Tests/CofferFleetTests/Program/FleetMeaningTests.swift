import Foundation
import TestSupport
import Testing

@testable import CofferFleet

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

@Suite("Settings that hosts of a fleet declare differently, in the shell")
struct FleetMeaningTests {
  /// Declares settings of the collection `web`, as JSON without their collection.
  @discardableResult
  private func load(
    _ host: ToolHost, _ application: String, _ version: String?, _ declarations: String
  ) throws -> ToolHost.Run {
    let inWeb = declarations.replacing(#"{"name": "#, with: #"{"collection": "web", "name": "#)
    return try host.prefs(
      ["schema", "load", "-", "--application", application] + (version.map { ["--application-version", $0] } ?? []),
      input: inWeb)
  }

  /// - Returns: Two hosts of a fleet, and where their carrier is as long as this is kept.
  private func hosts() async throws -> (a: ToolHost, b: ToolHost, place: CarrierPlace) {
    let place = try await CarrierPlace(.file)
    let hosts = try toolFleet("a", "b", at: place.address)
    return (hosts[0], hosts[1], place)
  }

  private func sync(_ hosts: ToolHost...) throws {
    for host in hosts {
      let run = try host.fleet("sync")
      #expect([0, 8].contains(run.code), "\(host.name): \(run)")
    }
  }

  @Test("An administrator's lock is judged by the programs of its host: no declaration of another host lifts it")
  func locks() async throws {
    for other in [
      #"[{"name": "n", "type": "int", "default": 1, "limits": [{"minimum": 1, "maximum": 10}]}]"#,
      #"[{"name": "n", "type": "string", "default": "x"}]"#,
    ] {
      let (a, b, place) = try await hosts()
      defer { withExtendedLifetime(place) {} }
      #expect(try load(a, "app", "1.0", #"[{"name": "n", "type": "int", "default": 1}]"#).code == 0)
      // Neither host knows of the other's.
      #expect(try load(b, "other", "1.0", other).code == 0)
      try sync(b, a, b, a)
      let folder = a.home.file("app.d")
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
      func manage(_ text: String) throws {
        try Data(text.utf8).write(to: URL(filePath: "\(folder)/1.json"))
        #expect(chmod("\(folder)/1.json", 0o644) == 0)
      }
      let managed = ["PREFS_MANAGED_DIR": a.home.path]
      func run(_ arguments: String...) throws -> ToolHost.Run { try a.prefs(arguments, environment: managed) }
      try manage(#"{"locked": {"web/n": 50}}"#)
      let home = a.home.path
      let store = ["-d", "\(home)/.local/share/prefs/settings.coffer", "--key-file", "\(home)/.config/prefs/key"]
      for options in [[], ["--app", "app"] + store] {
        let get = try a.prefs(options + ["get", "-c", "web", "n"], environment: managed)
        #expect(get.output == "50\n" && !get.message.contains("skip"), "\(options) \(get)")
      }
      let shell = try run("exec", "-c", "web", "--", "/bin/sh", "-c", "echo $N")
      #expect(shell.output == "50\n" && shell.message.isEmpty, "\(shell)")
      #expect(try run("list", "web", "--all", "--values").output.contains("50"))
      #expect(try run("set", "web/n", "3").code == 13)
      let validated = try run("validate")
      #expect(validated.code == 8, "\(validated)")
      let conflict = "as other 1.0 declares it in a fleet; app 1.0 on this host takes it"
      #expect(validated.output.contains(conflict), "\(validated)")
      let doctor = try run("doctor")
      #expect(doctor.output.contains("app 1.0 on this host takes it"), "\(doctor)")
      // What its program does not take is no lock, whatever the fleet says.
      try manage(#"{"locked": {"web/n": "x"}}"#)
      let bad = try run("get", "web/n")
      #expect(bad.message.contains("must be of type int, not string") && !bad.output.contains("50"), "\(bad)")
      #expect(try run("validate").output.contains("as app 1.0 declares it on this host"))
      // Where no program of the host declares it, the fleet's declaration counts.
      try manage(#"{"locked": {"web/n": 50}}"#)
      let elsewhere = try b.prefs(["get", "web/n"], environment: managed)
      #expect(elsewhere.output != "50\n", "\(elsewhere)")
    }
  }

  @Test("Another type is refused as on one host, where another host's is known: of any version and application")
  func retyping() async throws {
    let (a, b, place) = try await hosts()
    defer { withExtendedLifetime(place) {} }
    try load(
      a, "app", "1.0", #"[{"name": "width", "type": "int", "default": 800}, {"name": "title", "type": "string"}]"#)
    try sync(a, b)
    for (application, version) in [("other", "1"), ("app", "0.9"), ("app", "3")] {
      let run = try load(b, application, version, #"[{"name": "width", "type": "string"}]"#)
      #expect(run.code == 9 && run.message.contains("app 1.0 in a fleet reads it as int"), "\(run)")
    }
    // Other limits are another matter.
    #expect(try load(b, "other", "1", #"[{"name": "title", "type": "string", "default": "x"}]"#).code == 0)
    try load(
      a, "app", "2.0",
      #"[{"name": "window.width", "type": "int", "default": 900, "formerly": [{"collection": "web", "name": "width"}]}]"#
    )
    try sync(a, b)
    // A former name that is kept for older versions, too.
    for (application, version) in [("app", "1.5"), ("other", "2")] {
      let run = try load(b, application, version, #"[{"name": "width", "type": "string"}]"#)
      #expect(run.code == 9 && run.message.contains("an older version of app in a fleet reads it as int"), "\(run)")
    }
    #expect(try load(b, "app", "3", #"[{"name": "window.width", "type": "string"}]"#).code == 9)
    #expect(try load(b, "app", "1.0", #"[{"name": "width", "type": "int", "default": 800}]"#).code == 0)
  }

  @Test("Types that two hosts declared before they knew of each other are named by sync, status, validate and get")
  func typesApart() async throws {
    let (a, b, place) = try await hosts()
    defer { withExtendedLifetime(place) {} }
    try load(a, "app", "1.0", #"[{"name": "width", "type": "int", "default": 800}]"#)
    try load(b, "other", "1", #"[{"name": "width", "type": "string", "default": "wide"}]"#)
    try sync(b)
    let conflict = "web/width is int to app 1.0 on this host, and string to other 1 in a fleet"
    let sync = try a.fleet("sync")
    #expect(sync.code == 8 && sync.message.contains(conflict), "\(sync)")
    #expect(try a.fleet("status").output.contains(conflict))
    let validated = try a.prefs(["validate"])
    #expect(validated.code == 8 && validated.output.contains(conflict), "\(validated)")
    let fallback = try a.prefs(["get", "web/width"])
    #expect(
      fallback.output == "wide\n" && fallback.message.contains("must be 800 by default, not wide (in the fleet's"),
      "\(fallback)")
    try b.set("web/width", "hello")
    try self.sync(b, a)
    let get = try a.prefs(["get", "web/width"])
    #expect(get.output == "hello\n", "\(get)")
    #expect(get.message.contains("must be of type int, not string"), "\(get)")
    #expect(get.message.contains("as app 1.0 declares it on this host"), "\(get)")
    #expect(try b.prefs(["get", "web/width"]).message.isEmpty)
    // The program that runs here starts again, and so does a later version of it.
    for version in ["1.0", "1.1"] {
      let again = try load(a, "app", version, #"[{"name": "width", "type": "int", "default": 800}]"#)
      #expect(again.code == 0, "\(again)")
    }
  }

  @Test("What a program of this host declares as a secret is hidden, whatever another host declares")
  func secrets() async throws {
    for isSecretHere in [true, false] {
      let (a, b, place) = try await hosts()
      defer { withExtendedLifetime(place) {} }
      try load(a, "app", "1", #"[{"name": "tok", "type": "\#(isSecretHere ? "secret" : "string")"}]"#)
      try load(b, "other", "1", #"[{"name": "tok", "type": "\#(isSecretHere ? "string" : "secret")"}]"#)
      #expect(try b.prefs(["set", "web/tok", "hunter3hunter", "--force"]).code == 0)
      try sync(b, a, b, a)
      for host in isSecretHere ? [a] : [a, b] {
        for command in [
          ["list", "web", "--values"], ["find", "ter3hun"], ["export", "web"], ["describe", "web/tok"],
          ["history", "web/tok"], ["validate"], ["fleet", "status"],
          ["exec", "--mask", "-c", "web", "--", "/bin/sh", "-c", "echo $TOK"],
        ] {
          let run = try host.prefs(command)
          #expect(!(run.output + run.message).contains("hunter3"), "\(host.name) \(command) \(run)")
        }
      }
    }
  }
}
