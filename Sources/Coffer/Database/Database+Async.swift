import CofferStorage
import Dispatch

/// Runs `body`, which blocks, without blocking a thread that runs tasks.
///
/// For calls that a program makes rarely: each has a thread of its own while it runs.
///
/// - Parameter isCancellable: Whether a task that was cancelled before does not run `body`.
/// - Throws: The errors of `body`; `CancellationError`.
func withoutBlocking<Result: Sendable>(
  isCancellable: Bool = true, _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
  if isCancellable { try Task.checkCancellation() }
  return try await withCheckedThrowingContinuation { continuation in
    // A queue of its own: no call waits for another one's work.
    DispatchQueue(label: "coffer.call").async { continuation.resume(with: Swift.Result { try body() }) }
  }
}

// Deriving a key from a passphrase takes a second, and changes of keys, closing, sealing and restoring wait for the disk.

extension Database {
  // MARK: Opening without blocking

  /// Opens a store, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// ```swift
  /// let database = try await Database.open(at: path, key: .passphrase(passphrase))
  /// ```
  ///
  /// - Throws: As the synchronous form; `CancellationError` when the task was cancelled before the call, as do the forms below.
  public static func open(at path: String, key: KeySource, options: Options = Options()) async throws -> Database {
    try await withoutBlocking { try open(at: path, key: key, options: options) }
  }

  /// Creates a store, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  public static func create(
    at path: String, key: KeySource, stretching: PasswordHash = .standard, options: Options = Options()
  ) async throws -> Database {
    try await withoutBlocking { try create(at: path, key: key, stretching: stretching, options: options) }
  }

  /// Opens a store, or creates it, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  public static func openOrCreate(
    at path: String, key: KeySource, options: Options = Options()
  ) async throws -> Database {
    try await withoutBlocking { try openOrCreate(at: path, key: key, options: options) }
  }

  /// Replaces a store by a copy of a backup, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  @discardableResult
  public static func restore(
    at path: String, from backup: String, key: KeySource, force: Bool = false, options: Options = Options()
  ) async throws -> String? {
    try await withoutBlocking { try restore(at: path, from: backup, key: key, force: force, options: options) }
  }

  // MARK: Closing without blocking

  /// Closes the database, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// A cancelled task closes it, too: a program that ends is often one whose tasks are cancelled.
  ///
  /// - Throws: As the synchronous form.
  public func close() async throws {
    try await withoutBlocking(isCancellable: false) { try self.close() }
  }

  // MARK: Keys, without blocking

  /// Re-encrypts the store, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  public func rotate(progress: @escaping @Sendable (Double) -> Void = { _ in }) async throws {
    try await withoutBlocking { try self.rotate(progress: progress) }
  }

  /// Replaces the root key, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  public func rotate(
    newRootKeyFor keys: [KeySource], droppingSlots dropped: Set<Int> = [],
    progress: @escaping @Sendable (Double) -> Void = { _ in }
  ) async throws {
    try await withoutBlocking { try self.rotate(newRootKeyFor: keys, droppingSlots: dropped, progress: progress) }
  }

  // MARK: Sealing without blocking

  /// Seals a collection, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  public func seal(collection: String) async throws {
    try await withoutBlocking { try self.seal(collection: collection) }
  }

  /// Unseals a collection, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  public func unseal(collection: String) async throws {
    try await withoutBlocking { try self.unseal(collection: collection) }
  }
}

extension Vault {
  // MARK: Without blocking

  /// Creates the store's vault, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  public func create(key: KeySource, label: String = "", stretching: PasswordHash = .standard) async throws {
    try await withoutBlocking { try self.create(key: key, label: label, stretching: stretching) }
  }

  /// Loads the vault's key into memory, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// ```swift
  /// try await database.vault.unlock(.passphrase(passphrase))
  /// ```
  ///
  /// - Throws: As the synchronous form.
  public func unlock(_ key: KeySource) async throws {
    try await withoutBlocking { try self.unlock(key) }
  }

  /// Gives the vault a new key, as the synchronous form does, without blocking a thread that runs tasks.
  ///
  /// - Throws: As the synchronous form.
  public func rotate(
    newKeyFor keys: [KeySource], droppingSlots dropped: Set<Int> = [],
    progress: @escaping @Sendable (Double) throws -> Void = { _ in }
  ) async throws {
    try await withoutBlocking { try self.rotate(newKeyFor: keys, droppingSlots: dropped, progress: progress) }
  }
}
