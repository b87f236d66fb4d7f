import CofferCrypto

/// Encrypts the messages between a page and its program with a key that only they have.
///
/// Once this program has ended, anyone on the host may listen at its port. A program without the key can neither read nor forge
/// the messages. The cipher is XAES-256-GCM, as in `channel.js`.
struct SealedChannel: Sendable {
  private let key: SecretBytes

  init(key: SecretBytes) { self.key = key }

  /// The channel for trading a token.
  init(token: String) throws {
    key = try HKDF.deriveKey(
      from: SecretBytes(copying: token), salt: [], info: Array("prefs-ui token".utf8), count: XAES256GCM.keyByteCount)
  }

  func isSame(as other: SealedChannel) -> Bool { key.isEqual(to: other.key) }

  /// A request as received.
  struct Request {
    fileprivate let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Answers are bound to this, so that none passes for the answer to another request.
    fileprivate var nonce: ArraySlice<UInt8> { bytes.prefix(XAES256GCM.nonceByteCount) }
  }

  /// Opens a request, and passes its contents to `body`; they are wiped afterwards.
  ///
  /// - Throws: `CryptoError.authenticationFailed` if the page has not sealed it, or for another purpose.
  func open<R>(_ request: Request, for purpose: String, _ body: (UnsafeRawBufferPointer) throws -> R) throws -> R {
    try XAES256GCM(key: key).withOpened(request.bytes[...], additionalData: Array(purpose.utf8), body)
  }

  /// Seals an answer to a request.
  func seal(_ text: String, for purpose: String, answering request: Request) throws -> [UInt8] {
    var sealed: [UInt8] = []
    var text = text
    let purpose = Array(purpose.utf8) + request.nonce
    try text.withUTF8 {
      try XAES256GCM(key: key).seal(UnsafeRawBufferPointer($0), additionalData: purpose, appendingTo: &sealed)
    }
    return sealed
  }
}
