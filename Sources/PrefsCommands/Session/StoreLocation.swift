/// Where things are.
enum StoreLocation {
  /// `--store`, else `PREFS_STORE`, else `prefs/settings.coffer` in the user's data folder.
  static func store(_ options: CommonOptions) throws -> String {
    if let path = options.store { return path }
    if let path = Environment.variable("PREFS_STORE") { return path }
    return try Environment.dataHome() + "/prefs/settings.coffer"
  }

  /// The key file that is used when nothing else is named.
  static func defaultKeyFile() throws -> String {
    try Environment.configurationHome() + "/prefs/key"
  }
}
