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

/// Values of one setting, some of them bad, and what is in force.
struct SkippedCase: CustomTestStringConvertible, Sendable {
  let testDescription: String
  var managed = "{}"
  var stored: [String: Int] = [:]
  var environment: String?
  let value: Int
  let origin: Origin
  /// Where the bad values stand: in the file, or in a collection.
  let places: [String]
  var isLocked = false

  enum Origin { case managed, store, parent, declared }

  static let all = [
    SkippedCase(
      testDescription: "a bad default of an administrator", managed: #"{"port": 1000}"#, value: 1, origin: .declared,
      places: ["file"]),
    SkippedCase(
      testDescription: "a bad lock", managed: #"{"port": 5, "locked": {"port": 1000}}"#, stored: ["net": 4], value: 4,
      origin: .store, places: ["file"], isLocked: true),
    SkippedCase(
      testDescription: "a bad stored value", managed: #"{"port": 5}"#, stored: ["net": 1000], value: 5,
      origin: .managed, places: ["collection \"net\""]),
    SkippedCase(
      testDescription: "a bad value of an environment", stored: ["net": 4, "net@staging": 1000],
      environment: "staging", value: 4, origin: .parent, places: ["collection \"net@staging\""]),
    SkippedCase(
      testDescription: "bad values at every place", managed: #"{"port": "x", "locked": {"port": 1000}}"#,
      stored: ["net": 999, "net@staging": 998], environment: "staging", value: 1, origin: .declared,
      places: ["file", "collection \"net@staging\"", "collection \"net\"", "file"], isLocked: true),
  ]
}

/// One setting of the application `net`, `port`, from 0 to 100, of which some values are bad.
@Suite("A value that programs skip is not in force") struct SkippedValueTests {
  private let tool: Tool
  private let file: String

