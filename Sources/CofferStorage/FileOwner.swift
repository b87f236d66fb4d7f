import CSQLite

#if os(Linux)
  import CSystemCalls
#endif

/// The owner of a store's files: that of the store file, which each companion file is given, too.
///
/// Root opens another user's store with that user's rights wherever a file is looked up by name. New files then
/// belong to that user, and a file planted in a store's place leads nowhere that the user could not go.
package struct FileOwner: Equatable, Sendable {
  package let user: uid_t
  package let group: gid_t
  /// Whether the group shares the store: its members may read and write the file; others may not write.
  package let isShared: Bool

  /// The owner of an existing file.
  init(_ status: stat) {
    user = status.st_uid
    group = status.st_gid
    isShared = status.st_mode & 0o062 == 0o060
  }

  /// The owner is this process; its rights stay as they are.
  static var ofThisProcess: FileOwner { FileOwner(user: geteuid(), group: getegid(), isShared: false) }

  private init(user: uid_t, group: gid_t, isShared: Bool) {
    self.user = user
    self.group = group
    self.isShared = isShared
  }

  /// The owner of the new file at `path`; for root, the first other user to whom a link on the way to it belongs, so that the link
  /// leads nowhere that this user could not write, or else the owner of the folder around it.
  ///
  /// - Parameter sharedGroup: The group to share it with.
  init(ofNewFileAt path: String, sharedGroup: gid_t? = nil) throws {
    var place = FilePath.folder(above: path)
    var status = stat()
    while stat(place, &status) != 0 {
      guard errno == ENOENT, FilePath.folder(above: place) != place else {
        throw StorageError(errno: errno, path: path)
      }
      place = FilePath.folder(above: place)
    }
    let ofFolder = status.st_uid == 0 ? nil : FileOwner(user: status.st_uid, group: status.st_gid, isShared: false)
    let owner = Self.canAct ? Self.hand(at: path, byLinksAlone: true) ?? ofFolder : nil
    user = owner?.user ?? geteuid()
    group = sharedGroup ?? owner?.group ?? getegid()
    isShared = sharedGroup != nil
  }

  /// The number of the group with the name or number `name`.
  package static func group(named name: String) throws -> gid_t {
    if let number = gid_t(name) { return number }
    guard let entry = getgrnam(name) else { throw StorageError.unsupported(reason: "there is no group \"\(name)\"") }
    return entry.pointee.gr_gid
  }

  /// The owner of the store at `path`; nil if it cannot be examined.
  package init?(ofStoreAt path: String) {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    self.init(status)
  }

  /// The mode of a new store and its companion files.
  var mode: mode_t { isShared ? 0o660 : 0o600 }
  /// The mode of a key file, which the group may only read.
  var keyFileMode: mode_t { isShared ? 0o640 : 0o600 }

  /// Gives a new file to the group.
  func share(_ descriptor: Int32, path: String) throws {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw StorageError(errno: errno, path: path) }
    guard status.st_gid == group || fchown(descriptor, uid_t.max, group) == 0 else {
      throw errno == EPERM
        ? StorageError.permissionDenied(
          path: path,
          reason: "it is for group \(SystemName.group(group)), and user \(SystemName.user(geteuid())) is not a member")
        : StorageError(errno: errno, path: path)
    }
  }

  // MARK: Rights

  /// Whether this process may act with the rights of other users.
  static var canAct: Bool {
    #if os(Linux)
      geteuid() == 0
    #else
      false
    #endif
  }

  /// Runs `body` on this thread; for root, with the owner's file access rights and no more, setfsuid(2): without root's
  /// further groups, too.
  ///
  /// - Throws: `StorageError.unsupported` where root may not do that; errors of `body`.
  package func acting<Result>(_ body: () throws -> Result) throws -> Result {
    #if os(Linux)
      guard Self.canAct, user != 0 else { return try body() }
      let (lastUser, lastGroup) = (coffer_file_user(), coffer_file_group())
      let groups = ThreadGroups()
      defer {
        let code = errno
        _ = coffer_set_file_user(lastUser)
        _ = coffer_set_file_group(lastGroup)
        groups.bringBack()
        errno = code
      }
      guard groups.drop(), coffer_set_file_group(group) == 0, coffer_set_file_user(user) == 0 else {
        throw StorageError.unsupported(
          reason:
            "root lacks the capability to act as user \(user), the owner of the files (setfsuid, CAP_SETUID)")
      }
    #endif
    return try body()
  }

  /// The owner by whose hand root is given the file at `path`: the first user other than root to whom a folder or a link
  /// on the way to it belongs, or the file in a folder that others may write, since that user decides what is there.
  ///
  /// For other users, and if all of it is root's, this process.
  package init(ofHandAt path: String) {
    self = Self.canAct ? Self.hand(at: path) ?? .ofThisProcess : .ofThisProcess
  }

  /// nil if all of it is root's, or something is missing.
  ///
  /// - Parameter byLinksAlone: Whether folders and files do not count.
  private static func hand(at path: String, byLinksAlone: Bool = false) -> FileOwner? {
    var owner: FileOwner?
    var isShared = false
    FilePath.walk(path) { place in
      var status = stat()
      guard lstat(place, &status) == 0 else { return false }
      let kind = status.st_mode & S_IFMT
      // Its owner cannot put another file in the place of one in a folder of root.
      let isFixed = kind != S_IFLNK && (byLinksAlone || kind != S_IFDIR && !isShared)
      if status.st_uid != 0, !isFixed {
        owner = FileOwner(user: status.st_uid, group: status.st_gid, isShared: false)
      }
      if kind == S_IFDIR { isShared = status.st_mode & 0o022 != 0 }
      return owner == nil
    }
    return owner
  }

  /// The same for a companion file of a store, whose owner is looked up again.
  static func acting(besides path: String, _ body: () -> Int32) -> Int32 {
    guard canAct else { return body() }
    var status = stat()
    let store = path.lastIndex(of: "-").map { String(path[..<$0]) } ?? path
    guard lstat(store, &status) == 0, let code = try? FileOwner(status).acting(body) else { return SQLITE_IOERR }
    return code
  }
}

#if os(Linux)
  /// The further groups of this thread, which setfsuid(2) leaves as they are.
  private struct ThreadGroups {
    private let groups: [gid_t]

    init() {
      let count = max(0, coffer_groups(nil, 0))
      var groups = [gid_t](repeating: 0, count: count)
      let read = coffer_groups(&groups, Int32(count))
      self.groups = Array(groups.prefix(max(0, read)))
    }

    func drop() -> Bool { groups.isEmpty || coffer_set_groups(nil, 0) == 0 }

    func bringBack() {
      if !groups.isEmpty { _ = coffer_set_groups(groups, Int32(groups.count)) }
    }
  }
#endif
