internal import COpenSSL

/// Wiping of memory that held a secret.
public enum Memory {
  /// Overwrites `buffer` with zeros, in a way that the optimizer cannot remove.
  ///
  /// Uses `OPENSSL_cleanse(3)`.
  public static func wipe(_ buffer: UnsafeMutableRawBufferPointer) {
    OPENSSL_cleanse(buffer.baseAddress, buffer.count)
  }
}
