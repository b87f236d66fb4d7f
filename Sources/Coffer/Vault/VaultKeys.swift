import CofferCrypto
import CofferStorage
import Synchronization

/// The keys of a database's vault, as long as it is unlocked.
///
/// Values are sealed and opened here and nowhere else, under a lock: the cipher serves one thread at a time, and after
/// `lock()` has returned no key is in use.
package final class VaultKeys: Sendable {
  /// Whether the store has a vault, as far as is known; false for nearly everybody, who then pays one load for all this.
  let isThere = Atomic<Bool>(false)

  /// How often a key was added: what was read before did not ask the vault's list of what is sealed.
  let unlockCount = Atomic<Int>(0)

  fileprivate struct Keys: Sendable {
    let vaultID: [UInt8]
    /// What is sealed outside of transactions is sealed under this one's key.
    var current: UInt32
    /// Those before the current one open what was sealed under them and is not written yet.
    var byGeneration: [UInt32: VaultKey]
    /// What is sealed, by the authentic record that was seen last.
    var list: DeclaredList
    /// What unlocked the vault, if that can be read again: a key that another process gives the vault is read from there.
    var source: KeySource?
    /// The generation whose key could not be read from `source`.
    var missedGeneration: UInt32?

    /// Takes the current key.
    mutating func take(_ key: VaultKey, of record: VaultRecord) {
      byGeneration[record.generation] = key
      current = record.generation
      list = DeclaredList(record)
      missedGeneration = nil
    }
  }

  /// A vault's list of what is sealed, by the MAC of its record.
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

  // MARK: Unlocking

  package var isUnlocked: Bool { keys.withLock { $0 != nil } }

  /// The current key, and which vault's; nil while it is locked.
  var current: (vaultID: [UInt8], generation: UInt32, secret: SecretBytes)? {
    keys.withLock { keys in
      guard let keys, let key = keys.byGeneration[keys.current] else { return nil }
      return (keys.vaultID, keys.current, key.secret)
    }
  }

  /// Takes a key that was found to be the vault's, beside those that are there.
  ///
  /// - Parameter source: Where it came from.
  func add(_ secret: SecretBytes, of record: VaultRecord, from source: KeySource?) throws {
    let key = try VaultKey(secret, of: record)
    keys.withLock { keys in
      if keys?.vaultID != record.id {
        keys = Keys(
          vaultID: record.id, current: record.generation, byGeneration: [:], list: DeclaredList(record))
      }
      keys?.take(key, of: record)
      keys?.source = source.flatMap { $0.canBeReadAgain ? $0 : nil }
    }
    isThere.store(true, ordering: .releasing)
    unlockCount.add(1, ordering: .acquiringAndReleasing)
    events.send(.unlocked)
  }

  /// Whether this is the record that was seen last; true while the vault is locked, when nobody has to look.
  func knows(mac: [UInt8]) -> Bool {
    keys.withLock { $0.map { $0.list.mac == mac } ?? true }
  }

  /// Reads the key that somebody else gave the vault from where the earlier one came from.
  ///
  /// A file may get the new key later, and is read again each time; a command runs once for each new key.
  func follow(_ record: VaultRecord) throws {
    let unlocked = keys.withLock { keys -> (source: KeySource?, isNews: Bool)? in
      // An older record was put back by somebody.
      guard let keys, keys.vaultID == record.id, record.generation > keys.current else { return nil }
      guard keys.byGeneration[record.generation] == nil else { return nil }
      return (keys.source, keys.missedGeneration != record.generation)
    }
    guard let (source, isNews) = unlocked else { return }
    if case .keyCommand = source, !isNews { return }
    // Without the lock: a command may take minutes.
    guard let secret = source.flatMap({ try? record.open($0) }) else {
      keys.withLock { $0?.missedGeneration = record.generation }
      if isNews { events.send(.keyReplaced(isFollowed: false)) }
      return
    }
    let key = try VaultKey(secret, of: record)
    let hasFollowed = keys.withLock { keys -> Bool in
      // The vault may have been locked meanwhile, and stays so.
      guard keys?.vaultID == record.id, let current = keys?.current, record.generation > current else { return false }
      keys?.take(key, of: record)
      return true
    }
    if hasFollowed { events.send(.keyReplaced(isFollowed: true)) }
  }

  /// Takes the key that is about to become the vault's, if it is unlocked.
  func prepare(_ secret: SecretBytes, of record: VaultRecord) throws {
    let key = try VaultKey(secret, of: record)
    keys.withLock { $0?.byGeneration[record.generation] = key }
  }

  /// Ends what `prepare` began: the key is the current one, or forgotten.
  func settle(_ generation: UInt32, isCurrent: Bool) {
    let isUnlocked = keys.withLock { keys in
      if isCurrent { keys?.current = generation } else { keys?.byGeneration[generation] = nil }
      return keys != nil
    }
    if isCurrent { events.send(.keyReplaced(isFollowed: isUnlocked)) }
  }

  /// Forgets all keys, which wipes them.
  func lock() {
    let wasUnlocked = keys.withLock { keys in
      defer { keys = nil }
      return keys != nil
    }
    if wasUnlocked { events.send(.locked) }
  }

  // MARK: Declarations

  /// The key of the vault as it is now, which `record` is authentic under.
  ///
  /// - Throws: `CofferError.locked`, also when the vault was given another key elsewhere; `.damaged`.
  package func key(authenticating record: VaultRecord) throws -> SecretBytes {
    guard let current, current.generation == record.generation else { throw CofferError.locked(collection: nil) }
    guard try CofferError.translating({ try record.isAuthentic(under: current.secret) }) else {
      throw CofferError(VaultRecord.edited)
    }
    return current.secret
  }

  /// Whether the vault's own list says that a collection is sealed; nil where that cannot be known: while the vault is
  /// locked, and of a collection that was not sealed when somebody else gave the vault another key.
  ///
  /// - Parameters:
  ///   - mac: The MAC of the vault's record, by which a list that is known already is found.
  ///   - record: Reads the whole record.
  /// - Throws: `CofferError.locked` where somebody else has given the vault another key since; `.damaged` where the record
  ///   is not authentic, or another vault's.
  func lists(_ collection: String, mac: [UInt8], record: () throws -> VaultRecord?) throws -> Bool? {
    let name = ByteString(collection)
    let known = keys.withLock { $0.map { $0.list.mac == mac ? $0.list.names.contains(name) : nil } }
    guard let known else { return nil }
    if let known { return known }
    guard let record = try record() else { throw CofferError(VaultRecord.edited) }
    try follow(record)
    return try keys.withLock { keys in
      guard let present = keys else { return nil }
      guard present.vaultID == record.id else { throw CofferError(VaultRecord.edited) }
      guard let key = present.byGeneration[record.generation] else {
        guard !present.list.names.contains(name) else { throw CofferError.locked(collection: collection) }
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
  /// A value equal to the present one becomes the very same bytes, so that setting it again changes nothing.
  ///
  /// - Parameters:
  ///   - generation: Which key it is to be sealed under; nil for the current one.
  ///   - present: What is at that place now, where that is known.
  /// - Throws: `CofferError.locked`, naming the collection.
  func seal(
    _ value: StoredValue, _ part: ItemPart, _ key: String, in collection: String, under generation: UInt32? = nil,
    keeping present: StoredValue? = nil
  ) throws -> StoredValue {
    try keys.withLock { keys in
      let target = generation ?? keys?.current
      let isReady = value.isSealed(under: target)
      guard let keys, let target, let vaultKey = keys.byGeneration[target] else {
        // Sealed when it was set, and written now: that needs no key.
        if isReady { return value }
        throw CofferError.locked(collection: collection)
      }
      let opened = try keys.open(value, part, key, in: collection)
      // A present value that does not open is no reason not to replace it.
      if let present, present.isSealed(under: target),
        (try? keys.open(present, part, key, in: collection))?.isSame(as: opened) ?? false
      {
        return present
      }
      return isReady ? value : try vaultKey.seal(opened, part, key, in: collection)
    }
  }

  /// Opens a value; one that is not sealed is itself.
  ///
  /// - Throws: `CofferError.locked`; `.damaged` when it does not authenticate for its place.
  func open(_ value: StoredValue, _ part: ItemPart, _ key: String, in collection: String) throws -> StoredValue {
    guard value.kind == .sealed else { return value }
    return try keys.withLock { keys in
      guard let keys else {
        // That takes no key to say.
        guard value.bytes.count > SealedBytes.overhead else { throw Self.misfit(key, in: collection) }
        throw CofferError.locked(collection: collection)
      }
      return try keys.open(value, part, key, in: collection)
    }
  }

  fileprivate static func damaged(_ key: String, in collection: String, _ reason: String) -> CofferError {
    .damaged(part: "value for \"\(key)\" in \"\(collection)\"", reason: reason)
  }

  /// Of what is too short to be sealed, or stands in clear where all is sealed, or the other way round.
  fileprivate static func misfit(_ key: String, in collection: String) -> CofferError {
    damaged(key, in: collection, StoredValue.misfitReason)
  }
}

extension KeySource {
  /// Whether it says where a key is, and is none itself.
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
        // Another process has given the vault a new key: this one has to unlock it again.
        guard generation < current else { throw CofferError.locked(collection: collection) }
        throw damaged("it was sealed under a key that the vault no longer has")
      }
      do {
        guard let opened = StoredValue(opened: try vaultKey.open(bytes, part, key, in: collection)) else {
          throw damaged("it is of no kind")
        }
        return opened
      } catch CryptoError.authenticationFailed {
        throw damaged("it does not authenticate; it was changed, or moved from another place")
      }
    }
  }
}

extension StoredValue {
  fileprivate func isSealed(under generation: UInt32?) -> Bool {
    guard kind == .sealed, let own = bytes.withUnsafeBytes(SealedBytes.generation) else { return false }
    return own == generation
  }

  /// Whether both are the same, in a time that depends on the length alone.
  fileprivate func isSame(as other: StoredValue) -> Bool {
    guard kind == other.kind else { return false }
    return bytes.withUnsafeBytes { mine in other.bytes.withUnsafeBytes { ConstantTime.isEqual(mine, $0) } }
  }
}
