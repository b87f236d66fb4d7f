#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Values as the text that `get` prints.
///
/// The output never changes between versions.
package enum ValueText {
  /// Scalars as plain text, arrays, dictionaries and JSON as one line of JSON with sorted names, data as base64, a secret as
  /// its length.
  package static func text(_ value: Value) -> String {
    scalar(value) ?? JSONText.text(value, bigIntegers: .numbers)
  }

  /// The text of a scalar value; nil for a composite one.
  package static func scalar(_ value: Value) -> String? {
    switch value {
    case .null: "null"
    case .bool(let bool): bool ? "true" : "false"
    case .int(let number): "\(number)"
    case .uint64(let number): "\(number)"
    case .double(let number): number.description
    case .string(let text): text
    case .data(let data): data.base64EncodedString()
    case .date(let date): Timestamp.exactText(date)
    case .url(let url): url.absoluteString
    case .uuid(let uuid): uuid.uuidString
    case .secret(let secret): secret.description
    case .array, .dictionary, .json: nil
    }
  }

  /// The bytes that `get` writes: data and secrets as they are, everything else as UTF-8 text.
  package static func bytes(_ value: Value) -> [UInt8] {
    switch value {
    case .data(let data): Array(data)
    case .secret(let secret): secret.withUnsafeBytes(Array.init)
    default: Array(text(value).utf8)
    }
  }

  /// The value as `get` shows it: a secret as its text or data.
  package static func revealed(_ value: Value) -> Value {
    guard case .secret(let secret) = value else { return value }
    return secret.revealed().map(Value.string) ?? .data(secret.withUnsafeBytes { Data($0) })
  }

  /// `bytes` as base64, in one line.
  package static func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
}

extension Value {
  /// The value as a secret, as which no one is shown it; nil for one already, or for nothing.
  package var veiled: Value? {
    guard kind != .secret else { return nil }
    let bytes = ValueText.bytes(self)
    return bytes.isEmpty ? nil : bytes.withUnsafeBytes { .secret(Secret(copying: $0)) }
  }
}
