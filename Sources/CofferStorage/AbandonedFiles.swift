/// Files that killed programs left under temporary names.
///
/// Nothing tells whether the program that makes a file is alive: it may run on another host, which has the folder mounted.
/// But it writes to the file, or to a log beside it.
package enum AbandonedFiles {
  /// For how many seconds nothing was written to a file that no program makes any more.
  private static let age: Int64 = 3600
  /// A store that is being filled has a log.
  private static let suffixes = ["", "-wal", "-shm"]

  /// Removes those of `paths` to which nothing was written for an hour, if they belong to the user whom `owner` names.
  package static func remove(_ paths: [String], of owner: uid_t, where isWanted: (String) -> Bool = { _ in true }) {
    for path in paths where isOld(path, owner) && isWanted(path) {
      // The file itself last: its name tells the others.
      for suffix in suffixes.reversed() { unlink(path + suffix) }
    }
  }

  private static func isOld(_ path: String, _ owner: uid_t) -> Bool {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == owner else { return false }
    let now = Clock.millisecondsSince1970 / 1000
    return suffixes.allSatisfy { suffix in
      lstat(path + suffix, &status) != 0 || Int64(status.modificationTime.tv_sec) + age < now
    }
  }
}

extension StoreCopies {
  /// What programs that make stores and key files in the folder of `path` have not finished, and killed ones never will.
  ///
  /// Not while this process makes one: closing a descriptor of it would drop SQLite's locks.
  package static func unfinished(besides path: String) -> [String] {
    guard let path = try? FilePath.resolved(path) else { return [] }
    return FilePath.temporary(besides: path) { _ in true }.filter(isOurs)
  }

  /// Removes what killed programs left as they made stores and key files in the folder of `path`, under whatever names: second
  /// names of whole files, and files to which nothing was written for an hour.
  static func removeAbandoned(besides path: String, _ owner: FileOwner) {
    _ = try? owner.acting {
      let found = FilePath.temporary(besides: path) { _ in true }
      for file in found {
        // The program that linked it is about to remove the temporary name.
        if let final = NewFile.finalPath(ofTemporary: file), KeyFile.isSame(file, final) { unlink(file) }
      }
      AbandonedFiles.remove(found, of: owner.user, where: isOurs)
    }
  }

  /// Whether a file begins like a store or a key file, and has no second name.
  private static func isOurs(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_nlink == 1 && FileKind(ofFileAt: path) != nil
  }
}
