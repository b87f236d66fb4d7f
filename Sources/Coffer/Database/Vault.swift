import CofferCrypto
import CofferStorage

/// Keeps sealed collections secret even while the store is open: it has a key of its own, in its own slots.
///
/// ```swift
/// let vault = database.vault
/// if try !vault.exists() { try vault.create(key: .passphrase(passphrase)) }
/// try database.seal(collection: "tokens")
/// vault.lock()
/// try vault.unlock(.passphrase(passphrase))
/// ```
///
/// A store has at most one vault. Its key is in memory from `unlock(_:)` to ``lock()``, for all connections and proxies of
/// this `Database`; other processes have to unlock it themselves. While it is locked, the rest of the store works as usual,
/// and keys of sealed collections can be listed and removed; reading or setting a value in one throws
/// ``CofferError/vaultLocked(collection:)``.
public struct Vault: Sendable {
  let database: Database

  var keys: VaultKeys { database.core.vault }

  // MARK: Creating

  /// Whether the store has a vault.
  ///
  /// - Throws: `CofferError.closed`, `.damaged` or `.inputOutput`.
  public func exists() throws -> Bool {
    try record() != nil
  }

  /// Creates the store's vault, with a key that `key` unlocks, and leaves it unlocked.
  ///
  /// - Parameters:
  ///   - key: Usually a passphrase: the key of the store should not open the vault as well.
  ///   - label: The name of the slot.
  ///   - stretching: The cost of each guess at a passphrase.
  /// - Throws: `CofferError.vaultExists`, `.keyUnavailable`, `.unsupported`; the errors of a write transaction.
  public func create(key: KeySource, label: String = "", stretching: PasswordHash = .standard) throws {
    guard try !exists() else { throw CofferError.vaultExists }
    let (record, secret) = try CofferError.translating {
      let id = try RandomSource.bytes(count: VaultRecord.idByteCount)
      let slot = try PreparedSecret(key, stretching: .password(stretching), label: label, owner: id)
      return try VaultRecord.make(id: id, slot: slot)
    }
    try database.write { session in
      guard try session.vaultRecord() == nil else { throw CofferError.vaultExists }
      try session.setVault(record)
      session.note(.vaultCreated)
    }
    // It takes the place of a vault that is gone.
    keys.setVoucher(rememberedOutside)
    try add(secret, of: record, from: key, unlessLockedSince: keys.lockCount)
  }

  /// Whether the store has a vault, even one whose record does not parse.
  package func isThere() throws -> Bool { try database.read { try $0.hasVault() } }

  // MARK: Locking

  /// Whether the vault's key is in memory.
  public var isUnlocked: Bool { keys.isUnlocked }

  /// Loads the vault's key into memory.
  ///
  /// When another process gives the vault a new key, and the earlier one came from a key file, a command or a credential,
  /// the new one is read from there automatically; see ``events``. Otherwise the vault has to be unlocked again.
  ///
  /// The key must be the one last used, by this `Database` or according to the store's record (see ``Freshness``), or its
  /// successor: someone who could unlock the vault earlier, and has the store's key, can put an earlier key back.
  ///
  /// - Throws: `CofferError.vaultNotFound`; `.wrongKey` when `key` opens no slot, `.keyUnavailable`; `.damaged` when the
  ///   vault's slots were changed by someone without its key; `.vaultKeyUnverified`; `.vaultLocked` when ``lock()`` was called meanwhile.
  public func unlock(_ key: KeySource) throws {
    try unlock(opening(with: key))
  }

  /// Wipes the vault's key.
  ///
  /// When this returns, nothing in Coffer's memory can open a sealed value, and an unlock that began before fails. Pending
  /// changes are sealed already, and are still written. Values returned earlier belong to the program.
  public func lock() {
    keys.lock()
  }

  /// Reports, in this process, when the vault is unlocked or locked, or gets a new key from another process.
  ///
  /// ```swift
  /// for await event in database.vault.events where event == .keyReplaced(isFollowed: false) {
  ///   try database.vault.unlock(.passphrase(askAgain()))
  /// }
  /// ```
  ///
  /// While this is being iterated, commits of other processes are checked for a new key. A consumer that falls more than 64
  /// events behind misses the oldest.
  public var events: AsyncStream<VaultEvent> {
    let registration = try? database.onCommit { [weak database] _ in database?.followVault() }
    return keys.events.stream(keeping: registration)
  }

  // MARK: For the tool

  /// Whether opening the store, or a transaction since, has found a vault; free of cost.
  package var wasFound: Bool { keys.isThere.load(ordering: .acquiring) }

  /// Loads the vault's key into memory, from where it was kept meanwhile.
  ///
  /// - Throws: `CofferError.vaultNotFound`; `.wrongKey` when it is another vault's key, or an earlier one;
  ///   `.vaultKeyUnverified`; `.vaultLocked` when it was locked meanwhile.
  package func unlock(vaultKey: SecretBytes) throws {
    let (lockCount, memories) = (keys.lockCount, memories())
    let record = try existingRecord()
    guard try CofferError.translating({ try record.isAuthentic(under: vaultKey) }) else { throw CofferError.wrongKey }
    try unlock(Opening(secret: vaultKey, record: record, source: nil, memories: memories, lockCount: lockCount))
  }

