internal import COpenSSL

/// Comparison whose duration does not reveal where two byte strings differ.
public enum ConstantTime {
  /// Whether both buffers hold the same bytes.
  ///
  /// The time depends only on the length (`CRYPTO_memcmp(3)`). Lengths are not secret: different ones return false at
  /// once.
  public static func isEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard a.count == b.count else { return false }
    guard a.count > 0 else { return true }
    return CRYPTO_memcmp(a.baseAddress, b.baseAddress, a.count) == 0
  }

  /// Whether both arrays hold the same bytes, under the same rules.
  public static func isEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    a.withUnsafeBytes { a in b.withUnsafeBytes { b in isEqual(a, b) } }
  }
}
