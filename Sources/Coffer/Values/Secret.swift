/// A value that is never printed, logged or reflected: a password, a token, a private key.
///
/// ```swift
/// try settings.setObject(Secret(token), forKey: "github", inCollection: "tokens")
/// let token = try settings.object(forKey: "github", inCollection: "tokens", as: Secret.self)
/// token?.withUnsafeBytes { request.sign($0) }
/// ```
///
/// Its bytes are in ``SecretBytes``, which are wiped when the last reference is released. Printing, logging or reflecting it
/// shows only its length.
///
/// It is a separate kind of value, and is stored by itself: not inside a list, a dictionary or another `Codable` type, whose
/// text would show it. On disk it is as safe as the store. In a sealed collection, it is sealed and opened without copies in
/// other memory; elsewhere, SQLite's page cache holds its plaintext, as for any value.
public struct Secret: Sendable {
  /// The bytes, in protected memory.
  public let bytes: SecretBytes

  /// Creates a secret from bytes that are already in protected memory.
  public init(_ bytes: SecretBytes) {
    self.bytes = bytes
  }

  /// Creates a secret from the UTF-8 bytes of a text.
  ///
  /// The text itself belongs to the caller, and cannot be wiped.
  public init(_ text: String) {
    self.init(SecretBytes(copying: text))
  }

  /// Creates a secret from a copy of `bytes`; the caller has to wipe the original.
  public init(copying bytes: UnsafeRawBufferPointer) {
    self.init(SecretBytes(copying: bytes))
  }

  /// The number of bytes, which is not secret.
  public var count: Int { bytes.count }

  /// Lends the bytes to `body`, which must not keep the pointer.
  ///
  /// - Throws: The errors of `body`.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try bytes.withUnsafeBytes(body)
  }

  /// The bytes as text; nil if they are not UTF-8.
  ///
  /// The text belongs to the caller, and cannot be wiped; use ``withUnsafeBytes(_:)`` where bytes suffice.
  public func revealed() -> String? {
    withUnsafeBytes { String(validating: $0, as: UTF8.self) }
  }
}

// MARK: - Comparing

extension Secret: Hashable {
  /// Whether both hold the same bytes, in a time that depends only on their length.
  public static func == (a: Self, b: Self) -> Bool {
    a.bytes.isEqual(to: b.bytes)
  }

  /// Hashes only the length, since a hash would reveal something about the bytes.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(count)
  }
}

// MARK: - Redaction

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The length, never the bytes: `<secret: 32 bytes>`.
  public var description: String { bytes.description }

  /// The same as ``description``.
  public var debugDescription: String { description }

  /// A mirror without children.
  public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

// MARK: - Codable

extension Secret: Codable {
  private static let standsAlone = "a secret must be stored by itself, not inside another value"

  /// Always throws: no encoder's format keeps a secret.
  ///
  /// - Throws: `EncodingError`.
  public func encode(to encoder: any Encoder) throws {
    throw EncodingError.invalidValue(
      self, EncodingError.Context(codingPath: encoder.codingPath, debugDescription: Self.standsAlone))
  }

  /// Always throws: a secret has no text form to decode.
  ///
  /// - Throws: `DecodingError`.
  public init(from decoder: any Decoder) throws {
    throw DecodingError.dataCorrupted(
      DecodingError.Context(codingPath: decoder.codingPath, debugDescription: Self.standsAlone))
  }

  /// Why a value that contains a secret was not encoded.
  static func reason(of error: EncodingError) -> String? {
    guard case .invalidValue(let value, _) = error, value is Secret else { return nil }
    return standsAlone
  }
}
