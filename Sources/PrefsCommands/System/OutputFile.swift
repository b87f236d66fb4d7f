import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Safe writing of output files.
enum OutputFile {
  /// Whether `path` is the store file, its log, or its shared memory, under any name.
  static func isPart(_ path: String, ofStore store: String) -> Bool {
    ["", "-wal", "-shm"].contains { isSameFile(path, store + $0) }
  }

  static func isSameFile(_ left: String, _ right: String) -> Bool {
    var first = stat()
    var second = stat()
    // By path: opening the store's files, even just to inspect them, would drop SQLite's locks on close.
    guard stat(left, &first) == 0, stat(right, &second) == 0 else { return left == right }
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }

  /// Writes a file with mode 0600, which appears whole and durable, or not at all.
  ///
  /// It replaces an existing file; terminals, pipes and devices are written to directly.
  static func place(_ bytes: [UInt8], at path: String) throws {
    // Opened again, a file that the shell has redirected to would be written from its start.
    if let open = openDescriptor(path) { return try FileDescriptor.writeAll(bytes, to: open, named: path) }
    try FileHand(path).acting {
      if isSpecial(path) {
        try FileDescriptor.writeFile(bytes, to: path)
      } else {
        try place(at: path) { temporary, _ in try FileDescriptor.writeNewFile(bytes, to: temporary, named: path) }
      }
    }
  }

  /// Runs `make` to create a file in the same folder, and renames it to `path`.
  ///
  /// - Parameter make: Receives the temporary path, and a closure that throws when a signal wants to end the process.
  static func place(
    at path: String, _ make: (_ temporary: String, _ check: () throws -> Void) throws -> Void
  ) throws {
    let target = try resolvingLinks(path)
    var status = stat()
    if stat(target, &status) == 0, status.st_mode & S_IFMT == S_IFDIR { throw Failure.system(path, errno: EISDIR) }
    let folder = FilePlace.folder(of: target)
    // Creating a store or a database would make missing folders.
    guard stat(folder, &status) == 0 else { throw Failure.system(path, errno: errno) }
    try HeldSignals.during { signals in
      let temporary = "\(folder)/\(prefix)\(String(UInt64.random(in: 0 ... .max), radix: 36))\(suffix)"
      let hand = FileHand(target)
      _ = try? hand.acting { AbandonedFiles.remove(temporaryFiles(in: folder), of: geteuid()) }
      defer { _ = try? hand.acting { unlink(temporary) } }
      do {
        try make(temporary, signals.check)
      } catch let error as CofferError {
        throw error.naming(path, insteadOf: temporary)
      }
      guard try hand.acting({ rename(temporary, target) }) == 0 else { throw Failure.system(path, errno: errno) }
      FileDescriptor.synchronizeFolder(folder)
    }
  }

  /// The descriptor that a name of the system stands for, as `/dev/stdout` does.
  private static func openDescriptor(_ path: String) -> Int32? {
    switch path {
    case "/dev/stdout": return 1
    case "/dev/stderr": return 2
    default:
      let folder = ["/dev/fd/", "/proc/self/fd/"].first { path.hasPrefix($0) }
      return folder.flatMap { folder in
        let name = String(path.dropFirst(folder.count))
        // `+1` and `007` name no descriptor.
        return Int32(name).flatMap { String($0) == name ? $0 : nil }
      }
    }
  }

  private static let (prefix, suffix) = (".prefs-", ".tmp")

  /// The files that commands are making in a folder, or that killed ones left; they may hold secrets.
  private static func temporaryFiles(in folder: String) -> [String] {
    let names = (try? FolderNames.read(folder)) ?? []
    return names.map { String(decoding: $0, as: UTF8.self) }.filter { name in
      let tag = name.dropFirst(prefix.count).dropLast(suffix.count)
      return name.hasPrefix(prefix) && name.hasSuffix(suffix) && !tag.isEmpty
        && tag.utf8.allSatisfy { "0123456789abcdefghijklmnopqrstuvwxyz".utf8.contains($0) }
    }.map { "\(folder)/\($0)" }
  }

  /// Whether it is a device, a pipe or a socket, where nothing is kept.
  static func isSpecial(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && ![S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT)
  }

  /// The target of `path`, so that a link stays a link.
  private static func resolvingLinks(_ path: String) throws -> String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    if let target = String(validatingCString: resolved) { return target }
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFLNK else {
      throw Failure(.inputOutput, "\(path) leads to a name that is not valid UTF-8.")
    }
    return path
  }
}

extension CofferError {
  /// The same error about the file that was named.
  fileprivate func naming(_ path: String, insteadOf temporary: String) -> CofferError {
    switch self {
    case .diskFull(temporary): .diskFull(path: path)
    case .permissionDenied(temporary, let reason): .permissionDenied(path: path, reason: reason)
    case .inputOutput(temporary, let reason): .inputOutput(path: path, reason: reason)
    default: self
    }
  }
}
