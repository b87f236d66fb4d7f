import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Where things are.
enum StoreLocation {
  /// `--store`, else the store of `--app`, else `PREFS_STORE`, else `prefs/settings.coffer` in the user's data folder.
  static func store(_ options: SessionOptions) throws -> String {
    if let path = options.store { return path }
    if let app = options.app { return try StandardLocation.store(ofApplication: app) }
    if let path = Environment.variable("PREFS_STORE") { return path }
    return try Environment.dataHome() + "/prefs/settings.coffer"
  }

  /// Whether a store can be written, and a log made beside it.
  static func isWritable(_ store: String) -> Bool {
    access(store, W_OK) == 0 && access(folder(of: store), W_OK) == 0
  }

  /// The folder that `path` lies in.
  static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Whether there is anything at `path`, of whatever kind.
  static func isTaken(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// How many bytes the store and its log take.
  static func byteCount(_ store: String) -> Int {
    [store, store + "-wal"].reduce(0) { sum, path in
      var status = stat()
      return stat(path, &status) == 0 ? sum + Int(status.st_size) : sum
    }
  }

  /// The key file that is used when nothing else is named.
  static func defaultKeyFile(_ options: SessionOptions) throws -> String {
    if let app = options.app { return try StandardLocation.keyFile(ofApplication: app) }
    return try Environment.configurationHome() + "/prefs/key"
  }
}
