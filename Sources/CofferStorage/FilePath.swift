/// Paths as strings, resolved once, without following a link in the last component.
package enum FilePath {
  /// Compared as a byte: with a combining mark behind it, it is part of another `Character`.
  private static let slash = UInt8(ascii: "/")

  package static func lastComponent(of path: String) -> String {
    path.utf8.lastIndex(of: slash).map { String(path[path.utf8.index(after: $0)...]) } ?? path
  }

  static func folder(above path: String) -> String {
    guard let end = path.utf8.lastIndex(of: slash) else { return "." }
    return end == path.startIndex ? "/" : String(path[..<end])
  }

  /// Whether `path` leads to a regular file, also over links.
  static func isRegularFile(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }

  /// The path with its folder resolved, so that each store has a single path.
  ///
  /// The last component stays as it is: a symbolic link there is refused, not followed.
  static func resolved(_ path: String) throws -> String {
    let name = lastComponent(of: path)
    guard !name.isEmpty, name != ".", name != "..", !path.utf8.contains(0) else {
      throw StorageError.notAStore(path: path, reason: "the path does not name a file")
    }
    guard let folder = realpath(folder(above: path), nil) else {
      throw errno == ENOENT || errno == ENOTDIR
        ? StorageError.notFound(path: path) : StorageError(errno: errno, path: path)
    }
    defer { free(folder) }
    // A text of other bytes would name another folder.
    guard let parent = String(validatingCString: folder) else {
      throw StorageError.inputOutput(path: path, reason: "the name of a folder that leads there is not valid UTF-8")
    }
    return parent == "/" ? "/\(name)" : "\(parent)/\(name)"
  }

  /// The path from the root; a relative one would lead elsewhere once the program has another working folder.
  static func absolute(_ path: String) -> String {
    guard path.utf8.first != UInt8(ascii: "/"), let folder = realpath(".", nil) else { return path }
    defer { free(folder) }
    return "\(String(cString: folder))/\(path)"
  }

  /// As many links as Linux follows in one path, path_resolution(7).
  private static let linkLimit = 40

  /// Looks up the names of `path` one by one, as the system does, those of links' targets included.
  ///
  /// - Parameter visit: Gets each path that is looked up, links themselves included; returns whether to go on.
  /// - Returns: The path without links, or where `visit` ended.
  @discardableResult
  static func walk(_ path: String, _ visit: (String) -> Bool) -> String {
    /// The last one first.
    func components(_ path: String) -> [String] {
      path.utf8.split(separator: slash).reversed().map { String(Substring($0)) }
    }
    var names = components(absolute(path))
    var place = ""
    var linkCount = 0
    while let name = names.popLast() {
      if name == "." { continue }
      if name == ".." {
        place = String(place[..<(place.utf8.lastIndex(of: slash) ?? place.startIndex)])
        continue
      }
      let next = "\(place)/\(name)"
      guard visit(next) else { return next }
      if linkCount < linkLimit, let target = linkTarget(next) {
        linkCount += 1
        names += components(target)
        if target.utf8.first == slash { place = "" }
      } else {
        place = next
      }
    }
    return place.isEmpty ? "/" : place
  }

  /// Whether a folder on the way to the absolute `path` is named by a symbolic link.
  static func goesThroughLink(_ path: String) -> Bool {
    var place = folder(above: path)
    while place != "/" {
      if linkTarget(place) != nil { return true }
      place = folder(above: place)
    }
    return false
  }

  /// Where the symbolic link at `path` leads; nil if there is none.
  static func linkTarget(_ path: String) -> String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
      let count = readlink(path, buffer.baseAddress!, buffer.count)
      guard count > 0 else { return nil }
      return String(decoding: buffer[..<count].lazy.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }

  /// Creates the missing folders above `path` with mode 0700, and the innermost one for the group that will share its
  /// contents.
  static func makeFolder(above path: String, _ owner: FileOwner) throws -> String {
    let folder = try makeOwnFolder(above: path)
    if folder.isNew, owner.isShared {
      let descriptor = open(folder.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      guard descriptor >= 0 else { throw StorageError(errno: errno, path: folder.path) }
      defer { close(descriptor) }
      try owner.share(descriptor, path: folder.path)
      guard fchmod(descriptor, 0o2770) == 0 else { throw StorageError(errno: errno, path: folder.path) }
    }
    return folder.path
  }

  /// Creates the missing folders above `path` with mode 0700.
  package static func makeOwnFolder(above path: String) throws -> (path: String, isNew: Bool) {
    let folder = folder(above: path)
    if mkdir(folder, 0o700) == 0 {
      // If the folder above may be entered but not read, syncing is left to its file system.
      try? syncFolder(above: folder)
    } else {
      switch errno {
      case EEXIST: return (folder, false)
      case ENOENT:
        _ = try makeOwnFolder(above: folder)
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
          // As in /proc, where everything is named by the system.
          throw errno == ENOENT
            ? StorageError.inputOutput(path: folder, reason: "no folder can be created there")
            : StorageError(errno: errno, path: folder)
        }
        try? syncFolder(above: folder)
      // A read-only file system reports itself even for an existing folder.
      default:
        var status = stat()
        let code = errno
        guard stat(folder, &status) == 0 else { throw StorageError(errno: code, path: folder) }
        return (folder, false)
      }
    }
    return (folder, true)
  }

  /// Runs `body` while no other process does so for the folder above `path`.
  ///
  /// Anyone who can read the folder can hold its lock: after two seconds, and where a folder has no locks, `body` runs without it.
  package static func takingTurns<Result>(above path: String, _ body: () throws -> Result) rethrows -> Result {
    let descriptor = open(folder(above: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return try body() }
    defer { close(descriptor) }
    for _ in 0..<200 {
      if flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK { break }
      usleep(10_000)
    }
    return try body()
  }

  /// The number of bytes that the file system of `path` has left, with what is reserved for root or not; nil where it does not
  /// say.
  static func freeByteCount(_ path: UnsafePointer<CChar>, forRoot: Bool) -> UInt64? {
    var room = statvfs()
    // A file system that does not know says that it has no blocks at all.
    guard statvfs(path, &room) == 0, room.f_blocks > 0 else { return nil }
    let blockCount = UInt64(forRoot ? room.f_bfree : room.f_bavail)
    let (free, isMore) = blockCount.multipliedReportingOverflow(by: UInt64(room.f_frsize))
    return isMore ? .max : free
  }

  /// Makes a removed name durable, as far as that can be done.
  package static func syncFolder(of path: String) {
    try? syncFolder(above: path)
  }

  /// Makes a new name in the folder above `path` durable.
  static func syncFolder(above path: String) throws {
    let descriptor = open(folder(above: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw StorageError(errno: errno, path: path) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw StorageError(errno: errno, path: path) }
  }
}

/// The system's message for `code`, by default for the last error.
func systemErrorText(_ code: Int32 = errno) -> String {
  String(cString: strerror(code))
}

extension StorageError {
  /// The `StorageError` for a system error.
  init(errno code: Int32, path: String) {
    self =
      switch code {
      case ENOSPC, EDQUOT: .diskFull(path: path)
      case EACCES, EPERM, EROFS: .permissionDenied(path: path, reason: systemErrorText(code))
      case ENOENT: .notFound(path: path)
      default: .inputOutput(path: path, reason: systemErrorText(code))
      }
  }
}
