import CofferCrypto
import CofferStorage
import Synchronization

/// The keys of a database's vault, while it is unlocked.
///
/// Values are sealed and opened only here, under a lock: the cipher serves one thread at a time, and no key is in use after
/// `lock()` has returned.
package final class VaultKeys: Sendable {
  /// Whether the store is known to have a vault; false for most programs, to which all this costs one load.
  let isThere = Atomic<Bool>(false)

  /// How often the vault was locked: a key that was being opened meanwhile is not added.
  private let locks = Atomic<Int>(0)
  var lockCount: Int { locks.load(ordering: .acquiring) }

  /// How often a key was added: values read before were not checked against the vault's list of sealed collections.
  let unlockCount = Atomic<Int>(0)

  fileprivate struct Keys: Sendable {
    let vaultID: [UInt8]
    /// The key under which values are sealed outside of transactions.
    var current: UInt32
    /// Earlier keys open values that were sealed under them and are not written yet.
    var byGeneration: [UInt32: VaultKey]
    /// The sealed collections, according to the last authentic record.
    var list: DeclaredList
    /// Where the key came from, if it can be read again: a new key by another process is read from there.
    var source: KeySource?
    /// The generation whose key could not be read from `source`.
    var missedGeneration: UInt32?

    /// Adds the current key.
    mutating func take(_ key: VaultKey, of record: VaultRecord) {
      byGeneration[record.generation] = key
      current = record.generation
      list = DeclaredList(record)
      missedGeneration = nil
    }
  }

  /// A vault's list of sealed collections, identified by the MAC of its record.
  fileprivate struct DeclaredList: Sendable {
    let mac: [UInt8]
    let names: Set<ByteString>

    init(_ record: VaultRecord) {
      mac = record.mac
      names = Set(record.sealedCollections.map { ByteString($0) })
    }
  }

  fileprivate let keys = Lock<Keys?>(nil)

  let events = Broadcast<VaultEvent>()

  private struct Memories {
    /// Of the key last used, also while the vault is locked.
    var own: VaultMemory?
    /// The one in the record outside of the store that has vouched for `own`, or is `own`.
    var voucher: VaultMemory?
  }

  private let memories = Lock(Memories())

  /// What is remembered of the key last used; see `VaultMemory`.
  var memory: VaultMemory? { memories.withLock { $0.own } }

  private func remember(_ key: VaultMemory) { memories.withLock { $0.own = key } }

  /// Remembers a key that was used before a restore.
  func inherit(_ memory: VaultMemory) { remember(memory) }

  /// Forgets which key was last used: the store was replaced by another one.
  func forgetMemory() { memories.withLock { $0 = Memories() } }

  /// What the record should remember in place of `kept`.
  ///
  /// The key last used here only if it descends from that one: this program may have missed a new key.
  func remembered(over kept: VaultMemory?) -> VaultMemory? {
    memories.withLock { memories in
      guard let own = memories.own, let kept else { return memories.own ?? kept }
      return memories.voucher?.isSame(as: kept) ?? false ? own : kept
    }
  }

  /// Takes note of what the record remembers now.
  func didRemember(_ kept: VaultMemory?) {
    memories.withLock { memories in
      if let kept, memories.own?.isSame(as: kept) ?? false { memories.voucher = kept }
    }
  }

  /// Lets the key last used here take the place of `kept` in the record.
  func setVoucher(_ kept: VaultMemory?) { memories.withLock { $0.voucher = kept } }

  /// Whether `kept`, in the record, is what has vouched for the key last used here, or vouches for `key` of `record`.
  private func isVouched(_ key: SecretBytes, of record: VaultRecord, by kept: VaultMemory?) throws -> Bool {
    guard let kept else { return true }
    if memories.withLock({ $0.voucher?.isSame(as: kept) ?? false }) { return true }
    guard try CofferError.translating({ try kept.vouches(for: key, of: record) }) else { return false }
    setVoucher(kept)
    return true
  }

  /// Throws if the vault's row is not under the key that the record remembers, nor under its successor.
  ///
  /// A program that was idle may have missed a new key, and someone whom that locked out may have put back the row that this program
  /// knows.
  ///
  /// - Parameter kept: What the record remembers of the vault.
  func check(_ record: VaultRecord, rememberedAs kept: VaultMemory?) throws {
    guard let kept else { return }
    let key = keys.withLock { keys in
      keys.flatMap { $0.vaultID == record.id ? $0.byGeneration[record.generation]?.secret : nil }
    }
    // While the vault is locked, only what is sealed already is written.
    let isVouched = try key.map { try self.isVouched($0, of: record, by: kept) } ?? !kept.isLater(than: record)
    guard isVouched else {
      throw CofferError.vaultKeyUnverified(known: Int(kept.generation), found: Int(record.generation))
    }
  }

  // MARK: Unlocking

  package var isUnlocked: Bool { keys.withLock { $0 != nil } }

  /// The current key and its vault; nil while it is locked.
  var current: (vaultID: [UInt8], generation: UInt32, secret: SecretBytes)? {
    keys.withLock { keys in
      guard let keys, let key = keys.byGeneration[keys.current] else { return nil }
      return (keys.vaultID, keys.current, key.secret)
    }
  }

  /// Adds a key that was found to be the vault's.
  ///
  /// - Parameters:
  ///   - source: Where it came from.
  ///   - lockCount: The number of locks when the key was asked for.
  /// - Throws: `CofferError.vaultLocked` when the vault was locked since.
  func add(
    _ secret: SecretBytes, of record: VaultRecord, from source: KeySource?, unlessLockedSince lockCount: Int
  ) throws {
    let key = try VaultKey(secret, of: record)
    try keys.withLock { keys in
      guard self.lockCount == lockCount else { throw CofferError.vaultLocked(collection: nil) }
      if keys?.vaultID != record.id {
        keys = Keys(
          vaultID: record.id, current: record.generation, byGeneration: [:], list: DeclaredList(record))
      }
      keys?.take(key, of: record)
      keys?.source = source.flatMap { $0.canBeReadAgain ? $0 : nil }
    }
    remember(key.memory)
    isThere.store(true, ordering: .releasing)
    unlockCount.add(1, ordering: .acquiringAndReleasing)
    events.send(.unlocked)
  }

  /// Whether this is the last known record; true while the vault is locked, when it does not matter.
  func knows(mac: [UInt8]) -> Bool {
    keys.withLock { $0.map { $0.list.mac == mac } ?? true }
  }

  /// Reads a new key by another process from where the earlier one came from.
  ///
  /// A slot alone vouches for nothing: its record from before still opens, and wraps a key that everyone knows who could unlock
  /// the vault then. The key held here must name the new one as its successor. After two new keys it cannot, and the vault counts
  /// as locked.
  ///
  /// A key file may get the new key later, and is read each time; a command runs once for each new key.
  ///
  /// - Parameter remembered: Reads what the record outside of the store remembers, which must vouch for the new key, too: the key
  ///   held here may not be the last one.
  func follow(_ record: VaultRecord, remembered: () -> VaultMemory?) throws {
    let unlocked = keys.withLock { keys -> (source: KeySource?, isNews: Bool, memory: VaultMemory)? in
      // Someone has put an older record back.
      guard let keys, keys.vaultID == record.id, record.generation > keys.current else { return nil }
      guard keys.byGeneration[record.generation] == nil, let memory = keys.byGeneration[keys.current]?.memory else {
        return nil
      }
      return (keys.source, keys.missedGeneration != record.generation, memory)
    }
    guard let (source, isNews, memory) = unlocked else { return }
    if case .keyCommand = source, !isNews { return }
    // Outside the lock: a command may take minutes.
    guard let secret = source.flatMap({ try? record.open($0) }), try memory.vouches(for: secret, of: record),
      try isVouched(secret, of: record, by: remembered())
    else {
      keys.withLock { $0?.missedGeneration = record.generation }
      if isNews { events.send(.keyReplaced(isFollowed: false)) }
      return
    }
    let key = try VaultKey(secret, of: record)
    let hasFollowed = keys.withLock { keys -> Bool in
      // If the vault was locked meanwhile, it stays locked.
      guard keys?.vaultID == record.id, let current = keys?.current, record.generation > current else { return false }
      keys?.take(key, of: record)
      remember(key.memory)
      return true
    }
    if hasFollowed { events.send(.keyReplaced(isFollowed: true)) }
  }

  /// Adds the key that is about to become the vault's, if it is unlocked.
  func prepare(_ secret: SecretBytes, of record: VaultRecord) throws {
    let key = try VaultKey(secret, of: record)
    keys.withLock { $0?.byGeneration[record.generation] = key }
  }

  /// Ends what `prepare` began: makes the key the current one, or forgets it.
  func settle(_ generation: UInt32, isCurrent: Bool) {
    let isUnlocked = keys.withLock { keys in
      if isCurrent {
        keys?.current = generation
        if let memory = keys?.byGeneration[generation]?.memory { remember(memory) }
      } else {
        keys?.byGeneration[generation] = nil
      }
      return keys != nil
    }
    if isCurrent { events.send(.keyReplaced(isFollowed: isUnlocked)) }
  }

  /// Forgets all keys, which wipes them.
  func lock() {
    let wasUnlocked = keys.withLock { keys in
      defer { keys = nil }
      locks.add(1, ordering: .acquiringAndReleasing)
      return keys != nil
    }
    if wasUnlocked { events.send(.locked) }
  }

  // MARK: Declarations

  /// The current key of the vault, under which `record` is authentic.
  ///
  /// - Throws: `CofferError.vaultLocked`, also when another process has replaced the key; `.damaged`.
  package func key(authenticating record: VaultRecord) throws -> SecretBytes {
    guard let current, current.generation == record.generation else { throw CofferError.vaultLocked(collection: nil) }
    guard try CofferError.translating({ try record.isAuthentic(under: current.secret) }) else {
      throw CofferError(VaultRecord.edited)
    }
    return current.secret
  }

  /// Whether the vault's own list has a collection; nil if that cannot be known: while the vault is locked, or for a
  /// collection that was not sealed when another process replaced the key.
  ///
  /// - Parameters:
  ///   - mac: The MAC of the vault's record, which identifies a known list.
  ///   - record: Reads the whole record.
  ///   - remembered: As for `follow`.
  /// - Throws: `CofferError.vaultLocked` when another process has replaced the key since; `.damaged` when the record is not
  ///   authentic, or another vault's.
  func lists(
    _ collection: String, mac: [UInt8], record: () throws -> VaultRecord?, remembered: () -> VaultMemory?
  ) throws -> Bool? {
    let name = ByteString(collection)
    let known = keys.withLock { $0.map { $0.list.mac == mac ? $0.list.names.contains(name) : nil } }
    guard let known else { return nil }
    if let known { return known }
    guard let record = try record() else { throw CofferError(VaultRecord.edited) }
    try follow(record, remembered: remembered)
    return try keys.withLock { keys in
      guard let present = keys else { return nil }
      guard present.vaultID == record.id else { throw CofferError(VaultRecord.edited) }
      guard record.generation >= present.current else {
        throw CofferError.vaultKeyUnverified(known: Int(present.current), found: Int(record.generation))
      }
      guard let key = present.byGeneration[record.generation] else {
        guard !present.list.names.contains(name) else { throw CofferError.vaultLocked(collection: collection) }
        return nil
      }
      guard try CofferError.translating({ try record.isAuthentic(under: key.secret) }) else {
        throw CofferError(VaultRecord.edited)
      }
      keys?.list = DeclaredList(record)
      return keys?.list.names.contains(name)
    }
  }

  // MARK: Sealing

  /// Seals a value for its place.
  ///
  /// A value equal to the present one becomes exactly the same bytes, so that setting it again changes nothing.
  ///
  /// - Parameters:
  ///   - generation: The key to seal it under; nil for the current one.
  ///   - present: The value at that place now, if known.
  /// - Throws: `CofferError.vaultLocked`, naming the collection; `.vaultKeyUnverified` when the vault in the store is under an
  ///   earlier key.
  func seal(
    _ value: StoredValue, _ part: ItemPart, _ key: String, in collection: String, under generation: UInt32? = nil,
    keeping present: StoredValue? = nil
  ) throws -> StoredValue {
    try keys.withLock { keys in
      let target = generation ?? keys?.current
      let isReady = value.isSealed(under: target)
      // Earlier keys are kept for what is pending under them. Former holders of a slot have them, too, and can put a row of then
      // back.
      if let keys, let target, target < keys.current {
        throw CofferError.vaultKeyUnverified(known: Int(keys.current), found: Int(target))
      }
      guard let keys, let target, let vaultKey = keys.byGeneration[target] else {
        // It was sealed when it was set; writing it needs no key.
        if isReady { return value }
        throw CofferError.vaultLocked(collection: collection)
      }
      let opened = try keys.open(value, part, key, in: collection)
      // A current value that cannot be opened may still be replaced.
      if let present, present.isSealed(under: target),
        (try? keys.open(present, part, key, in: collection))?.isSame(as: opened) ?? false
      {
        return present
      }
      return isReady ? value : try vaultKey.seal(opened, part, key, in: collection)
    }
  }

  /// Opens a value; one that is not sealed is returned as it is.
  ///
  /// - Throws: `CofferError.vaultLocked`; `.damaged` when it does not authenticate for its place.
  func open(_ value: StoredValue, _ part: ItemPart, _ key: String, in collection: String) throws -> StoredValue {
    guard value.kind == .sealed else { return value }
    return try keys.withLock { keys in
      guard let keys else {
        // Seeing that takes no key.
        guard value.bytes.count > SealedBytes.overhead else { throw Self.misfit(key, in: collection) }
        throw CofferError.vaultLocked(collection: collection)
      }
      return try keys.open(value, part, key, in: collection)
    }
  }

  fileprivate static func damaged(_ key: String, in collection: String, _ reason: String) -> CofferError {
    .damaged(part: "value for \"\(key)\" in \"\(collection)\"", reason: reason)
  }

  /// The error for a value that is too short to be sealed, plaintext in a sealed collection, or sealed in another.
  fileprivate static func misfit(_ key: String, in collection: String) -> CofferError {
    damaged(key, in: collection, StoredValue.misfitReason)
  }
}

