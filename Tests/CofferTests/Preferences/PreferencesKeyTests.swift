import Foundation
import Testing

@testable import Coffer

private enum Theme: String, Codable { case light, dark }

private struct Frame: Codable, Equatable {
  var width = 80
  var height = 24
}

extension Keys {
  fileprivate static let theme = Key("theme", in: "ui", default: Theme.dark)
  fileprivate static let retries = Key("retries", default: 3, limits: .range(0...10))
  fileprivate static let nickname = Key<String?>("nickname")
  fileprivate static let previous = Key<Theme?>("previous", limits: .satisfying("dark") { $0 != .light })
  fileprivate static let frame = Key("frame", default: Frame())
  fileprivate static let recent = Key("recent", default: [String]())
  fileprivate static let home = Key<URL?>("home")
  fileprivate static let ratio = Key("ratio", default: 1.5)
}

@Suite("Typed keys") struct PreferencesKeyTests {
  private let preferences: Preferences
  private var proxy: ConnectionProxy { preferences.proxy }

  init() throws {
    preferences = try Preferences.inMemory()
  }

  @Test("read as their default until set, then as the value set, of any Codable type")
  func values() throws {
    #expect(preferences[.theme] == .dark)
    preferences[.theme] = .light
    #expect(preferences[.theme] == .light)
    #expect(try preferences.value(of: .theme) == .light)
    #expect(preferences[.nickname] == nil)
    preferences[.nickname] = "x"
    #expect(preferences[.nickname] == "x")
    preferences[.frame].width = 100
    #expect(preferences[.frame] == Frame(width: 100))
    preferences[.recent].append("a")
    preferences[.recent].append("b")
    #expect(preferences[.recent] == ["a", "b"])
    try preferences.set(5, for: .retries, durability: .committed)
    #expect(preferences[.retries] == 5)
    preferences[.retries] += 1
    #expect(preferences[.retries] == 6)
    #expect(preferences[.ratio] == 1.5)
    preferences[.home] = URL(string: "https://example.org")
    #expect(preferences.url(forKey: "home")?.host() == "example.org")
  }

  @Test("show their default again after a reset, and after nil was set")
  func reset() throws {
    preferences[.theme] = .light
    try preferences.reset(.theme)
    #expect(preferences[.theme] == .dark)
    preferences[.nickname] = "x"
    preferences[.nickname] = nil
    #expect(preferences[.nickname] == nil)
    #expect(preferences.object(forKey: "nickname") == nil)
    preferences[.previous] = .dark
    preferences[.previous] = nil
    #expect(preferences.object(forKey: "previous") == nil)
  }

  @Test("belong to the collection they name, or that of the preferences, or the default one")
  func collections() throws {
    preferences[.theme] = .light
    preferences[.retries] = 5
    #expect(try proxy.object(forKey: "theme", inCollection: "ui") == "light")
    #expect(try proxy.object(forKey: "retries", inCollection: "application") == 5)
    #expect(proxy[.theme] == .light)
    #expect(proxy[.retries] == 3)
    proxy[.retries] = 7
    #expect(try proxy.object(forKey: "retries") == 7)
    #expect(try proxy.value(of: .retries) == 7)
    #expect(preferences[.retries] == 5)
    try proxy.reset(.retries)
    #expect(proxy[.retries] == 3)
    try proxy.set(.dark, for: .theme)
    #expect(preferences[.theme] == .dark)
  }

  @Test("return optional values of every type, however often they are read")
  func optionals() throws {
    let (secret, data, date) = (Key<Secret?>("secret"), Key<Data?>("data"), Key<Date?>("date"))
    let (text, number, list) = (Key<String?>("text"), Key<Int?>("number"), Key<[Int]?>("list"))
    try preferences.set(Secret("hunter2"), for: secret)
    try preferences.set(Data([1, 2]), for: data)
    try preferences.set(Date(timeIntervalSince1970: 1), for: date)
    try preferences.set("a", for: text)
    try preferences.set(7, for: number)
    try preferences.set([1, 2], for: list)
    for _ in 0..<3 {
      #expect(preferences[secret]?.revealed() == "hunter2" && preferences[data] == Data([1, 2]))
      #expect(preferences[date] == Date(timeIntervalSince1970: 1) && preferences[text] == "a")
      #expect(preferences[number] == 7 && preferences[list] == [1, 2])
    }
  }

