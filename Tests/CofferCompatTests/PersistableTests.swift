import CofferCompat
import Foundation
import TestSupport
import Testing

@testable import Coffer

private struct Photo: Persistable, Equatable {
  static let collection = "photos"
  let identifier: String
  var title = "Dawn"
  var isEncodable = true

  func encode(to encoder: any Encoder) throws {
    guard isEncodable else { throw EncodingError.invalidValue(self, .init(codingPath: [], debugDescription: title)) }
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(identifier, forKey: .identifier)
    try container.encode(title, forKey: .title)
    try container.encode(isEncodable, forKey: .isEncodable)
  }
}

private struct Account: Persistable, Equatable {
  static let collection = "accounts"
  let identifier: String
  var isLocked = false
  var photos: [ItemReference] = []

  /// Made from the item, each time it is written.
  var metadata: [String: Bool]? {
    get { isLocked ? ["locked": true] : nil }
    set {}
  }
}

/// Metadata that is not encoded, and an identifier that is not text.
private struct Film: Persistable, Equatable {
  static let collection = "films"
  let identifier: Int
  var title = "Dawn"
  var metadata: Date?

  enum CodingKeys: CodingKey { case identifier, title }
}

/// Metadata that is encoded.
private struct Song: Persistable, Equatable {
  static let collection = "songs"
  let identifier: UUID
  var metadata: Date?
}

/// An identifier that is not its own text.
private struct Day: Persistable, Equatable {
  static let collection = "days"
  let identifier: Date
  static func key(for identifier: Date) -> String { "\(Int(identifier.timeIntervalSince1970))" }
}

