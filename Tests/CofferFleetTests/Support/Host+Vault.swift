import Foundation
import TestSupport

@testable import Coffer
@testable import CofferFleet

extension Host {
  private var vaultKey: String { "\(folder)/vault-key" }

  /// Creates the host's vault if it has none, and seals a collection with it.
  func seal(_ collection: String = "web") throws {
    if try database.vault.exists() {
      try unlock()
    } else {
      try KeyFile.create(at: vaultKey)
      try database.vault.create(key: .keyFile(vaultKey))
    }
    try database.seal(collection: collection)
  }

  func unlock() throws { try database.vault.unlock(.keyFile(vaultKey)) }

  func lock() { database.vault.lock() }

  /// Runs `body` as a program that has unlocked the vault, while the one that syncs has not.
  func unlocked<R>(_ body: () throws -> R) throws -> R {
    guard try database.vault.exists(), !database.vault.isUnlocked else { return try body() }
    try unlock()
    defer { lock() }
    return try body()
  }

  /// Whether a value is sealed in the store, and so are its earlier ones.
  func isSealed(_ key: String, in collection: String = "web") throws -> Bool {
    try connection.perform { session in
      try session.read {
        let earlier = try session.history(key, in: collection).map(\.item)
        return try (session.storedItem(key, in: collection)?.isSealed ?? true) && earlier.allSatisfy(\.isSealed)
      }
    }
  }

  /// Whether a text is anywhere in the store's pages, as they are without the store's encryption.
  func pagesHave(_ text: String) throws -> Bool {
    try plainPages(of: connection, in: folder).range(of: Data(text.utf8)) != nil
  }
}