  /// The vault's key, from the slot that `key` opens, before it is loaded.
  package struct Opening: Sendable {
    fileprivate let secret: SecretBytes
    fileprivate let record: VaultRecord
    fileprivate let source: KeySource?
    fileprivate let memories: Memories
    /// How often the vault had been locked.
    fileprivate let lockCount: Int
  }

  /// Does the slow part of ``unlock(_:)``, which stretches a passphrase; a caller can then decide whether it is still wanted.
  ///
  /// - Throws: `CofferError.vaultNotFound`, `.wrongKey`, `.keyUnavailable`, `.damaged`.
  package func opening(with key: KeySource) throws -> Opening {
    let (lockCount, memories) = (keys.lockCount, memories())
    let record = try existingRecord()
    let secret = try CofferError.translating { try record.open(key) }
    return Opening(secret: secret, record: record, source: key, memories: memories, lockCount: lockCount)
  }

  /// Loads the key.
  ///
  /// - Throws: `CofferError.vaultKeyUnverified`; `.vaultLocked` when the vault was locked since `opening` was made.
  package func unlock(_ opening: Opening) throws {
    try check(opening.secret, of: opening.record, by: opening.memories)
    try add(opening.secret, of: opening.record, from: opening.source, unlessLockedSince: opening.lockCount)
  }

  /// The vault's key, to be kept elsewhere for a while.
  ///
  /// - Throws: `CofferError.vaultLocked`.
  package func vaultKey() throws -> SecretBytes {
    guard let current = keys.current else { throw CofferError.vaultLocked(collection: nil) }
    return current.secret
  }

  /// The ID of the store, which may have replaced another one, as hexadecimal digits; nil in memory.
  package var storeID: String? {
    guard case .file(let store) = database.backing else { return nil }
    return HexText.text(store.storeID)
  }

  /// The vault's ID, 16 random bytes; a backup has the same ID.
  ///
  /// - Throws: `CofferError.vaultNotFound`.
  package func id() throws -> [UInt8] {
    try existingRecord().id
  }

  // MARK: Parts

  private func add(
    _ secret: SecretBytes, of record: VaultRecord, from source: KeySource?, unlessLockedSince lockCount: Int
  ) throws {
    try keys.add(secret, of: record, from: source, unlessLockedSince: lockCount)
    remember()
    database.vaultWasUnlocked()
  }

  /// What is remembered of the key last used, here and in the record; read this before the vault's record, which another process
  /// may replace.
  private func memories() -> Memories { Memories(own: keys.memory, kept: rememberedOutside) }

  fileprivate struct Memories {
    let own: VaultMemory?
    let kept: VaultMemory?
  }

  private var rememberedOutside: VaultMemory? {
    guard case .file(let store) = database.backing else { return nil }
    return database.core.witness?.rememberedVault(store)
  }

  private func check(_ secret: SecretBytes, of record: VaultRecord, by memories: Memories) throws {
    for memory in [memories.own, memories.kept].compactMap(\.self)
    where try !CofferError.translating({ try memory.vouches(for: secret, of: record) }) {
      throw CofferError.vaultKeyUnverified(known: Int(memory.generation), found: Int(record.generation))
    }
    keys.setVoucher(memories.kept)
  }

  /// Remembers the key in use outside of the store.
  func remember() {
    guard case .file(let store) = database.backing, !database.isReadOnly else { return }
    database.core.witness?.rememberVault(store)
  }

  func record() throws -> VaultRecord? {
    try database.read { try $0.vaultRecord() }
  }

  func existingRecord() throws -> VaultRecord {
    guard let record = try record() else { throw CofferError.vaultNotFound }
    return record
  }
}

extension Database {
  /// Checks whether the vault got a new key from another process, and reads it.
  fileprivate func followVault() {
    guard vault.isUnlocked, let connection = try? takeReader() else { return }
    defer { giveBack(connection) }
    do {
      try connection.perform { session in
        try session.read { try CofferError.translating { try session.followVault() } }
      }
    } catch {
      options.logger.debug("\(path): could not check whether the vault has a new key. \(error)")
    }
  }

  /// The vault of this store, which keeps sealed collections secret.
  public var vault: Vault { Vault(database: self) }

  /// Runs `body` in a read transaction of its own.
  func read<Result>(_ body: (Session) throws -> Result) throws -> Result {
    try makeConnection().perform { session in
      try session.read { try CofferError.translating { try body(session) } }
    }
  }

  /// Runs `body` in a write transaction of its own, synced to disk when this returns.
  func write<Result>(_ body: (Session) throws -> Result) throws -> Result {
    let connection = try makeConnection()
    try connection.checkMayWrite()
    return try connection.perform { session in
      try session.write(.full) { try CofferError.translating { try body(session) } }
    }
  }
}
