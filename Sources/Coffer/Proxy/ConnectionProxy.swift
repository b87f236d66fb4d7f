import Dispatch

/// The front door: values are set in memory and read back at once, and reach the disk by themselves, in batches.
///
/// ```swift
/// let settings = try ConnectionProxy(database: database)
/// try settings.setObject("dark", forKey: "theme", inCollection: "ui")
/// let theme: String? = try settings.object(forKey: "theme", inCollection: "ui")  // "dark", before any disk has it
/// try await settings.flush()                                                    // now every connection sees it
/// ```
///
/// The first change after a quiet moment schedules one write transaction; all that changes until that transaction has
/// the write lock goes with it, and what changes during it makes the next one. No timer is involved, so an unflushed
/// change is as old as one transaction takes. A batch is written whole or not at all.
///
/// Flushes commit with `synchronous=NORMAL`: a crash of the program loses nothing that was flushed, a power cut at most
/// the last commits. Ask for `Durability.synced` where that matters.
///
/// Pending changes are flushed by `close()`, after the proxy's release, and at the normal exit of the process; only a
/// crash, or a signal that ends the process, loses them.
public final class ConnectionProxy: Sendable {
  /// When a change that is being made returns.
  public enum Durability: Sendable {
    /// At once; the change is flushed soon.
    case asynchronous
    /// When it is committed: every other connection and process sees it.
    case committed
    /// When it is committed and the disk has it.
    case synced
  }

  /// A flush that failed.
  ///
  /// Its changes stay pending and readable, and are tried again.
  public struct FlushFailure: Sendable {
    /// Why it failed.
    public let error: CofferError
    /// How many changes are waiting.
    public let pendingChangeCount: Int
  }

  /// The connection that reads go to.
  ///
  /// Free for other read transactions.
  public let readOnlyConnection: Connection
  /// The connection that flushes go through.
  ///
  /// Free for other transactions: what was set before a write is queued on it is written before that write, what is set
  /// after it, after it.
  public let readWriteConnection: Connection
  private let pending: PendingChanges

  /// Makes a proxy with two connections of its own.
  ///
  /// - Throws: What `Database.makeConnection()` throws.
  public convenience init(database: Database) throws {
    try self.init(
      database: database, readOnlyConnection: database.makeConnection(),
      readWriteConnection: database.makeConnection())
  }

  /// Makes a proxy over connections of `database` that are also used otherwise.
  public init(database: Database, readOnlyConnection: Connection, readWriteConnection: Connection) {
    precondition(
      readOnlyConnection.database === database && readWriteConnection.database === database,
      "The connections of a proxy must belong to its database.")
    self.readOnlyConnection = readOnlyConnection
    self.readWriteConnection = readWriteConnection
    pending = PendingChanges(connection: readWriteConnection)
  }

  private var database: Database { readWriteConnection.database }

  // MARK: Reading

