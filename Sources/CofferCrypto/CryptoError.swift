/// An error of this module.
///
/// No case carries input: neither keys, nor plaintext, nor ciphertext.
public enum CryptoError: Error, Equatable, Sendable {
  /// The tag does not match: wrong key, nonce or additional data, or changed ciphertext.
  case authenticationFailed

  /// The linked OpenSSL lacks this algorithm, such as Argon2id before 3.2, or its configuration forbids it.
  case unavailable(algorithm: String)

  /// A size or a cost is out of range; the text names it and the range.
  case invalidParameter(String)

  /// An OpenSSL function failed, with the reason from its error queue.
  case openSSL(function: String, reason: String)
}
