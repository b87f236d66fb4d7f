#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The environment variables of the process, and the places they name.
enum Environment {
  /// The variable's value; nil when it is unset or empty.
  static func variable(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }

  /// `$XDG_CONFIG_HOME`, or `~/.config`.
  static func configurationHome() throws -> String {
    try baseDirectory("XDG_CONFIG_HOME", fallback: ".config")
  }

  /// `$XDG_DATA_HOME`, or `~/.local/share`; on Apple systems Application Support.
  static func dataHome() throws -> String {
    #if canImport(Darwin)
      try baseDirectory("XDG_DATA_HOME", fallback: "Library/Application Support")
    #else
      try baseDirectory("XDG_DATA_HOME", fallback: ".local/share")
    #endif
  }

  private static func baseDirectory(_ name: String, fallback: String) throws -> String {
    // The XDG Base Directory Specification: a relative path is invalid and to be ignored.
    if let path = variable(name), path.hasPrefix("/") { return path }
    return try home() + "/" + fallback
  }

  private static func home() throws -> String {
    if let path = variable("HOME"), path.hasPrefix("/") { return path }
    if let entry = getpwuid(getuid()), let directory = entry.pointee.pw_dir, directory.pointee != 0 {
      return String(cString: directory)
    }
    throw Failure(.other, "no home directory is known. Set HOME, or name the places with --store and --key-file.")
  }
}
