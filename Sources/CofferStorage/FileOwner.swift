import CSQLite

#if os(Linux)
  import CSystemCalls
#endif

/// Whose the files of a store are: the store file says it, and each file that appears beside it is made so.
///
/// Root works with a store of another user under the rights of that user, wherever a file is looked for by its name: so
/// what is made belongs to him, and what he could put in a file's place leads nowhere that he could not go himself.
package struct FileOwner: Equatable, Sendable {
  package let user: uid_t
  package let group: gid_t
  /// Whether the members of the group share the store: they may read and write its file, and everybody else may not write.
  package let isShared: Bool

  /// Of a file that is there.
  init(_ status: stat) {
    user = status.st_uid
    group = status.st_gid
    isShared = status.st_mode & 0o062 == 0o060
  }

  /// Of this process, whose rights are left as they are.
  static var ofThisProcess: FileOwner { FileOwner(user: geteuid(), group: getegid(), isShared: false) }

  private init(user: uid_t, group: gid_t, isShared: Bool) {
    self.user = user
    self.group = group
    self.isShared = isShared
  }

  /// Of the new file at `path`: root's belongs to the owner of the folder that it lies in.
  ///
  /// - Parameter sharedGroup: The group that is to share it.
  init(ofNewFileAt path: String, sharedGroup: gid_t? = nil) throws {
    var place = FilePath.folder(above: path)
    var status = stat()
    while stat(place, &status) != 0 {
      guard errno == ENOENT, FilePath.folder(above: place) != place else {
        throw StorageError(errno: errno, path: path)
      }
      place = FilePath.folder(above: place)
    }
    let isOthers = Self.canAct && status.st_uid != 0
    user = isOthers ? status.st_uid : geteuid()
    group = sharedGroup ?? (isOthers ? status.st_gid : getegid())
    isShared = sharedGroup != nil
  }

  /// The number of the group that is called `name`, or has that number.
  package static func group(named name: String) throws -> gid_t {
    if let number = gid_t(name) { return number }
    guard let entry = getgrnam(name) else { throw StorageError.unsupported(reason: "there is no group \"\(name)\"") }
    return entry.pointee.gr_gid
  }

  /// Of the store at `path`; nil where there is none to be looked at.
  package init?(ofStoreAt path: String) {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    self.init(status)
  }

  /// What a new store and what lies beside it may be used for by others than their owner.
  var mode: mode_t { isShared ? 0o660 : 0o600 }
  /// The same of a key file, which the members of the group only read.
  var keyFileMode: mode_t { isShared ? 0o640 : 0o600 }

  /// Gives a new file to the group.
  func share(_ descriptor: Int32, path: String) throws {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw StorageError(errno: errno, path: path) }
    guard status.st_gid == group || fchown(descriptor, uid_t.max, group) == 0 else {
      throw errno == EPERM
        ? StorageError.permissionDenied(
          path: path, reason: "it is for group \(group), of which user \(geteuid()) is no member")
        : StorageError(errno: errno, path: path)
    }
  }

  // MARK: Rights

  /// Whether this process may take on the rights of other users.
  static var canAct: Bool {
    #if os(Linux)
      geteuid() == 0
    #else
      false
    #endif
  }

  /// Runs `body` on this thread, for root with the owner's rights at files, setfsuid(2), and with no more than those.
  ///
  /// - Throws: `StorageError.unsupported` where root may not do that; what `body` throws.
  func acting<Result>(_ body: () throws -> Result) throws -> Result {
    #if os(Linux)
      guard Self.canAct, user != 0 else { return try body() }
      let (lastUser, lastGroup) = (coffer_file_user(), coffer_file_group())
      defer {
        let code = errno
        _ = coffer_set_file_user(lastUser)
        _ = coffer_set_file_group(lastGroup)
        errno = code
      }
      guard coffer_set_file_group(group) == 0, coffer_set_file_user(user) == 0 else {
        throw StorageError.unsupported(
          reason:
            "this root may not take on the rights of user \(user), to whom the files belong (setfsuid, CAP_SETUID)")
      }
    #endif
    return try body()
  }

  /// The same for one of the files beside a store, whose owner is found anew.
  static func acting(besides path: String, _ body: () -> Int32) -> Int32 {
    guard canAct else { return body() }
    var status = stat()
    let store = path.lastIndex(of: "-").map { String(path[..<$0]) } ?? path
    guard lstat(store, &status) == 0, let code = try? FileOwner(status).acting(body) else { return SQLITE_IOERR }
    return code
  }
}
