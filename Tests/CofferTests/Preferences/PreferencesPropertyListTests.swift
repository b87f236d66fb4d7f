import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Property lists of preferences") struct PreferencesPropertyListTests {
  private let preferences: Preferences

  init() throws {
    preferences = try Preferences.inMemory()
  }

  /// What UserDefaults would have in its file.
  private let settings: [String: Any] = [
    "bool": true, "one": 1, "real": 1.0, "zero": 0, "false": false, "min": Int.min, "pi": 3.25, "text": "a&b é",
    "data": Data([0, 255]), "date": Date(timeIntervalSinceReferenceDate: 12345), "empty": "", "null": "$null",
    "list": [1, true, 1.5, "x", ["y": [Data()]]] as [Any], "dict": ["nested": ["deep": false]],
  ]

  private func checkSettings(_ preferences: Preferences) {
    #expect(preferences.dictionaryRepresentation().count == settings.count)
    let expected: [String: Value] = [
      "bool": true, "one": 1, "real": .double(1), "zero": 0, "false": false, "min": .int(.min), "pi": 3.25,
      "text": "a&b é", "data": .data(Data([0, 255])), "date": .date(Date(timeIntervalSinceReferenceDate: 12345)),
      "empty": "", "null": "$null", "list": [1, true, 1.5, "x", ["y": [.data(Data())]]],
      "dict": ["nested": ["deep": false]],
    ]
    for (key, value) in expected {
      #expect(preferences.value(forKey: key) == value, "\(key)")
      #expect(preferences.value(forKey: key)?.kind == value.kind, "\(key)")
    }
  }

  // MARK: Importing

  @Test(
    "import what UserDefaults wrote, each value of its exact type",
    arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
  func imports(_ format: PropertyListSerialization.PropertyListFormat) throws {
    let data = try PropertyListSerialization.data(fromPropertyList: settings, format: format, options: 0)
    try preferences.importPropertyList(data)
    checkSettings(preferences)
  }

  #if !canImport(Darwin)
    @Test("import the file of UserDefaults, where Foundation keeps it")
    func findsUserDefaults() throws {
      // Foundation reads the folder once, so it is this process's own.
      let name = "coffer-import-\(UUID().uuidString)"
      let defaults = try #require(UserDefaults(suiteName: name))
      defer { defaults.removePersistentDomain(forName: name) }
      #expect(try preferences.importUserDefaults(domain: name) == nil)
      for (key, value) in settings { defaults.set(value, forKey: key) }
      try #require(defaults.synchronize())
      let path = try #require(try preferences.importUserDefaults(domain: name))
      #expect(path.hasSuffix("/\(name).plist"))
      checkSettings(preferences)
      let suite = preferences.suite(named: name)
      #expect(try suite.importUserDefaults() == path)
      checkSettings(suite)
      #expect(try preferences.importUserDefaults(domain: "../\(name)") == nil)
    }
  #endif

  @Test("import a file that UserDefaults itself wrote, URLs included")
  func importsUserDefaults() throws {
    let name = "coffer-import-\(UUID().uuidString)"
    let defaults = try #require(UserDefaults(suiteName: name))
    for (key, value) in settings { defaults.set(value, forKey: key) }
    defer { defaults.removePersistentDomain(forName: name) }
    var domain = try #require(defaults.persistentDomain(forName: name))
    let url = try #require(URL(string: "https://example.org/a?b=1&c=2#d"))
    domain["url"] = try NSKeyedArchiver.archivedData(withRootObject: url as NSURL, requiringSecureCoding: false)
    domain["path"] = "~/notes.txt"
    let data = try PropertyListSerialization.data(fromPropertyList: domain, format: .binary, options: 0)
    let store = try TemporaryStore()
    let path = store.folder + "/\(name).plist"
    try data.write(to: URL(filePath: path))
    try preferences.importPropertyList(at: path)
    #expect(preferences.value(forKey: "url") == .url(url))
    #expect(preferences.url(forKey: "path")?.path == NSHomeDirectory() + "/notes.txt")
    try preferences.removeObject(forKey: "url")
    try preferences.removeObject(forKey: "path")
    checkSettings(preferences)
  }

  @Test("import all of a list or nothing, in one transaction, merging or replacing")
  func atOnce() throws {
    let database = preferences.proxy.database
    func commitNumber() throws -> CommitNumber { try database.makeConnection().read { try $0.commitNumber() } }
    try preferences.set("old", forKey: "kept")
    try preferences.set("old", forKey: "a")
    try preferences.suite(named: "other").set("other", forKey: "kept")
    try preferences.flushAndWait()
    let before = try commitNumber()
    let list = Data("{a = new; b = new;}".utf8)
    try preferences.importPropertyList(list)
    #expect(try commitNumber() == before + 1)
    #expect(["a", "b", "kept"].map(preferences.string) == ["new", "new", "old"])
    // Pending, and older than the import.
    try preferences.set("pending", forKey: "c")
    try preferences.importPropertyList(list, mode: .replace)
    #expect(preferences.dictionaryRepresentation().keys.sorted() == ["a", "b"])
    #expect(preferences.suite(named: "other").string(forKey: "kept") == "other")

    let after = try commitNumber()
    let deep = String(repeating: "(", count: 150) + String(repeating: ")", count: 150)
    let error = #expect(throws: CofferError.self) {
      try preferences.importPropertyList(Data("{a = 1; deep = \(deep); z = 1;}".utf8), mode: .replace)
    }
    guard case .notEncodable("application", "deep", _) = error else { throw try #require(error) }
    for wrong in ["(a)", "{a = b", "", "<plist><dict><key>a</key></dict></plist>"] {
      let error = #expect(throws: CofferError.self) { try preferences.importPropertyList(Data(wrong.utf8)) }
      guard case .malformedSettings = error else { throw try #require(error) }
    }
    preferences.proxy.writtenCollectionsFilter = .except(["application"])
    #expect(throws: CofferError.collectionNotAllowed(collection: "application")) {
      try preferences.importPropertyList(list, mode: .replace)
    }
    #expect(try commitNumber() == after)
    #expect(preferences.dictionaryRepresentation().keys.sorted() == ["a", "b"])
  }

  // MARK: Exporting

  @Test(
    "export their contents, with pending changes and without layers, readable for Foundation",
    arguments: [Preferences.PropertyListFormat.xml, .binary])
  func exports(_ format: Preferences.PropertyListFormat) throws {
    try preferences.register(defaults: ["registered": 1])
    let data = try preferences.proxy.database.makeConnection().readWrite { _ in
      // No flush gets the write lock.
      for (key, value) in settings { try preferences.set(value, forKey: key) }
      try preferences.suite(named: Preferences.globalCollection).set(1, forKey: "global")
      return try preferences.exportPropertyList(format: format)
    }
    var found = PropertyListSerialization.PropertyListFormat.openStep
    let list = try PropertyListSerialization.propertyList(from: data, format: &found)
    #expect(found == (format == .xml ? .xml : .binary))
    #expect(NSDictionary(dictionary: try #require(list as? [String: Any])) == NSDictionary(dictionary: settings))
    let other = try Preferences.inMemory()
    try other.importPropertyList(data)
    checkSettings(other)
    // And UserDefaults takes all of it.
    let name = "coffer-export-\(UUID().uuidString)"
    let defaults = try #require(UserDefaults(suiteName: name))
    defer { defaults.removePersistentDomain(forName: name) }
    defaults.setPersistentDomain(try #require(list as? [String: Any]), forName: name)
    #expect(defaults.integer(forKey: "one") == 1)
    #expect(defaults.data(forKey: "data") == Data([0, 255]))
  }

  private struct Server: Codable, Equatable {
    var host = "h"
    var ports = [1, 2]
    var since = Date(timeIntervalSinceReferenceDate: 0.5)
  }

  @Test("export numbers at the ends of their range, and Codable values, that read back equal")
  func extremes() throws {
    try preferences.set(UInt64.max, forKey: "uint64")
    try preferences.set(-Double.infinity, forKey: "infinity")
    try preferences.set(-0.0, forKey: "zero")
    try preferences.set(Double.nan, forKey: "nan")
    try preferences.set(Server(), forKey: "server")
    for format in [Preferences.PropertyListFormat.xml, .binary] {
      let other = try Preferences.inMemory()
      try other.importPropertyList(try preferences.exportPropertyList(format: format))
      #expect(other.value(forKey: "uint64") == .uint64(.max))
      #expect(other.double(forKey: "infinity") == -.infinity)
      #expect(other.double(forKey: "zero").sign == .minus)
      #expect(other.double(forKey: "nan").isNaN)
      #expect(other.object(forKey: "server", as: Server.self) == Server())
    }
  }

  @Test(
    "export a URL as UserDefaults does: a file's as its path, others as an archive",
    arguments: [
      "https://example.org/a?b=1&c=2#d", "mailto:a@example.org", "relative/x", "https://example.org/%3Ctag%3E",
    ])
  func urls(_ text: String) throws {
    let url = try #require(URL(string: text))
    let home = NSHomeDirectory()
    let relative = try #require(URL(string: "c", relativeTo: URL(string: "https://example.org/b/")))
    try preferences.set(url, forKey: "url")
    try preferences.set(relative, forKey: "relative")
    try preferences.set(URL(filePath: home + "/a b"), forKey: "home")
    try preferences.set(URL(filePath: "/etc/x y"), forKey: "path")
    try preferences.set(URL(filePath: home + "-not/a"), forKey: "beside")
    for format in [Preferences.PropertyListFormat.xml, .binary] {
      let data = try preferences.exportPropertyList(format: format)
      let list = try #require(try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
      #expect(list["home"] as? String == "~/a b")
      #expect(list["path"] as? String == "/etc/x y")
      #expect(list["beside"] as? String == home + "-not/a")
      let archived = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSURL.self, from: #require(list["url"] as? Data))
      #expect(archived?.absoluteString == text)
      let other = try Preferences.inMemory()
      try other.importPropertyList(data)
      #expect(other.url(forKey: "url") == url)
      #expect(other.url(forKey: "relative") == relative)
      #expect(other.url(forKey: "home") == URL(filePath: home + "/a b"))
    }
  }

  @Test("leave data unchanged that is not an archive of a URL")
  func otherArchives() throws {
    let archives = [
      try NSKeyedArchiver.archivedData(withRootObject: "text" as NSString, requiringSecureCoding: false),
      Data("bplist00".utf8), Data("<?xml".utf8),
      // A base that is its own base, without end.
      Data(
        String(decoding: URLArchive.data(try #require(URL(string: "a"))), as: UTF8.self)
          .replacing(
            "<key>NS.base</key><dict><key>CF$UID</key><integer>0</integer>",
            with: "<key>NS.base</key><dict><key>CF$UID</key><integer>1</integer>"
          ).utf8),
    ]
    for archive in archives { #expect(URLArchive.unwrapped(.data(archive)) == .data(archive)) }
    #expect(URLArchive.unwrapped(.data(URLArchive.data(try #require(URL(string: "a"))))).kind == .url)
  }

  @Test("refuse to export what property lists cannot hold, naming the key")
  func refused() throws {
    let url = try #require(URL(string: "https://example.org"))
    let always: [Value] = [.uuid(UUID()), [.null], ["a": [.null]], [.url(url)], ["a": .uuid(UUID())], .json("[null]")]
    let inXML: [Value] = [
      "\0", "a\u{1b}", "a\r", ["\u{1}": 1], .date(Date(timeIntervalSinceReferenceDate: .nan)),
      .date(Date(timeIntervalSinceReferenceDate: 1e300)), [.date(Date(timeIntervalSince1970: -63_000_000_000))],
      .date(Date(timeIntervalSince1970: -12_219_292_801)),
    ]
    func expectRefusal(_ format: Preferences.PropertyListFormat, _ key: String) throws {
      let error = #expect(throws: CofferError.self) { try preferences.exportPropertyList(format: format) }
      guard case .notExportable("application", key, _) = error else { throw try #require(error) }
    }
    try preferences.set(1, forKey: "fine")
    for value in always {
      try preferences.set(value, forKey: "k")
      try expectRefusal(.xml, "k")
      try expectRefusal(.binary, "k")
    }
    for value in inXML {
      try preferences.set(value, forKey: "k")
      try expectRefusal(.xml, "k")
      let other = try Preferences.inMemory()
      try other.importPropertyList(try preferences.exportPropertyList(format: .binary))
      #expect(try other.value(forKey: "k")?.stored == value.stored)
    }
    try preferences.removeObject(forKey: "k")
    _ = try preferences.exportPropertyList()
    // An import would take it for the URL.
    try preferences.set(URLArchive.data(url), forKey: "k")
    try expectRefusal(.xml, "k")
  }

  @Test("export texts and numbers that are equal with other bytes, as keys and as values")
  func equalButOther() throws {
    let (composed, decomposed) = ("r\u{e9}sum\u{e9}", "re\u{301}sume\u{301}")
    let values: [String: Value] = [
      "names": [.string(composed), .string(decomposed)], "zeros": [0.0, -0.0], "ones": [1, 1.0, true],
      "in": [["k": .string(decomposed)], ["k": .string(composed)]], "bom": "\u{feff}id",
      "long": .array((0..<300).map { .int(Int64($0) - 5) }),
      "ends": [.int(.min), .int(.max), .uint64(.max), .uint64(1 << 63)],
    ]
    for (key, value) in values { try preferences.set(value, forKey: key) }
    try preferences.set(1, forKey: composed)
    try preferences.set(2, forKey: decomposed)
    for format in [Preferences.PropertyListFormat.binary, .xml] {
      let data = try preferences.exportPropertyList(format: format)
      let other = try Preferences.inMemory()
      try other.importPropertyList(data)
      for (key, value) in values { #expect(try other.value(forKey: key)?.stored == value.stored, "\(format) \(key)") }
      #expect(other.integer(forKey: composed) == 1 && other.integer(forKey: decomposed) == 2)
      // Foundation's own reader, too.
      let list = try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any]
      #expect((list?["long"] as? [Int])?.count == 300)
      #expect((list?["zeros"] as? [Double])?.map(\.sign) == [.plus, .minus])
    }
  }
}
