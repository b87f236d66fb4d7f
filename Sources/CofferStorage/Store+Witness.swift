extension Store {
  /// The sequence of the envelope as it is known here.
  package var envelopeSequence: UInt64 { keys.sequence }

  /// A witness as it is kept outside of the store.
  package func seal(_ witness: Witness) throws -> [UInt8] {
    try witness.sealed(storeID: storeID, key: witnessKeys().current)
  }

  /// What a sealed witness says of this store.
  package func read(witness bytes: [UInt8]) throws -> Witness.Reading {
    let keys = try witnessKeys()
    return try Witness.read(bytes, storeID: storeID, current: keys.current, former: keys.former)
  }
}
