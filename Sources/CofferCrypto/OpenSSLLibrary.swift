internal import COpenSSL

/// Setup of OpenSSL for the process.
package enum OpenSSLLibrary {
  /// Its version, and when it was built.
  package static var version: String {
    [OPENSSL_VERSION, OPENSSL_BUILT_ON].map { String(cString: OpenSSL_version($0)) }.joined(separator: ", ")
  }

  /// Sets OpenSSL up on first use; all code that uses OpenSSL calls this first.
  ///
  /// OpenSSL's own exit handler is left out: it frees locks and generators while other threads may still be writing
  /// (`OPENSSL_INIT_NO_ATEXIT` in OPENSSL_init_crypto(3)), and such a write would crash. The system reclaims the
  /// memory anyway. If other code in the process has set OpenSSL up before, its choice stands.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` if OpenSSL could not be set up, for lack of memory; it never
  ///   retries.
  static func setUp() throws(CryptoError) {
    guard isSetUp else {
      throw .openSSL(function: "OPENSSL_init_crypto", reason: "out of memory; start the process again")
    }
  }

  /// The first call may succeed without a library context; a generator requested then would use a lock that does not
  /// exist.
  private static let isSetUp =
    OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1 && OSSL_LIB_CTX_get0_global_default() != nil

  /// The context for algorithms and generators; nil is the process's default context.
  ///
  /// It is nil if the program or OpenSSL's configuration file has changed OpenSSL's defaults.
  static let context =
    isAlone.withLock { $0 } || hasDefaultsOnly && !choosesGenerator ? AlgorithmContext() : nil

  private static let isAlone = Lock(false)

  /// Whether the default context has only the default provider, and FIPS is not requested.
  private static var hasDefaultsOnly: Bool {
    var counts = (defaults: 0, others: 0)
    let isListed = withUnsafeMutablePointer(to: &counts) { counts in
      OSSL_PROVIDER_do_all(
        nil,
        { provider, counts in
          guard let counts = counts?.assumingMemoryBound(to: (defaults: Int, others: Int).self) else { return 0 }
          let isDefault = OSSL_PROVIDER_get0_name(provider).map { String(cString: $0) } == AlgorithmContext.defaultName
          if isDefault { counts.pointee.defaults += 1 } else { counts.pointee.others += 1 }
          return 1
        }, counts)
    }
    return isListed == 1 && counts == (1, 0) && EVP_default_properties_is_fips_enabled(nil) == 0
  }

  /// Whether the configuration file selects the generators, which cannot be detected otherwise before they are made.
  private static var choosesGenerator: Bool {
    guard let path = CONF_get1_default_config_file(), let configuration = NCONF_new(nil) else { return true }
    defer {
      CRYPTO_free(path, nil, 0)
      NCONF_free(configuration)
      ERR_clear_error()
    }
    var line = 0
    guard NCONF_load(configuration, path, &line) == 1 else { return false }
    return NCONF_get_string(configuration, NCONF_get_string(configuration, nil, "openssl_conf"), "random") != nil
  }

  /// Sets OpenSSL up for a program that has its process to itself; call it before the first use.
  ///
  /// OpenSSL's configuration file, which could name providers whose code would run beside the keys, is not read, and
  /// all of its memory is `OpenSSLMemory`.
  ///
  /// - Parameter withNamesAndWords: Whether to load the legacy algorithm names and the error messages, which both
  ///   take time. Coffer needs no legacy names; SQLCipher does, for an import. Without the messages, errors show a
  ///   number.
  package static func setUpAlone(withNamesAndWords: Bool) {
    isAlone.withLock { $0 = true }
    OpenSSLMemory.use()
    var choices = OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG
    if !withNamesAndWords {
      choices |= OPENSSL_INIT_NO_ADD_ALL_CIPHERS | OPENSSL_INIT_NO_ADD_ALL_DIGESTS
      choices |= OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS
    }
    _ = OPENSSL_init_crypto(UInt64(choices), nil)
  }
}
