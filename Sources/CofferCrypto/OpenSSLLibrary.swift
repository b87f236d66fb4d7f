internal import COpenSSL

/// OpenSSL as a whole.
enum OpenSSLLibrary {
  /// Sets OpenSSL up, the first time; whatever uses it asks for this first.
  ///
  /// Without OpenSSL's own handler at the exit of the process: it takes its locks and generators away from threads that
  /// still write (`OPENSSL_INIT_NO_ATEXIT` in OPENSSL_init_crypto(3)), and a write that is under way then would crash. The
  /// system takes all memory back anyway. Where other code of the process has set OpenSSL up before, its choice stands.
  static let setUp: Void = {
    _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
  }()
}
