import CofferStorage

extension Database {
  /// The random id that the store at `path` got when it was created, in hexadecimal.
  ///
  /// Needs no key, and so is not authenticated.
  ///
  /// - Throws: As `slotKinds(at:)`.
  package static func storeID(at path: String) throws -> String {
    try CofferError.translating { try HexText.text(Store.peekEnvelope(at: path).storeID) }
  }
}
