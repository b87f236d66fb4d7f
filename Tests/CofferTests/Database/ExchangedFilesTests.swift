import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("A store whose files are replaced by copies, as where a folder is copied back") struct ExchangedFilesTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    try set("first", connection)
  }

  private func set(_ key: String, _ connection: Connection) throws {
    try connection.readWrite { try $0.setObject(true, forKey: key, inCollection: "") }
  }

  private func keys(_ connection: Connection) throws -> [String] {
    try connection.read { try $0.allKeys(inCollection: "").sorted() }
  }

  private func exchange(_ suffixes: [String]) throws {
    for path in suffixes.map({ store.path + $0 }) {
      // By another program: closing a descriptor of these files here would drop SQLite's locks.
      try #require(Child.run("/bin/cp", ["-p", path, path + "-copy"]).status == 0)
      try #require(rename(path + "-copy", path) == 0)
    }
  }

  private static let exchanges = [["-shm"], ["-wal"], ["-wal", "-shm"], ["", "-wal", "-shm"], [""]]

  @Test("What other programs commit is seen here, and the other way round", arguments: exchanges)
  func followed(_ suffixes: [String]) throws {
    let registration = try database.onCommit { _ in }
    let other = try database.makeConnection()
    #expect(try keys(other) == ["first"])
    try exchange(suffixes)
    #expect(try store.worker("set", "theirs", "1").status == 0)
    database.deliverCommits()
    for reader in [connection, other] { #expect(try keys(reader) == ["first", "theirs"]) }
    try set("ours", connection)
    #expect(try store.worker("set", "later", "1").status == 0)
    withExtendedLifetime(registration) {}
    try database.close()
    #expect(try keys(store.open().makeConnection()) == ["first", "later", "ours", "theirs"])
  }

  @Test("A change by a program that does not follow the store is in it, beside those of others", arguments: exchanges)
  func written(_ suffixes: [String]) throws {
    try exchange(suffixes)
    #expect(try store.worker("set", "theirs", "1").status == 0)
    try set("ours", connection)
    try database.close()
    #expect(try keys(store.open().makeConnection()) == ["first", "ours", "theirs"])
  }

  @Test("Closing without a change leaves what other programs have committed", arguments: exchanges)
  func closed(_ suffixes: [String]) throws {
    try exchange(suffixes)
    #expect(try store.worker("set", "theirs", "1").status == 0)
    try database.close()
    #expect(try keys(store.open().makeConnection()) == ["first", "theirs"])
  }

  @Test("A change that waited for another one goes into the files that have the names by then", arguments: exchanges)
  func waited(_ suffixes: [String]) throws {
    let other = try database.makeConnection()
    _ = try keys(other)
    // So that its next call looks for an exchange.
    try set("second", connection)
    let outcome = Lock<Result<Void, any Error>?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    struct Undone: Error {}
    #expect(throws: Undone.self) {
      try connection.readWrite { _ in
        Thread.detachNewThread {
          let result = Result { try set("ours", other) }
          outcome.withLock { $0 = result }
          isDone.signal()
        }
        while !other.lending.isParked { sched_yield() }
        try exchange(suffixes)
        throw Undone()
      }
    }
    isDone.wait()
    try outcome.withLock { $0 }?.get()
    try database.close()
    #expect(try keys(store.open().makeConnection()) == ["first", "ours", "second"])
  }

  #if os(Linux)
    @Test("The index of the store and of its copy stays locked by this program, so that no other one truncates it")
    func locked() throws {
      let other = try database.makeConnection()
      #expect(try keys(other) == ["first"])
      try exchange([""])
      for connection in [connection, other] { #expect(try keys(connection) == ["first"]) }
      try set("ours", connection)
      try set("later", other)
      var status = stat()
      try #require(lstat(store.path + "-shm", &status) == 0)
      // The lock of all who use it, see unixOpenSharedMemory() in SQLite's os_unix.c.
      let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n").filter { line in
        let fields = line.split(separator: " ")
        return fields[4] == "\(getpid())" && fields[5].hasSuffix(":\(status.st_ino)") && fields[6] == "128"
      }
      #expect(locks.count == 1)
    }
  #endif
}
