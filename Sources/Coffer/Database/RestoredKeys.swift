import CofferCrypto
import CofferStorage

/// What a restore would undo besides values: keys that were taken back, and collections that were sealed, since the backup.
///
/// A copy of the file brings all of that back. One made by `backup(to:key:)` has one slot of its own, and no earlier keys.
package struct RestoredKeys: Sendable {
  /// The slots that the store no longer has.
  package let slots: [SlotInfo]
  /// Whether the store has replaced its root key since.
  package let bringsBackRootKey: Bool
  /// The collections that are sealed in the store, and not in the backup.
  package let unsealed: [String]

  package var isEmpty: Bool { slots.isEmpty && !bringsBackRootKey && unsealed.isEmpty }

  /// - Parameters:
  ///   - backup: The copy of the backup.
  ///   - store: The store that it will replace.
  init(_ backup: Database, replacing store: Database) throws {
    let (copy, old) = (try backup.storeOnDisk(), try store.storeOnDisk())
    let isCopy = copy.storeID == old.storeID
    // A slot keeps its number and its time when the keys are replaced.
    let present = old.envelope.slots
    slots =
      isCopy
      ? copy.envelope.slots.filter { slot in !present.contains { $0.id == slot.id && $0.created == slot.created } }
        .map(SlotInfo.init) : []
    bringsBackRootKey = isCopy && !copy.hasSameRootKey(as: old)
    let sealed = try Set(Self.sealedCollections(of: backup).map { ByteString($0) })
    unsealed = try Self.sealedCollections(of: store).filter { !sealed.contains(ByteString($0)) }
  }

  private static func sealedCollections(of database: Database) throws -> [String] {
    try database.makeConnection().perform { session in
      try session.read { try session.sealedCollections() }
    }
  }
}
