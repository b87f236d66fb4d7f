import CofferStorage
import Dispatch
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Coffer

@Suite("A store that cannot be followed") struct LostStoreTests {
  @Test("2.6 is reported once by `errors`, and followed without another commit once its key is there")
  func replacedUnderAnotherKey() async throws {
    let store = try TemporaryStore()
    let (keyFile, otherFile, backup) = (store.path + "-key", store.path + "-other", store.path + "-backup")
    for file in [keyFile, otherFile] { try KeyFile.create(at: file) }
    let first = try store.open()
    try await first.addSlot(.keyFile(keyFile), label: "file")
    try await first.backup(to: backup, key: .keyFile(otherFile))
    try await first.close()

    let database = try await Database.open(at: store.path, key: .keyFile(keyFile), options: .quiet)
    let proxy = try ConnectionProxy(database: database)
    var errors = proxy.errors.makeAsyncIterator()
    var commits = try database.commits().makeAsyncIterator()
    try #require(rename(backup, store.path) == 0)
    #expect(await errors.next()?.error as? CofferError == .storeReplaced(path: database.path))
    try #require(rename(otherFile, keyFile) == 0)
    #expect(await commits.next()?.scope == .everything)
    // It was reported once.
    database.report(CofferError.busy, forKey: nil, inCollection: "")
    #expect(await errors.next()?.error as? CofferError == .busy)
    try await database.close()
  }

  @Test("2.6 is reported once its file is removed, without a use of it, and once it is put back")
  func removed() async throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let connection = try database.makeConnection()
    let proxy = try ConnectionProxy(database: database)
    var errors = proxy.errors.makeAsyncIterator()
    var commits = try database.commits().makeAsyncIterator()
    let (notices, notice) = AsyncStream.makeStream(of: CofferError?.self)
    var troubles = notices.makeAsyncIterator()
    let registration = try database.onCommit({ _ in }, onTrouble: { notice.yield($0) })

    try #require(rename(store.path, store.path + "-away") == 0)
    #expect(await errors.next()?.error as? CofferError == .storeNotFound(path: database.path))
    #expect(await troubles.next() == .storeNotFound(path: database.path))
    try #require(rename(store.path + "-away", store.path) == 0)
    #expect(await troubles.next() == .some(nil))
    try await connection.readWrite { try $0.setObject(1, forKey: "a", inCollection: "") }
    #expect(await commits.next()?.changedKeys(inCollection: "") == ["a"])

    try #require(unlink(store.path) == 0)
    #expect(await troubles.next() == .storeNotFound(path: database.path))
    withExtendedLifetime(registration) {}
    try? await database.close()
  }
}

extension LostStoreTests {
  @Test("2.6 is followed again with the next event, if it is put back while the store in its place is tried")
  func putBackDuringTheAttempt() throws {
    let store = try TemporaryStore()
    let (path, away, backup) = (store.path, store.path + "-away", store.path + "-backup")
    let attempt = DispatchSemaphore(value: 0)
    let logger = Logger(label: "test") { _ in
      CallingLogHandler { warning in
        guard "\(warning.message)".contains("cannot be opened") else { return }
        if rename(away, path) == 0 { attempt.signal() }
      }
    }
    let database = try Database.openOrCreate(at: path, key: store.key, options: .init(logger: logger))
    try database.backup(to: backup, key: .key(.random(count: 32)))
    let isFollowed = Atomic(false)
    let registration = try database.onCommit { commit in
      if commit.scope == .everything { isFollowed.store(true, ordering: .releasing) }
    }
    try #require(rename(path, away) == 0 && rename(backup, path) == 0)
    attempt.wait()
    // What the event of the second renaming does.
    database.deliverCommits()
    let wasFollowed = isFollowed.load(ordering: .acquiring)
    #expect(wasFollowed)
    withExtendedLifetime(registration) {}
  }
}

@Suite("Settings in an environment that is removed while a program listens", .timeLimit(.minutes(10)))
struct LostEnvironmentTests {
  @Test("6.10 are reported by `errors`, each time: from then on those of the collection itself show")
  func removed() async throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let connection = try database.makeConnection()
    let staging = try CollectionEnvironment("staging", of: "shop")
    func make() throws { try connection.readWrite { _ = try $0.makeEnvironment("staging", of: "shop") } }
    func remove() throws { try connection.readWrite { _ = try $0.removeEnvironment(staging) } }
    func mark(_ round: Int) throws {
      try connection.readWrite { try $0.setObject(round, forKey: "round", inCollection: "other") }
    }
    try make()
    let preferences = try Preferences(database: database, collection: "shop", environment: "staging")
    let changes = try preferences.changes()
    let (ticks, tick) = AsyncStream.makeStream(of: Void.self)
    var delivered = ticks.makeAsyncIterator()
    let registration = try database.onCommit { if $0.concerns(collection: "other") { tick.yield() } }
    var errors = preferences.errors.makeAsyncIterator()
    for round in 0..<2 {
      try remove()
      #expect(
        await errors.next()?.error as? CofferError == .environmentNotFound(environment: "staging", collection: "shop"))
      try make()
      // Removed again before it was seen to be back, it would have been gone all the time.
      try mark(round)
      await delivered.next()
    }
    withExtendedLifetime((changes, registration)) {}
  }
}
