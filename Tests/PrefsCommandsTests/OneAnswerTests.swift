import Foundation
import Testing

@testable import Coffer
@testable import PrefsCommands
@testable import PrefsPage

#if Configuration
  import CofferConfiguration
  import Configuration
#endif

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The sources of the value of one setting, and what every door has to say of it.
struct Sources: CustomTestStringConvertible, Sendable {
  let testDescription: String
  var managed = "{}"
  var stored: [String: Int] = [:]
  /// The suite that the setting is looked at in.
  var suite: String?
  var environment: String?
  var layers: [Preferences.Layer] = []
  /// The value in force, and what a program reads, if that has another one.
  let value: Int
  var inProgram: Int?
  let origin: Origin

  enum Origin { case locked, managed, store, parent, declared }

  static let all = [
    Sources(
      testDescription: "an administrator's lock", managed: #"{"net/port": 5, "locked": {"net/port": 8}}"#,
      stored: ["net": 4, "net@staging": 3], value: 8, origin: .locked),
    Sources(
      testDescription: "an administrator's lock, spelt out, in an environment",
      managed: #"{"locked": {"org.x/net/port": 8}}"#, stored: ["net": 4, "net@staging": 3], environment: "staging",
      value: 8, origin: .locked),
    Sources(
      testDescription: "a lock before arguments", managed: #"{"locked": {"net/port": 8}}"#, stored: ["net": 4],
      layers: [.arguments(["program", "-net/port", "7"])], value: 8, origin: .locked),
    Sources(
      testDescription: "an argument before a variable", stored: ["net": 4],
      layers: [
        .variables(prefix: "X_", ["X_NET_PORT": "6"]), .arguments(["program", "-net/port", "7"]),
      ], value: 4, inProgram: 7, origin: .store),
    Sources(
      testDescription: "a process variable", managed: #"{"net/port": 5}"#, stored: ["net": 4],
      layers: [.variables(prefix: "X_", ["X_NET_PORT": "6"])], value: 4, inProgram: 6, origin: .store),
    Sources(
      testDescription: "an environment's value", managed: #"{"net/port": 5}"#, stored: ["net": 4, "net@staging": 3],
      environment: "staging", value: 3, origin: .store),
    Sources(
      testDescription: "its parent's value", managed: #"{"net/port": 5}"#, stored: ["net": 4], environment: "staging",
      value: 4, origin: .parent),
    Sources(
      testDescription: "a stored value", managed: #"{"net/port": 5}"#, stored: ["net": 4, "net@staging": 3], value: 4,
      origin: .store),
    Sources(
      testDescription: "a suite's value", managed: #"{"net/port": 5, "locked": {"net/port": 8}}"#,
      stored: ["net": 4, "acme/net": 2], suite: "acme", value: 2, origin: .store),
    Sources(
      testDescription: "a suite's lock", managed: #"{"locked": {"acme/net/port": 8}}"#,
      stored: ["net": 4, "acme/net": 2], suite: "acme", value: 8, origin: .locked),
    Sources(
      testDescription: "a suite's default", managed: #"{"net/port": 5, "acme/net/port": 6}"#, stored: ["net": 4],
      suite: "acme", value: 6, origin: .managed),
    Sources(
      testDescription: "an administrator's default", managed: #"{"org.x/net/port": 5}"#, environment: "staging",
      value: 5, origin: .managed),
    Sources(testDescription: "the declared default", value: 1, origin: .declared),
  ]
}

/// One setting of the application `org.x`, `port` in the collection `net`, at every door.
@Suite("One answer at every door") struct OneAnswerTests {
  private let tool: Tool
  private let file: String

