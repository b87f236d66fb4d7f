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

  /// Removes those folders in `parent` whose names begin with `prefix`, and what is in them, to which nothing was written for an
  /// hour.
  package static func removeFolders(named prefix: String, in parent: String, of owner: uid_t) {
    for name in (try? FolderNames.read(parent)) ?? [] where name.starts(with: prefix.utf8) {
      let folder = "\(parent)/\(String(decoding: name, as: UTF8.self))"
      var status = stat()
      // One that has just been made is empty, too.
      guard lstat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == owner, isOld(status)
      else { continue }
      remove(
        ((try? FolderNames.read(folder)) ?? []).map { "\(folder)/\(String(decoding: $0, as: UTF8.self))" }, of: owner)
      rmdir(folder)
    }
  }

  private static func isOld(_ status: stat) -> Bool {
    Int64(status.modificationTime.tv_sec) + age < Clock.millisecondsSince1970 / 1000
  }

  private static func isOld(_ path: String, _ owner: uid_t) -> Bool {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == owner else { return false }
    return suffixes.allSatisfy { lstat(path + $0, &status) != 0 || isOld(status) }
  }
}
