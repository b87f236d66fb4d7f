import Dispatch
import Foundation
import TestSupport
import Testing

@testable import Coffer

extension Keys {
  fileprivate static let size = Key("size", default: 12)
  fileprivate static let limit = Key("limit", default: 3, limits: .range(...9))
  fileprivate static let theme = Key("theme", in: "ui", default: "dark")
  fileprivate static let note = Key<String?>("note")
}

@Suite("Changes of preferences") struct PreferencesChangeTests {
  private let preferences: Preferences

  init() throws {
    preferences = try Preferences.inMemory()
  }

  /// The reported keys until `last` is among them.
  private func keys(
    _ changes: Preferences.Changes, until last: String
  ) async throws -> [String] {
    var keys: [String] = []
    for await change in changes {
      keys += change.keys
      if keys.contains(last) { return keys.filter { $0 != last } }
    }
    throw CofferError.closed
  }

  // MARK: 6.10

  @Test("6.1, 6.10 are reported per key, immediately, and not for a key set to its current value")
  func byKey() async throws {
    try preferences.set(1, forKey: "same")
    try preferences.set(1, forKey: "removed")
    try preferences.flushAndWait()
    let changes = try preferences.changes()
    try preferences.set(1, forKey: "same")
    try preferences.set(2, forKey: "new")
    try preferences.removeObject(forKey: "removed")
    try preferences.removeObject(forKey: "missing")
    try preferences.suite(named: "another").set(1, forKey: "elsewhere")
    try preferences.set(true, forKey: "last")
    // A typed key may name the collection "another".
    #expect(Set(try await keys(changes, until: "last")) == ["new", "removed", "elsewhere"])
    // Nothing more when they are committed.
    try preferences.flushAndWait()
    try preferences.set(3, forKey: "later")
    try preferences.set(false, forKey: "last")
    #expect(try await keys(changes, until: "last") == ["later"])
  }