  @Test("refuse to set an invalid value, and read a stored one as their default, reported")
  func validation() async throws {
    #expect(throws: CofferError.invalidValue(collection: "application", key: "retries", reason: "0 to 10, not 11")) {
      try preferences.set(11, for: .retries)
    }
    #expect(throws: CofferError.invalidValue(collection: "", key: "retries", reason: "0 to 10, not -1")) {
      try proxy.set(-1, for: .retries)
    }
    #expect(throws: CofferError.self) { try preferences.set(.light, for: .previous) }
    #expect(preferences.object(forKey: "retries") == nil)
    let errors = preferences.errors
    preferences[.retries] = 11
    #expect(preferences.object(forKey: "retries") == nil)
    try preferences.set(12, forKey: "retries")
    #expect(preferences[.retries] == 3)
    #expect(throws: CofferError.invalidValue(collection: "application", key: "retries", reason: "0 to 10, not 12")) {
      try preferences.value(of: .retries)
    }
    try preferences.set("many", forKey: "retries")
    #expect(preferences[.retries] == 3)
    // What is registered is nearer than the key's own default, if it is valid.
    try preferences.register(defaults: ["retries": 4])
    #expect(preferences[.retries] == 4)
    try preferences.register(defaults: ["retries": 40])
    #expect(preferences[.retries] == 4)
    try proxy.setObject(13, forKey: "retries")
    #expect(proxy[.retries] == 3)
    // Each bad value once: what was refused, 12, "many", the registered 40, and the proxy's 13.
    var reports: [Preferences.Failure] = []
    for await report in errors {
      reports.append(report)
      if reports.count == 5 { break }
    }
    #expect(reports.allSatisfy { $0.key == "retries" })
    #expect(reports.map(\.collection) == Array(repeating: "application", count: 4) + [""])
    #expect(reports.map(\.instead) == [nil, "the default", "the default", "the last good value", "the default"])
    try preferences.set(2, forKey: "retries")
    #expect(preferences[.retries] == 2)
  }

  @Test("6.9 find forced values, arguments and variables, by their collection if they name one")
  func layers() throws {
    let preferences = Preferences(
      proxy: proxy, collection: "app",
      overrides: Overrides([
        .arguments(["program", "-retries", "7", "-ui/theme", "light", "-theme", "other", "-recent", "(a, b)"]),
        .variables(prefix: "T_", ["T_RATIO": "2.5", "T_NICKNAME": "{x", "T_UI_THEME": "dark"]),
      ]), registered: RegisteredDefaults())
    try preferences.set(1, forKey: "retries")
    #expect(preferences[.retries] == 7)
    #expect(try preferences.origin(of: .retries) == .arguments)
    #expect(preferences[.theme] == .light)
    #expect(preferences[.recent] == ["a", "b"])
    #expect(preferences[.ratio] == 2.5)
    #expect(try preferences.origin(of: .ratio) == .variables)
    #expect(preferences[.nickname] == "{x")
    #expect(try preferences.origin(of: .home) == nil)
    let invalid = Preferences(
      proxy: proxy, collection: "app",
      overrides: Overrides([.arguments(["program", "-retries", "70", "-ui/theme", "x"])]),
      registered: RegisteredDefaults())
    #expect(try invalid.value(of: .retries) == 1)
    #expect(try invalid.origin(of: .retries) == .application)
    try preferences.removeObject(forKey: "retries")
    #expect(throws: CofferError.invalidValue(collection: "app", key: "retries", reason: "0 to 10, not 70")) {
      try invalid.value(of: .retries)
    }
    #expect(throws: CofferError.self) { try invalid.value(of: .theme) }
    #expect(invalid[.theme] == .dark)
  }

  @Test("search suites and the global collection as other keys do")
  func searchList() throws {
    try preferences.suite(named: Preferences.globalCollection).set(8, forKey: "retries")
    #expect(preferences[.retries] == 8)
    #expect(try preferences.origin(of: .retries) == .global)
    preferences.addSuite(named: "suite")
    try preferences.suite(named: "suite").set(9, forKey: "retries")
    #expect(preferences[.retries] == 9)
    // A key with a collection has no other.
    try preferences.suite(named: Preferences.globalCollection).set("light", forKey: "theme")
    #expect(preferences[.theme] == .dark)
    preferences[.theme] = .light
    #expect(try preferences.origin(of: .theme) == .suite("ui"))
  }

  @Test("have their own cache slots")
  func places() {
    let places = [
      Keys.theme.place, Keys.retries.place, Keys.nickname.place, Key("theme", in: "ui", default: Theme.dark).place,
    ]
    #expect(Set(places).count == 4)
    #expect(Keys.theme.place == Keys.theme.place)
  }

  #if compiler(>=6.2)
    @Test("trap with their name if the default is outside of the limits, or a limit is none")
    func traps() async {
      let outside = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        _ = Key("retries", in: "net", default: 40, limits: .range(0...10))
      }
      expect(outside, "net/retries", "its default must be 0 to 10, not 40")
      let pattern = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        _ = Key("host", default: "a", limits: .pattern("(a"))
      }
      expect(pattern, "host", "the pattern (a is not supported")
      let optional = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        _ = Key<String?>("proxy", limits: .pattern("(a"))
      }
      expect(optional, "proxy", "the pattern (a is not supported")
    }

    private func expect(_ result: ExitTest.Result?, _ words: String...) {
      let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
      for words in words { #expect(text.contains(words), "\(text)") }
    }
  #endif

  @Test("read the path of a file, as UserDefaults stores its URL, as a URL")
  func filePaths() throws {
    try preferences.set("/tmp/a b", forKey: "home")
    #expect(preferences[.home] == URL(filePath: "/tmp/a b"))
    try preferences.set("~/notes", forKey: "home")
    #expect(preferences[.home] == preferences.url(forKey: "home"))
    #expect(preferences[.home]?.path().hasSuffix("/notes") == true)
    for text in ["example.org", "https://example.org"] {
      try preferences.set(text, forKey: "home")
      #expect(throws: CofferError.self) { try preferences.value(of: .home) }
    }
    #expect(SettingType.url.accepts("/tmp") && !SettingType.url.accepts("tmp"))
  }
}
