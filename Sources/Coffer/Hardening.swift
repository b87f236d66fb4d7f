import CofferCrypto

#if os(Linux)
  import CSystemCalls
#endif

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Core dumps of this process, which hold whatever is in its memory.
public enum CoreDumps {
  /// Turns them off, for this process and those it starts.
  ///
  /// ```swift
  /// try CoreDumps.disable()  // First thing in main.
  /// let database = try Database.open(at: path, key: .passphrase(passphrase))
  /// ```
  ///
  /// Without this a dump shows what was read and written, and on Linux, too, where values of type ``Secret`` and the keys
  /// that Coffer holds are left out, the keys of pages and log: OpenSSL's ciphers have them in ordinary memory while a store
  /// is open. A program whose dumps others may see turns them off. On Linux it also keeps debuggers of the same user, and `/proc`, out of the
  /// process's memory, which may be unwelcome while one is developed: so a program decides for itself. Programs that it
  /// executes have the limit, but can be traced again (`prctl(2)`, `PR_SET_DUMPABLE`; `core(5)`).
  ///
  /// - Throws: `CofferError.unsupported` when the system refuses.
  public static func disable() throws {
    // The hard limit stays: nobody but root could raise it again for a program that this one executes.
    var limit = rlimit()
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_CORE.rawValue)
    #else
      let resource = RLIMIT_CORE
    #endif
    guard getrlimit(resource, &limit) == 0 else { throw refused(errno) }
    limit.rlim_cur = 0
    guard setrlimit(resource, &limit) == 0 else { throw refused(errno) }
    #if os(Linux)
      // A dump that is piped to a program, as systemd has it, does not mind the limit (core(5)).
      let code = coffer_set_dumpable(0)
      guard code == 0 else { throw refused(Int32(-code)) }
    #endif
  }

  private static func refused(_ code: Int32) -> CofferError {
    .unsupported(reason: "core dumps could not be turned off (\(String(cString: strerror(code))))")
  }
}

/// What a program that has its process to itself may choose.
package enum Cryptography {
  /// Leaves OpenSSL's configuration file unread, and gives OpenSSL memory that is left out of core dumps, locked and wiped;
  /// both belong to the whole process.
  ///
  /// To be called before anything is opened.
  ///
  /// - Parameter withNamesAndWords: Whether other libraries of the process, as SQLCipher's, may ask for algorithms by the names
  ///   from before OpenSSL 3, and errors of OpenSSL's be told in words; entering both takes time.
  package static func setUpAlone(withNamesAndWords: Bool) {
    OpenSSLLibrary.setUpAlone(withNamesAndWords: withNamesAndWords)
  }
}
