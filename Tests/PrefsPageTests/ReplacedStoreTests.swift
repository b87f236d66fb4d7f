import Coffer
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import PrefsCommands
@testable import PrefsPage

/// An index that a handler and a test share.
private final class ListedSettings: Sendable {
  let index: Mutex<SettingsIndex>

  init(_ index: SettingsIndex) { self.index = Mutex(index) }
}

@Suite("The settings page beside a restore") struct ReplacedStoreTests {
  @Test("Saves, undoes, renames and applies nothing that is about the former store, also where the versions are equal")
  func formerStore() async throws {
    let store = try TemporaryStore()
    let (path, key, backup) = (store.path, store.key, store.path + "-backup")
    let database = try store.open()
    let connection = try database.makeConnection()
    func set(_ value: String, _ names: String...) throws {
      try connection.readWrite { transaction in
        for name in names { try transaction.setObject(value, forKey: name, inCollection: "web") }
      }
    }
    func backUp() throws { try database.backup(to: backup, key: key) }
    try set("first", "one", "two", "three")
    try backUp()
    let session = try CommandSession(SessionOptions(store: path))
    let page = try PageStore(
      database, session: session, scope: CollectionScope(named: []), isReadOnly: false,
      vault: PageVault(database, session, keyFile: nil, time: .seconds(900)) { _ in })

    func seen(_ name: String) throws -> String {
      let (store, version) = try connection.read { ($0.store, try $0.version(forKey: name, inCollection: "web")) }
      return "\"collection\":\"web\",\"key\":\"\(name)\",\"store\":\(store),\"version\":\(version)"
    }
    func change(_ seen: String) throws -> String {
      try page.change(PageRequest("{\"changes\":[{\(seen),\"type\":\"string\",\"text\":\"mine\"}]}"))
    }
    /// The same commits, and so the same versions, as in the store that the page has shown.
    func replace() async throws {
      try await Database.restore(at: path, from: backup, key: key, force: true)
      try set("theirs", "one")
    }
    try await replace()
    let one = try seen("one")
    let undo = try page.change(PageRequest("{\"changes\":[{\(try seen("two")),\"remove\":true}]}"))
    let number = try #require(undo.firstMatch(of: /"undo":(\d+)/)?.1)
    let file = Data(#"{"web":{"three":"of the file"}}"#.utf8).base64EncodedString()
    let preview = try page.previewImport(PageRequest("{\"name\":\"new.json\",\"data\":\"\(file)\"}"))
    let plan = try #require(preview.firstMatch(of: /"plan":(\d+)/)?.1, "\(preview)")

    try await replace()
    #expect(try seen("one") != one)
    #expect(try seen("one").split(separator: ",").last == one.split(separator: ",").last)
    #expect(throws: ChangeConflict.self) { try change(one) }
    #expect(throws: ChangeConflict.self) {
      try page.rename(PageRequest("{\(one),\"to\":{\"collection\":\"web\",\"key\":\"other\"}}"))
    }
    #expect(throws: ChangeConflict.self) { try page.undo(PageRequest("{\"undo\":\(number)}")) }
    #expect(throws: ChangeConflict.self) { try page.apply(PageRequest("{\"plan\":\(plan)}")) }
    func values() throws -> [Value?] {
      try connection.read { transaction in
        try ["one", "two", "three", "other"].map { try transaction.value(forKey: $0, inCollection: "web") }
      }
    }
    #expect(try values() == [.string("theirs"), .string("first"), .string("first"), nil])
    #expect(try change(try seen("one")).contains("mine"))
    try await database.close()
  }

  @Test("Lists the settings of the restored store, whose commits have lower numbers, and follows it")
  func restored() async throws {
    let store = try TemporaryStore()
    let (path, key, backup) = (store.path, store.key, store.path + "-backup")
    let database = try store.open()
    let connection = try database.makeConnection()
    func set(_ name: String) throws {
      try connection.readWrite { try $0.setObject(1, forKey: name, inCollection: "web") }
    }
    func backUp() throws { try database.backup(to: backup, key: key) }
    try set("first")
    try backUp()
    for number in 0..<5 { try set("later\(number)") }

    func makeIndex() throws -> SettingsIndex {
      try connection.read { try SettingsIndex(CollectionScope(named: []), $0) }
    }
    let list = ListedSettings(try makeIndex())
    let follower = try database.makeConnection()
    let (commits, feed) = AsyncStream<Commit>.makeStream()
    let registration = try database.onCommit { commit in
      try? list.index.withLock { index in try follower.read { try index.apply(commit, $0) } }
      feed.yield(commit)
    }
    var iterator = commits.makeAsyncIterator()
    func keys() -> [String] { list.index.withLock { $0.settings.map(\.key) } }
    #expect(keys().count == 6)

    try await Database.restore(at: path, from: backup, key: key, force: true)
    #expect(await iterator.next()?.scope == .everything)
    #expect(keys() == ["first"])
    try set("second")
    var commit = await iterator.next()
    // That of the restore itself may be in the change of everything, or come by itself.
    if commit?.actions.isEmpty == false { commit = await iterator.next() }
    #expect(commit?.scope == .keys)
    #expect(keys() == ["first", "second"])
    registration.cancel()
    try await database.close()
  }
}
