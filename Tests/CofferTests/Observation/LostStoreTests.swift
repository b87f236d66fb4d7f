import CofferStorage
import Foundation
import Testing

@testable import Coffer

@Suite("A store that cannot be followed") struct LostStoreTests {
  @Test("2.6 is reported once by `errors`, and followed without another commit once its key is there")
  func replacedUnderAnotherKey() async throws {
    let store = try TemporaryStore()
    let (keyFile, otherFile, backup) = (store.path + "-key", store.path + "-other", store.path + "-backup")
    for file in [keyFile, otherFile] { try KeyFile.create(at: file) }
    let first = try store.open()
    try first.addSlot(.keyFile(keyFile), label: "file")
    try await first.backup(to: backup, key: .keyFile(otherFile))
    try first.close()

    let database = try Database.open(at: store.path, key: .keyFile(keyFile), options: .quiet)
    let proxy = try ConnectionProxy(database: database)
    var errors = proxy.errors.makeAsyncIterator()
    var commits = try database.commits().makeAsyncIterator()
    try Database.restore(
      at: store.path, from: backup, key: .keyFile(otherFile), force: true, options: .quiet)
    #expect(await errors.next()?.error as? CofferError == .storeReplaced(path: database.path))
    try #require(rename(otherFile, keyFile) == 0)
    #expect(await commits.next()?.scope == .everything)
    // It was reported once.
    database.report(CofferError.busy, forKey: nil, inCollection: "")
    #expect(await errors.next()?.error as? CofferError == .busy)
    try database.close()
  }
}
