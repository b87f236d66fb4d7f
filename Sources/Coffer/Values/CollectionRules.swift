/// How the values of a collection are written and read, where the standard way will not do.
///
/// ```swift
/// var rules = CollectionRules()
/// rules.objectSanitizer = { _, _, object in
///   guard case .string(let text) = object, !text.isEmpty else { throw Refusal.emptyName }
///   return .string(text.lowercased())
/// }
/// database.setRules(rules, forCollection: "names")
/// ```
///
/// ``Database/setDefaultRules(_:)`` is for all collections without rules of their own,
/// ``Database/setSerializer(_:for:)`` for a type of values in any collection.
///
/// The closures run inside the transaction that sets the value, on its thread, the sanitizers of a proxy when it is set
/// there; a write from inside them throws.
public struct CollectionRules: Sendable {
  /// Looks at a value before it is stored: what it returns is stored in its place; what it throws makes the set throw,
  /// with nothing changed.
  public typealias Sanitizer = @Sendable (_ collection: String, _ key: String, _ value: Value) throws -> Value
  /// Gets a value after it was stored, before the commit.
  public typealias PostSanitizer = @Sendable (_ collection: String, _ key: String, _ value: Value) -> Void

  /// Between objects and stored values.
  public var objectSerializer: Serializer = .standard
  /// Between metadata and stored values.
  public var metadataSerializer: Serializer = .standard
  /// Checks or changes each object before it is stored.
  public var objectSanitizer: Sanitizer?
  /// Checks or changes metadata before it is stored.
  public var metadataSanitizer: Sanitizer?
  /// Gets each object that was stored.
  public var objectPostSanitizer: PostSanitizer?
  /// Gets metadata that was stored.
  public var metadataPostSanitizer: PostSanitizer?

  /// The standard: self-describing values, and no sanitizers.
  public init() {}

  func serializer(_ part: ItemPart) -> Serializer { part == .object ? objectSerializer : metadataSerializer }
}

/// Turns objects into stored values and back.
///
/// What it makes is a self-describing ``Value``, so that tools can always show it; a format of one's own goes into
/// `.data`:
///
/// ```swift
/// let propertyLists = Serializer(
///   serialize: { .data(try PropertyListEncoder().encode($0)) },
///   deserialize: { value, type in
///     guard case .data(let data) = value else { throw CocoaError(.coderInvalidValue) }
///     return try PropertyListDecoder().decode(type, from: data)
///   })
/// ```
public struct Serializer: Sendable {
  /// Objects of types with a kind of their own as that kind, raw values as themselves, other `Codable` types as JSON.
  public static let standard = Serializer()

  private let encode: (@Sendable (any Encodable) throws -> Value)?
  private let decode: (@Sendable (Value, any Decodable.Type) throws -> any Decodable)?

  private init() {
    encode = nil
    decode = nil
  }

  /// Makes a serializer of two functions, each the other's inverse.
  ///
  /// - Parameters:
  ///   - serialize: Gives the value to store. Equal objects must give equal values, or setting them again counts as a
  ///     change.
  ///   - deserialize: Gives an object of the type asked for.
  public init(
    serialize: @escaping @Sendable (any Encodable) throws -> Value,
    deserialize: @escaping @Sendable (Value, any Decodable.Type) throws -> any Decodable
  ) {
    encode = serialize
    decode = deserialize
  }

  var isStandard: Bool { encode == nil }

  func stored(_ object: some Encodable) throws -> StoredValue {
    try encode.map { try $0(object).stored } ?? ValueCoder.encode(object)
  }

  func object<Object: Decodable>(_ stored: StoredValue, as type: Object.Type) throws -> Object {
    // As the value it is, any object can be had.
    guard let decode, type != Value.self else { return try ValueCoder.decode(stored, as: type) }
    guard let object = try decode(Value(stored), type) as? Object else {
      throw ValueCodingError(reason: "the serializer of its collection gave another type")
    }
    return object
  }
}
