import CSQLite
import CSystemCalls
import CofferCrypto

/// The libraries that this program is linked with.
package enum LinkedLibraries {
  /// Whether they are inside the program, which then gets security updates of them only as a new program.
  package static let areInside = coffer_is_static() != 0

  /// Their versions, as they name them: of OpenSSL also when it was built, as distributions mend it without a new version.
  package static var versions: [String] {
    [OpenSSLLibrary.version, "SQLite \(String(cString: sqlite3_libversion())) \(String(cString: sqlite3_sourceid()))"]
  }

  /// Keeps the C library from loading others, if it is inside: call this before anything else.
  package static func prepare() {
    if areInside { coffer_find_users_in_files() }
  }
}