extension KeySource {
  /// Whether it says where a key is, instead of being one.
  fileprivate var canBeReadAgain: Bool {
    switch self {
    case .keyFile, .keyCommand, .credential: true
    case .key, .passphrase, .recoveryKey: false
    }
  }
}

extension VaultKeys.Keys {
  fileprivate func open(
    _ value: StoredValue, _ part: ItemPart, _ key: String, in collection: String
  ) throws -> StoredValue {
    guard value.kind == .sealed else { return value }
    func damaged(_ reason: String) -> CofferError { VaultKeys.damaged(key, in: collection, reason) }
    return try value.bytes.withUnsafeBytes { bytes in
      guard let generation = SealedBytes.generation(of: bytes) else { throw VaultKeys.misfit(key, in: collection) }
      guard let vaultKey = byGeneration[generation] else {
        guard generation > current else { throw damaged("it was sealed under a key that the vault no longer has") }
        // Another process has replaced the key, as the vault's row said: this one has to unlock the vault again.
        guard let missedGeneration, generation <= missedGeneration else {
          throw damaged("it names a key that the vault does not have yet")
        }
        throw CofferError.vaultLocked(collection: collection)
      }
      do {
        guard let opened = StoredValue(opened: try vaultKey.open(bytes, part, key, in: collection)) else {
          throw damaged("its kind is unknown")
        }
        return opened
      } catch CryptoError.authenticationFailed {
        throw damaged("it does not authenticate; it was changed or moved")
      }
    }
  }
}

extension StoredValue {
  fileprivate func isSealed(under generation: UInt32?) -> Bool {
    guard kind == .sealed, let own = bytes.withUnsafeBytes(SealedBytes.generation) else { return false }
    return own == generation
  }

  /// Whether both are the same, in a time that depends only on the length.
  fileprivate func isSame(as other: StoredValue) -> Bool {
    guard kind == other.kind else { return false }
    return bytes.withUnsafeBytes { mine in other.bytes.withUnsafeBytes { ConstantTime.isEqual(mine, $0) } }
  }
}
