import CofferCompat
import Foundation
import TestSupport
import Testing

@testable import Coffer

/// What left the public interface of `Coffer`, under the names of the libraries that programs come from.
@Suite("The names of other stores")
struct FormerNameTests {
  @Test("give a proxy its connections: none, one or both")
  func connections() throws {
    let database = try Database.inMemory()
    let (one, other) = (try database.makeConnection(), try database.makeConnection())
    let reading = try ConnectionProxy(database: database, readOnlyConnection: one)
    #expect(reading.readOnlyConnection === one && reading.readWriteConnection !== one)
    let both = try ConnectionProxy(database: database, readOnlyConnection: one, readWriteConnection: other)
    #expect(both.readOnlyConnection === one && both.readWriteConnection === other)
    try both.setObject(1, forKey: "k")
    // What was set before is written before.
    let before: Int? = try both.readWriteConnection.readWrite { try $0.object(forKey: "k") }
    #expect(before == 1)
    #expect(try ConnectionProxy(database: database).readOnlyConnection !== one)
  }

  @Test("ask commits for changes of a collection, of keys, and of the object or the metadata")
  func queries() throws {
    let database = try Database.inMemory()
    let connection = try database.makeConnection()
    let start = try connection.read { try $0.position() }
    try connection.readWrite { try $0.setObject(1, forKey: "k", inCollection: "c", withMetadata: "m") }
    try connection.readWrite { try $0.replaceMetadata("n", forKey: "k", inCollection: "c") }
    try connection.readWrite { try $0.removeAllObjects(inCollection: "c") }
    let commits = try #require(try connection.read { try $0.changes(since: start) })
    #expect(commits.map { $0.hasChange(inCollection: "c", of: .object) } == [true, false, true])
    #expect(commits.map { $0.hasChange(forKey: "k", inCollection: "c", of: .metadata) } == [true, true, true])
    #expect(commits.map { $0.hasChange(forKey: "other", inCollection: "c") } == [false, false, true])
    #expect(commits[0].hasChange(forAnyOf: ["other", "k"], inCollection: "c"))
    #expect(commits.hasChange(forKey: "k", inCollection: "c", of: .object) && !commits.hasChange(inCollection: "d"))
    #expect(commits.didClear(collection: "c") && !commits[0].didClear(collection: "c"))
    #expect(commits.prefix(2).changedKeys(inCollection: "c", of: .object) == ["k"])
    // The same without the part, of Coffer's own.
    #expect(commits.map { $0.concerns(key: "other", inCollection: "c") } == [false, false, true])
    #expect(commits.map { $0.concerns(collection: "d") } == [false, false, false])
  }

  @Test("filter a proxy by lists, where none allows nothing and forbids nothing")
  func filters() throws {
    let database = try Database.inMemory()
    let proxy = try ConnectionProxy(database: database)
    proxy.writtenCollectionsFilter = .whitelist(["a"])
    #expect(throws: CofferError.collectionNotAllowed(collection: "b")) {
      try proxy.setObject(1, forKey: "k", inCollection: "b")
    }
    proxy.writtenCollectionsFilter = .whitelist(nil)
    #expect(throws: CofferError.collectionNotAllowed(collection: "a")) {
      try proxy.setObject(1, forKey: "k", inCollection: "a")
    }
    proxy.writtenCollectionsFilter = .blacklist(nil)
    // What no flush has taken is dropped.
    try database.makeConnection().readWrite { _ in
      try proxy.setObject(1, forKey: "k", inCollection: "b")
      try proxy.abortAndReset(nil)
    }
    #expect(try !proxy.hasObject(forKey: "k", inCollection: "b"))
  }
}
