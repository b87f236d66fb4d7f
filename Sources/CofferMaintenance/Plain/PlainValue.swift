import Coffer
import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The encoding of values in the table `settings` of a plain database: readable, and lossless when read back, bit for
/// bit.
enum PlainValue {
  /// Doubles stored as text: SQLite would store NaN as NULL, and may drop the sign of -0.0.
  private static let numbersAsText = ["nan": Double.nan, "-0.0": -0.0]

  // MARK: Writing

  /// The column for a value; the name of its kind is stored beside it.
  ///
  /// - Throws: `ValueCodingError`.
  static func column(for value: Value) throws -> RecordColumn {
    // Text that is not JSON can be stored by others, and cannot be set.
    if case .json(let text) = value, try json(text) == nil { return .blob(Array(text.utf8)[...]) }
    // A value without a lossless text or number form is stored as Coffer's own bytes.
    let stored = try value.stored
    if let column = readableColumn(for: value), (try? Self.value(of: column, type: value.kind.name).stored) == stored {
      return column
    }
    return .blob(stored.bytes.withUnsafeBytes(Array.init)[...])
  }

  private static func readableColumn(for value: Value) -> RecordColumn? {
    switch value {
    case .null, .array, .dictionary: JSONText.lossless(value).map(text)
    case .bool(let bool): .integer(bool ? 1 : 0)
    case .int(let number): .integer(number)
    case .uint64(let number): text("\(number)")
    case .double(let number): column(for: number)
    case .string(let string), .json(let string): text(string)
    case .data(let data): .blob(Array(data)[...])
    case .date(let date): column(for: date)
    case .url(let url): url.baseURL == nil && URL(string: url.absoluteString) == url ? text(url.absoluteString) : nil
    case .uuid(let uuid): text(uuid.uuidString)
    case .secret(let secret): secret.revealed().map(text)
    }
  }

  private static func column(for number: Double) -> RecordColumn? {
    if let name = numbersAsText.first(where: { $0.value.bitPattern == number.bitPattern })?.key { return text(name) }
    // A NaN with unusual bits is stored as bytes.
    return number.isNaN ? nil : .real(number)
  }

  /// RFC 3339 for dates of whole milliseconds, else seconds since 2001.
  private static func column(for date: Date) -> RecordColumn? {
    let seconds = date.timeIntervalSinceReferenceDate
    let readable = Timestamp.text(date)
    if let read = Timestamp.date(readable), read.timeIntervalSinceReferenceDate.bitPattern == seconds.bitPattern {
      return text(readable)
    }
    return seconds.isNaN || seconds.bitPattern == (-0.0).bitPattern ? nil : .real(seconds)
  }

  private static func text(_ text: String) -> RecordColumn { .text(Array(text.utf8)[...]) }

  // MARK: Reading

  /// Decodes a column.
  ///
  /// - Parameter type: The name of its kind; nil to go by SQLite's type.
  /// - Throws: `ValueCodingError`, which never quotes the value.
  static func value(of column: RecordColumn, type: String?) throws -> Value {
    guard let type else { return try value(of: column) }
    guard let kind = Value.Kind.allCases.first(where: { $0.name == type && $0 != .null && $0 != .sealed }) else {
      throw ValueCodingError(reason: "unknown type \"\(type)\"")
    }
    if case .blob(let bytes) = column {
      return try kind == .data ? .data(Data(bytes)) : Value(StoredValue(kind: kind, bytes: Array(bytes)))
    }
    guard let value = try readableValue(column, kind) else {
      throw ValueCodingError(reason: "it is not a valid \(type)")
    }
    return value
  }

  private static func value(of column: RecordColumn) throws -> Value {
    switch column {
    case .null: throw ValueCodingError(reason: "it is NULL")
    case .integer(let number): .int(number)
    case .real(let number): .double(number)
    case .text: .string(try string(column))
    case .blob(let bytes): .data(Data(bytes))
    }
  }

  private static func readableValue(_ column: RecordColumn, _ kind: Value.Kind) throws -> Value? {
    switch (kind, column) {
    case (.bool, .integer(let number)) where number == 0 || number == 1: .bool(number == 1)
    case (.int, .integer(let number)): .int(number)
    case (.int, .text): UInt64(try string(column)).map { Int64(exactly: $0).map(Value.int) ?? .uint64($0) }
    case (.double, .real(let number)): .double(number)
    case (.double, .integer(let number)): Double(exactly: number).map(Value.double)
    case (.double, .text): try numbersAsText[string(column)].map(Value.double)
    case (.string, .text): .string(try string(column))
    case (.json, .text): try json(string(column))
    case (.date, .text): Timestamp.exactDate(try string(column)).map(Value.date)
    case (.date, .real(let seconds)): .date(Date(timeIntervalSinceReferenceDate: seconds))
    case (.url, .text): URL(string: try string(column)).map(Value.url)
    case (.secret, .text): .secret(Secret(try string(column)))
    case (.uuid, .text): UUID(uuidString: try string(column)).map(Value.uuid)
    case (.array, .text), (.dictionary, .text): try composed(string(column), kind)
    default: nil
    }
  }

  private static func string(_ column: RecordColumn) throws -> String {
    guard let text = column.text else { throw ValueCodingError(reason: "it is not UTF-8") }
    return text
  }

  private static func json(_ text: String) throws -> Value? {
    (try? JSONReader.value(text, roundsNumbers: true)) == nil ? nil : .json(text)
  }

  private static func composed(_ text: String, _ kind: Value.Kind) -> Value? {
    guard let value = try? JSONReader.value(text), value.kind == kind else { return nil }
    return value
  }
}
