import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A folder that only this user may enter, locked while the command that made it runs.
///
/// The lock distinguishes a folder in use from one left by a killed command.
package struct PrivateFolder {
  package let path: String
  private let descriptor: Int32

  private static let prefix = ".prefs-edit-"
  private static let visiblePrefix = "prefs-page-"
  private static let objectsPrefix = ".prefs-tpm-"

  /// Makes a folder in `$XDG_RUNTIME_DIR`, which is in memory, or else beside the store.
  package init(besides store: String) throws {
    let runtime = Environment.variable("XDG_RUNTIME_DIR").flatMap { try? Self(in: $0) }
    self = try runtime ?? Self(in: FilePlace.folder(of: store))
  }

  /// Makes one that is not hidden, in the user's home: browsers in a sandbox (snap) read no others.
  package init(visibleInHome home: String) throws { try self.init(in: home, prefix: Self.visiblePrefix) }

  /// Makes one for the objects of a TPM, in memory if possible, and removes those that killed commands left.
  init(forObjectsBesides store: String) throws {
    let parents = [Environment.variable("XDG_RUNTIME_DIR"), "/dev/shm", FilePlace.folder(of: store)].compactMap(\.self)
    for folder in Self.abandoned(in: parents, prefixes: [Self.objectsPrefix]) { folder.wipe() }
    var folder: Self?
    for parent in parents.dropLast() where folder == nil { folder = try? Self(in: parent, prefix: Self.objectsPrefix) }
    self = try folder ?? Self(in: FilePlace.folder(of: store), prefix: Self.objectsPrefix)
  }

  private init(in parent: String, prefix: String = prefix) throws {
    while true {
      var template = Array("\(parent)/\(prefix)XXXXXX".utf8CString)
      // mkdtemp(3) makes it with mode 0700.
      guard mkdtemp(&template) != nil else { throw Failure.system(parent, errno: errno) }
      let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      guard descriptor >= 0, flock(descriptor, LOCK_EX) == 0 else {
        let code = errno
        if descriptor >= 0 { close(descriptor) }
        rmdir(path)
        throw Failure.system(path, errno: code)
      }
      if Self.isOwn(descriptor, at: path) {
        (self.path, self.descriptor) = (path, descriptor)
        return
      }
      // Before it was locked, another command took it for a leftover and removed it.
      close(descriptor)
    }
  }

  private init?(abandonedAt path: String) {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, Self.isOwn(descriptor, at: path) else {
      close(descriptor)
      return nil
    }
    (self.path, self.descriptor) = (path, descriptor)
  }

  /// Whether the open folder belongs to this user and is still at `path`.
  private static func isOwn(_ descriptor: Int32, at path: String) -> Bool {
    var (there, opened) = (stat(), stat())
    return fstat(descriptor, &opened) == 0 && opened.st_uid == geteuid() && lstat(path, &there) == 0
      && there.st_ino == opened.st_ino && there.st_dev == opened.st_dev
  }

  // MARK: - Left-overs

  /// This user's folders that killed commands left behind.
  static func leftovers(besides store: String) -> [String] {
    abandoned(besides: store).map { folder in
      close(folder.descriptor)
      return folder.path
    }
  }

  /// Wipes and removes those folders.
  ///
  /// - Returns: Their paths, and whether they were removed completely.
  static func wipeLeftovers(besides store: String) -> [(path: String, isGone: Bool)] {
    abandoned(besides: store).map { ($0.path, $0.wipe()) }
  }

  private static func abandoned(besides store: String) -> [PrivateFolder] {
    let parents =
      ["XDG_RUNTIME_DIR", "HOME"].compactMap { Environment.variable($0) } + [FilePlace.folder(of: store)]
    return abandoned(in: parents, prefixes: [prefix, visiblePrefix])
  }

  private static func abandoned(in parents: [String], prefixes: [String]) -> [PrivateFolder] {
    Set(parents).sorted().flatMap { parent in
      // mkdtemp(3) makes no names with invalid UTF-8.
      ((try? FolderNames.read(parent)) ?? []).map { String(decoding: $0, as: UTF8.self) }
        .filter { name in prefixes.contains { name.hasPrefix($0) } }.sorted().compactMap {
          PrivateFolder(abandonedAt: "\(parent)/\($0)")
        }
    }
  }

  // MARK: - Wiping

  /// Overwrites and removes the contents, and the folder.
  ///
  /// - Returns: Whether everything was removed.
  @discardableResult
  package func wipe() -> Bool {
    Self.wipeContents(of: descriptor, depth: 0)
    defer { close(descriptor) }
    return rmdir(path) == 0
  }

  /// Deeper folders do not come from editing settings, and would use up file descriptors.
  private static let depthLimit = 64

  // Uses names relative to open folders and never follows links, so nothing outside of the folder is touched.
  private static func wipeContents(of folder: Int32, depth: Int) {
    for bytes in (try? FolderNames.read(folder)) ?? [] {
      // They need not be UTF-8.
      let name = bytes.map { CChar(bitPattern: $0) } + [0]
      var status = stat()
      guard fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
      let isFolder = status.st_mode & S_IFMT == S_IFDIR
      // An editor may have left files that even their owner cannot open.
      if isFolder || status.st_mode & S_IFMT == S_IFREG {
        fchmodat(folder, name, isFolder ? 0o700 : 0o600, AT_SYMLINK_NOFOLLOW)
      }
      if isFolder {
        let inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        if inner >= 0 {
          if depth < depthLimit { wipeContents(of: inner, depth: depth + 1) }
          close(inner)
        }
        unlinkat(folder, name, AT_REMOVEDIR)
        continue
      }
      let file = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
      if file >= 0 {
        overwrite(file)
        close(file)
      }
      unlinkat(folder, name, 0)
    }
  }

  /// Overwrites the regular file that is open on `descriptor` with zeros.
  static func overwrite(_ descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
    let zeros = [UInt8](repeating: 0, count: 64 << 10)
    var offset: off_t = 0
    while offset < status.st_size {
      let count = pwrite(descriptor, zeros, min(zeros.count, Int(status.st_size - offset)), offset)
      guard count > 0 else { break }
      offset += off_t(count)
    }
    fsync(descriptor)
  }
}
