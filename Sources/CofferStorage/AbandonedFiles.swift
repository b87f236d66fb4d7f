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
