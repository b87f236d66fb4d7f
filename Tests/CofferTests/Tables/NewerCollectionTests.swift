import CofferCompat
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

@Suite("A collection with flags that a newer version has set") struct NewerCollectionTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection
  private let refusal = CofferError.newerFormat(part: "collection \"newer\"", found: 10, supported: 7)

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    try connection.readWrite { transaction in
      try transaction.setHistoryLimits(HistoryLimits(maximumAge: .seconds(60)), forCollection: "newer")
      for collection in ["newer", "other"] { try transaction.setObject(1, forKey: "k", inCollection: collection) }
    }
    try connection.readWrite { try $0.setObject(2, forKey: "k", inCollection: "newer") }
    try execute("UPDATE collections SET flags = flags | 8 WHERE name = 'newer'")
  }

  private func execute(_ sql: String) throws {
    try connection.perform { session in
      try session.connection.beginWrite(.full)
      try session.connection.execute(sql)
      try session.connection.commit()
    }
  }

  private func rows() throws -> [String] {
    try connection.perform { session in
      try ["collections", "items", "history"].map { try session.connection.text(ofAllRowsIn: $0) }
    }
  }

  @Test("is not written if the newer version has extended the tables since the store was opened here")
  func tables() throws {
    let other = try store.open().makeConnection()
    #expect(try other.read { try $0.hasObject(forKey: "k", inCollection: "other") })
    try execute("PRAGMA user_version = 99")
    #expect(
      throws: CofferError.newerFormat(part: "schema", found: 99, supported: Schema.versionWithSharedDeclarations.number)
    ) {
      try other.readWrite { try $0.setObject(3, forKey: "k", inCollection: "other") }
    }
  }

  @Test("is listed, and its contents are neither read nor counted")
  func reading() throws {
    #expect(try connection.read { try $0.allCollections() } == ["newer", "other"])
    let reads: [@Sendable (borrowing ReadTransaction) throws -> Void] = [
      { _ = try $0.object(forKey: "k", inCollection: "newer", as: Int.self) },
      { _ = try $0.hasObject(forKey: "k", inCollection: "newer") },
      { _ = try $0.allKeys(inCollection: "newer") },
      { _ = try $0.numberOfKeys(inCollection: "newer") },
      { _ = try $0.history(forKey: "k", inCollection: "newer") },
      { _ = try $0.isSealed(collection: "newer") },
      { try $0.enumerateKeysInAllCollections { _, _, _ in } },
    ]
    for read in reads { #expect(throws: refusal) { try connection.read { try read($0) } } }
    #expect(throws: refusal) {
      try ConnectionProxy(database: database).object(forKey: "k", inCollection: "newer", as: Int.self)
    }
    #expect(try connection.read { try $0.object(forKey: "k", inCollection: "other", as: Int.self) } == 1)
  }

  @Test("is not written, nor emptied with all the others")
  func writing() throws {
    let before = try rows()
    let writes: [@Sendable (borrowing ReadWriteTransaction) throws -> Void] = [
      { try $0.setObject(3, forKey: "k", inCollection: "newer") },
      { try $0.removeObject(forKey: "k", inCollection: "newer") },
      { try $0.removeAllObjects(inCollection: "newer") },
      { try $0.removeAllObjectsInAllCollections() },
      { try $0.setHistoryLimits(nil, forCollection: "newer") },
    ]
    for write in writes { #expect(throws: refusal) { try connection.readWrite { try write($0) } } }
    // What it keeps of its past stays, too, when that of the others is swept.
    try connection.perform { $0.core.clock.stop(at: Clock.millisecondsSince1970 + 1_000_000) }
    for number in 0..<70 { try connection.readWrite { try $0.setObject(number, forKey: "n", inCollection: "other") } }
    #expect(try rows()[2] == before[2] && !before[2].isEmpty)
    #expect(try rows()[0] == before[0])
  }

  @Test("is reported by a verification, which continues with the others")
  func verification() throws {
    let report = try database.verify()
    #expect(report.problems.map(\.description) == ["\(refusal)"])
    #expect(report.itemCount == 1)
  }
}
