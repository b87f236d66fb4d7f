import Dispatch

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A write transaction: it sees its own changes, and all of them become visible to others at once, or none.
///
/// `Connection.readWrite` lends it to a closure, which it cannot leave.
///
/// All that sets a value in a sealed collection throws `CofferError.locked` while the vault is locked, with nothing changed.
/// All that changes something throws `CofferError.diskFull`, `.damaged` or `.inputOutput` when the store cannot be
/// written, and `.nestedTransaction` inside an observer or a sanitizer.
public struct ReadWriteTransaction: ~Copyable, Reading {
  /// What the transaction works on.
  public let context: TransactionContext

  init(context: TransactionContext) {
    self.context = context
  }
}

/// How a transaction or a savepoint ends that its closure decides about.
public enum TransactionCompletion: Sendable {
  /// Its changes stay.
  case commit
  /// Its changes are undone.
  case rollback
}

extension ReadWriteTransaction {
  // MARK: Setting

  /// Sets the object for a key, without metadata: what metadata there was is cleared.
  ///
  /// nil removes the key.
  ///
  /// Setting a value equal to the present one changes nothing.
  ///
  /// - Throws: `CofferError.notEncodable`, with nothing changed; what a sanitizer throws.
  public borrowing func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = ""
  ) throws {
    try set(object, metadata: Optional<Never>.none, key, collection)
  }

  /// Removes a key: what a literal `nil` means as an object.
  public borrowing func setObject(_ nothing: Never?, forKey key: String, inCollection collection: String = "") throws {
    try removeObject(forKey: key, inCollection: collection)
  }

  /// Sets the object and the metadata for a key.
  ///
  /// A nil object removes the key, nil metadata clears it.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public borrowing func setObject<Object: Encodable, Metadata: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata metadata: Metadata?
  ) throws {
    try set(object, metadata: metadata, key, collection)
  }

  /// Sets the object for a key and clears its metadata: what a literal `nil` means as metadata.
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

  /// Sets the object for a key for a time, without metadata.
  ///
  /// ```swift
  /// try transaction.setObject(true, forKey: "maintenance", expires: Date(timeIntervalSinceNow: 7200))
  /// ```
  ///
  /// From `expires` on the key is gone, for every reader in every process at once. Whoever writes next, or a program that has
  /// the store open, removes it with a commit of its own, which says so: see ``Commit/hasExpired(key:inCollection:)``. What is
  /// set again stays, unless it is given another time; what is replaced or updated keeps its time.
  ///
  /// A transaction that reads sees what was there when it began.
  ///
  /// - Parameters:
  ///   - expires: By the clock of each host, to the millisecond; a time that is past removes the key. nil for an item that
  ///     stays.
  ///   - due: From when on the item should be set anew, a secret that has to be renewed, say: nothing happens then, but
  ///     ``ItemInfo/due`` tells. nil for never.
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public borrowing func setObject<Object: Encodable>(
    _ object: Object, forKey key: String, inCollection collection: String = "", expires: Date?, due: Date? = nil
  ) throws {
    try session.change(key, in: collection) {
      try $0.setting(object, dates: ItemDates(expires: expires, due: due), key, in: collection)
    }
  }

  /// Sets object and metadata that were serialized before.
  ///
  /// - Parameters:
  ///   - expires: From when on the item is gone; nil for never.
  ///   - due: From when on it should be set anew; nil for never.
  /// - Throws: What a sanitizer throws.
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

  /// Replaces the object for a key, keeping its metadata, its expiry and its due date.
  ///
  /// Does nothing where there is no such key. nil removes the key.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public borrowing func replaceObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = ""
  ) throws {
    guard let object else { return try removeObject(forKey: key, inCollection: collection) }
    try session.change(key, in: collection) { try $0.replacing(object: object, key, in: collection) }
  }

  /// Removes a key: what a literal `nil` means as an object.
  public borrowing func replaceObject(
    _ nothing: Never?, forKey key: String, inCollection collection: String = ""
  ) throws {
    try removeObject(forKey: key, inCollection: collection)
  }

  /// Replaces the object for a key with one that was serialized before, keeping its metadata, its expiry and its due date.
  ///
  /// Does nothing where there is no such key.
  ///
  /// - Throws: What a sanitizer throws.
  public borrowing func replaceSerializedObject(
    _ object: SerializedValue, forKey key: String, inCollection collection: String = ""
  ) throws {
    try session.change(key, in: collection) {
      .replaced(.init(object: HeldValue(try $0.sanitize(.object, object.stored, key, in: collection))))
    }
  }

  /// Replaces the metadata for a key, keeping its object, its expiry and its due date.
  ///
  /// Does nothing where there is no such key. nil clears the metadata.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:)`.
  public borrowing func replaceMetadata<Metadata: Encodable>(
    _ metadata: Metadata?, forKey key: String, inCollection collection: String = ""
  ) throws {
    try session.change(key, in: collection) { try $0.replacing(metadata: metadata, key, in: collection) }
  }

  /// Clears the metadata of a key: what a literal `nil` means as metadata.
  public borrowing func replaceMetadata(
    _ nothing: Never?, forKey key: String, inCollection collection: String = ""
  ) throws {
    try session.change(key, in: collection) { _ in .replacedByNoMetadata }
  }

  /// Replaces the metadata for a key with some that was serialized before, keeping its object.
  ///
  /// Does nothing where there is no such key.
  ///
  /// - Throws: What a sanitizer throws.
  public borrowing func replaceSerializedMetadata(
    _ metadata: SerializedValue, forKey key: String, inCollection collection: String = ""
  ) throws {
    try session.change(key, in: collection) {
      .replaced(.init(metadata: .some(try $0.sanitize(.metadata, metadata.stored, key, in: collection))))
    }
  }

  // MARK: Removing

  /// Removes a key with its object and metadata; an absent key changes nothing.
  public borrowing func removeObject(forKey key: String, inCollection collection: String = "") throws {
    try session.remove(key, in: collection)
  }

  /// Removes several keys, all or none; absent ones change nothing.
  public borrowing func removeObjects(forKeys keys: some Sequence<String>, inCollection collection: String = "") throws
  {
    try session.remove(keys, in: collection)
  }

  /// Removes a collection: its items, their history and its limits, its name, and its keys in the change log.
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

  /// Discards all that this transaction changed before and will change after this call.
  ///
  /// The closure goes on to its end. In `writeWithoutTransaction` there is nothing to discard.
  public borrowing func rollback() {
    session.rollBack()
  }

  /// Runs `body` in a savepoint; what it changes is undone when it returns `.rollback`, or throws.
  ///
  /// ```swift
  /// try transaction.inSavepoint {
  ///   try transaction.setObject(draft, forKey: "draft")
  ///   return try isValid(transaction) ? .commit : .rollback
  /// }
  /// ```
  ///
  /// Savepoints nest. Outside a transaction, in `writeWithoutTransaction`, the savepoint is a transaction.
  ///
  /// - Throws: What `body` throws.
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
  /// The commit carries it beside the program, the user and the host; see ``Commit/author``.
  ///
  /// ```swift
  /// try connection.readWrite { transaction in
  ///   transaction.actor = request.userName
  ///   try transaction.setObject(100, forKey: "rateLimit")
  /// }
  /// ```
  ///
  /// A note, not evidence: whoever has the store's key can write any. In `writeWithoutTransaction` it goes with the transaction
  /// of an `inSavepoint` alone.
  public var actor: String? {
    get { session.transaction.actor }
    nonmutating set { session.transaction.actor = newValue }
  }

  /// What observers of the commit get beside its changes, in this process; the last one set counts.
  ///
  /// In `writeWithoutTransaction` it goes with the transaction of an `inSavepoint` alone.
  public var notificationCustomObject: (any Sendable)? {
    get { session.transaction.customObject }
    nonmutating set { session.transaction.customObject = newValue }
  }

  /// Runs `block` after the end of the transaction, in the order of these calls, before the completion of the call that
  /// made the transaction.
  ///
  /// In `writeWithoutTransaction`, where all that came before is committed, it runs at once.
  ///
  /// - Parameters:
  ///   - queue: Where it runs; nil for the thread of the transaction.
  ///   - block: Gets whether the transaction was committed.
  public borrowing func addCompletion(
    on queue: DispatchQueue? = nil, _ block: @escaping @Sendable (_ isCommitted: Bool) -> Void
  ) {
    session.addCompletion(queue, block)
  }
}
