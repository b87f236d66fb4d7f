#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The default paths of an application's store and key file.
///
/// The folders are those of the XDG Base Directory Specification.
package enum StandardLocation {
  /// The store of an application: `IDENTIFIER/settings.coffer` in `$XDG_DATA_HOME`, by default `~/.local/share`; on Apple
  /// systems in `~/Library/Application Support`.
  ///
  /// - Throws: `CofferError.unsupported` when no home folder is known, a variable that names it is not UTF-8, or the
  ///   identifier is not a valid file name.
  package static func store(ofApplication identifier: String) throws -> String {
    try checkVariables(["HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"])
    return try path("settings.coffer", of: identifier, in: dataHome)
  }

  /// The key file of an application: `IDENTIFIER/key` in `$XDG_CONFIG_HOME`, by default `~/.config`.
  ///
  /// - Throws: As ``store(ofApplication:)``.
  package static func keyFile(ofApplication identifier: String) throws -> String {
    try checkVariables(["HOME", "XDG_CONFIG_HOME"])
    return try path("key", of: identifier, in: configurationHome)
  }

  private static func path(_ name: String, of identifier: String, in folder: String?) throws -> String {
    guard !["", ".", ".."].contains(identifier),
      !identifier.utf8.contains(where: { $0 == 0 || $0 == UInt8(ascii: "/") })
    else { throw CofferError.unsupported(reason: "an application's identifier must be a valid file name") }
    guard let folder else {
      throw CofferError.unsupported(reason: "the home folder is unknown; set HOME, or name the store and its key")
    }
    return "\(folder)/\(identifier)/\(name)"
  }

  /// Refuses paths that are not text: repaired, they would name another folder beside the one meant.
  private static func checkVariables(_ names: [String]) throws {
    for name in names {
      if let value = getenv(name), String(validatingCString: value) == nil {
        throw CofferError.unsupported(reason: "the environment variable \(name) is not valid UTF-8")
      }
    }
  }

  // MARK: Folders

  /// `$XDG_CONFIG_HOME`, or `~/.config`; nil when no home folder is known.
  package static var configurationHome: String? {
    baseDirectory("XDG_CONFIG_HOME", fallback: ".config")
  }

  /// `$XDG_DATA_HOME`, or `~/.local/share`, on Apple systems Application Support; nil when no home folder is known.
  package static var dataHome: String? {
    #if canImport(Darwin)
      baseDirectory("XDG_DATA_HOME", fallback: "Library/Application Support")
    #else
      baseDirectory("XDG_DATA_HOME", fallback: ".local/share")
    #endif
  }

  /// The folder of the files of Foundation's UserDefaults; nil when no home folder is known.
  static var userDefaultsFolder: String? {
    #if canImport(Darwin)
      home.map { "\($0)/Library/Preferences" }
    #else
      configurationHome
    #endif
  }

  /// `$XDG_STATE_HOME`, or `~/.local/state`, on Apple systems Application Support; nil when no home folder is known.
  static var stateHome: String? {
    #if canImport(Darwin)
      baseDirectory("XDG_STATE_HOME", fallback: "Library/Application Support")
    #else
      baseDirectory("XDG_STATE_HOME", fallback: ".local/state")
    #endif
  }

  private static func baseDirectory(_ name: String, fallback: String) -> String? {
    // The XDG Base Directory Specification: a relative path is invalid and to be ignored.
    if let path = variable(name), path.hasPrefix("/") { return path }
    return home.map { "\($0)/\(fallback)" }
  }

  private static var home: String? {
    if let path = variable("HOME"), path.hasPrefix("/") { return path }
    guard let entry = getpwuid(getuid()), let directory = entry.pointee.pw_dir, directory.pointee != 0 else {
      return nil
    }
    return String(cString: directory)
  }

  /// An environment variable; nil when it is unset or empty.
  package static func variable(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }
}
