#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A value in its stored form: its kind and its encoded bytes (`FORMAT.md`, Values).
///
/// For copying items without decoding them, for instance from one store to another.
public struct SerializedValue: Hashable, Sendable {
  /// The kind of the value.
  public let kind: Value.Kind
  /// The encoded value, as plaintext; this applies to a secret too, whose bytes then belong to the caller.
  public let bytes: Data

  /// Creates a value from bytes that are already serialized.
  ///
  /// - Throws: `CofferError.unsupported` when they are not a value of that kind, such as text that is not JSON; sealed bytes
  ///   are not accepted.
  public init(kind: Value.Kind, bytes: Data) throws {
    let stored = Self.stored(kind, bytes)
    // Other bytes for the same value would count as a change when it is set again.
    guard let again = try? Value(stored).stored, again == stored else {
      throw CofferError.unsupported(reason: "the bytes are not a serialized \(kind.name)")
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
