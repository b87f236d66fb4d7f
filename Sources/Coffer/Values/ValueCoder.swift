#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Converts between Swift values and stored ones.
///
/// A type with a kind of its own is stored as that kind, a type that represents a raw value (such as most enumerations) as
/// its raw value, and any other `Codable` type as JSON. Other programs, and people with `prefs`, can therefore read and
/// write the value without the Swift type.
///
/// Equal values have equal bytes, except for a `Set`, or a dictionary whose keys are neither `String` nor `Int`, inside a
/// `Codable` type: Foundation encodes those in an order that changes from process to process.
enum ValueCoder {
  static func encode<Object: Encodable>(_ object: Object) throws -> StoredValue {
    if let object = object as? any ValueConvertible { return try object.value.stored }
    if let object = object as? any RawRepresentable, let raw = rawValue(of: object) { return try raw.value.stored }
    return StoredValue(kind: .json, bytes: try JSONCoding.encode(object))
  }

  static func decode<Object: Decodable>(_ stored: StoredValue, as type: Object.Type) throws -> Object {
    if let convertible = type as? any ValueConvertible.Type {
      if let json = json(stored), type != Value.self { return try JSONCoding.decode(type, from: json) }
      // In two steps: nil from the initializer would count as an object of an optional type.
      guard let converted = convertible.init(try Value(stored)), let object = converted as? Object else {
        throw ValueCodingError(reason: "it has another type, or does not fit")
      }
      return object
    }
    if let json = json(stored) { return try JSONCoding.decode(type, from: json) }
    if let representable = type as? any RawRepresentable.Type,
      let object = try make(representable, from: Value(stored)) as? Object
    {
      return object
    }
    guard stored.kind != .secret else { throw ValueCodingError(reason: "a secret can only be read as Secret") }
    // A list or dictionary set by `prefs set`, requested as a `Codable` type.
    return try JSONCoding.decode(type, from: JSONCoding.encode(Value(stored)))
  }

  private static func json(_ stored: StoredValue) -> [UInt8]? {
    if stored.kind == .json, case .array(let bytes) = stored.bytes { bytes } else { nil }
  }

  private static func rawValue<Object: RawRepresentable>(of object: Object) -> (any ValueConvertible)? {
    object.rawValue as? any ValueConvertible
  }

  private static func make<Object: RawRepresentable>(_ type: Object.Type, from value: Value) -> Object? {
    guard let rawType = Object.RawValue.self as? any ValueConvertible.Type,
      let raw = rawType.init(value) as? Object.RawValue
    else { return nil }
    return Object(rawValue: raw)
  }
}

/// Foundation's JSON coders, configured so that equal values give equal bytes and every double is preserved.
enum JSONCoding {
  static func encode(_ object: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    do {
      return try Array(encoder.encode(object))
    } catch let error as EncodingError {
      throw ValueCodingError(reason: error.summary)
    }
  }

  static func decode<Object: Decodable>(_ type: Object.Type, from bytes: [UInt8]) throws -> Object {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    do {
      return try decoder.decode(type, from: Data(bytes))
    } catch let error as DecodingError {
      throw ValueCodingError(reason: error.summary)
    }
  }
}

// The full descriptions of these errors quote the value.

extension EncodingError {
  fileprivate var summary: String {
    guard case .invalidValue(_, let context) = self else { return "it cannot be encoded" }
    return "\(Secret.reason(of: self) ?? "it cannot be encoded")\(place(context.codingPath))"
  }
}

extension DecodingError {
  fileprivate var summary: String {
    switch self {
    case .typeMismatch(let type, let context): "no \(type) is stored\(place(context.codingPath))"
    case .valueNotFound(let type, let context): "no \(type) is stored\(place(context.codingPath))"
    case .keyNotFound(let key, let context): "there is no \"\(key.stringValue)\"\(place(context.codingPath))"
    case .dataCorrupted(let context): "it does not decode\(place(context.codingPath))"
    @unknown default: "it does not decode"
    }
  }
}

private func place(_ path: [any CodingKey]) -> String {
  path.isEmpty ? "" : " at \(path.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: "."))"
}
