import Coffer

extension CommandSession {
  /// Checks that a command may overwrite a file with its output.
  ///
  /// - Throws: ``Failure`` with the status `usage` for a store or a part of it, and for a key file, without which the stores that
  ///   it opens would be lost.
  func requireReplaceable(_ output: String) throws {
    guard output != "-" else { return }
    if OutputFile.isPart(output, ofStore: path) {
      throw Failure(.usage, "\(output) is the store itself; nothing was written.")
    }
    if Self.isStore(output) {
      throw Failure(.usage, "\(output) is a store, or a part of one; nothing was written. Name another file.")
    }
    if try Self.kind(of: output) == .keyFile || keyFiles.contains(where: { OutputFile.isSameFile($0, output) }) {
      throw Failure(.usage, "\(output) is a key file; nothing was written. Name another file.")
    }
  }

  /// The key files that the command may use: files of a passphrase or raw bytes are not recognizable by their contents.
  private var keyFiles: [String] {
    get throws {
      let ofDefault = options.app == nil ? Environment.variable("PREFS_KEY_FILE") : nil
      let named = [options.keyFile, ofDefault, options.vaultKeyFileNamed].compactMap(\.self)
      return named + [try StoreLocation.defaultKeyFile(options)]
    }
  }

  private static func isStore(_ path: String) -> Bool {
    let companion = ["-wal", "-shm"].first { path.hasSuffix($0) }
    return ([path] + (companion.map { [String(path.dropLast($0.count))] } ?? [])).contains { kind(of: $0) == .store }
  }

  /// The file at the path that the user has given, following links.
  private static func kind(of path: String) -> FileKind? {
    try? FileHand(path).acting { KeyFile.regularFile(at: path).flatMap { FileKind(ofFileAt: $0) } }
  }
}
