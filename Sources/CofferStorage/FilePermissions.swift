/// Which users other than the owner can access a file.
package enum FilePermissions {
  /// The permissions that let others read or write the file at `path`, as sentences; empty if it does not exist.
  ///
  /// - Parameter owner: The owner of a store, which a group may share.
  package static func problems(ofFileAt path: String, of owner: FileOwner? = nil) -> [String] {
    var status = stat()
    // Follow links, which a key file may be.
    guard stat(path, &status) == 0, status.st_mode & 0o077 & ~groupBits(status, owner) != 0 else { return [] }
    return ["\(path) is open to others (mode \(octal(status.st_mode & 0o777)))."]
  }

  /// Likewise for a key file, following links: its owner knows the key and could give it away.
  package static func problems(ofKeyFileAt path: String, of owner: FileOwner? = nil) -> [String] {
    var status = stat()
    guard stat(path, &status) == 0, ![0, geteuid(), owner?.user].contains(status.st_uid) else { return [] }
    return [
      "\(path) belongs to another user (\(SystemName.user(status.st_uid))), who can read and replace the key in it."
    ]
  }

  /// What others can see of the folder around the file at `path`, when seeing is all they can do.
  package static func notes(ofFolderAbove path: String, of owner: FileOwner? = nil) -> [String] {
    let folder = FilePath.folder(above: path)
    var status = stat()
    // A system folder is open to all.
    guard stat(folder, &status) == 0, status.st_uid == self.owner(of: path),
      status.st_mode & 0o055 & ~groupBits(status, owner) != 0, status.st_mode & 0o022 & ~groupBits(status, owner) == 0
    else { return [] }
    return [
      "The folder \(folder) can be entered by others (mode \(octal(status.st_mode & 0o777))), who see when and how much is "
        + "written there."
    ]
  }

  /// The permission that lets others read or write the regular file at `path`, if it belongs to this user.
  package static func problemOfOwnRegularFile(at path: String, of owner: FileOwner? = nil) -> String? {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else { return nil }
    return problems(ofFileAt: path, of: owner).first
  }

  /// Whether users outside of the file's group can read or write it.
  package static func isOpenToAll(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & 0o007 != 0
  }

  /// The permissions that let others create files in the folder around the file at `path`.
  package static func problems(ofFolderAbove path: String, of owner: FileOwner? = nil) -> [String] {
    let folder = FilePath.folder(above: path)
    var status = stat()
    guard stat(folder, &status) == 0 else { return [] }
    var problems: [String] = []
    if status.st_mode & 0o022 & ~groupBits(status, owner) != 0 {
      // "A file in a sticky directory may only be renamed or deleted by the owner": unlink(2), EPERM.
      let isSticky = status.st_mode & S_ISVTX != 0
      problems.append(
        "The folder \(folder) can be written by others (mode \(octal(status.st_mode & 0o1777))), who can create files there"
          + (isSticky ? "." : " and replace yours."))
    }
    if status.st_uid != 0, status.st_uid != geteuid(), status.st_uid != self.owner(of: path) {
      problems.append(
        "The folder \(folder) belongs to another user (\(SystemName.user(status.st_uid))), who can replace files in it."
      )
    }
    return problems
  }

  /// Refuses an existing folder in which the members of `group` could not create a log.
  package static func checkFolder(above path: String, letsWrite group: gid_t) throws {
    let folder = FilePath.folder(above: path)
    var status = stat()
    guard stat(folder, &status) == 0, status.st_gid != group || status.st_mode & 0o030 != 0o030 else { return }
    let (name, word) = (SystemName.group(group), ShellWord.quoted(folder))
    throw StorageError.permissionDenied(
      path: folder, reason: "group \(name) cannot create files there; run: chgrp \(name) \(word) && chmod 2770 \(word)")
  }

  /// The reason why users other than root and this one could replace the contents at `path`, as a sentence.
  ///
  /// They could write to it, or to a folder on the way from the root. `path` contains no links, see realpath(3).
  package static func problem(ofWholePath path: String) -> String? {
    var place = path
    while true {
      var status = stat()
      guard lstat(place, &status) == 0 else { return "\(place) could not be inspected" }
      if status.st_uid != 0, status.st_uid != geteuid() {
        return "\(place) belongs to another user (\(SystemName.user(status.st_uid)))"
      }
      // In a sticky folder only a file's owner can rename or remove it, and that owner was already checked.
      let isSticky = place != path && status.st_mode & S_ISVTX != 0
      if status.st_mode & 0o022 != 0, !isSticky {
        return "\(place) can be written by others (mode \(octal(status.st_mode & 0o777))); "
          + "run: chmod go-w \(ShellWord.quoted(place))"
      }
      if place == "/" { return nil }
      place = FilePath.folder(above: place)
    }
  }

  /// The first folder on the way to `path` that another user does not allow this one to enter.
  static func foreignFolder(above path: String) -> (path: String, user: uid_t)? {
    var folders: [String] = []
    var place = path
    repeat {
      let above = FilePath.folder(above: place)
      if above == place || above == "." && place == "." { break }
      place = above
      folders.append(place)
    } while true
    for folder in folders.reversed() where faccessat(AT_FDCWD, folder, X_OK, AT_EACCESS) != 0 {
      var status = stat()
      guard errno == EACCES, stat(folder, &status) == 0, status.st_uid != geteuid() else { return nil }
      return (folder, status.st_uid)
    }
    return nil
  }

  /// The mode bits that the sharing group is allowed to have.
  private static func groupBits(_ status: stat, _ owner: FileOwner?) -> mode_t {
    guard let owner, owner.isShared, status.st_gid == owner.group else { return 0 }
    return 0o070
  }

  private static func owner(of path: String) -> uid_t? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_uid : nil
  }

  private static func octal(_ mode: mode_t) -> String { String(mode, radix: 8) }
}
