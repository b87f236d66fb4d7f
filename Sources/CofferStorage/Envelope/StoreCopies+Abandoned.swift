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
