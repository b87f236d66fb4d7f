#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// The binary form of values. Equal values have equal bytes, so that setting a value again is not a change: dictionaries are
// written in the byte order of their keys, and an integer has only one form.

extension Value {
  /// The maximum depth of values, so that no stored value can exhaust the stack.
  static let maximumDepth = 128

  /// The value as it is stored.
  package var stored: StoredValue {
    get throws {
      if case .secret(let secret) = self { return StoredValue(kind: .secret, bytes: .secret(secret.bytes)) }
      guard kind != .null else { throw ValueCodingError(reason: "null is not a value; remove the key instead") }
      var bytes: [UInt8] = []
      try append(to: &bytes, depth: 0)
      return StoredValue(kind: canonicalKind, bytes: bytes)
    }
  }

  /// Reads a stored value.
  package init(_ stored: StoredValue) throws {
    switch stored.bytes {
    case .secret(let bytes): self = .secret(Secret(bytes))
    case .array(let bytes):
      var reader = ValueReader(bytes: bytes[...])
      self = try reader.readPayload(stored.kind, count: bytes.count, depth: 0)
    }
  }

  private var canonicalKind: Kind {
    if case .uint64(let number) = self, number <= UInt64(Int64.max) { return .int }
    return kind
  }

  private func append(to bytes: inout [UInt8], depth: Int) throws {
    guard depth <= Self.maximumDepth else {
      throw ValueCodingError(reason: "it nests deeper than \(Self.maximumDepth) levels")
    }
    switch self {
    case .null: break
    case .bool(let value): bytes.append(value ? 1 : 0)
    case .int(let value): bytes.append(bigEndian: UInt64(bitPattern: value))
    case .uint64(let value): bytes.append(bigEndian: value)
    case .double(let value): bytes.append(bigEndian: value.bitPattern)
    case .string(let value): bytes.append(contentsOf: value.utf8)
    case .json(let value):
      do { _ = try JSONReader.value(value, roundsNumbers: true) } catch {
        throw ValueCodingError(reason: "the text is not JSON: \(error.reason), at byte \(error.offset)")
      }
      bytes.append(contentsOf: value.utf8)
    case .data(let value): bytes.append(contentsOf: value)
    case .date(let value): bytes.append(bigEndian: value.timeIntervalSinceReferenceDate.bitPattern)
    case .url(let value):
      bytes.append(contentsOf: value.relativeString.utf8)
      if let base = value.baseURL {
        // A URL contains no NUL, and a base is written without a base of its own.
        bytes.append(0)
        bytes.append(contentsOf: base.absoluteString.utf8)
      }
    case .uuid(let value): withUnsafeBytes(of: value.uuid) { bytes.append(contentsOf: $0) }
    case .array(let values):
      for value in values { try value.appendElement(to: &bytes, depth: depth + 1) }
    case .dictionary(let values):
      let entries = values.map { (key: Array($0.key.utf8), value: $0.value) }
      for entry in entries.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
        bytes.append(varint: UInt64(entry.key.count))
        bytes.append(contentsOf: entry.key)
        try entry.value.appendElement(to: &bytes, depth: depth + 1)
      }
    case .secret: throw ValueCodingError(reason: "a secret must be stored by itself, not inside a list or a dictionary")
    }
  }

  private func appendElement(to bytes: inout [UInt8], depth: Int) throws {
    var payload: [UInt8] = []
    try append(to: &payload, depth: depth)
    bytes.append(canonicalKind.rawValue)
    bytes.append(varint: UInt64(payload.count))
    bytes.append(contentsOf: payload)
  }
}

extension Value.Kind {
  /// The kind with a number, if a value of it can stand by itself; null is only inside of others.
  init?(ofWhole number: UInt8) {
    self.init(rawValue: number)
    if self == .null { return nil }
  }
}

/// Reads values from untrusted bytes.
private struct ValueReader {
  var bytes: ArraySlice<UInt8>

  private func malformed(_ what: String) -> ValueCodingError {
    ValueCodingError(reason: "the stored bytes are malformed (\(what))")
  }

  private mutating func take(_ count: Int) throws -> ArraySlice<UInt8> {
    guard count <= bytes.count else { throw malformed("length") }
    defer { bytes = bytes.dropFirst(count) }
    return bytes.prefix(count)
  }

  private mutating func readWord(_ count: Int) throws -> UInt64 {
    guard count == 8 else { throw malformed("number") }
    return try take(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  private mutating func readText(_ count: Int) throws -> String {
    guard let text = try take(count).withUnsafeBytes(String.init(validating:)) else { throw malformed("text") }
    return text
  }

  private func url(_ text: Substring, relativeTo base: URL?) throws -> URL {
    // The empty text is a valid reference (RFC 3986, 4.4), but `URL(string:)` does not accept it.
    let url = text.isEmpty ? URLComponents().url(relativeTo: base) : URL(string: String(text), relativeTo: base)
    guard let url else { throw malformed("URL") }
    return url
  }

  private mutating func readCount() throws -> Int {
    guard let count = bytes.popVarint(), count <= UInt64(bytes.count) else { throw malformed("length") }
    return Int(count)
  }

  mutating func readPayload(_ kind: Value.Kind, count: Int, depth: Int) throws -> Value {
    guard depth <= Value.maximumDepth else { throw malformed("depth") }
    switch kind {
    case .null:
      guard count == 0 else { throw malformed("null") }
      return .null
    case .bool:
      guard count == 1, let byte = try take(1).first, byte <= 1 else { throw malformed("bool") }
      return .bool(byte == 1)
    case .int: return .int(Int64(bitPattern: try readWord(count)))
    case .uint64: return .uint64(try readWord(count))
    case .double: return .double(Double(bitPattern: try readWord(count)))
    case .string: return .string(try readText(count))
    case .json: return .json(try readText(count))
    case .data: return .data(Data(try take(count)))
    case .date:
      return .date(Date(timeIntervalSinceReferenceDate: Double(bitPattern: try readWord(count))))
    case .url:
      let texts = try readText(count).split(separator: "\0", omittingEmptySubsequences: false)
      guard texts.count <= 2 else { throw malformed("URL") }
      return .url(try url(texts[0], relativeTo: texts.count == 2 ? url(texts[1], relativeTo: nil) : nil))
    case .uuid:
      guard count == 16 else { throw malformed("UUID") }
      let bytes = Array(try take(16))
      return .uuid(bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) })
    case .array:
      var reader = ValueReader(bytes: try take(count))
      var values: [Value] = []
      while !reader.bytes.isEmpty { values.append(try reader.readElement(depth: depth + 1)) }
      return .array(values)
    case .dictionary:
      var reader = ValueReader(bytes: try take(count))
      var values: [String: Value] = [:]
      while !reader.bytes.isEmpty {
        let key = try reader.readText(try reader.readCount())
        values[key] = try reader.readElement(depth: depth + 1)
      }
      return .dictionary(values)
    case .secret where depth == 0: return .secret(try take(count).withUnsafeBytes(Secret.init(copying:)))
    case .secret, .sealed: throw malformed("kind")
    }
  }

  private mutating func readElement(depth: Int) throws -> Value {
    guard let tag = bytes.popFirst(), let kind = Value.Kind(rawValue: tag) else { throw malformed("kind") }
    return try readPayload(kind, count: readCount(), depth: depth)
  }
}