  /// The object for a key: the one set last through this proxy, else the committed one; nil when there is none.
  ///
  /// - Throws: `CofferError.notDecodable` when another type is stored; `.closed`, `.damaged` or `.inputOutput`.
  public func object<Object: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Object.Type = Object.self
  ) throws -> Object? {
    switch try pending.change(key, in: collection) {
    case .set(let object, _): try database.core.decode(.object, object, as: type, key, in: collection)
    case .removed: nil
    case nil: try readOnlyConnection.read { try $0.object(forKey: key, inCollection: collection, as: type) }
    }
  }

  /// The object for a key as it describes itself, nil when there is none.
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func value(forKey key: String, inCollection collection: String = "") throws -> Value? {
    try object(forKey: key, inCollection: collection)
  }

  /// The metadata for a key, nil when there is none.
  ///
  /// - Throws: As `object(forKey:inCollection:as:)`.
  public func metadata<Metadata: Decodable>(
    forKey key: String, inCollection collection: String = "", as type: Metadata.Type = Metadata.self
  ) throws -> Metadata? {
    switch try pending.change(key, in: collection) {
    case .set(_, let metadata):
      try metadata.map { try database.core.decode(.metadata, $0, as: type, key, in: collection) }
    case .removed: nil
    case nil: try readOnlyConnection.read { try $0.metadata(forKey: key, inCollection: collection, as: type) }
    }
  }

  /// Whether there is an object for a key.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func hasObject(forKey key: String, inCollection collection: String = "") throws -> Bool {
    switch try pending.change(key, in: collection) {
    case .set: true
    case .removed: false
    case nil: try readOnlyConnection.read { try $0.hasObject(forKey: key, inCollection: collection) }
    }
  }

  // MARK: Writing

  /// Sets the object for a key, without metadata.
  ///
  /// nil removes the key.
  ///
  /// - Throws: `CofferError.notEncodable`, `.readOnly` or `.closed`, with nothing changed. With `.committed` and `.synced` also what a
  ///   flush throws; the change is then pending. With these two `.nestedTransaction` inside a transaction of
  ///   `readWriteConnection`, with nothing changed.
  public func setObject<Object: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    try set(object, metadata: nil, key, collection, durability)
  }

  /// Removes a key: what a literal `nil` means as an object.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func setObject(
    _ nothing: Never?, forKey key: String, inCollection collection: String = "",
    durability: Durability = .asynchronous
  ) throws {
    try removeObject(forKey: key, inCollection: collection, durability: durability)
  }

  /// Sets the object and the metadata for a key.
  ///
  /// A nil object removes the key, nil metadata clears it.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func setObject<Object: Encodable, Metadata: Encodable>(
    _ object: Object?, forKey key: String, inCollection collection: String = "", withMetadata metadata: Metadata?,
    durability: Durability = .asynchronous
  ) throws {
    let metadata = try metadata.map { try database.core.encode(.metadata, $0, key, in: collection) }
    try set(object, metadata: metadata, key, collection, durability)
  }

  private func set(
    _ object: (some Encodable)?, metadata: StoredValue?, _ key: String, _ collection: String, _ durability: Durability
  ) throws {
    let change = try object.map {
      PendingChange.set(try database.core.encode(.object, $0, key, in: collection), metadata)
    }
    try pending.add(change ?? .removed, key, in: collection, durability: durability)
  }

  /// Removes a key; an absent one changes nothing.
  ///
  /// - Throws: As `setObject(_:forKey:inCollection:durability:)`.
  public func removeObject(
    forKey key: String, inCollection collection: String = "", durability: Durability = .asynchronous
  ) throws {
    try pending.add(.removed, key, in: collection, durability: durability)
  }

  // MARK: Flushing

  /// How many changes are not committed yet.
  public var pendingChangeCount: Int { pending.count }

  /// Commits what is pending.
  ///
  /// When this returns, every change that was made before the call is visible to all.
  ///
  /// - Throws: `CofferError.diskFull`, `.busy`, `.inputOutput` …: nothing is lost, the changes stay pending and are tried
  ///   again; `.nestedTransaction` inside a transaction of `readWriteConnection`.
  public func flush() async throws {
    guard !readWriteConnection.isInTransaction else { throw CofferError.nestedTransaction }
    try await withCheckedThrowingContinuation { continuation in
      pending.flush { continuation.resume(with: $0) }
    }
  }

  /// Commits what is pending, as `flush()`, and blocks the calling thread until then.
  ///
  /// - Throws: As `flush()`.
  public func flushAndWait() throws {
    try pending.flushAndWait(.normal)
  }

  /// The flushes that fail from now on.
  ///
  /// Each call gives a stream of its own, which ends when the proxy is gone.
  public var flushFailures: AsyncStream<FlushFailure> { pending.failures.stream() }

  /// Flushes and ends the proxy: everything on it throws `CofferError.closed` afterwards.
  ///
  /// The connections stay open.
  ///
  /// - Throws: What a flush throws; the proxy is then still open, and nothing is lost.
  public func close() throws {
    try pending.close()
  }
}