  init() throws {
    tool = try Tool()
    let declared =
      #"[{"name": "port", "collection": "net", "type": "int", "default": 1, "limits": [{"minimum": 0, "maximum": 100}]}]"#
    try tool.succeed("--app", "org.x", "schema", "load", "-", "--application", "org.x", input: declared)
    try tool.succeed("--app", "org.x", "env", "create", "net@staging", "--from", "net")
    try tool.succeed("--app", "org.x", "env", "create", "org.x@staging")
    try FileManager.default.createDirectory(
      atPath: tool.path("managed/org.x.d"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    file = try tool.write("managed/org.x.d/10.json", "{}".utf8)
    chmod(file, 0o644)
  }

  /// What a door has to say in a case.
  private struct Expected {
    let value: String
    let origin: String
    let isLocked: Bool
    let collection: String
    let words: [String]
  }

  private func expected(_ sources: Sources) throws -> Expected {
    try Data(sources.managed.utf8).write(to: URL(filePath: file))
    for (collection, value) in sources.stored {
      try tool.succeed("--app", "org.x", "-c", collection, "set", "--int", "port", "\(value)")
    }
    let collection = sources.suite.map { "\($0)/net" } ?? "net"
    let origin =
      switch sources.origin {
      case .locked, .managed: "\(file):1"
      case .store: "store"
      case .parent: "parent:\(collection)"
      case .declared: "default"
      }
    return Expected(
      value: "\(sources.value)", origin: origin, isLocked: sources.origin == .locked, collection: collection,
      words: ["--app", "org.x", "-c", collection] + (sources.environment.map { ["--env", $0] } ?? []))
  }

  private func run(_ words: [String], input: String = "") throws -> Tool.Run {
    try tool.run(words, input: input.utf8, environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
  }

  @Test("Commands show the value in force and its origin", arguments: Sources.all)
  func shown(_ sources: Sources) throws {
    let expected = try expected(sources)
    func text(_ words: String..., input: String = "") throws -> String {
      try run(expected.words + words, input: input).text
    }
    let value = expected.value
    #expect(try text("get", "port", "--show-origin") == "\(expected.origin)\t\(value)\n")
    #expect(try text("exec", "--only", "port", "--pristine", "--", "/usr/bin/env") == "PORT=\(value)\n")
    #expect(try text("inject", "-", input: "{{prefs:port}}") == value)
    let field =
      switch sources.origin {
      case .locked: "locked:\(expected.origin)"
      case .managed: "managed:\(expected.origin)"
      case .store: ""
      case .parent, .declared: expected.origin
      }
    #expect(try text("list", "--all", "--values", "--plain") == "port\t\(field)\t\(value)\n")
    let long = try text("list", "-l", "--values").split(separator: "\n").dropFirst()
    #expect(sources.origin == .declared ? long.isEmpty : long.count == 1 && long.last?.hasSuffix(" \(value)") == true)
    let described =
      try JSONSerialization.jsonObject(with: Data(text("describe", "port", "--json").utf8)) as? [String: Any]
    #expect(described?["value"] as? Int == sources.value && described?["origin"] as? String == expected.origin)
    #expect(try run(expected.words + ["validate"]).code == 0)
    // What is stored differs from a file, and what is in force besides is said.
    let diff = try run(expected.words + ["diff", "--with", "-", "--format", "json"], input: #"{"port": 77}"#)
    #expect(diff.code == 1 && diff.message.contains("keeps the value that") == expected.isLocked, "\(diff)")
  }

  @Test("Libraries and the page show the same", arguments: Sources.all)
  func inProcess(_ sources: Sources) throws {
    let expected = try expected(sources)
    let roots = [ManagedFolder(tool.path("managed"))]
    var options = Database.Options(checksDeclarations: true, freshness: .unwatched)
    options.settingRules = SettingRules(files: AdministratorFiles(application: "org.x", roots: roots))
    let path = tool.path(".local/share/org.x/settings.coffer")
    let database = try Database.open(at: path, key: .keyFile(tool.path(".config/org.x/key")), options: options)
    let proxy = try ConnectionProxy(database: database)
    let source = try ManagedSource(following: ManagedSettings.Folders(ofApplication: "org.x", in: roots))
    let settings = Preferences(
      proxy: proxy, collection: "org.x", overrides: Overrides(sources.layers, managed: source),
      registered: RegisteredDefaults(), environment: sources.environment)
    let program = sources.suite.map { settings.suite(named: $0) } ?? settings
    let port = Key("port", in: "net", default: 1)
    #expect(program[port] == sources.inProgram ?? sources.value)
    let set = Result { try program.set(sources.value + 1, for: port) }
    #expect(((try? set.get()) == nil) == expected.isLocked)
    try proxy.close()

    let own = sources.environment.map { "\(expected.collection)@\($0)" } ?? expected.collection
    let session = try CommandSession(SessionOptions(store: path))
    let vault = PageVault(database, session, keyFile: nil, time: .seconds(900)) { _ in }
    let page = try PageStore(
      database, session: session, scope: CollectionScope(named: [own]), isReadOnly: false, vault: vault)
    let request = try PageRequest(#"{"collection": "\#(own)", "key": "port"}"#)
    let shown = try JSONSerialization.jsonObject(with: Data(page.setting(request).utf8)) as? [String: Any]
    #expect((shown?["locked"] as? String != nil) == expected.isLocked)
    if expected.isLocked {
      #expect(shown?["value"] as? Int == sources.value && shown?["origin"] as? String == expected.origin)
    }
    try database.close()
  }

  @Test("Every command that sets refuses what is locked, and removing it is allowed and noted", arguments: Sources.all)
  func settable(_ sources: Sources) throws {
    let expected = try expected(sources)
    let code: Int32 = expected.isLocked ? 13 : 0
    func expectCode(_ words: [String], input: String = "", location: SourceLocation = #_sourceLocation) throws {
      let run = try run(words, input: input)
      #expect(run.code == code, "\(words): \(run.message)", sourceLocation: location)
      if expected.isLocked { #expect(run.message.contains(file), sourceLocation: location) }
    }
    try tool.succeed("--app", "org.x", "-c", "other", "set", "--int", "port", "50")
    let target = sources.environment.map { "\(expected.collection)@\($0)" } ?? expected.collection
    try expectCode(expected.words + ["set", "--int", "port", "51"])
    try expectCode(expected.words + ["increment", "port"])
    try expectCode(expected.words + ["import", "-", "--format", "json"], input: #"{"port": 52}"#)
    try expectCode(["--app", "org.x", "copy", "other", target, "--merge"])
    try tool.succeed("--app", "org.x", "history", "--keep", target)
    try tool.succeed("--app", "org.x", "-c", target, "set", "--int", "port", "53")
    let version = try tool.succeed("--app", "org.x", "-c", target, "history", "port", "--json")
    #expect(version.hasPrefix("["))
    try expectCode(["--app", "org.x", "-c", target, "import", "-", "--format", "json"], input: #"{"port": 54}"#)
    let unset = try run(["--app", "org.x", "-c", target, "unset", "port"])
    #expect(unset.code == 0 && unset.message.contains("keeps the value that") == expected.isLocked, "\(unset)")
    try tool.succeed("--app", "org.x", "-c", target, "set", "--int", "port", "53")
    let replaced = try run(
      ["--app", "org.x", "-c", target, "import", "-", "--format", "json", "--replace", "--undeclared"],
      input: #"{"kept": 1}"#)
    #expect(replaced.code == 0 && replaced.message.contains("keeps the value that") == expected.isLocked, "\(replaced)")
  }

  @Test("Without --app, the applications that declare settings of a collection are known")
  func declaring() throws {
    try Data(#"{"locked": {"net/port": 8}}"#.utf8).write(to: URL(filePath: file))
    let store = ["-d", tool.path(".local/share/org.x/settings.coffer"), "--key-file", tool.path(".config/org.x/key")]
    #expect(try run(store + ["get", "net/port"]).text == "8\n")
    #expect(try run(store + ["set", "net/port", "--int", "2"]).code == 13)
    #expect(try run(store + ["list", "net"]).text == "port\n")
  }

  #if Configuration
    @Test("A provider shows the same", arguments: Sources.all)
    func provider(_ sources: Sources) throws {
      let expected = try expected(sources)
      var options = Database.Options(freshness: .unwatched)
      options.settingRules = SettingRules(
        files: AdministratorFiles(application: "org.x", roots: [ManagedFolder(tool.path("managed"))]))
      let path = tool.path(".local/share/org.x/settings.coffer")
      let database = try Database.open(at: path, key: .keyFile(tool.path(".config/org.x/key")), options: options)
      let collections = sources.environment.map { ["\(expected.collection)@\($0)", expected.collection] }
      let proxy = try ConnectionProxy(database: database)
      let config = ConfigReader(
        provider: try CofferProvider(proxy, collections: collections ?? [expected.collection]))
      // Declared defaults are left to the reader.
      #expect(config.int(forKey: "port") == (sources.origin == .declared ? nil : sources.value))
      try proxy.close()
      try database.close()
    }
  #endif
}
