import Coffer

/// The environment variables of the process, and the folders they name.
package enum Environment {
  /// The variable's value; nil when it is unset or empty.
  package static func variable(_ name: String) -> String? {
    StandardLocation.variable(name)
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
