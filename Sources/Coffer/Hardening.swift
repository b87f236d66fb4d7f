import CofferCrypto
import CofferStorage

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

/// Core dumps of this process, which contain everything in its memory.
package enum CoreDumps {
  /// Disables core dumps, for this process and those it starts.
  ///
  /// ```swift
  /// try CoreDumps.disable()  // First thing in main.
  /// let database = try Database.open(at: path, key: .passphrase(passphrase))
  /// ```
  ///
  /// Otherwise, a dump contains the settings that were read and written. On Linux, it leaves out values of type ``Secret``
  /// and the keys that Coffer holds, but not the keys of pages and log: OpenSSL's ciphers have them in ordinary memory while
  /// a store is open. Disable dumps if others may see them. On Linux this also keeps debuggers of the same user, and
  /// `/proc`, out of the process's memory, which may be unwelcome during development: so each program decides for itself.
  /// Programs that it executes inherit the limit, but can be traced again (`prctl(2)`, `PR_SET_DUMPABLE`; `core(5)`).
  ///
  /// - Throws: `CofferError.unsupported` when the system refuses.
  package static func disable() throws {
    // The hard limit stays: only root could raise it again in a program that this one executes.
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
      // A dump piped to a program, as with systemd, ignores the limit (core(5)).
      let code = coffer_set_dumpable(0)
      guard code == 0 else { throw refused(Int32(-code)) }
    #endif
  }

  private static func refused(_ code: Int32) -> CofferError {
    .unsupported(reason: "core dumps could not be turned off (\(String(cString: strerror(code))))")
  }
}

/// Choices for a program that has its process to itself.
package enum Cryptography {
  /// Makes OpenSSL ignore its configuration file, and gives it memory that is left out of core dumps, locked and wiped.
  ///
  /// Both apply to the whole process. Call this before anything is opened.
  ///
  /// - Parameter withNamesAndWords: Whether other libraries in the process, such as SQLCipher, may look up algorithms by
  ///   names from before OpenSSL 3, and OpenSSL's errors should have texts; loading both takes time.
  package static func setUpAlone(withNamesAndWords: Bool) {
    OpenSSLLibrary.setUpAlone(withNamesAndWords: withNamesAndWords)
  }
}

/// The libraries that the program is linked with.
package typealias Libraries = LinkedLibraries
