import Coffer
import Foundation
import Synchronization
import Testing

@testable import PrefsPage

/// An index that a handler and a test share.
private final class ListedSettings: Sendable {
  let index: Mutex<SettingsIndex>

  init(_ index: SettingsIndex) { self.index = Mutex(index) }
}

@Suite("The settings page beside a restore") struct ReplacedStoreTests {
  @Test("Lists the settings of the restored store, whose commits have lower numbers, and follows it")
  func restored() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let key = KeySource.key(try .random(count: 32))
    let (path, backup) = (folder + "/settings.coffer", folder + "/backup.coffer")
    let database = try await Database.create(at: path, key: key)
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
