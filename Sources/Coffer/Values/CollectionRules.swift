/// How the values of a collection are written and read, if not in the standard way.
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
/// To set rules for all collections without their own, use ``Database/setDefaultRules(_:)``; for a type of values in any
/// collection, ``Database/setSerializer(_:for:)``.
///
/// The closures run inside the transaction that sets the value, on its thread; the sanitizers of a proxy run when a value is
/// set there. Writes inside them throw.
public struct CollectionRules: Sendable {
  /// Checks a value before it is stored: the returned value is stored instead.
  ///
  /// If it throws, so does the set, with nothing changed.
  public typealias Sanitizer = @Sendable (_ collection: String, _ key: String, _ value: Value) throws -> Value
  /// Receives a value after it was stored, before the commit.
  public typealias PostSanitizer = @Sendable (_ collection: String, _ key: String, _ value: Value) -> Void

  /// Converts between objects and stored values.
  public var objectSerializer: Serializer = .standard
  /// Converts between metadata and stored values.
  public var metadataSerializer: Serializer = .standard
  /// Checks or changes each object before it is stored.
  public var objectSanitizer: Sanitizer?
  /// Checks or changes metadata before it is stored.
  public var metadataSanitizer: Sanitizer?
  /// Receives each stored object.
  public var objectPostSanitizer: PostSanitizer?
  /// Receives stored metadata.
  public var metadataPostSanitizer: PostSanitizer?

  /// The default rules: self-describing values, and no sanitizers.
  public init() {}

  func serializer(_ part: ItemPart) -> Serializer { part == .object ? objectSerializer : metadataSerializer }
}

/// Converts objects to stored values and back.
///
/// The stored form is a self-describing ``Value``, so that tools can always show it; use `.data` for a custom format:
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
  /// Types with a kind of their own as that kind, raw values as themselves, other `Codable` types as JSON.
  public static let standard = Serializer()

  private let encode: (@Sendable (any Encodable) throws -> Value)?
  private let decode: (@Sendable (Value, any Decodable.Type) throws -> any Decodable)?

  private init() {
    encode = nil
    decode = nil
  }

  /// Creates a serializer from two functions, each the inverse of the other.
  ///
  /// - Parameters:
  ///   - serialize: Returns the value to store. Equal objects must give equal values, or setting them again counts as a
  ///     change.
  ///   - deserialize: Returns an object of the requested type.
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
    // Any object can be read as the `Value` that it is.
    guard let decode, type != Value.self else { return try ValueCoder.decode(stored, as: type) }
    guard let object = try decode(Value(stored), type) as? Object else {
      throw ValueCodingError(reason: "the serializer of its collection returned another type")
    }
    return object
  }
}
