import CofferCrypto

/// A 256-bit key sealed under another: nonce (24), ciphertext (32), tag (16).
package struct WrappedKey: Equatable, Sendable {
  private let nonce: [UInt8]
  private let sealed: [UInt8]

  static let byteCount = XAES256GCM.overheadByteCount + XAES256GCM.keyByteCount

  package var encoded: [UInt8] { nonce + sealed }

  init(from reader: inout ByteReader) throws {
    nonce = try Array(reader.read(count: XAES256GCM.nonceByteCount))
    sealed = try Array(reader.read(count: XAES256GCM.keyByteCount + XAES256GCM.tagByteCount))
  }

  init(wrapping key: SecretBytes, under wrappingKey: SecretBytes, context: [UInt8]) throws {
    nonce = try RandomSource.bytes(count: XAES256GCM.nonceByteCount)
    sealed = try XAES256GCM(key: wrappingKey).seal(key, nonce: nonce, additionalData: context)
  }

  func unwrap(under wrappingKey: SecretBytes, context: [UInt8]) throws -> SecretBytes {
    try XAES256GCM(key: wrappingKey).open(sealed, nonce: nonce, additionalData: context)
  }
}
