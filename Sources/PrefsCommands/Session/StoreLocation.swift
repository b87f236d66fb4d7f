import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The paths of stores and key files.
enum StoreLocation {
  /// `--store`, else the store of `--app`, else `PREFS_STORE`, else `prefs/settings.coffer` in the user's data folder.
  static func store(_ options: SessionOptions) throws -> String {
    if let path = options.store { return path }
    if let app = options.app { return try StandardLocation.store(ofApplication: app) }
    if let path = Environment.variable("PREFS_STORE") { return path }
    return try Environment.dataHome() + "/prefs/settings.coffer"
  }

  /// Whether the store can be written, and a log created beside it.
  static func isWritable(_ store: String) -> Bool {
    access(store, W_OK) == 0 && access(FilePlace.folder(of: store), W_OK) == 0
  }

  /// Refuses a path whose folder does not exist: its medium may not be mounted, and the file would end up on this disk.
  ///
  /// - Throws: ``Failure`` with the status `inputOutput`.
  static func requireFolder(of path: String) throws {
    let folder = FilePlace.folder(of: path)
    var status = stat()
    guard stat(folder, &status) != 0, errno == ENOENT else { return }
    throw Failure(
      .inputOutput,
      "there is no folder \(folder); nothing was written. Mount its medium, or create it: mkdir -p \(ShellWord.quoted(folder))"
    )
  }

  /// The size of the store and its log in bytes.
  static func byteCount(_ store: String) -> Int {
    [store, store + "-wal"].reduce(0) { sum, path in
      var status = stat()
      return stat(path, &status) == 0 ? sum + Int(status.st_size) : sum
    }
  }

  /// The default key file.
  static func defaultKeyFile(_ options: SessionOptions) throws -> String {
    if let app = options.app { return try StandardLocation.keyFile(ofApplication: app) }
    return try Environment.configurationHome() + "/prefs/key"
  }
}
