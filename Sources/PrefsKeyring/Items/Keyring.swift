import Coffer
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The items of a collection, each a setting: its key is an ``ItemName``, its value the secret, its metadata ``ItemDetails``.
struct Keyring {
  static let collection = "keyring"

  let database: Database
  let session: CommandSession
  let collection: String

  /// Opens the keyring to read.
  ///
  /// - Returns: Nil if there is no store.
  static func openForReading<R>(
    _ session: CommandSession, _ collection: String, _ body: (Keyring) throws -> R
  ) throws -> R? {
    guard try session.exists() else { return nil }
    return try session.using(try session.openForReading()) {
      try body(Keyring(database: $0, session: session, collection: collection))
    }
  }

  /// Opens the keyring to change it.
  static func openForWriting<R>(
    _ session: CommandSession, _ collection: String, _ body: (Keyring) throws -> R
  ) throws -> R {
    try session.using(try session.openOrCreate()) {
      try body(Keyring(database: $0, session: session, collection: collection))
    }
  }

  // MARK: - Searching

  /// The names of the items that have all of `attributes`, newest first; needs no vault.
  func names(_ attributes: ItemAttributes) throws -> [ItemName] {
    try CommandSession.whileImageChanges {
      try database.makeConnection().read { try Self.names(attributes, collection, $0) }
    }
  }

  static func names(
    _ attributes: ItemAttributes, _ collection: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [ItemName] {
    try transaction.itemInfos(inCollection: collection)
      .map { (name: ItemName(key: $0.key), version: $0.version) }
      .filter { $0.name.attributes.contain(attributes) }
      .sorted { $0.version > $1.version }
      .map(\.name)
  }

  /// The item of that name; nil if it is gone.
  ///
  /// - Throws: ``Failure`` if the collection is sealed and the vault cannot be unlocked.
  func item(_ name: ItemName) throws -> KeyringItem? {
    try session.unlocking(database) {
      try database.makeConnection().read {
        try $0.item(forKey: name.key, inCollection: collection).map(KeyringItem.init)
      }
    }
  }

  // MARK: - Changing

  /// Sets the item with exactly these attributes; `replaced` and other items with the same attributes are removed.
  func set(
    _ secret: SecretBytes, _ attributes: ItemAttributes, label: String, type: String = ItemDetails.text,
    replacing replaced: [ItemName] = []
  ) throws {
    try sealFirst()
    try session.unlocking(database) {
      try database.makeConnection().readWrite { transaction in
        let same = try Self.names(attributes, collection, transaction).filter { $0.attributes == attributes }
        let name = try same.first ?? ItemName(attributes)
        try Self.put(secret, name, label: label, type: type, collection, transaction)
        let others = (same + replaced).map(\.key).filter { !$0.utf8.elementsEqual(name.key.utf8) }
        try transaction.removeObjects(forKeys: others, inCollection: collection)
      }
    }
  }

  /// Sets an item, which keeps the date of its creation.
  static func put(
    _ secret: SecretBytes, _ name: ItemName, label: String, type: String, _ collection: String,
    _ transaction: borrowing ReadWriteTransaction
  ) throws {
    let former = try transaction.item(forKey: name.key, inCollection: collection)
    let created = former.map { ItemDetails($0.metadata, of: name, modified: $0.modified).created }
    let details = ItemDetails(label: label, type: type, created: created ?? Date())
    try transaction.setObject(
      Secret(secret), forKey: name.key, inCollection: collection, withMetadata: details.metadata)
  }

  func remove(_ names: [ItemName]) throws {
    guard !names.isEmpty else { return }
    try session.unlocking(database) {
      try database.makeConnection().readWrite {
        try $0.removeObjects(forKeys: names.map(\.key), inCollection: collection)
      }
    }
  }

  /// Seals the collection before its first item, if the store has a vault.
  private func sealFirst() throws {
    let isNew = try CommandSession.whileImageChanges {
      try database.makeConnection().read {
        try !$0.isSealed(collection: collection) && $0.numberOfKeys(inCollection: collection) == 0
      }
    }
    guard isNew else { return }
    guard try database.vault.exists() else {
      let seal = CommandHint.text("seal", operand: collection)
      return session.options.note(
        "the store has no vault, so everyone who can open the store can read the secrets of "
          + "\(DisplayText.collection(collection)). To seal them, run: \(seal)")
    }
    try session.unlocking(database) { try database.seal(collection: collection) }
  }
}
