import Foundation
import Testing

@testable import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("Defaults and locks of an administrator") struct ManagedSettingsTests {
  /// Folders like those of `/etc/coffer` and `PREFS_MANAGED_DIR`, each with one of the application.
  private final class Roots {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("managed-\(UUID().uuidString)").path

    init() throws {
      for root in ["etc", "own"] {
        try FileManager.default.createDirectory(
          atPath: "\(path)/\(root)/app.d/locks", withIntermediateDirectories: true,
          attributes: [.posixPermissions: 0o755])
      }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ name: String, _ text: String) throws {
      try text.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8)
      chmod("\(path)/\(name)", 0o644)
    }

    /// Puts a file there whole.
    func place(_ name: String, _ text: String) throws {
      try write(".new", text)
      rename("\(path)/.new", "\(path)/\(name)")
    }

    var all: [ManagedFolder] {
      [ManagedFolder("\(path)/etc"), ManagedFolder("\(path)/own")]
    }

    var folders: ManagedSettings.Folders { .init(ofApplication: "app", in: all) }

    func read() throws -> ManagedSettings { try ManagedSettings(in: folders) }

    /// Where a value stands, in a file of one line.
    func place(_ name: String, line: Int? = 1) -> ManagedSettings.Place {
      ManagedSettings.Place(file: "\(path)/\(name)", line: line)
    }
  }

  private let roots: Roots

  init() throws { roots = try Roots() }

  private func preferences(_ layers: [Preferences.Layer] = []) throws -> Preferences {
    let source = try ManagedSource(following: roots.folders)
    let preferences = Preferences(
      proxy: try ConnectionProxy(database: .inMemory()), collection: "app",
      overrides: Overrides(layers, managed: source), registered: RegisteredDefaults())
    source.start(for: preferences)
    return preferences
  }

  @Test("are one error where a folder's link leads nowhere, or something else has its place, and none where nothing is")
  func unusableFolders() throws {
    try roots.write("etc/app.d/10.json", #"{"x": 1}"#)
    let (folder, locks, root) = ("\(roots.path)/etc/app.d", "\(roots.path)/etc/app.d/locks", "\(roots.path)/own")
    for (path, part) in [(locks, locks), (folder, folder), (root, root)] {
      let aside = path + "-aside"
      try #require(rename(path, aside) == 0)
      #expect(try roots.read().isEmpty == (path == folder), "nothing is there")
      try #require(symlink(roots.path + "/nowhere", path) == 0)
      let link = #expect(throws: CofferError.self) { try roots.read() }
      if case .inputOutput(part, _)? = link {} else { Issue.record("\(path): \(link as Any)") }
      #expect(ManagedSettings.problems(["app"], in: roots.all).count == 1)
      unlink(path)
      try roots.write(String(path.dropFirst(roots.path.count + 1)), "{}")
      let file = #expect(throws: CofferError.self) { try roots.read() }
      if case .malformedSettings(part, _)? = file {} else { Issue.record("\(path): \(file as Any)") }
      #expect(ManagedSettings.problems(["app"], in: roots.all).count == 1)
      unlink(path)
      try #require(rename(aside, path) == 0)
    }
    #expect(try !roots.read().isEmpty)
  }

  @Test("JSON files and property lists are read in the order of their names, and others are ignored")
  func order() throws {
    try roots.write("etc/app.d/20.json", #"{"a": 2, "b": 2}"#)
    try roots.write("etc/app.d/10.json", #"{"a": 1, "c": 1}"#)
    try roots.write("etc/app.d/30.plist", "<plist><dict><key>d</key><integer>3</integer></dict></plist>")
    try roots.write("etc/app.d/.hidden.json", "nonsense")
    try roots.write("etc/app.d/notes.txt", "nonsense")
    let settings = try preferences()
    #expect(["a", "b", "c", "d"].map(settings.integer) == [2, 2, 1, 3])
    #expect(settings.origin(ofKey: "a") == .managed(roots.place("etc/app.d/20.json")))
    #expect(settings.dictionaryRepresentation()["c"] as? Int == 1)
  }

  @Test("A default ranks below all stored values, and above registered ones")
  func defaults() throws {
    try roots.write("etc/app.d/a.json", #"{"size": 1, "editor/size": 5, "bad": "text"}"#)
    let settings = try preferences()
    try settings.register(defaults: ["size": 9])
    #expect(settings.integer(forKey: "size") == 1)
    let size = Key("size", in: "editor", default: 3)
    #expect(settings[size] == 5 && settings[size] == 5)
    #expect(try settings.origin(of: size) == .managed(roots.place("etc/app.d/a.json")))
    #expect(settings[Key("bad", default: 7)] == 7)
    try settings.proxy.setObject(2, forKey: "size", inCollection: Preferences.globalCollection)
    #expect(settings.integer(forKey: "size") == 2)
    settings[size] = 6
    #expect(settings[size] == 6)
    try settings.reset(size)
    #expect(settings[size] == 5)
  }

  @Test("A locked value overrides all others, and cannot be set in any way")
  func locked() throws {
    try roots.write("etc/app.d/a.json", #"{"locked": {"port": 80, "web/host": "h"}}"#)
    try roots.write("etc/app.d/locks/b.json", #"{"debug": false}"#)
    let settings = try preferences([.forced(["port": .int(1)]), .arguments(["program", "-debug", "true"])])
    let file = "\(roots.path)/etc/app.d/a.json"
    #expect(settings.integer(forKey: "port") == 80 && settings.objectIsForced(forKey: "port"))
    #expect(settings.origin(ofKey: "port") == .lockedByAdministrator(roots.place("etc/app.d/a.json")))
    #expect(!settings.bool(forKey: "debug"))
    let (port, host) = (Key("port", default: 0), Key("host", in: "web", default: ""))
    #expect(settings[port] == 80 && settings[host] == "h")
    let refused = CofferError.lockedByAdministrator(collection: "app", key: "port", file: file)
    #expect(refused.description.contains(file))
    #expect(throws: refused) { try settings.set(1, forKey: "port") }
    #expect(throws: refused) { try settings.set(1 as Any?, forKey: "port") }
    #expect(throws: refused) { try settings.set(1, for: port) }
    #expect(throws: refused) { try settings.update(port) { $0 + 1 } }
    #expect(throws: refused) { try settings.performBatch { try $0.set(1, forKey: "port") } }
    #expect(throws: refused) { try settings.performBatch { try $0.set(1, for: port) } }
    #expect(throws: CofferError.lockedByAdministrator(collection: "web", key: "host", file: file)) {
      try settings.set("x", for: host)
    }
    let list = "<plist><dict><key>a</key><integer>3</integer><key>port</key><integer>3</integer></dict></plist>"
    #expect(throws: refused) { try settings.importPropertyList(Data(list.utf8)) }
    #expect(settings.origin(ofKey: "a") == nil)
    // What lies below may go.
    try settings.removeObject(forKey: "port")
    #expect(settings[port] == 80)
  }

  @Test("The folder from the variable adds to the host's, and cannot lift its locks")
  func secondFolder() throws {
    try roots.write("etc/app.d/a.json", #"{"size": 1, "locked": {"port": 80}}"#)
    try roots.write("own/app.d/a.json", #"{"size": 2, "locked": {"port": 81, "host": "h"}}"#)
    let settings = try preferences()
    #expect(settings.integer(forKey: "size") == 2 && settings.integer(forKey: "port") == 80)
    #expect(settings.string(forKey: "host") == "h")
  }

  @Test("A bad default or lock of one folder is skipped for that of the other, by programs and by tools")
  func badInOneFolder() throws {
    try roots.write("etc/app.d/a.json", #"{"size": 1, "locked": {"port": 8000}}"#)
    try roots.write("own/app.d/a.json", #"{"size": 2000, "locked": {"port": 81}}"#)
    let settings = try preferences()
    let (size, port) = (
      Key("size", default: 5, limits: .range(0...100)), Key("port", default: 5, limits: .range(0...100))
    )
    #expect(settings[size] == 1 && settings[port] == 81)
    var options = Database.Options(checksDeclarations: true, freshness: .unwatched)
    options.settingRules = SettingRules(files: AdministratorFiles(application: "app", roots: roots.all))
    let database = try Database.inMemory(options: options)
    try database.makeConnection().readWrite { transaction in
      let declared = [size, port].map {
        Declaration($0.name, in: "app", type: .int, limits: [.range(minimum: .int(0), maximum: .int(100))])
      }
      try transaction.declare(declared, by: "app")
      let effective = try transaction.effectiveSettings(of: "app")
      for (key, value) in [("size", 1), ("port", 81)] as [(String, Value)] {
        switch try effective.item(key, transaction).found {
        case .managed(value, _), .locked(value, _): break
        case let found: Issue.record("\(key): \(found as Any)")
        }
      }
    }
  }

  @Test("Without files, nothing is managed")
  func none() throws {
    #expect(try roots.read().isEmpty)
    for (application, root) in [("other", "etc"), ("other", "none"), ("../app", "etc")] {
      let folders = ManagedSettings.Folders(ofApplication: application, in: [ManagedFolder("\(roots.path)/\(root)")])
      #expect(try ManagedSettings(in: folders).isEmpty)
    }
  }

  @Test("Anything writable by others is refused: a file, its folder, one further up, and the target of a link")
  func permissions() throws {
    try roots.write("etc/app.d/a.json", #"{"size": 1}"#)
    for place in ["etc/app.d/a.json", "etc/app.d", "etc"] {
      let path = "\(roots.path)/\(place)"
      let mode = try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
      for bit in [0o002, 0o020] {
        chmod(path, mode_t(mode | bit))
        let error = #expect(throws: CofferError.self) { try roots.read() }
        guard case .permissionDenied(_, let reason)? = error else { throw try #require(error) }
        #expect(reason.contains("can be written by others") && reason.contains("chmod go-w"))
      }
      chmod(path, mode_t(mode))
    }
    #expect(try !roots.read().isEmpty)
    // In another folder, which others may write to.
    mkdir("\(roots.path)/loose", 0o700)
    chmod("\(roots.path)/loose", 0o777)
    try roots.write("loose/b.json", "{}")
    symlink("\(roots.path)/loose/b.json", "\(roots.path)/etc/app.d/b.json")
    #expect(throws: CofferError.self) { try roots.read() }
  }

  @Test(
    "A malformed file is an error that names it",
    arguments: [
      ("a.json", "{"), ("a.json", "[1]"), ("a.toml", "a = 1"), ("locks/a.plist", "x"), ("a.json", #"{"a": null}"#),
      ("a.json", #"{"locked": {"a": null}}"#),
    ])
  func malformed(name: String, text: String) throws {
    try roots.write("etc/app.d/\(name)", text)
    let error = #expect(throws: CofferError.self) { try roots.read() }
    guard case .malformedSettings(let source, _)? = error else { throw try #require(error) }
    #expect(["", ":1"].contains { source == "\(roots.path)/etc/app.d/\(name)\($0)" })
  }

  @Test(
    "A lock that would lock nothing is an error that names file and line",
    arguments: [
      (#"{"a": 1,"# + "\n" + #""locked": true}"#, 2, "neither a dictionary"),
      (#"{"locked": "a"}"#, 1, "neither a dictionary"),
      ("{\"a\": 1, \"locked\": [\"a\",\n2]}", 2, "something else"),
      ("{\"a\": 1, \"locked\": [\"a\",\n\"b\"]}", 2, "\"b\" is locked at its default, and these files give none"),
      ("{\n\"Locked\": {\"a\": 1}}", 2, "did you mean \"locked\"?"),
      (#"{"locks": ["a"], "a": 1}"#, 1, "did you mean \"locked\"?"),
      (#"{"LOCK": {"a": 1}}"#, 1, "did you mean \"locked\"?"),
      ("{\"a\": 1,\n\"lokced\": {\"a\": 1}}", 2, "did you mean \"locked\"?"),
      (#"{"lokced": ["b"]}"#, 1, "did you mean \"locked\"?"),
      ("{\"a\": 1,\n\"blocked\": [\"a\"]}", 2, "did you mean \"locked\"?"),
      (#"{"a": 1, "loked": ["a"]}"#, 1, "did you mean \"locked\"?"),
      (#"{"a": 1, "app/a": 2}"#, 1, "\"app/a\" and \"a\" are the same setting"),
      (#"{"locked": {"a": 1, "app/a": 2}}"#, 1, "\"app/a\" and \"a\" are the same setting"),
    ])
  func locksNothing(text: String, line: Int, words: String) throws {
    try roots.write("etc/app.d/a.json", text)
    let error = #expect(throws: CofferError.self) { try roots.read() }
    guard case .malformedSettings(let source, let reason)? = error else { throw try #require(error) }
    #expect(reason.contains(words) && source == "\(roots.path)/etc/app.d/a.json:\(line)")
    #expect(ManagedSettings.problems([], in: roots.all) == [error])
  }

  @Test("A list of names locks them at their defaults, which a folder read later cannot change")
  func lockedNames() throws {
    try roots.write("etc/app.d/10.json", "{\"port\": 2, \"other\": 1,\n\"locked\": [\"port\"]}")
    try roots.write("etc/app.d/20.plist", "{ theme = dark;\nlocked = (theme); }")
    try roots.write("own/app.d/10.json", #"{"port": 3, "locked": ["other"]}"#)
    let settings = try preferences([.forced(["port": 4])])
    try settings.set(9, forKey: "other2")
    #expect(settings[.port] == 2 && settings.string(forKey: "theme") == "dark")
    #expect(settings.origin(ofKey: "port") == .lockedByAdministrator(roots.place("etc/app.d/10.json", line: 2)))
    #expect(settings.origin(ofKey: "theme") == .lockedByAdministrator(roots.place("etc/app.d/20.plist", line: 2)))
    #expect(settings.origin(ofKey: "other") == .lockedByAdministrator(roots.place("own/app.d/10.json")))
    for key in ["port", "theme", "other"] { #expect(throws: CofferError.self) { try settings.set(1, forKey: key) } }
    #expect(ManagedSettings.problems(["app"], in: roots.all).isEmpty)
  }

  @Test("A name may spell out the application's own collection, in the files and in a typed key")
  func ownCollection() throws {
    try roots.write("etc/app.d/10.json", #"{"app/size": 3, "theme": "dark", "locked": {"app/port": 80}}"#)
    try roots.write("etc/app.d/20.json", #"{"locked": ["app/theme"]}"#)
    try roots.write("etc/app.d/locks/a.json", #"{"app/width": 5}"#)
    let settings = try preferences()
    #expect(settings[.port] == 80 && settings.integer(forKey: "size") == 3 && settings.integer(forKey: "width") == 5)
    #expect(settings[Key("port", in: "app", default: 1)] == 80)
    for key in ["port", "theme", "width"] {
      #expect(throws: CofferError.self) { try settings.set(1, forKey: key) }
      #expect(throws: CofferError.self) { try settings.set(1, for: Key(key, in: "app", default: 1)) }
    }
    #expect(try roots.read().keys(in: "app").sorted() == ["port", "size", "theme", "width"])
  }

  @Test("A dictionary or a list whose name has one slip is a setting, and is noted")
  func doubts() throws {
    try roots.write(
      "etc/app.d/a.json", "{\"blocked\": [\"x\"],\n\"locke\": {\"a\": 1}, \"looked\": 1, \"web\": [\"x\"]}")
    let managed = try roots.read()
    #expect(managed.doubts.map(\.name) == ["blocked", "locke"])
    #expect(managed.doubts.map(\.place) == [roots.place("etc/app.d/a.json"), roots.place("etc/app.d/a.json", line: 2)])
    #expect(managed.entry("blocked", in: \.defaults)?.value == .array(["x"]) && managed.locked.isEmpty)
  }

  @Test(
    "Files in a folder whose name is a slip for locks are an error",
    arguments: ["lock", "Locks", "LOCKS", "locked", "lokcs", "loks"])
  func locksFolder(name: String) throws {
    for folder in [name, "current", "blue"] { mkdir("\(roots.path)/etc/app.d/\(folder)", 0o755) }
    try roots.write("etc/app.d/current/a.json", #"{"port": 1}"#)
    try roots.write("etc/app.d/blue/a.json", #"{"port": 1}"#)
    #expect(try roots.read().isEmpty)
    try roots.write("etc/app.d/\(name)/a.json", #"{"port": 1}"#)
    let error = #expect(throws: CofferError.self) { try roots.read() }
    guard case .malformedSettings(let source, let reason)? = error else { throw try #require(error) }
    #expect(source == "\(roots.path)/etc/app.d/\(name)/a.json" && reason.contains("the folder of locks is \"locks\""))
    #expect(ManagedSettings.problems([], in: roots.all) == [error])
  }

  @Test(
    "What is beside an application's folder, and is not read, is found for the store's own applications",
    arguments: ["app.json", "app.plist", "App.json", "app/a.json", "APP.d/a.json"])
  func strays(name: String) throws {
    let place = name.split(separator: "/").first.map(String.init) ?? ""
    if place != name { mkdir("\(roots.path)/own/\(place)", 0o755) }
    for other in ["apps.json", "app.txt"] { try roots.write("own/\(other)", #"{"port": 1}"#) }
    func strays(_ own: [String]) -> [CofferError] {
      ManagedSettings.problems(own, in: roots.all)
    }
    #expect(strays(["app"]).isEmpty)
    try roots.write("own/\(name)", #"{"port": 1}"#)
    #expect(try roots.read().isEmpty)
    guard case .malformedSettings(let source, let reason)? = strays(["app"]).first else {
      Issue.record("not found")
      return
    }
    #expect(source == "\(roots.path)/own/\(place)" && reason.contains("\(roots.path)/own/app.d"))
    #expect(strays(["apps"]).count == 1 && strays(["other"]).isEmpty)
  }

  @Test("A setting may be called Locked: with a plain value, or in the folder of locks")
  func calledLocked() throws {
    try roots.write("etc/app.d/a.json", #"{"Locked": true, "locks": 3}"#)
    try roots.write("etc/app.d/locks/a.json", #"{"locked": ["x"], "lock": {"a": 1}}"#)
    let managed = try roots.read()
    #expect(
      managed.entry("Locked", in: \.defaults)?.value == true && managed.entry("locks", in: \.defaults)?.value == 3)
    #expect(managed.entry("locked", in: \.locked)?.value == .array(["x"]) && managed.entry("lock", in: \.locked) != nil)
  }

  @Test(
    "A file is read as what its name says, and its error has line and column",
    arguments: [
      ("a.json", "{\"updates\": false,\n \"port\": 8080,\n}", "a name in quotes is missing, line 3, column 1"),
      ("a.json", #"{"updates":false "x":1}"#, "a comma or } is missing, line 1, column 18"),
      ("a.json", "{ updates = 0; }", "not JSON"), ("a.json", "<plist><dict/></plist>", "not JSON"),
      ("a.plist", #"{"a": 1}"#, "not a property list: an equals sign is missing, line 1, column 5"),
      ("a.plist", "<plist>\n<dict><key>a</key></dict></plist>", "line 2, column"),
      ("a.JSON", "{}", "named *.json"), ("a.yaml", "a: 1", "named *.json"), ("locks/a.yml", "a: 1", "named *.json"),
    ])
  func namedKind(name: String, text: String, words: String) throws {
    try roots.write("etc/app.d/\(name)", text)
    let error = #expect(throws: CofferError.self) { try roots.read() }
    guard case .malformedSettings(let source, let reason)? = error else { throw try #require(error) }
    #expect(source == "\(roots.path)/etc/app.d/\(name)" && reason.contains(words), "\(reason)")
  }

  @Test("All bad files of all applications are found at once")
  func allProblems() throws {
    try FileManager.default.createDirectory(atPath: "\(roots.path)/etc/b.d", withIntermediateDirectories: true)
    try roots.write("etc/app.d/1.json", "{")
    try roots.write("etc/app.d/2.json", #"{"locked": 1}"#)
    try roots.write("etc/b.d/1.plist", "x")
    try roots.write("etc/b.d/2.json", "{}")
    chmod("\(roots.path)/etc/b.d/2.json", 0o666)
    func files(_ own: [String]) -> [String] {
      ManagedSettings.problems(own, in: roots.all).map { error in
        switch error {
        case .malformedSettings(let source, _): source
        case .permissionDenied(let path, _): path
        default: "\(error)"
        }
      }.map { $0.replacing(roots.path + "/etc/", with: "") }
    }
    #expect(files([]) == ["app.d/1.json", "app.d/2.json:1", "b.d/1.plist"])
    // What may not be read is a problem only for the store's own applications.
    #expect(files(["b"]) == ["app.d/1.json", "app.d/2.json:1", "b.d/1.plist", "b.d/2.json"])
  }

  @Test("A value's line is that of its name, in JSON and in the text forms of property lists")
  func lines() throws {
    try roots.write(
      "etc/app.d/1.json", "{\n  \"a\": {\n    \"x\": 1\n  }, \"b\":\n  2,\n  \"locked\": {\"c\": 3,\n\"a\": 4}}")
    try roots.write(
      "etc/app.d/2.plist",
      "<plist>\n<dict>\n<key>d</key>\n<!-- -->\n<array/>\n<key>e</key><string>1</string></dict>\n</plist>")
    try roots.write("etc/app.d/3.plist", "// Old.\n{ f = 1;\n g = { a = 1; }; }")
    let managed = try roots.read()
    let defaults = ["a", "b", "d", "e", "f", "g"].map { managed.entry($0, in: \.defaults)?.place?.line }
    #expect(defaults == [2, 4, 3, 6, 2, 3])
    #expect(["c", "a"].map { managed.entry($0, in: \.locked)?.place?.line } == [6, 7])
    let list = try PropertyListSerialization.data(fromPropertyList: ["h": 1], format: .binary, options: 0)
    try list.write(to: URL(filePath: "\(roots.path)/etc/app.d/4.plist"))
    let place = try #require(try roots.read().entry("h", in: \.defaults)?.place)
    #expect(place.line == nil && place.description == "\(roots.path)/etc/app.d/4.plist")
  }
}

extension Keys {
  fileprivate static let port = Key("port", default: 1)
  fileprivate static let host = Key("host", in: "web", default: "none")
}

extension ManagedSettingsTests {
  @Test("Files are watched while a program runs: new, changed and removed ones, and folders created later")
  func followed() async throws {
    try FileManager.default.removeItem(atPath: "\(roots.path)/etc")
    let settings = try preferences()
    var changes = try settings.changes().makeAsyncIterator()
    var ports = try settings.values(of: .port).makeAsyncIterator()
    var hosts = try settings.values(of: .host).makeAsyncIterator()
    for _ in 0..<3 { #expect(settings[.port] == 1 && settings[.host] == "none") }
    #expect(await ports.next() == 1)
    #expect(await hosts.next() == "none")

    try FileManager.default.createDirectory(atPath: "\(roots.path)/new/app.d", withIntermediateDirectories: true)
    try roots.write("new/app.d/a.json", #"{"port": 2, "web/host": "h"}"#)
    rename("\(roots.path)/new", "\(roots.path)/etc")
    let first = try #require(await changes.next())
    #expect(first.origin == .elsewhere && first.concerns("port") && first.concerns(Keys.host))
    #expect(first.keys == ["host", "port", "web/host"] && first.scope == .keys)
    #expect(await ports.next() == 2)
    #expect(await hosts.next() == "h")
    for _ in 0..<3 { #expect(settings[.port] == 2 && settings[.host] == "h") }

    // A lock hides what is stored, to typed keys that were read before, too.
    settings[.port] = 5
    #expect(await ports.next() == 5)
    for _ in 0..<3 { #expect(settings[.port] == 5) }
    _ = await changes.next()
    try roots.place("etc/app.d/b.json", #"{"locked": {"port": 6}}"#)
    #expect(await ports.next() == 6)
    for _ in 0..<3 { #expect(settings[.port] == 6 && settings.integer(forKey: "port") == 6) }
    #expect(throws: CofferError.self) { try settings.set(7, for: .port) }
    #expect(try #require(await changes.next()).keys == ["port"])

    try FileManager.default.createDirectory(atPath: "\(roots.path)/etc/app.d/locks", withIntermediateDirectories: false)
    try roots.place("etc/app.d/locks/c.json", #"{"web/host": "locked"}"#)
    #expect(await hosts.next() == "locked")
    try FileManager.default.removeItem(atPath: "\(roots.path)/etc")
    #expect(await hosts.next() == "none")
    #expect(await ports.next() == 5)
    #expect(settings[.port] == 5)
    try settings.set(7, for: .port)
  }

  @Test("A change of a file without effect is not an event")
  func hidden() async throws {
    try roots.write("etc/app.d/a.json", #"{"port": 2}"#)
    let settings = try preferences()
    settings[.port] = 5
    var changes = try settings.changes().makeAsyncIterator()
    try roots.place("etc/app.d/a.json", #"{"port": 3}"#)
    try roots.place("etc/app.d/b.json", #"{"locked": {"port": 5}}"#)
    try roots.place("etc/app.d/c.json", #"{"other": 1}"#)
    #expect(await changes.next()?.keys == ["other"])
  }

  @Test("The target of a link is watched, and so is the link")
  func links() async throws {
    for name in ["one", "two"] {
      try FileManager.default.createDirectory(
        atPath: "\(roots.path)/\(name)", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
      try roots.write("\(name)/a.json", name == "one" ? #"{"port": 11}"# : #"{"port": 22}"#)
    }
    // Each link of a chain, wherever it is.
    symlink("one", "\(roots.path)/live")
    symlink("../../live", "\(roots.path)/etc/app.d/current")
    symlink("current/a.json", "\(roots.path)/etc/app.d/a.json")
    let settings = try preferences()
    var ports = try settings.values(of: .port).makeAsyncIterator()
    #expect(await ports.next() == 11)
    // Written in place.
    try roots.write("one/a.json", #"{"port": 12}"#)
    #expect(await ports.next() == 12)
    symlink("../../two", "\(roots.path)/etc/app.d/next")
    rename("\(roots.path)/etc/app.d/next", "\(roots.path)/etc/app.d/current")
    #expect(await ports.next() == 22)
    symlink("../../live", "\(roots.path)/etc/app.d/next")
    rename("\(roots.path)/etc/app.d/next", "\(roots.path)/etc/app.d/current")
    #expect(await ports.next() == 12)
    symlink("two", "\(roots.path)/next")
    rename("\(roots.path)/next", "\(roots.path)/live")
    #expect(await ports.next() == 22)
  }

  @Test("A file that is unsafe, malformed or TOML is reported once, and the last good settings stay")
  func becomesBad() async throws {
    try roots.write("etc/app.d/a.json", #"{"port": 2, "locked": {"web/host": "h"}}"#)
    let settings = try preferences()
    var errors = settings.errors.makeAsyncIterator()
    var ports = try settings.values(of: .port).makeAsyncIterator()
    #expect(await ports.next() == 2)
    let file = "\(roots.path)/etc/app.d/a.json"

    chmod(file, 0o666)
    let unsafe = try #require(await errors.next())
    guard case CofferError.permissionDenied(file, _) = unsafe.error else { throw unsafe.error }
    #expect(unsafe.instead == "the last good managed settings" && unsafe.key == nil)
    // The same trouble again is not reported again: the next report is of other trouble.
    chmod(file, 0o666)
    #expect(settings[.port] == 2 && settings[.host] == "h")
    #expect(throws: CofferError.self) { try settings.set("x", for: .host) }

    try roots.place("etc/app.d/a.json", "{")
    guard case CofferError.malformedSettings(file, _)? = await errors.next()?.error else {
      Issue.record("not reported as malformed")
      return
    }
    #expect(settings[.port] == 2)
    try roots.place("etc/app.d/a.json", #"{"port": 3}"#)
    #expect(await ports.next() == 3)
    #expect(settings[.host] == "none")

    try roots.place("etc/app.d/b.toml", "port = 4")
    guard case CofferError.malformedSettings(_, let reason)? = await errors.next()?.error else {
      Issue.record("TOML is not reported")
      return
    }
    #expect(reason.contains("JSON") && settings[.port] == 3)
    // As good again as before, and then bad again: told again.
    unlink("\(roots.path)/etc/app.d/b.toml")
    try roots.place("etc/app.d/a.json", #"{"port": 4}"#)
    #expect(await ports.next() == 4)
    chmod(file, 0o666)
    #expect(await errors.next()?.instead == unsafe.instead)
  }

  @Test("Released settings watch nothing, and keep nothing alive")
  func ended() async throws {
    weak var source: ManagedSource?
    do {
      let settings = try preferences()
      source = settings.overrides.source
      var ports: Preferences.Values<Int>.Iterator? = try settings.values(of: .port).makeAsyncIterator()
      #expect(await ports?.next() == 1)
      #expect(source != nil)
      ports = nil
      try await settings.close()
    }
    #expect(source == nil)
  }
}
