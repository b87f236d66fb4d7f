#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Value: Codable {
  /// Decodes JSON or a property list of any shape: `true` becomes a Bool, 1 an integer.
  ///
  /// - Throws: `DecodingError` when the decoder finds no kind of these formats.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    // Bool before numbers, numbers before dates, text before bytes: JSON's coders also decode numbers as dates, and text as
    // bytes.
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .int(value)
    } else if let value = try? container.decode(UInt64.self) {
      self = .uint64(value)
    } else if let value = try? container.decode(Double.self) {
      self = .double(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([Value].self) {
      self = .array(value)
    } else if let value = try? container.decode([String: Value].self) {
      self = .dictionary(value)
    } else if let value = try? container.decode(Date.self) {
      self = .date(value)
    } else {
      self = .data(try container.decode(Data.self))
    }
  }

  /// Encodes the value with the encoder's own kinds; URLs and UUIDs become text.
  ///
  /// - Throws: The errors of the encoder; `EncodingError` for a secret.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .int(let value): try container.encode(value)
    case .uint64(let value): try container.encode(value)
    case .double(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .data(let value): try container.encode(value)
    case .date(let value): try container.encode(value)
    case .url(let value): try container.encode(value.absoluteString)
    case .uuid(let value): try container.encode(value.uuidString)
    case .array(let value): try container.encode(value)
    case .dictionary(let value): try container.encode(value)
    case .secret(let secret): try secret.encode(to: encoder)
    case .json(let text): try container.encode(JSONCoding.decode(Value.self, from: Array(text.utf8)))
    }
  }
}

// MARK: - Literals

extension Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// A string.
  public init(stringLiteral value: String) { self = .string(value) }

  /// An integer.
  public init(integerLiteral value: Int64) { self = .int(value) }

  /// A double.
  public init(floatLiteral value: Double) { self = .double(value) }

  /// A Boolean.
  public init(booleanLiteral value: Bool) { self = .bool(value) }

  /// A list.
  public init(arrayLiteral elements: Value...) { self = .array(elements) }

  /// Values by name; if a name occurs twice, the last value is kept.
  public init(dictionaryLiteral elements: (String, Value)...) {
    self = .dictionary(Dictionary(elements) { $1 })
  }
}
