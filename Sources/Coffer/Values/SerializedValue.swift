#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A value as the store keeps it: its kind, and the bytes that stand for it (`FORMAT.md`, Values).
///
/// For copying items without decoding them, from one store to another for instance.
public struct SerializedValue: Hashable, Sendable {
  /// What the bytes stand for.
  public let kind: Value.Kind
  /// The encoded value.
  public let bytes: Data

  /// Takes bytes that were serialized before.
  ///
  /// - Throws: `CofferError.unsupported` when they are no value of that kind.
  public init(kind: Value.Kind, bytes: Data) throws {
    let stored = StoredValue(kind: kind, bytes: Array(bytes))
    // Other bytes for the same value would count as a change when it is set again.
    guard let value = try? Value(stored), try value.stored == stored else {
      throw CofferError.unsupported(reason: "the bytes are no serialized \(kind.name)")
    }
    self.kind = kind
    self.bytes = bytes
  }

  init(_ stored: StoredValue) {
    kind = stored.kind
    bytes = Data(stored.bytes)
  }

  var stored: StoredValue { StoredValue(kind: kind, bytes: Array(bytes)) }
}
