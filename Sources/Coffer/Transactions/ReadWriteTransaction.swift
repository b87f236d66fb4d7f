#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A write transaction: it sees its own changes, and all of them become visible to others together, or none.
///
/// `Connection.readWrite` passes it to a closure, which it cannot escape.
///
/// Setting a value in a sealed collection throws `CofferError.vaultLocked` while the vault is locked, with nothing changed. Every
/// change throws `CofferError.diskFull`, `.damaged` or `.inputOutput` when the store cannot be written, and
/// `.nestedTransaction` inside an observer or a sanitizer.
public struct ReadWriteTransaction: ~Copyable, Reading {
  /// The state of the transaction.
  public let context: TransactionContext

  package init(context: TransactionContext) {
    self.context = context
  }
}

/// How a closure wants its transaction or savepoint to end.
public enum TransactionCompletion: Sendable {
  /// Keep its changes.
  case commit
  /// Undo its changes.
  case rollback
}

extension ReadWriteTransaction {
  // MARK: Setting

  /// Sets the object of a key without metadata; existing metadata is cleared.
  ///
  /// nil removes the key.
  ///
  /// Setting a value equal to the current one changes nothing.
  ///
  /// - Throws: `CofferError.notEncodable`, with nothing changed; the errors of a sanitizer.
  public borrowing func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = ""
  ) throws {
    try set(object, metadata: Optional<Never>.none, key, collection)
  }

  /// Sets the object and the metadata of a key.
  ///
  /// A nil object removes the key, nil metadata clears it.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public borrowing func setObject<Object: Encodable, Metadata: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata metadata: Metadata?
  ) throws {
    try set(object, metadata: metadata, key, collection)
  }

  private borrowing func set(
    _ object: (some Encodable)?, metadata: (some Encodable)?, _ key: String, _ collection: String
  ) throws {
    guard let object else { return try removeObject(forKey: key, inCollection: collection) }
    try session.change(key, in: collection) { try $0.setting(object, metadata: metadata, key, in: collection) }
  }

  /// Sets the object of a key, with an expiry and without metadata.
  ///
  /// ```swift
  /// try transaction.setObject(true, forKey: "maintenance", expires: Date(timeIntervalSinceNow: 7200))
  /// ```
  ///
  /// At `expires` the key is gone, for every reader in every process. The next writer, or a program that has the store open,
  /// removes it in a separate commit, which records why: see ``Commit/hasExpired(key:inCollection:)``. Setting the key again
  /// clears the expiry unless a new one is given; replacing or updating it keeps the expiry.
  ///
  /// A read transaction sees what was there when it began.
  ///
  /// - Parameters:
  ///   - expires: By the clock of each host, to the millisecond; a time in the past removes the key. nil for an item that
  ///     stays.
  ///   - due: When the item should be renewed, for a secret that has to be rotated, for instance. Nothing happens then,
  ///     except that ``ItemInfo/due`` shows it. nil for never.
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public borrowing func setObject<Object: Encodable>(
    _ object: Object, forKey key: String, inCollection collection: String = "", expires: Date?, due: Date? = nil
  ) throws {
    try session.change(key, in: collection) {
      try $0.setting(object, dates: ItemDates(expires: expires, due: due), key, in: collection)
    }
  }

  // MARK: Replacing

  /// Replaces the object of a key, keeping its metadata, its expiry and its due date.
  ///
  /// Does nothing if the key is absent. nil removes the key.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public borrowing func replaceObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = ""
  ) throws {
    guard let object else { return try removeObject(forKey: key, inCollection: collection) }
    try session.change(key, in: collection) { try $0.replacing(object: object, key, in: collection) }
  }

  /// Replaces the metadata of a key, keeping its object, its expiry and its due date.
  ///
  /// Does nothing if the key is absent. nil clears the metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public borrowing func replaceMetadata<Metadata: Encodable>(
    _ metadata: Metadata?, forKey key: String, inCollection collection: String = ""
  ) throws {
    try session.change(key, in: collection) { try $0.replacing(metadata: metadata, key, in: collection) }
  }

  /// Clears the metadata of a key; the overload for a literal `nil` as metadata.
  public borrowing func replaceMetadata(
    _ nothing: Never?, forKey key: String, inCollection collection: String = ""
  ) throws {
    try session.change(key, in: collection) { _ in .replacedByNoMetadata }
  }

  /// Sets the object of a key, keeping its metadata, its expiry and its due date if it is there.
  ///
  /// nil removes the key.
  package borrowing func setKeepingRest<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String
  ) throws {
    if try hasObject(forKey: key, inCollection: collection) {
      try replaceObject(object, forKey: key, inCollection: collection)
    } else {
      try setObject(object, forKey: key, inCollection: collection)
    }
  }

  // MARK: Removing

  /// Removes a key with its object and metadata; does nothing if the key is absent.
  public borrowing func removeObject(forKey key: String, inCollection collection: String = "") throws {
    try session.apply(.removed, key, in: collection)
  }

  /// Removes several keys, all or none; absent keys are ignored.
  public borrowing func removeObjects(forKeys keys: some Sequence<String>, inCollection collection: String = "") throws
  {
    try session.remove(keys, in: collection)
  }

  /// Removes all keys of a collection, like removing them one by one: if the collection keeps history, that has the last
  /// values, and goes on.
  ///
  /// To leave nothing of them, use ``erase(collection:)``.
  public borrowing func removeAllObjects(inCollection collection: String = "") throws {
    try session.removeAll(in: collection)
  }

  /// Erases a collection for good: its items, their history and its limits, and its keys in the change log.
  ///
  /// Nothing brings them back, so it is not what removing does. The change log keeps that it was done, when and by whom,
  /// with the name of the collection, and which earlier commits changed it. A sealed collection stays sealed.
  ///
  /// ```swift
  /// try connection.readWrite { try $0.erase(collection: "sessions") }
  /// ```
  public borrowing func erase(collection: String) throws {
    try session.erase(collection)
  }

  // MARK: Moving

  /// Gives an item another key, with its metadata, its expiry and its due date; does nothing if it is absent.
  ///
  /// Text that its setting's declaration hides becomes a secret value, unless the new name's hides it, too.
  package borrowing func moveObject(
    forKey key: String, inCollection collection: String, toKey newKey: String, inCollection newCollection: String
  ) throws {
    guard let item = try session.item(key, in: collection) else { return }
    let losesVeil =
      try session.isDeclaredSecret(key, in: collection) && !session.isDeclaredSecret(newKey, in: newCollection)
    try session.change(newKey, in: newCollection) { core in
      let opened = try core.opened(item.object, key, in: collection)
      return try core.settingSerialized(
        losesVeil ? Value(opened).veiled?.stored ?? opened : opened,
        metadata: item.metadata.map { try core.opened(.metadata, $0, key, in: collection) }, dates: item.dates, newKey,
        in: newCollection)
    }
    try session.apply(.removed, key, in: collection)
  }

  // MARK: The transaction itself

  /// Discards everything that this transaction has changed and will change.
  ///
  /// The closure runs to its end. In `writeWithoutTransaction` there is nothing to discard.
  public borrowing func rollback() {
    session.rollBack()
  }

  /// Runs `body` in a savepoint; its changes are undone if it returns `.rollback` or throws.
  ///
  /// ```swift
  /// try transaction.inSavepoint {
  ///   try transaction.setObject(draft, forKey: "draft")
  ///   return try isValid(transaction) ? .commit : .rollback
  /// }
  /// ```
  ///
  /// Savepoints nest. In `writeWithoutTransaction`, outside of a transaction, the savepoint is a transaction.
  ///
  /// - Throws: The errors of `body`.
  public borrowing func inSavepoint(_ body: () throws -> TransactionCompletion) throws {
    struct Rollback: Error {}
    do {
      if session.isAutocommitting {
        try session.inTransaction { if try body() == .rollback { throw Rollback() } }
      } else {
        try session.savepoint { if try body() == .rollback { throw Rollback() } }
      }
    } catch is Rollback {}
  }

  /// On whose behalf the transaction is made; nil for the actor of the database's options.
  ///
  /// It is stored with the commit, beside the program, the user and the host; see ``Commit/author``.
  ///
  /// ```swift
  /// try connection.readWrite { transaction in
  ///   transaction.actor = request.userName
  ///   try transaction.setObject(100, forKey: "rateLimit")
  /// }
  /// ```
  ///
  /// This is a note, not evidence: anyone with the store's key can write any actor. In `writeWithoutTransaction` it applies
  /// only to the transaction of an `inSavepoint`.
  public var actor: String? {
    get { session.transaction.actor }
    nonmutating set { session.transaction.actor = newValue }
  }
}