@Suite("Persistable items") struct PersistableTests {
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection
  private let a = Photo(identifier: "a")
  private let b = Photo(identifier: "b", title: "Noon")
  private let c = Photo(identifier: "c")

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
  }

  @Test("read back equal after reopening, with their metadata or without any")
  func roundTrip() throws {
    let account = Account(identifier: "x", isLocked: true, photos: [a.reference, Photo.reference(forKey: "b")])
    try connection.write(account)
    try connection.write([a, b])
    try database.close()
    let reopened = try store.open().makeConnection()
    try reopened.read { transaction in
      let read = try #require(try transaction.read(Account.self, key: "x"))
      #expect(read == account)
      #expect(try transaction.read(Photo.self, references: read.photos) == [a, b])
      #expect(try transaction.readMetadata(Account.self, key: "x") == ["locked": true])
      #expect(try transaction.metadata(forKey: "x", inCollection: "accounts") == ["locked": true])
      #expect(try transaction.readMetadata(Photo.self, key: "a") == nil)
      #expect(try transaction.serializedMetadata(forKey: "a", inCollection: "photos") == nil)
    }
  }

  @Test("lose metadata set to nil when they are written again")
  func metadata() throws {
    try connection.write([Account(identifier: "x", isLocked: true), Account(identifier: "y", isLocked: true)])
    try connection.write(Account(identifier: "y"))
    #expect(try connection.readMetadata(Account.self, keys: ["y", "none", "x"]) == [nil, nil, ["locked": true]])
  }

  @Test("are read with their stored metadata, and keep it when written back, encoded in them or not")
  func metadataWithItem() throws {
    let (first, second) = (Date(timeIntervalSince1970: 1), Date(timeIntervalSince1970: 2))
    let (film, song) = (Film(identifier: 7, metadata: first), Song(identifier: UUID(), metadata: first))
    try connection.write(film)
    try connection.write(song)
    #expect(try connection.read(Film.self, key: 7) == film)
    #expect(try connection.readAll(Song.self) == [song])
    // Replaced without the items, it is what they are read with.
    try connection.readWrite { transaction in
      try transaction.replaceMetadata(second, forKey: "7", inCollection: "films")
      try transaction.replaceMetadata(second, forKey: song.identifier.uuidString, inCollection: "songs")
      var read = try #require(try transaction.read(Film.self, reference: film.reference))
      #expect(read.metadata == second)
      read.title = "Noon"
      try transaction.write(read)
      #expect(try transaction.readMetadata(Film.self, key: 7) == second)
      #expect(try transaction.read(Film.self, references: [film.reference]).map(\.metadata) == [second])
      let (songs, missing) = try transaction.filterExisting(Song.self, keys: [song.identifier])
      #expect(songs.map(\.metadata) == [second] && missing.isEmpty)
      try transaction.replaceMetadata(nil, forKey: song.identifier.uuidString, inCollection: "songs")
      #expect(try transaction.read(Song.self, key: song.identifier)?.metadata == nil)
      // Beside an item without metadata anything may stand.
      try transaction.setObject(a, forKey: "a", inCollection: "photos", withMetadata: "another program's")
      #expect(try transaction.read(Photo.self, key: "a") == a)
      #expect(try transaction.readAll(Photo.self) == [a])
    }
  }

  @Test("are identified by numbers, UUIDs, or a key they compute")
  func identifiers() throws {
    let song = Song(identifier: UUID())
    try connection.write([Film(identifier: 7), Film(identifier: -1)])
    try connection.write(song)
    try connection.write(Day(identifier: Date(timeIntervalSince1970: 86400)))
    try connection.read { transaction in
      let keys = try ["films", "songs", "days"].map { try transaction.allKeys(inCollection: $0) }
      #expect(keys == [["-1", "7"], [song.identifier.uuidString], ["86400"]])
      #expect(try transaction.read(Song.self, key: song.identifier) == song)
      #expect(try transaction.filterExisting(Film.self, keys: [7, 8]).missing == [8])
      #expect(try transaction.readMetadata(Film.self, keys: [7, 8]) == [nil, nil])
    }
    try connection.remove(Film.self, keys: [7, 8])
    try connection.remove(Film.self, key: -1)
    try connection.remove(song)
    #expect(try connection.read { try $0.allCollections() } == ["days"])
  }

  @Test("are returned in the order of their keys, or of the requested keys")
  func order() throws {
    try connection.readWrite { transaction in
      try transaction.write([c, a, b])
      #expect(try transaction.readAll(Photo.self) == [a, b, c])
      #expect(try transaction.read(Photo.self, keys: ["c", "none", "a", "c"]) == [c, a, c])
    }
    #expect(try connection.readAll(Photo.self) == [a, b, c])
    #expect(try connection.readAll(Account.self).isEmpty)
  }

  @Test("are distinguished from missing keys, also if each operation commits by itself")
  func filterExisting() throws {
    try connection.write([a, c])
    try connection.writeWithoutTransaction { transaction in
      let (existing, missing) = try transaction.filterExisting(Photo.self, keys: ["z", "c", "b", "a"])
      #expect(existing == [c, a])
      #expect(missing == ["z", "b"])
    }
  }

  @Test("are read in one snapshot, also if each operation commits by itself")
  func oneSnapshot() throws {
    try connection.write([a, b])
    let other = try database.makeConnection()
    // Asked for the second key, after the first has been read, it removes both.
    let keys = ["a", "b"].lazy.map { key in
      if key == "b" { #expect(throws: Never.self) { try other.remove([a, b]) } }
      return key
    }
    try connection.writeWithoutTransaction { transaction in
      let items = try transaction.read(Photo.self, keys: keys)
      #expect(items == [a, b])
      #expect(try transaction.readAll(Photo.self).isEmpty)
    }
  }

  @Test("of another type than the stored one are an error that names collection and key")
  func wrongType() throws {
    try connection.readWrite { try $0.setObject(7, forKey: "b", inCollection: "photos", withMetadata: "m") }
    try connection.write([a, c])
    func isNamed(_ error: any Error) -> Bool {
      guard case CofferError.notDecodable("photos", "b", _, _, _) = error else { return false }
      return true
    }
    try connection.read { transaction in
      #expect { _ = try transaction.read(Photo.self, key: "b") } throws: { isNamed($0) }
      #expect { _ = try transaction.read(Photo.self, keys: ["a", "b"]) } throws: { isNamed($0) }
      #expect { _ = try transaction.readAll(Photo.self) } throws: { isNamed($0) }
      #expect { _ = try transaction.readMetadata(Photo.self, key: "b") } throws: { isNamed($0) }
    }
  }

  @Test("are not read at a reference of another collection")
  func wrongIndex() throws {
    try connection.write(a)
    #expect(try connection.read(Photo.self, reference: a.reference) == a)
    let reason = "the reference is to collection \"photos\", but Account is stored in \"accounts\""
    #expect(throws: CofferError.unsupported(reason: reason)) {
      try connection.read(Account.self, reference: a.reference)
    }
    #expect(throws: CofferError.unsupported(reason: reason)) {
      try connection.read(Account.self, references: [a.reference])
    }
  }

  @Test("have references that compare by UTF-8 bytes")
  func references() {
    #expect(Photo.reference(forKey: "\u{e9}") == ItemReference(collection: "photos", key: "\u{e9}"))
    #expect(Set([Photo.reference(forKey: "\u{e9}"), Photo.reference(forKey: "e\u{301}")]).count == 2)
  }

  @Test("are removed by value or by key, and absent ones change nothing")
  func remove() throws {
    try connection.write([a, b, c, Photo(identifier: "d"), Photo(identifier: "e")])
    try connection.remove(a)
    try connection.remove([b, b])
    try connection.remove(Photo.self, key: "c")
    try connection.remove(Photo.self, keys: ["d", "none"])
    #expect(try connection.readAll(Photo.self).map(\.identifier) == ["e"])
    let snapshot = try connection.read { try $0.commitNumber() }
    try connection.remove(a)
    #expect(try connection.read { try $0.commitNumber() } == snapshot)
  }

  @Test("are written all or none, also if the error is caught, and if each operation commits by itself")
  func allOrNone() throws {
    let broken = Photo(identifier: "b", isEncodable: false)
    let error = CofferError.notEncodable(collection: "photos", key: "b", reason: "it cannot be encoded")
    #expect(throws: error) { try connection.write([a, broken, c]) }
    #expect(try connection.readAll(Photo.self).isEmpty)
    try connection.readWrite { transaction in
      try transaction.write(c)
      #expect(throws: error) { try transaction.write([a, broken]) }
      #expect(try transaction.readAll(Photo.self) == [c])
    }
    try connection.writeWithoutTransaction { transaction in
      #expect(throws: error) { try transaction.write([a, broken]) }
      let items = try transaction.readAll(Photo.self)
      #expect(items == [c])
    }
    #expect(try connection.readAll(Photo.self) == [c])
  }

  @Test("are read and written from a task without blocking it")
  func asynchronous() async throws {
    let writer: any DatabaseWriter = connection
    try await Task {
      try await writer.write([a, b, c])
      try await writer.write(Account(identifier: "x", isLocked: true))
      #expect(try await writer.read(Photo.self, key: "a") == a)
      #expect(try await writer.read(Photo.self, reference: b.reference) == b)
      #expect(try await writer.read(Photo.self, keys: ["c", "a"]) == [c, a])
      #expect(try await writer.read(Photo.self, references: [b.reference]) == [b])
      #expect(try await writer.filterExisting(Photo.self, keys: ["a", "z"]).missing == ["z"])
      #expect(try await writer.readMetadata(Account.self, key: "x") == ["locked": true])
      #expect(try await writer.readMetadata(Account.self, keys: ["y", "x"]) == [nil, ["locked": true]])
      try await writer.remove(a)
      try await writer.remove([b])
      try await writer.remove(Account.self, key: "x")
      try await writer.remove(Account.self, keys: ["x"])
      #expect(try await writer.readAll(Photo.self) == [c])
      #expect(try await writer.readAll(Account.self).isEmpty)
    }.value
  }

  @Test("are not written by a task that was cancelled")
  func cancellation() async throws {
    let connection = connection
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await connection.write(a)
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try await connection.readAll(Photo.self).isEmpty)
  }

  @Test("are read and written with completion blocks, in order")
  func completions() async throws {
    let connection = connection
    connection.asyncWrite(a) { _, _ in }
    connection.asyncWrite([b, c]) { _, _ in }
    connection.asyncRemove(a) { _, _ in }
    connection.asyncRemove([c]) { _, _ in }
    let one = try await withCheckedThrowingContinuation { continuation in
      connection.asyncRead(Photo.self, key: "b") { continuation.resume(with: $0) }
    }
    #expect(one == b)
    let many = try await withCheckedThrowingContinuation { continuation in
      connection.asyncRead(Photo.self, keys: ["a", "b"], on: .global()) { continuation.resume(with: $0) }
    }
    #expect(many == [b])
    let all = try await withCheckedThrowingContinuation { continuation in
      connection.asyncReadAll(Photo.self) { continuation.resume(with: $0) }
    }
    #expect(all == [b])
    await #expect(throws: CofferError.self) {
      try await withCheckedThrowingContinuation { continuation in
        connection.asyncWrite(Photo(identifier: "d", isEncodable: false)) { continuation.resume(with: $1) }
      }
    }
  }

  @Test("can be written and removed at the end of a chain")
  func chains() async throws {
    try await connection.readWrite { transaction in
      try [c, a, b].lazy.filter { $0.title == "Dawn" }.write(to: transaction)
      try [a].remove(from: transaction)
      #expect(try transaction.readAll(Photo.self) == [c])
    }
    let writer: any DatabaseWriter = connection
    try await [a, b].write(to: writer)
    try await [c].remove(from: connection)
    #expect(try await connection.readAll(Photo.self) == [a, b])
  }
}
