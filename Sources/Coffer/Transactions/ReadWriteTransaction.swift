import Dispatch

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A write transaction: it sees its own changes, and all of them become visible to others together, or none.
///
/// `Connection.readWrite` passes it to a closure, which it cannot escape.
///
/// Setting a value in a sealed collection throws `CofferError.locked` while the vault is locked, with nothing changed. Every
/// change throws `CofferError.diskFull`, `.damaged` or `.inputOutput` when the store cannot be written, and
/// `.nestedTransaction` inside an observer or a sanitizer.
public struct ReadWriteTransaction: ~Copyable, Reading {
  /// The state of the transaction.
  public let context: TransactionContext

  init(context: TransactionContext) {
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

  /// Removes a key; the overload for a literal `nil` as object.
  public borrowing func setObject(_ nothing: Never?, forKey key: String, inCollection collection: String = "") throws {
    try removeObject(forKey: key, inCollection: collection)
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

  /// Sets the object of a key and clears its metadata; the overload for a literal `nil` as metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public borrowing func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata nothing: Never?
  ) throws {
    try set(object, metadata: nothing, key, collection)
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

  /// Sets object and metadata that are already serialized.
  ///
  /// - Parameters:
  ///   - expires: When the item expires; nil for never.
  ///   - due: When it should be renewed; nil for never.
  /// - Throws: The errors of a sanitizer.
  public borrowing func setSerializedObject(
    _ object: SerializedValue, forKey key: String, inCollection collection: String = "",
    withMetadata metadata: SerializedValue? = nil, expires: Date? = nil, due: Date? = nil
  ) throws {
    try session.change(key, in: collection) {
      try $0.settingSerialized(
        object.stored, metadata: metadata?.stored, dates: ItemDates(expires: expires, due: due), key, in: collection)
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

  /// Removes a key; the overload for a literal `nil` as object.
  public borrowing func replaceObject(
    _ nothing: Never?, forKey key: String, inCollection collection: String = ""
  ) throws {
    try removeObject(forKey: key, inCollection: collection)
  }

  /// Replaces the object of a key with one that is already serialized, keeping its metadata, its expiry and its due date.
  ///
  /// Does nothing if the key is absent.
  ///
  /// - Throws: The errors of a sanitizer.
  public borrowing func replaceSerializedObject(
    _ object: SerializedValue, forKey key: String, inCollection collection: String = ""
  ) throws {
    try session.change(key, in: collection) {
      .replaced(.init(object: HeldValue(try $0.sanitize(.object, object.stored, key, in: collection))))
    }
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

  /// Replaces the metadata of a key with metadata that is already serialized, keeping its object.
  ///
  /// Does nothing if the key is absent.
  ///
  /// - Throws: The errors of a sanitizer.
  public borrowing func replaceSerializedMetadata(
    _ metadata: SerializedValue, forKey key: String, inCollection collection: String = ""
  ) throws {
    try session.change(key, in: collection) {
      .replaced(.init(metadata: .some(try $0.sanitize(.metadata, metadata.stored, key, in: collection))))
    }
  }

  // MARK: Removing

  /// Removes a key with its object and metadata; does nothing if the key is absent.
  public borrowing func removeObject(forKey key: String, inCollection collection: String = "") throws {
    try session.remove(key, in: collection)
  }

  /// Removes several keys, all or none; absent keys are ignored.
  public borrowing func removeObjects(forKeys keys: some Sequence<String>, inCollection collection: String = "") throws
  {
    try session.remove(keys, in: collection)
  }

  /// Removes a collection: its items, their history, its limits, its name, and its keys in the change log.
  ///
  /// A sealed collection keeps its name, and stays sealed.
  public borrowing func removeAllObjects(inCollection collection: String = "") throws {
    try session.removeAll(in: collection)
  }

  /// Removes all collections.
  public borrowing func removeAllObjectsInAllCollections() throws {
    try session.removeAllInAllCollections()
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

  /// An object for observers of the commit in this process, besides the changes; the last one set is used.
  ///
  /// In `writeWithoutTransaction` it applies only to the transaction of an `inSavepoint`.
  public var notificationCustomObject: (any Sendable)? {
    get { session.transaction.customObject }
    nonmutating set { session.transaction.customObject = newValue }
  }

  /// Runs `block` after the end of the transaction, in the order of these calls, before the completion of the call that made
  /// the transaction.
  ///
  /// In `writeWithoutTransaction`, where everything before is committed already, it runs immediately.
  ///
  /// - Parameters:
  ///   - queue: Where it runs; nil for the thread of the transaction.
  ///   - block: Receives whether the transaction was committed.
  public borrowing func addCompletion(
    on queue: DispatchQueue? = nil, _ block: @escaping @Sendable (_ isCommitted: Bool) -> Void
  ) {
    session.addCompletion(queue, block)
  }
}
