import Coffer

#if canImport(Darwin)
  @preconcurrency import Darwin
#elseif canImport(Musl)
  @preconcurrency import Musl
#else
  @preconcurrency import Glibc
#endif

/// The environment variables of the process, and the folders they name.
package enum Environment {
  /// The variable's value; nil when it is unset or empty.
  package static func variable(_ name: String) -> String? {
    StandardLocation.variable(name)
  }

  /// Refuses paths and names that are not text: repaired, they would name another store beside the one meant.
  ///
  /// - Throws: ``Failure`` with the status `usage`.
  package static func check() throws {
    var next: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = environ
    while let entry = next?.pointee {
      next = next?.advanced(by: 1)
      let bytes = UnsafeRawBufferPointer(start: entry, count: strlen(entry))
      guard let name = String(validating: bytes.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self), isRead(name),
        String(validating: bytes, as: UTF8.self) == nil
      else { continue }
      throw Failure(.usage, "\(name) is not valid UTF-8, so prefs cannot use it. Set it to another value, or unset it.")
    }
  }

  /// Whether prefs takes a path or a name from the variable.
  private static func isRead(_ name: String) -> Bool {
    ["HOME", "CREDENTIALS_DIRECTORY"].contains(name) || name.hasPrefix("XDG_") || name.hasPrefix("PREFS_")
  }

  /// `$XDG_CONFIG_HOME`, or `~/.config`.
  static func configurationHome() throws -> String {
    try StandardLocation.configurationHome ?? noHome()
  }

  /// `$XDG_DATA_HOME`, or `~/.local/share`; on Apple systems Application Support.
  static func dataHome() throws -> String {
    try StandardLocation.dataHome ?? noHome()
  }

  private static func noHome() throws -> String {
    throw Failure(.other, "the home directory is unknown. Set HOME, or use --store and --key-file.")
  }
}
