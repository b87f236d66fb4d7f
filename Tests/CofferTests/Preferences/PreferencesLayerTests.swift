import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("The search list") struct PreferencesLayerTests {
  private let database: Database
  private let proxy: ConnectionProxy

  init() throws {
    database = try .inMemory()
    proxy = try ConnectionProxy(database: database)
  }

  private func preferences(_ layers: Preferences.Layer...) -> Preferences {
    Preferences(proxy: proxy, collection: "app", overrides: Overrides(layers), registered: RegisteredDefaults())
  }

  private func arguments(_ arguments: String...) -> Preferences.Layer {
    .arguments(["program"] + arguments)
  }

  // MARK: Order

  @Test("6.9 searches forced values, arguments, environment, app, suites, global and registered, in this order")
  func order() throws {
    let layers: [Preferences.Layer] = [
      .variables(prefix: "T_", ["T_K": "environment", "T_ENVIRONMENT": "only there", "K": "of another"]),
      arguments("-k", "arguments", "-arguments", "only there"), .forced(["k": "forced", "forced": "only there"]),
    ]
    let all = preferences(layers[0], layers[1], layers[2])
    let withoutForced = preferences(layers[0], layers[1])
    let withEnvironment = preferences(layers[0])
    let plain = preferences()

    func expect(_ preferences: Preferences, _ value: String?, _ origin: Preferences.Origin?) throws {
      #expect(preferences.string(forKey: "k") == value)
      #expect(preferences.origin(ofKey: "k") == origin)
      #expect(try preferences.find("k")?.origin == origin)
      #expect(preferences.objectIsForced(forKey: "k") == (origin == .forced))
      try expectSameRepresentation(preferences)
    }
    plain.addSuite(named: "second")
    plain.removeSuite(named: "second")
    plain.addSuite(named: "first")
    plain.addSuite(named: "second")
    plain.addSuite(named: "first")
    for preferences in [all, withoutForced, withEnvironment, plain] {
      try preferences.register(defaults: ["k": "registered", "registered": "only there"])
    }
    for collection in ["app", "first", "second", "global"] {
      try proxy.setObject(collection, forKey: "k", inCollection: collection)
      try proxy.setObject("only there", forKey: collection, inCollection: collection)
    }
    try expect(all, "forced", .forced)
    try expect(withoutForced, "arguments", .arguments)
    try expect(withEnvironment, "environment", .variables)
    try expect(plain, "app", .application)
    try plain.removeObject(forKey: "k")
    try expect(plain, "first", .suite("first"))
    try proxy.removeObject(forKey: "k", inCollection: "first")
    try expect(plain, "second", .suite("second"))
    plain.removeSuite(named: "second")
    try expect(plain, "global", .global)
    plain.addSuite(named: "second")
    try expect(plain, "second", .suite("second"))
    try proxy.removeAllObjects(inCollection: "second")
    try proxy.removeObject(forKey: "k", inCollection: "global")
    try expect(plain, "registered", .registered)
    #expect(plain.origin(ofKey: "missing") == nil)
    try expect(all, "forced", .forced)
  }

  /// 6.9: the representation has for each key what the getter has, and the getter has nothing else.
  private func expectSameRepresentation(_ preferences: Preferences) throws {
    let representation = preferences.dictionaryRepresentation()
    for (key, object) in representation {
      let found = try #require(preferences.object(forKey: key), "\(key)")
      #expect(try Value.of(object, key, in: "") == Value.of(found, key, in: ""), "\(key)")
    }
    for key in ["k", "forced", "arguments", "environment", "app", "first", "second", "global", "registered"] {
      #expect((representation[key] != nil) == (preferences.object(forKey: key) != nil), "\(key)")
    }
  }

  @Test("6.9 lists keys that are equal to Swift but differ in their bytes once, with the value of the listed one")
  func equalKeys() throws {
    let preferences = preferences()
    try preferences.set(1, forKey: "\u{e9}")
    try preferences.set(2, forKey: "e\u{301}")
    let representation = preferences.dictionaryRepresentation()
    let key = try #require(representation.keys.first)
    #expect(representation.count == 1)
    #expect(representation[key] as? Int == preferences.integer(forKey: key))
  }

  @Test("6.9 is the same for a suite as for its settings, except for its own collection")
  func suites() throws {
    let preferences = preferences(.forced(["forced": 1]), arguments("-argument", "2"))
    try preferences.register(defaults: ["registered": 3])
    let suite = preferences.suite(named: "suite")
    try suite.set(4, forKey: "k")
    #expect(["forced", "argument", "registered", "k"].map(suite.integer) == [1, 2, 3, 4])
    #expect(preferences.object(forKey: "k") == nil)
    #expect(suite.origin(ofKey: "k") == .application)
  }

  @Test("6.9 keeps reading from a layer when the key is set, and stores the value")
  func setBelow() throws {
    let preferences = preferences(arguments("-k", "argument"))
    try preferences.set("stored", forKey: "k")
    #expect(preferences.string(forKey: "k") == "argument")
    #expect(try proxy.object(forKey: "k", inCollection: "app") == "stored")
  }

  // MARK: Arguments

  private static let argumentCases: [(words: [String], value: Value?)] = [
    (["-k", "v"], "v"), (["-k", "42"], "42"), (["-k", ""], ""), (["-k", " {} "], " {} "),
    (["-k", "{a = 1; b = (x, \"y z\");}"], ["a": "1", "b": ["x", "y z"]]), (["-k", "{\"a\": 1}"], ["a": 1]),
    (["-k", "(a, b)"], ["a", "b"]), (["-k", "(hello)"], ["hello"]), (["-k", "[1, 2.5, true]"], [1, 2.5, true]),
    (["-k", "<0102>"], .data(Data([1, 2]))), (["-k", "<true/>"], true),
    (["-k", "<plist><array><integer>1</integer></array></plist>"], [1]), (["-k", "\"quoted\""], "quoted"),
    (["-k", "{"], "{"), (["-k", "(a"], "(a"), (["-k", "<b>"], "<b>"), (["-k", "[1"], "[1"), (["-k", "\"a"], "\"a"),
    // Pairs, wherever they stand; a dash without a number begins the next key.
    (["file", "-k", "v", "file"], "v"), (["-flag", "-k", "v"], "v"), (["-k", "-5"], "-5"), (["-k", "-other"], nil),
    (["-k"], nil), (["k", "v"], nil), (["--k", "v"], nil), (["-", "-k", "v"], "v"), (["--", "-k", "v"], nil),
    (["-k", "--"], nil), (["-k", "first", "-k", "last"], "last"), (["-x", "k", "-k", "v"], "v"), ([], nil),
  ]

  @Test(
    "6.9 accepts `-key value` as an argument: a property list if it is one, otherwise text",
    arguments: argumentCases)
  func parsing(_ words: [String], _ value: Value?) throws {
    let preferences = preferences(.arguments(["-k"] + words))
    #expect(preferences.value(forKey: "k") == value)
    #expect(preferences.value(forKey: "k")?.kind == value?.kind)
    try expectSameRepresentation(preferences)
  }

  @Test("6.9 coerces arguments like any other text")
  func coercedArguments() {
    let preferences = preferences(arguments("-n", "42abc", "-on", "YES", "-at", "~/x"))
    #expect(preferences.integer(forKey: "n") == 42)
    #expect(preferences.bool(forKey: "on"))
    #expect(preferences.url(forKey: "at")?.path == NSHomeDirectory() + "/x")
  }

  // MARK: Environment

  @Test("6.9 finds a key in the variable with its name in upper case, with underscores for all but letters and digits")
  func environment() throws {
    let preferences = preferences(
      .variables(
        prefix: "APP_",
        [
          "APP_FONTSIZE": "14", "APP_WINDOW_WIDTH": "80", "APP_": "no name", "APP": "x", "FONTSIZE": "x",
          "APP_EMPTY": "",
          "APP_LIST": "[1]", "APP_lower": "unreachable",
        ]))
    #expect(preferences.integer(forKey: "fontSize") == 14)
    #expect(preferences.integer(forKey: "fontsize") == 14)
    for key in ["window.width", "window-width", "WINDOW_WIDTH", "window/width", "window\u{e9}width"] {
      #expect(preferences.integer(forKey: key) == 80, "\(key)")
    }
    #expect(preferences.string(forKey: "empty") == "")
    #expect(preferences.value(forKey: "list") == [1])
    #expect(preferences.object(forKey: "windowWidth") == nil)
    #expect(preferences.object(forKey: "lower") == nil)
    // Listed as the known keys; otherwise as names in lower case.
    try preferences.register(defaults: ["fontSize": 12])
    let keys = Set(preferences.dictionaryRepresentation().keys)
    #expect(keys == ["fontSize", "window_width", "empty", "list"])
    #expect(preferences.dictionaryRepresentation()["fontSize"] as? String == "14")
    try expectSameRepresentation(preferences)
  }

  @Test(
    "names the variable of a key as `prefs exec --prefix` does",
    arguments: [
      ("port", "my_", "MY_PORT"), ("2nd", "my_", "MY_2ND"), ("2nd", "", "_2ND"), ("port", "2.", "_2_PORT"),
      ("window.width", "example.", "EXAMPLE_WINDOW_WIDTH"), ("_2nd", "", "_2ND"),
    ])
  func variableNames(key: String, prefix: String, name: String) throws {
    #expect(VariableName.of(key, prefix: prefix) == name)
    let preferences = preferences(.variables(prefix: prefix, [name: "found", prefix + key: "not this one"]))
    #expect(preferences.string(forKey: key) == "found")
    // Without a known key: as one that the variable stands for.
    let listed = try #require(preferences.dictionaryRepresentation().keys.first)
    #expect(VariableName.of(listed, prefix: prefix) == name)
    try expectSameRepresentation(preferences)
  }

  // MARK: Types

  private enum Level: Int, Codable { case low = 1, high }

  @Test("6.9 reads the text of a layer as the requested type")
  func types() throws {
    let preferences = preferences(
      arguments(
        "-n", "42", "-big", "18446744073709551615", "-x", "1.5", "-on", "yes", "-url", "https://example.org/", "-id",
        "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "-list", "[1, 2]", "-text", "(a, b)", "-level", "2", "-since",
        "2026-01-31T08:30:00Z", "-wrong", "abc"))
    #expect(preferences.object(forKey: "n", as: Int.self) == 42)
    #expect(preferences.object(forKey: "n", as: String.self) == "42")
    #expect(preferences.object(forKey: "n", as: Double.self) == 42)
    #expect(preferences.object(forKey: "n", as: Int?.self) == .some(42))
    #expect(preferences.object(forKey: "big", as: UInt64.self) == .max)
    #expect(preferences.object(forKey: "x", as: Double.self) == 1.5)
    #expect(preferences.object(forKey: "on", as: Bool.self) == true)
    #expect(preferences.object(forKey: "url", as: URL.self) == URL(string: "https://example.org/"))
    #expect(preferences.object(forKey: "id", as: UUID.self) == UUID(uuidString: "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"))
    #expect(preferences.object(forKey: "list", as: [Int].self) == [1, 2])
    // A property list if read as a list, the original text if read as text.
    #expect(preferences.object(forKey: "text", as: [String].self) == ["a", "b"])
    #expect(preferences.object(forKey: "text", as: String.self) == "(a, b)")
    #expect(preferences.object(forKey: "level", as: Level.self) == .high)
    #expect(preferences.object(forKey: "since", as: Date.self) == Date(timeIntervalSince1970: 1_769_848_200))
    #expect(throws: CofferError.self) { try preferences.throwing.object(forKey: "wrong", as: Int.self) }
    // What is forced has types already.
    let forced = self.preferences(.forced(["n": "42", "m": 42]))
    #expect(throws: CofferError.self) { try forced.throwing.object(forKey: "n", as: Int.self) }
    #expect(forced.object(forKey: "m", as: Int.self) == 42)
  }

  // MARK: Forced files

  @Test("6.9 reads forced values from JSON and all property list formats, or reports what is wrong")
  func forcedFile() throws {
    let store = try TemporaryStore()
    let path = store.folder + "/forced"
    func write(_ data: Data) throws { try data.write(to: URL(filePath: path)) }
    let settings: [String: Any] = ["locked": true, "limit": 5]
    let files: [Data] = [
      Data(#"{"locked": true, "limit": 5}"#.utf8),
      try PropertyListSerialization.data(fromPropertyList: settings, format: .xml, options: 0),
      try PropertyListSerialization.data(fromPropertyList: settings, format: .binary, options: 0),
    ]
    for file in files {
      try write(file)
      let preferences = preferences(try .forced(contentsOf: path))
      #expect(preferences.value(forKey: "locked") == .bool(true))
      #expect(preferences.value(forKey: "limit") == .int(5))
      #expect(preferences.objectIsForced(forKey: "limit"))
      #expect(!preferences.objectIsForced(forKey: "other"))
    }
    for wrong in ["", "[1]", "(1)", "text", #"{"a": null}"#, "{", "<plist/>", "\u{1}"] {
      try write(Data(wrong.utf8))
      let error = #expect(throws: CofferError.self) { try Preferences.Layer.forced(contentsOf: path) }
      guard case .malformedSettings(let source, _) = error, source == path || source == "\(path):1" else {
        Issue.record("\(wrong): \(String(describing: error))")
        continue
      }
    }
    try FileManager.default.removeItem(atPath: path)
    let error = #expect(throws: CofferError.self) { try Preferences.Layer.forced(contentsOf: path) }
    guard case .inputOutput(path, _) = error else { throw try #require(error) }
    let missing = try Preferences.Layer.forced(contentsOf: path, mayBeMissing: true)
    #expect(preferences(missing).dictionaryRepresentation().isEmpty)
  }
}
