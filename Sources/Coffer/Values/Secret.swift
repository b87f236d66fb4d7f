/// A value that is never printed, logged or reflected: a password, a token, a private key.
///
/// ```swift
/// try settings.setObject(Secret(token), forKey: "github", inCollection: "tokens")
/// let token = try settings.object(forKey: "github", inCollection: "tokens", as: Secret.self)
/// token?.withUnsafeBytes { request.sign($0) }
/// ```
///
/// Its bytes lie in ``SecretBytes``, which are wiped when the last reference goes. Wherever it is printed, logged or
/// reflected, its length is all there is to see.
///
/// It is a kind of value of its own, and so is stored by itself: not inside a list, a dictionary or another `Codable` type,
/// whose text would show it. On the disk it is as safe as the store is. In a sealed collection it is sealed without a copy
/// in other memory, too, and opened the same way; elsewhere SQLite's page cache holds it in clear, like any value.
public struct Secret: Sendable {
  /// The bytes, in memory of their own.
  public let bytes: SecretBytes

  /// Makes a secret of bytes that are in protected memory already.
  public init(_ bytes: SecretBytes) {
    self.bytes = bytes
  }

  /// Makes a secret of the UTF-8 bytes of a text.
  ///
  /// The text itself is the caller's, and cannot be wiped.
  public init(_ text: String) {
    self.init(SecretBytes(copying: text))
  }

  /// Makes a secret of a copy of `bytes`; wiping the original is the caller's.
  public init(copying bytes: UnsafeRawBufferPointer) {
    self.init(SecretBytes(copying: bytes))
  }

  /// How many bytes there are; this is not secret.
  public var count: Int { bytes.count }

  /// Lends the bytes for the time of `body`, which must not keep the pointer.
  ///
  /// - Throws: What `body` throws.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try bytes.withUnsafeBytes(body)
  }

  /// The bytes as text; nil when they are no UTF-8.
  ///
  /// The text is the caller's from then on, and cannot be wiped; where bytes will do, use ``withUnsafeBytes(_:)``.
  public func revealed() -> String? {
    withUnsafeBytes { String(validating: $0, as: UTF8.self) }
  }
}

// MARK: - Comparing

extension Secret: Hashable {
  /// Whether both hold the same bytes, in a time that depends on their length alone.
  public static func == (a: Self, b: Self) -> Bool {
    a.bytes.isEqual(to: b.bytes)
  }

  /// Hashes the length alone, for a hash would tell something of the bytes.
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
  private static let standsAlone = "a secret is stored by itself, not inside another value, whose text would show it"

  /// Always throws: no format that encoders write keeps a secret.
  ///
  /// - Throws: `EncodingError`.
  public func encode(to encoder: any Encoder) throws {
    throw EncodingError.invalidValue(
      self, EncodingError.Context(codingPath: encoder.codingPath, debugDescription: Self.standsAlone))
  }

  /// Always throws: there is no text of a secret to decode.
  ///
  /// - Throws: `DecodingError`.
  public init(from decoder: any Decoder) throws {
    throw DecodingError.dataCorrupted(
      DecodingError.Context(codingPath: decoder.codingPath, debugDescription: Self.standsAlone))
  }

  /// Why a value that holds a secret is not encoded.
  static func reason(of error: EncodingError) -> String? {
    guard case .invalidValue(let value, _) = error, value is Secret else { return nil }
    return standsAlone
  }
}

extension Secret: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.secret, []) }

  var value: Value { .secret(self) }

  init?(_ value: Value) {
    guard case .secret(let secret) = value else { return nil }
    self = secret
  }
}
