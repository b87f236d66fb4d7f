/// A value as it lies in the store: its kind, and the bytes that stand for it (`FORMAT.md`, Values).
struct StoredValue: Equatable, Sendable {
  var kind: Value.Kind
  var bytes: [UInt8]
}

/// Why a value could not be coded; whoever knows the collection and the key turns it into a `CofferError`.
struct ValueCodingError: Error {
  let reason: String
}
