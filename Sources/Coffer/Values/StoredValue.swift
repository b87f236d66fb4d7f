/// A value in its stored form: its kind and its encoded bytes (`FORMAT.md`, Values).
package struct StoredValue: Equatable, Sendable {
  package var kind: Value.Kind
  package var bytes: StoredBytes

  package init(kind: Value.Kind, bytes: StoredBytes) {
    self.kind = kind
    self.bytes = bytes
  }

  package init(kind: Value.Kind, bytes: [UInt8]) {
    self.init(kind: kind, bytes: .array(bytes))
  }

  /// Kind and bytes together, as metadata is stored.
  var tagged: StoredBytes {
    if case .array(let bytes) = bytes { .array([kind.rawValue] + bytes) } else { .secret(taggedSecret) }
  }

  /// Kind and bytes together, in protected memory for every kind.
  var taggedSecret: SecretBytes {
    bytes.withUnsafeBytes { bytes in
      SecretBytes(count: bytes.count + 1) { tagged in
        tagged[0] = kind.rawValue
        UnsafeMutableRawBufferPointer(rebasing: tagged[1...]).copyMemory(from: bytes)
      }
    }
  }
}

/// Why a value could not be coded; becomes a `CofferError` where collection and key are known.
package struct ValueCodingError: Error {
  package let reason: String

  package init(reason: String) {
    self.reason = reason
  }
}

extension StoredValue {
  /// - Throws: `CofferError.notDecodable`, naming collection, key and both types.
  func decoded<Object: Decodable>(as type: Object.Type, _ key: String, in collection: String) throws -> Object {
    try decoding(type, key, in: collection) { try ValueCoder.decode(self, as: type) }
  }

  func decoding<Object>(
    _ type: Object.Type, _ key: String, in collection: String, _ body: () throws -> Object
  ) throws -> Object {
    func failure(_ reason: String) -> CofferError {
      .notDecodable(
        collection: collection, key: key, storedType: kind.name, requestedType: "\(type)", reason: reason)
    }
    do {
      return try body()
    } catch let error as ValueCodingError {
      throw failure(error.reason)
    } catch {
      // Thrown by a type's own `init(from:)` or a serializer; its text may quote the value.
      throw failure("it cannot be decoded")
    }
  }

  /// - Throws: `CofferError.notEncodable`, naming collection and key.
  init(encoding object: some Encodable, _ key: String, in collection: String) throws {
    self = try Self.encoding(key, in: collection) { try ValueCoder.encode(object) }
  }

  static func encoding(_ key: String, in collection: String, _ body: () throws -> StoredValue) throws -> StoredValue {
    do {
      return try body()
    } catch let error as ValueCodingError {
      throw CofferError.notEncodable(collection: collection, key: key, reason: error.reason)
    } catch {
      // Thrown by the type's own `encode(to:)`; its text may quote the value.
      throw CofferError.notEncodable(collection: collection, key: key, reason: "it cannot be encoded")
    }
  }
}
