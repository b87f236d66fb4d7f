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
  /// The encoded value, in clear; of a secret, too, whose bytes are then the caller's.
  public let bytes: Data

  /// Takes bytes that were serialized before.
  ///
  /// - Throws: `CofferError.unsupported` when they are no value of that kind, text that is not JSON for instance; sealed bytes
  ///   are none.
  public init(kind: Value.Kind, bytes: Data) throws {
    let stored = Self.stored(kind, bytes)
    // Other bytes for the same value would count as a change when it is set again.
    guard let again = try? Value(stored).stored, again == stored else {
      throw CofferError.unsupported(reason: "the bytes are no serialized \(kind.name)")
    }
    self.kind = kind
    self.bytes = bytes
  }

  init(_ stored: StoredValue) {
    kind = stored.kind
    bytes = stored.bytes.withUnsafeBytes { Data($0) }
  }

  var stored: StoredValue { Self.stored(kind, bytes) }

  private static func stored(_ kind: Value.Kind, _ bytes: Data) -> StoredValue {
    StoredValue(
      kind: kind, bytes: bytes.withUnsafeBytes { StoredBytes(copying: $0, isSecret: kind == .secret) })
  }
}

extension SerializedValue: CustomStringConvertible, CustomReflectable {
  /// Kind and length, never the bytes.
  public var description: String { "<serialized \(kind.name): \(bytes.count) bytes>" }

  /// A mirror without children.
  public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
