extension RootKeyReplacement {
  /// - Throws: `StorageError.slotsNotOpened` when a slot is neither opened nor dropped; `.wrongKey` when a source
  ///   opens no slot; `.slotNotFound`, `.lastSlot`.
  package init(_ store: Store, for sources: [KeySource], dropping dropped: Set<UInt8>) throws {
    self.init(
      keys: try store.envelope.slots.keys(from: sources, dropping: dropped, owner: store.storeID), dropped: dropped)
  }
}
