import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

/// A store with an unlocked vault, and in it the sealed collection `tokens`.
final class SealedFixture: Sendable {
  let store: TemporaryStore
  let database: Database
  let connection: Connection
  var vault: Vault { database.vault }
  var vaultKeyFile: String { "\(store.folder)/vault-key" }
  var vaultKey: KeySource { .keyFile(vaultKeyFile) }

  init(isSealed: Bool = true) throws {
    store = try TemporaryStore()
    try KeyFile.create(at: "\(store.folder)/vault-key")
    database = try store.open()
    connection = try database.makeConnection()
    try vault.create(key: vaultKey, label: "test")
    if isSealed { try database.seal(collection: "tokens") }
  }

  func set(_ object: some Encodable, _ metadata: String? = nil, forKey key: String = "k") throws {
    try connection.readWrite {
      try $0.setObject(object, forKey: key, inCollection: "tokens", withMetadata: metadata)
    }
  }

  func object<Object: Decodable>(forKey key: String = "k", as type: Object.Type = Object.self) throws -> Object? {
    try connection.read { try $0.object(forKey: key, inCollection: "tokens", as: type) }
  }

  /// The item as it lies in the table.
  func storedItem(forKey key: String = "k") throws -> HeldItem? {
    try connection.storedItem(forKey: key)
  }

  func commitNumber() throws -> CommitNumber { try connection.read { try $0.commitNumber() } }

  /// Changes the tables past all that Coffer checks.
  func execute(_ sql: String) throws {
    try connection.perform { session in
      try session.connection.beginWrite(.full)
      try session.connection.execute(sql)
      try session.connection.commit()
      session.cache.removeAll()
    }
  }
}

extension Connection {
  /// The item as it lies in the table.
  func storedItem(forKey key: String = "k", inCollection collection: String = "tokens") throws -> HeldItem? {
    try perform { session in try session.read { try session.storedItem(key, in: collection) } }
  }
}

extension StoredValue {
  /// The bytes, a secret's, too: for tests alone.
  var array: [UInt8] { bytes.withUnsafeBytes(Array.init) }
}

extension CofferError {
  var isDamage: Bool { if case .damaged = self { true } else { false } }
}

/// Expects a `CofferError.damaged`.
func expectDamage<Result>(_ body: () throws -> Result, location: SourceLocation = #_sourceLocation) {
  #expect(sourceLocation: location) {
    _ = try body()
  } throws: {
    ($0 as? CofferError)?.isDamage ?? false
  }
}