  init() throws {
    tool = try Tool()
    let declared =
      #"[{"name": "port", "collection": "net", "type": "int", "default": 1, "limits": [{"minimum": 0, "maximum": 100}]}]"#
    try tool.succeed("schema", "load", "-", "--application", "net", input: declared)
    try tool.succeed("set", "net/other", "0", "--undeclared")
    try tool.succeed("env", "create", "net@staging")
    try FileManager.default.createDirectory(
      atPath: tool.path("managed/net.d"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    file = try tool.write("managed/net.d/10.json", "{}".utf8)
    chmod(file, 0o644)
  }

  private func run(_ words: [String], input: String = "") throws -> Tool.Run {
    try tool.run(words, input: input.utf8, environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
  }

  private func prepare(_ sources: SkippedCase) throws -> (origin: String, words: [String]) {
    for (collection, value) in sources.stored {
      try tool.succeed("-c", collection, "set", "--int", "port", "\(value)", "--force")
    }
    try Data(sources.managed.utf8).write(to: URL(filePath: file))
    let origin =
      switch sources.origin {
      case .managed: "\(file):1"
      case .store: "store"
      case .parent: "parent:net"
      case .declared: "default"
      }
    return (origin, ["-c", "net"] + (sources.environment.map { ["--env", $0] } ?? []))
  }

  @Test("Commands show what a program reads, and say where bad values stand", arguments: SkippedCase.all)
  func shown(_ sources: SkippedCase) throws {
    let (origin, words) = try prepare(sources)
    let value = "\(sources.value)"
    func text(_ command: String..., input: String = "") throws -> String {
      let run = try run(words + command, input: input)
      #expect(run.code == 0, "\(command): \(run.message)")
      for place in sources.places {
        let words = "(in \(place == "file" ? file + ":1" : place)); programs skip this value."
        #expect(run.message.contains(words) && run.message.contains("/port must be "), "\(command): \(run.message)")
      }
      return run.text
    }
    func objects(_ text: String) throws -> [[String: Any]] {
      let value = try JSONSerialization.jsonObject(with: Data(text.utf8))
      return (value as? [String: Any]).map { [$0] } ?? value as? [[String: Any]] ?? []
    }
    #expect(try text("get", "port", "--show-origin") == "\(origin)\t\(value)\n")
    let got = try #require(try objects(text("get", "port", "--json")).first)
    #expect(got["origin"] as? String == origin && (got["problem"] as? String)?.contains("must be") == true, "\(got)")
    #expect(try text("type", "port") == "int\n")
    #expect(try text("exec", "--only", "port", "--pristine", "--", "/usr/bin/env") == "PORT=\(value)\n")
    #expect(try text("inject", "-", input: "{{prefs:port}}") == value)
    let listed = try objects(text("list", "--all", "--values", "--json")).first { $0["key"] as? String == "port" }
    #expect(listed?["value"] as? Int == sources.value && listed?["problem"] is String, "\(listed ?? [:])")
    if sources.origin != .declared { #expect(try text("find", "--keys", "port").contains("port")) }
    let described = try #require(try objects(run(words + ["describe", "port", "--json"]).text).first)
    #expect(described["value"] as? Int == sources.value && described["origin"] as? String == origin)
    #expect((described["problem"] as? String)?.split(separator: ";").count == sources.places.count, "\(described)")
    #expect(try run(["validate"]).code == 8)
    // What is stored below a lock that no program takes is free to go, and nothing is said to stay.
    if sources.isLocked {
      #expect(try run(words + ["set", "port", "7"]).code == 13)
      let unset = try run(words + ["unset", "port"])
      #expect(unset.code == 0 && !unset.message.contains("keeps the value"), "\(unset)")
    } else {
      #expect(try text("increment", "port") == "\(sources.value + 1)\n")
    }
  }

  @Test("Libraries and the page show the same", arguments: SkippedCase.all)
  func inProcess(_ sources: SkippedCase) throws {
    _ = try prepare(sources)
    let roots = [ManagedFolder(tool.path("managed"))]
    var options = Database.Options(checksDeclarations: true, freshness: .unwatched)
    options.settingRules = SettingRules(files: AdministratorFiles(application: nil, roots: roots))
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile), options: options)
    let proxy = try ConnectionProxy(database: database)
    let source = try ManagedSource(following: ManagedSettings.Folders(ofApplication: "net", in: roots))
    let program = Preferences(
      proxy: proxy, collection: "net", overrides: Overrides([], managed: source), registered: RegisteredDefaults(),
      environment: sources.environment)
    let port = Key("port", default: 1, limits: .range(0...100))
    #expect(program[port] == sources.value)
    #if Configuration
      let collections = sources.environment.map { ["net@\($0)", "net"] } ?? ["net"]
      let config = ConfigReader(provider: try CofferProvider(proxy, collections: collections))
      // Declared defaults are left to the reader.
      #expect(config.int(forKey: "port") == (sources.origin == .declared ? nil : sources.value))
    #endif
    try proxy.close()

    let own = sources.environment.map { "net@\($0)" } ?? "net"
    let session = try CommandSession(SessionOptions(store: tool.store))
    let vault = PageVault(database, session, keyFile: nil, time: .seconds(900)) { _ in }
    let page = try PageStore(
      database, session: session, scope: CollectionScope(named: [own]), isReadOnly: false, vault: vault)
    let request = try PageRequest(#"{"collection": "\#(own)", "key": "port"}"#)
    let shown = try JSONSerialization.jsonObject(with: Data(page.setting(request).utf8)) as? [String: Any]
    #expect(shown?["value"] as? Int == sources.value, "\(shown ?? [:])")
    #expect((shown?["problem"] as? String)?.contains("must be") == true, "\(shown ?? [:])")
    try database.close()
  }

  @Test("Where all values are bad and no default is declared, the first is shown, and said to be bad")
  func onlyBad() throws {
    let declared = #"[{"name": "name", "collection": "web", "type": "string", "limits": [{"maximumCount": 3}]}]"#
    try tool.succeed("schema", "load", "-", "--application", "web", input: declared)
    try tool.succeed("set", "web/name", "long name", "--force")
    let run = try run(["get", "web/name"])
    #expect(run.text == "long name\n" && run.message.contains("programs skip this value, and there is no other."))
    #expect(try self.run(["list", "web", "--values", "--plain"]).text == "name\tlong name\n")
  }

  @Test("A bad secret is not shown in what is said of it")
  func secret() throws {
    let declared = #"[{"name": "token", "collection": "web", "type": "secret"}]"#
    try tool.succeed("schema", "load", "-", "--application", "web", input: declared)
    try tool.succeed("set", "web/token", "--string", "hunter2", "--force")
    for command in [["list", "web"], ["exec", "-c", "web", "--", "true"], ["describe", "web/token"]] {
      let run = try run(command)
      #expect(run.code == 0 && !(run.text + run.message).contains("hunter2"), "\(command): \(run)")
    }
  }

  @Test("A locked value is known to be bad where the store opens, and needs no key where it does not")
  func keyless() throws {
    try Data(#"{"locked": {"port": 1000}}"#.utf8).write(to: URL(filePath: file))
    #expect(try run(["get", "net/port"]).text == "1\n")
    rename(tool.keyFile, tool.path("away"))
    #expect(try run(["get", "net/port"]).text == "1000\n")
  }

  @Test("Before there is a store, every command shows what administrators' files have")
  func withoutStore() throws {
    try Data(#"{"host": "h", "locked": {"port": 8}}"#.utf8).write(to: URL(filePath: file))
    let other = ["-d", tool.path("none.coffer")]
    #expect(try run(["get", "net/port"] + other).text == "8\n")
    #expect(try run(["list", "net", "--values", "--plain"] + other).text == "host\th\nport\t8\n")
    #expect(
      try run(["exec", "-c", "net", "--pristine"] + other + ["--", "/usr/bin/env"]).text.split(separator: "\n").sorted()
        == ["HOST=h", "PORT=8"])
    #expect(try run(["inject", "-"] + other, input: "{{prefs:net/host}}").text == "h")
    #expect(try run(["find", "-c", "net", "h"] + other).code == 0)
    #expect(try run(["list", "web"] + other).code == 4)
    #expect(!tool.exists(other[1]))
  }
}
