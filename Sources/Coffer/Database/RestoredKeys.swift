import CofferCrypto
import CofferStorage

/// What a restore would change besides values: what opens the store and its vault, and what is sealed.
///
/// A copy of the file brings back the keys of its time. One made by `backup(to:key:)` has one slot of its own, new keys of the
/// store, and the vault of its time.
package struct RestoredKeys: Sendable {
  /// The slots of a store, or of its vault, that differ.
  package struct Slots: Sendable {
    /// Those that the present one does not have.
    package let opening: [SlotInfo]
    /// Those of the present one that the backup does not have.
    package let lost: [SlotInfo]

    package var isEmpty: Bool { opening.isEmpty && lost.isEmpty }

    /// - Parameters:
    ///   - isSame: Whether both are of the same store, or vault. Otherwise nothing tells whether two slots have one secret.
    ///   - opened: The slots that the key in use has opened; nil if it opens only one of the two.
    fileprivate init(
      _ copy: [Slot], replacing present: [Slot], isSame: Bool, opened: (copy: UInt8, present: UInt8)? = nil
    ) {
      func has(_ slots: [Slot], _ slot: Slot) -> Bool { isSame && slots.contains { $0.hasSameSecret(as: slot) } }
      opening = copy.filter { !has(present, $0) && $0.id != opened?.copy }.map(SlotInfo.init)
      lost = present.filter { !has(copy, $0) && $0.id != opened?.present }.map(SlotInfo.init)
    }
  }

  /// The slots of the store.
  package let slots: Slots
  /// The slots of the vault.
  package let vaultSlots: Slots
  /// Whether the store has replaced its root key since.
  package let bringsBackRootKey: Bool
  /// Whether the vault would be under another key than it is, or than was last used here.
  package let changesVaultKey: Bool
  /// The collections that are sealed in the store, and not in the backup.
  package let unsealed: [String]
  /// Why the store that will be replaced could not be compared, or only its slots; nil if it was compared.
  ///
  /// `.rolledBack` or `.anotherStore` if it is not the one that is remembered; if there is none any more, that the backup is not.
  package let obstacle: CofferError?
  /// Whether there is no store to be replaced, so that only the record of it was compared.
  package let isMissing: Bool

  package var isEmpty: Bool {
    slots.isEmpty && vaultSlots.isEmpty && !bringsBackRootKey && !changesVaultKey && unsealed.isEmpty && obstacle == nil
  }

  /// - Parameters:
  ///   - backup: The copy of the backup.
  ///   - store: The store that it will replace.
  ///   - memory: What the record outside of the store remembers of the vault.
  ///   - obstacle: Why the store is not the one that is remembered.
  init(
    _ backup: Database, replacing store: Database, _ memory: VaultMemory?, because obstacle: CofferError?
  ) throws {
    let (copy, old) = (try backup.storeOnDisk(), try store.storeOnDisk())
    let isSame = copy.storeID == old.storeID
    slots = Slots(
      copy.envelope.slots, replacing: old.envelope.slots, isSame: isSame, opened: (copy.openedSlot, old.openedSlot))
    bringsBackRootKey = isSame && !copy.hasSameRootKey(as: old)
    let (vault, oldVault) = (try backup.vault.record(), try store.vault.record())
    vaultSlots = Slots(vault?.slots ?? [], replacing: oldVault?.slots ?? [], isSame: vault?.id == oldVault?.id)
    changesVaultKey =
      if let vault, let oldVault, vault.id == oldVault.id {
        (vault.generation, vault.succession) != (oldVault.generation, oldVault.succession)
          || memory?.isLater(than: vault) ?? false
      } else {
        vault.flatMap { memory?.isLater(than: $0) } ?? false
      }
    let sealed = try Set(Self.sealedCollections(of: backup).map { ByteString($0) })
    unsealed = try Self.sealedCollections(of: store).filter { !sealed.contains(ByteString($0)) }
    self.obstacle = obstacle
    isMissing = false
  }

  /// What can be said if there is no store any more, which a record may still remember.
  ///
  /// - Parameter objection: Why the backup is not what that remembers.
  init(_ backup: Database, missing objection: CofferError?, _ memory: VaultMemory?) throws {
    // The key in use may be one that was locked out, too.
    let copy = try backup.storeOnDisk()
    var (changesSlots, hasFormerRootKey) = (objection != nil, false)
    if case .rolledBack(let known, let found)? = objection {
      hasFormerRootKey = known.commit == nil
      changesSlots = hasFormerRootKey || known.envelope != found.envelope
    }
    slots = Slots(changesSlots ? copy.envelope.slots : [], replacing: [], isSame: false)
    vaultSlots = Slots([], replacing: [], isSame: true)
    bringsBackRootKey = hasFormerRootKey
    changesVaultKey = try backup.vault.record().flatMap { memory?.isLater(than: $0) } ?? false
    unsealed = []
    obstacle = objection
    isMissing = true
  }

  /// What can be said about a store that does not open: its slots need no key, and are not authenticated.
  ///
  /// - Parameter obstacle: Why it does not.
  init(
    _ backup: Database, replacingStoreAt path: String, because obstacle: CofferError, _ memory: VaultMemory?
  ) throws {
    let copy = try backup.storeOnDisk()
    let old = try? Store.peekEnvelope(at: path)
    slots = Slots(copy.envelope.slots, replacing: old?.slots ?? [], isSame: copy.storeID == old?.storeID)
    vaultSlots = Slots([], replacing: [], isSame: true)
    bringsBackRootKey = false
    changesVaultKey = try backup.vault.record().flatMap { memory?.isLater(than: $0) } ?? false
    unsealed = []
    self.obstacle = obstacle
    isMissing = false
  }

  private static func sealedCollections(of database: Database) throws -> [String] {
    try database.makeConnection().perform { session in
      try session.read { try session.sealedCollections() }
    }
  }
}