  @Test("6.10 are one event for all changes of a batch")
  func batch() async throws {
    let changes = try preferences.changes()
    try preferences.performBatch { batch in
      try batch.set(1, forKey: "a")
      try batch.set(14, for: .size)
      try batch.set("light", for: .theme)
      try batch.set(nil, for: .note)
      try batch.removeObject(forKey: "missing")
    }
    var iterator = changes.makeAsyncIterator()
    let change = try #require(await iterator.next())
    #expect(change.keys == ["a", "size", "theme"])
    #expect(change.origin == .proxy)
    #expect(change.scope == .keys)
    #expect(change.concerns("a"))
    #expect(change.concerns(.size))
    #expect(change.concerns(.theme))
    // The theme is of a collection that is not searched.
    #expect(!change.concerns("theme"))
    #expect(!change.concerns("b"))
    #expect(preferences[.theme] == "light")
    #expect(throws: CofferError.self) {
      try preferences.performBatch { batch in
        try batch.set(2, forKey: "a")
        try batch.set(10, for: .limit)
      }
    }
    #expect(preferences.integer(forKey: "a") == 1)
    try preferences.performBatch { try $0.reset(.theme) }
    #expect(preferences[.theme] == "dark")
  }

  @Test("6.10 are reported for one key, or for some typed ones")
  func someKeys() async throws {
    let one = try preferences.changes(forKey: "size")
    let some = try preferences.changes(of: .size, .theme)
    try preferences.set(1, forKey: "other")
    try preferences.set("not this one", forKey: "theme")
    preferences[.theme] = "light"
    var iterator = some.makeAsyncIterator()
    let change = try #require(await iterator.next())
    #expect(change.keys == ["theme"])
    #expect(change.concerns(.theme))
    preferences[.size] = 13
    #expect(await iterator.next()?.keys == ["size"])
    var oneIterator = one.makeAsyncIterator()
    #expect(await oneIterator.next()?.keys == ["size"])
  }

  @Test("6.10 are reported for a sequence of keys, and for declared settings")
  func sequences() async throws {
    let keys: [Keys] = [Keys.size, Keys.theme]
    for changes in [
      try preferences.changes(of: keys),
      try preferences.changes(
        of: Settings {
          Keys.size; Keys.theme
        }),
    ] {
      var iterator = changes.makeAsyncIterator()
      try preferences.set(Int.random(in: .min ... .max), forKey: "other")
      preferences[.theme] += "x"
      #expect(await iterator.next()?.keys == ["theme"])
      preferences[.size] += 1
      #expect(await iterator.next()?.keys == ["size"])
    }
  }

  @Test("6.10 include keys with a collection, of the same suite and environment only")
  func withCollections() async throws {
    let (proxy, suite) = (preferences.proxy, preferences.suite(named: "acme"))
    let changes = try preferences.changes()
    let ofSuite = try suite.changes()
    suite[.theme] = "light"
    preferences[.theme] = "light"
    try proxy.setObject("x", forKey: "theme", inCollection: "ui@staging")
    try suite.set(1, forKey: "last")
    try preferences.set(1, forKey: "last")
    var change: Preferences.Change?
    for await next in changes {
      change = change.map { $0.merged(with: next) } ?? next
      if next.concerns("last") { break }
    }
    // A key of the collection "acme/ui" may be declared, too.
    #expect(change?.keys == ["last", "theme"])
    #expect(change?.concerns(.theme) == true)
    var iterator = ofSuite.makeAsyncIterator()
    let first = try #require(await iterator.next())
    #expect(first.keys.contains("theme") && first.concerns(.theme) && !first.concerns("theme"))

    // What this proxy still holds would be news to the other one.
    try proxy.flushAndWait()
    let database = preferences.database
    try await database.makeConnection().readWrite { _ = try $0.makeEnvironment("staging", of: "app") }
    let staging = try Preferences(database: database, collection: "app", environment: "staging")
    let ofStaging = try staging.changes()
    try proxy.setObject("hidden", forKey: "theme", inCollection: "ui")
    try proxy.setObject("shown", forKey: "font", inCollection: "ui")
    try proxy.setObject("other", forKey: "color", inCollection: "ui@live")
    try proxy.flushAndWait()
    staging[.theme] = "dark"
    staging[.size] = 1
    var keys: Set<String> = []
    for await change in ofStaging {
      keys.formUnion(change.keys)
      if change.concerns("size") { break }
    }
    #expect(keys == ["font", "theme", "size"])
  }

  @Test("6.9, 6.10 are not reported while another layer hides them, but when it goes")
  func hidden() async throws {
    let preferences = Preferences(
      proxy: preferences.proxy, collection: "app", overrides: Overrides([.forced(["forced": 1, "ui/theme": "x"])]),
      registered: RegisteredDefaults())
    preferences.addSuite(named: "suite")
    let (suite, global) = (preferences.suite(named: "suite"), preferences.suite(named: "global"))
    try suite.set(1, forKey: "k")
    let changes = try preferences.changes()
    let theme = try preferences.changes(of: .theme, .size)
    try preferences.set(1, forKey: "forced")
    try global.set(2, forKey: "k")
    preferences[.theme] = "light"
    try preferences.set(1, forKey: "last")
    #expect(try await keys(changes, until: "last") == [])
    try suite.removeObject(forKey: "k")
    try global.set(3, forKey: "shown")
    try preferences.set(2, forKey: "last")
    #expect(Set(try await keys(changes, until: "last")) == ["k", "shown"])
    preferences[.size] = 1
    var iterator = theme.makeAsyncIterator()
    #expect(await iterator.next()?.keys == ["size"])
  }

  @Test("6.10 are reported per key for other processes, too")
  func otherProcess() async throws {
    let store = try TemporaryStore()
    let preferences = try Preferences(database: store.open(), collection: "numbers")
    let changes = try preferences.changes()
    let one = try preferences.changes(forKey: "x1")
    #expect(try store.worker("insert", "x", "3").status == 0)
    var seen: Set<String> = []
    for await change in changes {
      #expect(change.origin == .elsewhere || change.origin == .several)
      seen.formUnion(change.keys)
      if seen.count == 3 { break }
    }
    #expect(seen == ["x0", "x1", "x2"])
    var iterator = one.makeAsyncIterator()
    #expect(await iterator.next()?.keys == ["x1"])
    #expect(preferences.integer(forKey: "x2") == 2)
  }

  @Test("6.10 say that any key may have changed if a collection was cleared")
  func cleared() async throws {
    try preferences.set(1, forKey: "k")
    try preferences.flushAndWait()
    let changes = try preferences.changes()
    let theme = try preferences.changes(of: .theme)
    let database = preferences.proxy.database
    try await database.makeConnection().readWrite { try $0.removeAllObjects(inCollection: "application") }
    var iterator = changes.makeAsyncIterator()
    let change = try #require(await iterator.next())
    #expect(change.concerns("k"))
    #expect(preferences.object(forKey: "k") == nil)
    preferences[.theme] = "light"
    var themeIterator = theme.makeAsyncIterator()
    #expect(await themeIterator.next()?.keys == ["theme"])
  }

  @Test("6.10 end when the preferences are closed, or gone")
  func end() async throws {
    var iterator = try preferences.changes().makeAsyncIterator()
    var values = try preferences.values(of: .size).makeAsyncIterator()
    #expect(await values.next() == 12)
    try await preferences.close()
    #expect(await iterator.next() == nil)
    #expect(await values.next() == nil)
    #expect(throws: CofferError.closed) { try preferences.changes() }
    func released() throws -> (Preferences.Changes, Preferences.Values<Int>) {
      let preferences = try Preferences.inMemory()
      return (try preferences.changes(), try preferences.values(of: .size))
    }
    let (changes, sizes) = try released()
    for await _ in changes { Issue.record("a change of what is gone") }
    for await _ in sizes { Issue.record("a value of what is gone") }
  }

  @Test("6.10 outlive a released suite while its store is open")
  func temporarySuite() async throws {
    let changes = try preferences.suite(named: "suite").changes()
    try preferences.suite(named: "suite").set(1, forKey: "k")
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next()?.keys == ["k"])
  }

  // MARK: Values

  @Test("are the current value, then each new one, without repetitions")
  func values() async throws {
    try preferences.set(13, forKey: "size")
    var iterator = try preferences.values(of: .size).makeAsyncIterator()
    #expect(await iterator.next() == 13)
    preferences[.size] = 14
    #expect(await iterator.next() == 14)
    try preferences.set(14.0, forKey: "size")
    preferences[.size] = 14
    preferences[.size] = 15
    #expect(await iterator.next() == 15)
    try preferences.reset(.size)
    #expect(await iterator.next() == 12)
    // A key that changed before the first request is its present value, once.
    let values = try preferences.values(of: .size)
    preferences[.size] = 16
    var late = values.makeAsyncIterator()
    #expect(await late.next() == 16)
    preferences[.size] = 17
    #expect(await late.next() == 17)
  }

  @Test("keep the last good one while the stored one is bad, and report it")
  func invalidValues() async throws {
    let errors = preferences.errors
    var iterator = try preferences.values(of: .limit).makeAsyncIterator()
    #expect(await iterator.next() == 3)
    preferences[.limit] = 4
    #expect(await iterator.next() == 4)
    try preferences.set(99, forKey: "limit")
    try preferences.set("5", forKey: "limit")
    try preferences.set(5, forKey: "limit")
    #expect(await iterator.next() == 5)
    try preferences.set(77, forKey: "limit")
    async let next = iterator.next()
    let report = await errors.first { _ in true }
    #expect(
      report?.problem?.description == "application/limit must be 9 or less, not 77 (in collection \"application\")")
    #expect(report?.instead == "the last good value")
    preferences[.limit] = 6
    #expect(await next == 6)
    var note = try preferences.values(of: .note).makeAsyncIterator()
    #expect(await note.next() == .some(nil))
    preferences[.note] = "x"
    #expect(await note.next() == "x")
    preferences[.note] = nil
    #expect(await note.next() == .some(nil))
  }

  // MARK: Updates

  @Test("are serialized by update, and dropped if it throws")
  func update() throws {
    try preferences.register(defaults: ["size": 100])
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      for _ in 0..<25 {
        do {
          try preferences.update(.size) { $0 + 1 }
        } catch {
          Issue.record(error)
        }
      }
    }
    #expect(preferences[.size] == 200)
    #expect(try preferences.update(.note) { ($0 ?? "") + "x" } == "x")
    #expect(try preferences.update(.note) { _ in nil } == nil)
    #expect(preferences.object(forKey: "note") == nil)
    #expect(throws: CofferError.invalidValue(collection: "application", key: "limit", reason: "9 or less, not 13")) {
      try preferences.update(.limit) { $0 + 10 }
    }
    #expect(preferences[.limit] == 3)
    try preferences.update(.theme) { $0 + "er" }
    #expect(try preferences.proxy.object(forKey: "theme", inCollection: "ui") == "darker")
  }
}
