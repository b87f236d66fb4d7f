import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Opening a database") struct DatabaseTests {
  private let store: TemporaryStore

  init() throws {
    store = try TemporaryStore()
  }

  private func write(_ bytes: Data) throws {
    try bytes.write(to: URL(fileURLWithPath: store.path))
  }

  /// Expects `body` to throw an error that `isExpected` accepts, and the folder to stay unchanged.
  private func expectRefusal(
    _ isExpected: (CofferError) -> Bool, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
  ) throws {
    func contents() throws -> [String: Data] {
      let names = try FileManager.default.contentsOfDirectory(atPath: store.folder)
      return try Dictionary(
        uniqueKeysWithValues: names.map { ($0, try Child.run("/bin/cat", ["\(store.folder)/\($0)"]).output) })
    }
    let before = try contents()
    #expect(sourceLocation: sourceLocation) {
      try body()
    } throws: { error in
      (error as? CofferError).map(isExpected) ?? false
    }
    #expect(try contents() == before, sourceLocation: sourceLocation)
  }

  @Test("that does not exist is an error, and creates none")
  func missing() throws {
    try expectRefusal({ $0 == .storeNotFound(path: store.path) }) {
      _ = try Database.open(at: store.path, key: store.key)
    }
    try expectRefusal({ $0 == .storeNotFound(path: "\(store.folder)/no/such") }) {
      _ = try Database.open(at: "\(store.folder)/no/such", key: store.key)
    }
  }

  @Test("distinguishes other files from stores: empty ones, text, plain SQLite, folders, links")
  func notAStore() throws {
    func expectNotAStore(sourceLocation: SourceLocation = #_sourceLocation) throws {
      try expectRefusal(
        { if case .notAStore(store.path, _) = $0 { true } else { false } }, sourceLocation: sourceLocation
      ) { _ = try Database.open(at: store.path, key: store.key) }
    }
    try write(Data())
    try expectNotAStore()
    try write(Data("hello".utf8))
    try expectNotAStore()
    try write(Data("SQLite format 3\0".utf8) + Data(count: 40_000))
    try expectNotAStore()
    try FileManager.default.removeItem(atPath: store.path)
    try FileManager.default.createDirectory(atPath: store.path, withIntermediateDirectories: false)
    try expectRefusal({ if case .notAStore = $0 { true } else { false } }) {
      _ = try Database.open(at: store.path, key: store.key)
    }
    try FileManager.default.removeItem(atPath: store.path)
    let elsewhere = try TemporaryStore()
    try elsewhere.open().close()
    try FileManager.default.createSymbolicLink(atPath: store.path, withDestinationPath: elsewhere.path)
    try expectNotAStore()
  }

  @Test("distinguishes a wrong key, a missing one and an invalid one")
  func keys() throws {
    try store.open().close()
    let other = try TemporaryStore()
    try expectRefusal({ $0 == .wrongKey }) { _ = try Database.open(at: store.path, key: other.key) }
    try expectRefusal({ $0 == .wrongKey }) {
      _ = try Database.open(at: store.path, key: .passphrase(SecretBytes(copying: "secret".utf8)))
    }
    try expectRefusal({ if case .keyUnavailable = $0 { true } else { false } }) {
      _ = try Database.open(at: store.path, key: .keyFile("\(store.folder)/none"))
    }
    try expectRefusal({ if case .keyUnavailable = $0 { true } else { false } }) {
      _ = try Database.open(at: store.path, key: .keyFile(store.path))
    }
    try expectRefusal({ if case .keyUnavailable = $0 { true } else { false } }) {
      _ = try Database.open(at: store.path, key: .passphrase(SecretBytes(copying: "".utf8)))
    }
  }

  @Test("with a passphrase accepts only the right one")
  func passphrase() throws {
    let right = KeySource.passphrase(SecretBytes(copying: "correct horse".utf8))
    let database = try Database.create(at: store.path, key: right)
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "k") }
    try database.close()
    #expect(try Database.slots(at: store.path).map(\.kind) == [.passphrase])
    try expectRefusal({ $0 == .wrongKey }) {
      _ = try Database.open(at: store.path, key: .passphrase(SecretBytes(copying: "battery staple".utf8)))
    }
    try expectRefusal({ $0 == .wrongKey }) { _ = try Database.open(at: store.path, key: store.key) }
    let connection = try Database.open(at: store.path, key: right).makeConnection()
    #expect(try connection.read { try $0.object(forKey: "k") } == 1)
  }

  @Test("never replaces a file when it creates one")
  func existing() throws {
    try store.open().close()
    try expectRefusal({ $0 == .storeExists(path: store.path) }) {
      _ = try Database.create(at: store.path, key: store.key)
    }
    try FileManager.default.removeItem(atPath: store.path)
    try write(Data("precious".utf8))
    try expectRefusal({ $0 == .storeExists(path: store.path) }) {
      _ = try Database.create(at: store.path, key: store.key)
    }
  }

  @Test("refuses a commit once its file was removed or moved, shows what it has, and goes on once the file is back")
  func removedWhileOpen() throws {
    let database = try store.open()
    let connection = try database.makeConnection()
    func set(_ number: Int) throws { try connection.readWrite { try $0.setObject(number, forKey: "k") } }
    func value() throws -> Int? { try connection.read { try $0.object(forKey: "k") } }
    try set(1)
    let elsewhere = store.path + ".moved"
    try #require(rename(store.path, elsewhere) == 0)
    #expect(throws: CofferError.storeNotFound(path: store.path)) { try set(2) }
    #expect(try value() == 1)
    try #require(rename(elsewhere, store.path) == 0)
    try set(3)
    #expect(try value() == 3)
    // The folder, too.
    let folder = store.folder + ".moved"
    try #require(rename(store.folder, folder) == 0)
    #expect(throws: CofferError.storeNotFound(path: store.path)) { try set(4) }
    try #require(rename(folder, store.folder) == 0)
    try set(5)
    #expect(try value() == 5)
    try database.close()
  }

  @Test("creates files that only their owner can read, and their folders")
  func modes() throws {
    let path = "\(store.folder)/new/folder/settings.coffer"
    let database = try Database.create(at: path, key: store.key)
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setObject(1, forKey: "k") }
    func mode(_ path: String) throws -> Int {
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      return try #require(attributes[.posixPermissions] as? Int)
    }
    for suffix in ["", "-wal", "-shm"] { #expect(try mode(path + suffix) == 0o600) }
    #expect(try mode("\(store.folder)/new") == 0o700)
    #expect(try mode("\(store.folder)/new/folder") == 0o700)
    #expect(try mode(store.keyFile) == 0o600)
    let names = try FileManager.default.contentsOfDirectory(atPath: "\(store.folder)/new/folder")
    #expect(Set(names) == ["settings.coffer", "settings.coffer-wal", "settings.coffer-shm"])
  }

  @Test("refuses tables of a newer version, and an envelope that is older than the pages")
  func newerAndOlder() throws {
    var database = try store.open()
    try database.makeConnection().perform { session in
      try session.connection.execute("UPDATE meta SET value = x'0000000000000002' WHERE name = 'envelope_sequence'")
    }
    try database.close()
    try expectRefusal({ if case .damaged("envelope", _) = $0 { true } else { false } }) {
      _ = try Database.open(at: store.path, key: store.key)
    }
    try FileManager.default.removeItem(atPath: store.path)
    database = try store.open()
    try database.makeConnection().perform { try $0.connection.execute("PRAGMA user_version = 17") }
    try database.close()
    try expectRefusal({ $0 == .newerFormat(part: "schema", found: 17, supported: 16) }) {
      _ = try Database.open(at: store.path, key: store.key)
    }
  }

  @Test("that is refused leaves the log of a crash as it was")
  func refusedWithLog() throws {
    let crashed = try TemporaryStore()
    let database = try crashed.open()
    let connection = try database.makeConnection()
    try connection.perform { try $0.connection.execute("PRAGMA user_version = 17") }
    try crashed.copyAsAfterCrash(to: store)
    let (file, log) = (try store.bytes(), try store.bytes("-wal"))
    #expect(!log.isEmpty)
    #expect(throws: CofferError.newerFormat(part: "schema", found: 17, supported: 16)) { try store.open() }
    #expect(try store.bytes() == file)
    #expect(try store.bytes("-wal") == log)
  }

  @Test("after closing refuses everything, and can open again")
  func close() throws {
    let database = try store.open()
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setObject(1, forKey: "k") }
    try database.close()
    #expect(throws: CofferError.closed) { try connection.read { _ in } }
    #expect(throws: CofferError.closed) { try database.makeConnection() }
    #expect(!FileManager.default.fileExists(atPath: store.path + "-wal"))
    #expect(try store.open().makeConnection().read { try $0.object(forKey: "k") } == 1)
  }

  @Test("twice in one process leaves SQLite's locks alone")
  func twice() throws {
    let first = try store.open()
    let connection = try first.makeConnection()
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k")
      // Opening, looking and closing while a transaction holds its locks.
      let second = try store.open(busyTimeout: .zero)
      #expect(try second.status().slots.count == 1)
      #expect(throws: CofferError.busy) { try second.makeConnection().readWrite { _ in } }
      try second.close()
      // Another process still finds the lock held.
      let child = try Child.run(
        "/usr/bin/timeout", ["-s", "KILL", "1", TemporaryStore.worker, "insert", store.path, store.keyFile, "x", "1"])
      #expect(child.status != 0)
    }
    #expect(try connection.read { try $0.allCollections() } == [""])
  }

  @Test("verifies every page and value, and finds the damaged ones")
  func verification() throws {
    let database = try store.open()
    try database.makeConnection().readWrite { transaction in
      for number in 0..<500 { try transaction.setObject("value \(number)", forKey: "key \(number)") }
    }
    let report = try database.verify()
    #expect(report.problems.isEmpty)
    #expect(report.itemCount == 500)
    #expect(try database.status().pageCount > 5)
    try database.close()
    #expect(try store.open().verify().entropyBitsPerByte > 7.5)

    var bytes = try store.bytes()
    bytes[Layout.envelopeByteCount + 5 * Layout.pageByteCount + 100] ^= 1
    try write(bytes)
    let damaged = try store.open().verify()
    #expect(damaged.problems.contains { $0.kind == .damagedPages(6...6) })
  }
}

extension SecretBytes {
  convenience init(copying bytes: some Collection<UInt8>) {
    self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
  }
}
