#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A stored value as it describes itself: what any program stored, readable without knowing its Swift type.
///
/// Typed reads (`object(forKey:)` as `String`, `Int`, `Date`, a `Codable` type …) are the usual way; `Value` serves
/// tools, and values of mixed type:
///
/// ```swift
/// try transaction.setObject(["name": "x", "sizes": [1, 2.5]] as Value, forKey: "shape")
/// ```
///
/// Integers have one form: `.uint64` holds only what is above `Int64.max`.
public enum Value: Hashable, Sendable {
  /// Absence inside an array or a dictionary; never a stored value of its own.
  case null
  /// A truth value, distinct from the integers 0 and 1.
  case bool(Bool)
  /// A signed integer.
  case int(Int64)
  /// An integer above `Int64.max`.
  case uint64(UInt64)
  /// A floating-point number; NaN, infinities and -0.0 are kept.
  case double(Double)
  /// Text.
  case string(String)
  /// Bytes; empty ones are a value too.
  case data(Data)
  /// A moment, with the whole precision of Foundation's `Date`.
  case date(Date)
  /// A URL, relative ones included.
  case url(URL)
  /// A UUID.
  case uuid(UUID)
  /// A list, of mixed types if need be.
  case array([Value])
  /// Values by name.
  case dictionary([String: Value])
  /// A `Codable` value of none of the types above, as the JSON text that Foundation's `JSONEncoder` made of it.
  ///
  /// Setting a text that is not JSON throws `CofferError.notEncodable`.
  case json(String)
  /// A value that is never shown by itself; not inside a list or a dictionary.
  case secret(Secret)
}

extension Value {
  /// The kind of a stored value, with the number that stands for it in the store (`FORMAT.md`, Values).
  public enum Kind: UInt8, Sendable, CaseIterable {
    case null = 0
    case bool, int, uint64, double, string, data, date, url, uuid, array, dictionary, json
    /// See ``Secret``.
    case secret
    /// What a value of a sealed collection is until it is opened: the kind of what is stored, never of a ``Value``.
    case sealed

    /// The word for this kind, as `prefs type` prints it.
    public var name: String {
      // Each spelled out: to find a case's own name, a process looks through all conformances there are, for 0.5 ms.
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
