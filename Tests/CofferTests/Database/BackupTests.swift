import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("A backup") struct BackupTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection
  private var copyPath: String { "\(store.folder)/copy.coffer" }

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    try connection.readWrite { transaction in
      for number in 0..<3000 { try transaction.setObject("value \(number)", forKey: "\(number)", withMetadata: number) }
    }
  }

  @Test("is a separate store with the same contents, opened by its own key")
  func contents() throws {
    let shares = Lock<[Double]>([])
    let passphrase = KeySource.passphrase(SecretBytes(copying: "another".utf8))
    try database.backup(to: copyPath, key: passphrase) { share in shares.withLock { $0.append(share) } }
    let copy = try Database.open(at: copyPath, key: passphrase)
    #expect(try copy.verify().problems.isEmpty)
    #expect(try copy.verify().itemCount == 3000)
    #expect(try copy.status().storeID != database.status().storeID)
    let item = try copy.makeConnection().read { try $0.item(forKey: "17") }
    #expect(try connection.read { try $0.item(forKey: "17") } == item)
    let reported = shares.withLock { $0 }
    #expect(reported.last == 1 && reported == reported.sorted() && reported.count >= 1)
    #expect(throws: CofferError.wrongKey) { try Database.open(at: copyPath, key: store.key) }
    // With the same key, and writable.
    let second = "\(store.folder)/second.coffer"
    try database.backup(to: second, key: store.key)
    try Database.open(at: second, key: store.key).makeConnection().readWrite { try $0.setObject(1, forKey: "new") }
    #expect(try connection.read { try !$0.hasObject(forKey: "new") })
  }

  @Test("has the state of its start, while a writer continues")
  func writer() throws {
    let isWritten = Lock(false)
    try database.backup(to: copyPath, key: store.key) { [connection] _ in
      guard !isWritten.withLock({ $0 }) else { return }
      try connection.readWrite { try $0.setObject("late", forKey: "late") }
      isWritten.withLock { $0 = true }
    }
    #expect(isWritten.withLock { $0 })
    let copy = try Database.open(at: copyPath, key: store.key).makeConnection()
    #expect(try copy.read { try $0.numberOfKeys() } == 3000)
    #expect(try connection.read { try $0.numberOfKeys() } == 3001)
  }

  @Test("leaves nothing when it is cancelled, and never replaces a file")
  func cancellation() async throws {
    struct Enough: Error {}
    let path = copyPath
    await #expect(throws: Enough.self) {
      try await database.backup(to: path, key: store.key) { _ in throw Enough() }
    }
    let task = Task { [database, store] in
      try await database.backup(to: path, key: store.key) { _ in withUnsafeCurrentTask { $0?.cancel() } }
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try !FileManager.default.contentsOfDirectory(atPath: store.folder).contains { $0.contains("copy") })
    try Data("precious".utf8).write(to: URL(fileURLWithPath: path))
    await #expect(throws: CofferError.storeExists(path: path)) { try await database.backup(to: path, key: store.key) }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("precious".utf8))
  }

  @Test("of an in-memory store writes it to disk")
  func inMemory() throws {
    let memory = try Database.inMemory()
    try memory.makeConnection().readWrite { try $0.setObject("v", forKey: "k") }
    try memory.backup(to: copyPath, key: store.key)
    let copy = try Database.open(at: copyPath, key: store.key)
    #expect(try copy.verify().problems.isEmpty)
    #expect(try copy.makeConnection().read { try $0.object(forKey: "k") } == "v")
  }

  @Test("after a vacuum is smaller, and complete")
  func vacuum() throws {
    try connection.readWrite { transaction in
      for number in 100..<3000 { try transaction.removeObject(forKey: "\(number)") }
    }
    let before = try database.status().pageCount
    try connection.vacuum()
    #expect(try database.status().pageCount < before / 2)
    #expect(try database.verify().problems.isEmpty)
    #expect(try connection.read { try $0.numberOfKeys() } == 100)
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "after") }
    #expect(try connection.read { try $0.hasObject(forKey: "after") })
  }
}
