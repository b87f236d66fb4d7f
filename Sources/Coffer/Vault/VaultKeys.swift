import CofferCrypto
import CofferStorage
import Synchronization

/// The keys of a database's vault, as long as it is unlocked.
///
/// Values are sealed and opened here and nowhere else, under a lock: the cipher serves one thread at a time, and after
/// `lock()` has returned no key is in use.
final class VaultKeys: Sendable {
  /// Whether the store has a vault, as far as is known; false for nearly everybody, who then pays one load for all this.
  let isThere = Atomic<Bool>(false)

  fileprivate struct Keys: Sendable {
    let vaultID: [UInt8]
    /// What is sealed outside of transactions is sealed under this one's key.
    var current: UInt32
    /// Those before the current one open what was sealed under them and is not written yet.
    var byGeneration: [UInt32: VaultKey]
  }

  fileprivate let keys = Lock<Keys?>(nil)

  // MARK: Unlocking

  var isUnlocked: Bool { keys.withLock { $0 != nil } }

  /// The current key, and which vault's; nil while it is locked.
  var current: (vaultID: [UInt8], generation: UInt32, secret: SecretBytes)? {
    keys.withLock { keys in
      guard let keys, let key = keys.byGeneration[keys.current] else { return nil }
      return (keys.vaultID, keys.current, key.secret)
    }
  }

  /// Takes a key that was found to be the vault's, beside those that are there.
  func add(_ secret: SecretBytes, of record: VaultRecord) throws {
    let key = try VaultKey(secret, of: record)
    keys.withLock { keys in
      if keys?.vaultID != record.id { keys = Keys(vaultID: record.id, current: record.generation, byGeneration: [:]) }
      keys?.byGeneration[record.generation] = key
      keys?.current = record.generation
    }
    isThere.store(true, ordering: .releasing)
  }

  /// Takes the key that is about to become the vault's, if it is unlocked.
  func prepare(_ secret: SecretBytes, of record: VaultRecord) throws {
    let key = try VaultKey(secret, of: record)
    keys.withLock { $0?.byGeneration[record.generation] = key }
  }

  /// Ends what `prepare` began: the key is the current one, or forgotten.
  func settle(_ generation: UInt32, isCurrent: Bool) {
    keys.withLock { keys in
      if isCurrent { keys?.current = generation } else { keys?.byGeneration[generation] = nil }
    }
  }

  /// Forgets all keys, which wipes them.
  func lock() {
    keys.withLock { $0 = nil }
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
      guard let keys else { throw CofferError.locked(collection: collection) }
      return try keys.open(value, part, key, in: collection)
    }
  }
}

extension VaultKeys.Keys {
  fileprivate func open(
    _ value: StoredValue, _ part: ItemPart, _ key: String, in collection: String
  ) throws -> StoredValue {
    guard value.kind == .sealed else { return value }
    func damaged(_ reason: String) -> CofferError {
      .damaged(part: "sealed value for \"\(key)\" in \"\(collection)\"", reason: reason)
    }
    return try value.bytes.withUnsafeBytes { bytes in
      guard let generation = SealedBytes.generation(of: bytes) else { throw damaged("it is too short") }
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
