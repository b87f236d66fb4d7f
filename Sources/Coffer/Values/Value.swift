#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A self-describing stored value: whatever a program stored, readable without its Swift type.
///
/// Programs usually use typed reads (`object(forKey:)` as `String`, `Int`, `Date`, a `Codable` type …); `Value` is for
/// tools, and for values of mixed types:
///
/// ```swift
/// try transaction.setObject(["name": "x", "sizes": [1, 2.5]] as Value, forKey: "shape")
/// ```
///
/// Integers have one form: `.uint64` holds only values above `Int64.max`.
public enum Value: Hashable, Sendable {
  /// A null inside an array or a dictionary; never a stored value of its own.
  case null
  /// A Boolean, distinct from the integers 0 and 1.
  case bool(Bool)
  /// A signed integer.
  case int(Int64)
  /// An integer above `Int64.max`.
  case uint64(UInt64)
  /// A floating-point number; NaN, infinities and -0.0 are kept.
  case double(Double)
  /// Text.
  case string(String)
  /// Bytes, possibly empty.
  case data(Data)
  /// A point in time, with the full precision of Foundation's `Date`.
  case date(Date)
  /// A URL, possibly relative.
  case url(URL)
  /// A UUID.
  case uuid(UUID)
  /// A list, possibly of mixed types.
  case array([Value])
  /// Values by name.
  case dictionary([String: Value])
  /// A `Codable` value of any other type, as JSON text written by Foundation's `JSONEncoder`.
  ///
  /// Setting a text that is not JSON throws `CofferError.notEncodable`.
  case json(String)
  /// A value that is never printed, logged or reflected; not inside a list or a dictionary.
  case secret(Secret)
}

extension Value {
  /// The kind of a stored value, with its number in the store (`FORMAT.md`, Values).
  public enum Kind: UInt8, Sendable, CaseIterable {
    case null = 0
    case bool, int, uint64, double, string, data, date, url, uuid, array, dictionary, json
    /// See ``Secret``.
    case secret
    /// The kind of a value of a sealed collection until it is opened; never the kind of a ``Value``.
    case sealed

    /// The name of this kind, as `prefs type` prints it.
    package var name: String {
      // Spelled out: to find a case's own name, the runtime searches all conformances, which takes 0.5 ms.
      switch self {
      case .null: "null"
      case .bool: "bool"
      case .int, .uint64: "int"
      case .double: "double"
      case .string: "string"
      case .data: "data"
      case .date: "date"
      case .url: "url"
      case .uuid: "uuid"
      case .array: "array"
      case .dictionary: "dict"
      case .json: "json"
      case .secret: "secret"
      case .sealed: "sealed"
      }
    }
  }

  /// The kind of this value.
  public var kind: Kind {
    switch self {
    case .null: .null
    case .bool: .bool
    case .int: .int
    case .uint64: .uint64
    case .double: .double
    case .string: .string
    case .data: .data
    case .date: .date
    case .url: .url
    case .uuid: .uuid
    case .array: .array
    case .dictionary: .dictionary
    case .json: .json
    case .secret: .secret
    }
  }
}
