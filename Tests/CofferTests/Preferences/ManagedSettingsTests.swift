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

@Suite("What an administrator gives and locks") struct ManagedSettingsTests {
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

    func read() throws -> ManagedSettings {
      try ManagedSettings(ofApplication: "app", in: ["\(path)/etc", "\(path)/own"])
    }
  }

  private let roots: Roots

  init() throws { roots = try Roots() }

  private func preferences(_ layers: [Preferences.Layer] = []) throws -> Preferences {
    Preferences(
      proxy: try ConnectionProxy(database: .inMemory()), collection: "app",
      overrides: Overrides(layers, managed: try roots.read()), registered: RegisteredDefaults())
  }

  @Test("Files are read in the order of their names, JSON and property lists, and others are left alone")
  func order() throws {
    try roots.write("etc/app.d/20.json", #"{"a": 2, "b": 2}"#)
    try roots.write("etc/app.d/10.json", #"{"a": 1, "c": 1}"#)
    try roots.write("etc/app.d/30.plist", "<plist><dict><key>d</key><integer>3</integer></dict></plist>")
    try roots.write("etc/app.d/.hidden.json", "nonsense")
    try roots.write("etc/app.d/notes.txt", "nonsense")
    let settings = try preferences()
    #expect(["a", "b", "c", "d"].map(settings.integer) == [2, 2, 1, 3])
    #expect(settings.origin(ofKey: "a") == .managed(file: "\(roots.path)/etc/app.d/20.json"))
    #expect(settings.dictionaryRepresentation()["c"] as? Int == 1)
  }

  @Test("A default shows below all that is stored, and above what is registered")
  func defaults() throws {
    try roots.write("etc/app.d/a.json", #"{"size": 1, "editor/size": 5, "bad": "text"}"#)
    let settings = try preferences()
    try settings.register(defaults: ["size": 9])
    #expect(settings.integer(forKey: "size") == 1)
    let size = Key("size", in: "editor", default: 3)
    #expect(settings[size] == 5 && settings[size] == 5)
    #expect(try settings.origin(of: size) == .managed(file: "\(roots.path)/etc/app.d/a.json"))
    #expect(settings[Key("bad", default: 7)] == 7)
    try settings.proxy.setObject(2, forKey: "size", inCollection: Preferences.globalCollection)
    #expect(settings.integer(forKey: "size") == 2)
    settings[size] = 6
    #expect(settings[size] == 6)
    try settings.reset(size)
    #expect(settings[size] == 5)
  }

  @Test("What is locked shows whatever else there is, and no way of setting takes it")
  func locked() throws {
    try roots.write("etc/app.d/a.json", #"{"locked": {"port": 80, "web/host": "h"}}"#)
    try roots.write("etc/app.d/locks/b.json", #"{"debug": false}"#)
    let settings = try preferences([.forced(["port": .int(1)]), .arguments(["program", "-debug", "true"])])
    let file = "\(roots.path)/etc/app.d/a.json"
    #expect(settings.integer(forKey: "port") == 80 && settings.objectIsForced(forKey: "port"))
    #expect(settings.origin(ofKey: "port") == .locked(file: file))
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

  @Test("The folder of the variable adds to the host's, and cannot lift its locks")
  func secondFolder() throws {
    try roots.write("etc/app.d/a.json", #"{"size": 1, "locked": {"port": 80}}"#)
    try roots.write("own/app.d/a.json", #"{"size": 2, "locked": {"port": 81, "host": "h"}}"#)
    let settings = try preferences()
    #expect(settings.integer(forKey: "size") == 2 && settings.integer(forKey: "port") == 80)
    #expect(settings.string(forKey: "host") == "h")
  }

  @Test("Without files nothing is managed")
  func none() throws {
    #expect(try roots.read().isEmpty)
    #expect(try ManagedSettings(ofApplication: "other", in: ["\(roots.path)/etc", "\(roots.path)/none"]).isEmpty)
    #expect(try ManagedSettings(ofApplication: "../app", in: ["\(roots.path)/etc"]).isEmpty)
  }

  @Test("What others can write to is refused: a file, its folder, one further up, and where a link leads")
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
    "A file that cannot be understood is an error that names it",
    arguments: [
      ("a.json", "{"), ("a.json", "[1]"), ("a.toml", "a = 1"), ("locks/a.plist", "x"), ("a.json", #"{"a": null}"#),
      ("a.json", #"{"locked": {"a": null}}"#),
    ])
  func malformed(name: String, text: String) throws {
    try roots.write("etc/app.d/\(name)", text)
    let error = #expect(throws: CofferError.self) { try roots.read() }
    guard case .malformedSettings(let source, _)? = error else { throw try #require(error) }
    #expect(source == "\(roots.path)/etc/app.d/\(name)")
  }
}
