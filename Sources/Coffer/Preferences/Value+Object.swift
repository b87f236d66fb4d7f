#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// Conversions between values and the plain objects that UserDefaults takes and returns as `Any`.

extension Value {
  /// The value as Swift's own type for it, such as `Int` or `[any Sendable]`.
  ///
  /// Null inside a list or dictionary is a nil `Optional`. An encoded `Codable` type is returned as lists and dictionaries.
  var asObject: any Sendable {
    switch self {
    case .null: (nil as (any Sendable)?) as any Sendable
    case .bool(let bool): bool
    case .int(let number): Int(exactly: number).map { $0 as any Sendable } ?? number
    case .uint64(let number): number
    case .double(let number): number
    case .string(let text): text
    case .data(let data): data
    case .date(let date): date
    case .url(let url): url
    case .uuid(let uuid): uuid
    case .array(let elements): elements.map(\.asObject)
    case .dictionary(let members): members.mapValues(\.asObject)
    case .json(let text): (try? JSONReader.value(text, roundsNumbers: true))?.asObject ?? text
    case .secret(let secret): secret
    }
  }

  /// The value for an object of any type; nil for a nil inside an `Any`.
  ///
  /// - Throws: `CofferError.notEncodable`, naming collection and key, for an object that is neither `Codable` nor a property
  ///   list.
  static func of(_ object: Any, _ key: String, in collection: String) throws -> Value? {
    func failure(_ reason: String) -> CofferError { .notEncodable(collection: collection, key: key, reason: reason) }
    do {
      return try of(object, depth: 0)
    } catch let error as ValueCodingError {
      throw failure(error.reason)
    } catch {
      // Thrown by a type's own `encode(to:)`; its text may quote the value.
      throw failure("it cannot be encoded")
    }
  }

  private static func of(_ object: Any, depth: Int) throws -> Value? {
    guard depth <= maximumDepth else { throw ValueCodingError(reason: "it nests deeper than \(maximumDepth) levels") }
    if let optional = object as? any AnyOptional {
      guard let wrapped = optional.anyWrapped else { return nil }
      return try of(wrapped, depth: depth)
    }
    switch object {
    case let convertible as any ValueConvertible: return convertible.value
    case let encodable as any Encodable: return try Value(ValueCoder.encode(encodable))
    // Foundation's own classes, as the types they bridge to; numbers first, since they bridge to many.
    case let number where isNumberObject(number): return ofNumberObject(number)
    case let text as String: return .string(text)
    case let data as Data: return .data(data)
    case let date as Date: return .date(date)
    case let url as URL: return .url(url)
    case let uuid as UUID: return .uuid(uuid)
    case let elements as [Any]: return .array(try elements.map { try of($0, depth: depth + 1) ?? .null })
    case let members as [String: Any]:
      return .dictionary(try members.mapValues { try of($0, depth: depth + 1) ?? .null })
    default:
      throw ValueCodingError(reason: "\(type(of: object)) is neither Codable nor a property list type")
    }
  }
}

// MARK: - Optionals inside Any

/// An optional of any type.
protocol AnyOptional {
  var anyWrapped: Any? { get }
}

extension Optional: AnyOptional {
  var anyWrapped: Any? { self }
}

/// Whether an object is a nil of any optional type.
func isNil(_ object: some Any) -> Bool {
  guard let optional = object as? any AnyOptional else { return false }
  return optional.anyWrapped == nil
}

// MARK: - NSNumber

// Programs may hold Foundation's number objects, from JSON for instance. When Coffer is built against FoundationEssentials,
// it recognises the class by name, and the kind of number by its text.

/// - Parameter object: Not one of Swift's own numbers.
private func isNumberObject(_ object: Any) -> Bool {
  #if canImport(FoundationEssentials)
    object as? Int64 != nil || object as? UInt64 != nil || object as? Double != nil
  #else
    object is NSNumber
  #endif
}

private func ofNumberObject(_ object: Any) -> Value? {
  #if canImport(FoundationEssentials)
    let isBool = "\(type(of: object))" == "__NSCFBoolean"
    let isWhole = "\(object)".utf8.allSatisfy { $0 == UInt8(ascii: "-") || (0x30...0x39).contains($0) }
  #else
    guard let number = object as? NSNumber else { return nil }
    let isBool = CFGetTypeID(number) == CFBooleanGetTypeID()
    let isWhole = !CFNumberIsFloatType(number as CFNumber)
  #endif
  if isBool, let bool = object as? Bool { return .bool(bool) }
  if isWhole, let number = object as? Int64 { return .int(number) }
  if isWhole, let number = object as? UInt64 { return .uint64(number) }
  return (object as? Double).map(Value.double)
}
