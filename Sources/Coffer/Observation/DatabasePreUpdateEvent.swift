/// A change to one item, with its values before and after.
public struct DatabasePreUpdateEvent: Sendable {
  /// The change.
  public let event: DatabaseEvent
  let old: HeldItem?
  let new: HeldItem?
  let core: DatabaseCore

  /// The object before; nil for an insertion.
  ///
  /// - Throws: `CofferError.notDecodable`, as do the others below; `.vaultLocked` when it is sealed and the vault is locked.
  public var oldObject: Value? {
    get throws { try object(of: old) }
  }

  /// The object after; nil for a removal.
  public var newObject: Value? {
    get throws { try object(of: new) }
  }

  /// The metadata before, or nil.
  public var oldMetadata: Value? {
    get throws { try metadata(of: old) }
  }

  /// The metadata after, or nil.
  public var newMetadata: Value? {
    get throws { try metadata(of: new) }
  }

  // Opened only here: an event of a sealed collection holds its values sealed.

  private func object(of item: HeldItem?) throws -> Value? {
    try item.map { try core.value($0.object, event.key, in: event.collection) }
  }

  private func metadata(of item: HeldItem?) throws -> Value? {
    try item?.metadata.map { try core.value(.metadata, $0, event.key, in: event.collection) }
  }
}
