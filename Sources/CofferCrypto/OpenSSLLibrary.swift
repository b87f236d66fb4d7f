internal import COpenSSL

/// OpenSSL as a whole.
package enum OpenSSLLibrary {
  /// Sets OpenSSL up, the first time; whatever uses it asks for this first.
  ///
  /// Without OpenSSL's own handler at the exit of the process: it takes its locks and generators away from threads that
  /// still write (`OPENSSL_INIT_NO_ATEXIT` in OPENSSL_init_crypto(3)), and a write that is under way then would crash. The
  /// system takes all memory back anyway. Where other code of the process has set OpenSSL up before, its choice stands.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` where OpenSSL could not, for want of memory; it never tries again.
  static func setUp() throws(CryptoError) {
    guard isSetUp else {
      throw .openSSL(function: "OPENSSL_init_crypto", reason: "no memory; start the process again")
    }
  }

  /// The first call is content without the library context; a generator asked for then would take a lock that is not there.
  private static let isSetUp =
    OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1 && OSSL_LIB_CTX_get0_global_default() != nil

  /// Where algorithms and generators are found; nil is the context that the whole process shares.
  ///
  /// That one where the program or its configuration file has made another choice than OpenSSL's own.
  static let context =
    isAlone.withLock { $0 } || hasDefaultsOnly && !choosesGenerator ? AlgorithmContext() : nil

  private static let isAlone = Lock(false)

  /// Whether the process's context has nothing but the default provider, and FIPS is not asked for.
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

  /// Whether the configuration file says which generators there are, which shows nowhere else before they are made.
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

  /// Sets OpenSSL up for a program that has its process to itself; before its first use.
  ///
  /// Its configuration file is not read, which could name providers whose code would run beside the keys, and all its
  /// memory is `OpenSSLMemory`.
  ///
  /// - Parameter withNamesAndWords: Whether to enter the names of algorithms from before there were providers, and the
  ///   words for its errors, which both take time. Coffer needs none of the names; SQLCipher does, when a store of its is
  ///   imported. Without the words an error is told by its number.
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
