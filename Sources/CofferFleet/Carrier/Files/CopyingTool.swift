#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A tool that copies folders between hosts, found by what it leaves in them.
///
/// A commit compares and replaces the head under a lock: hosts that do that on copies of a folder overwrite each other's commits as the tool
/// brings the copies together.
struct CopyingTool {
  let name: String
  /// What it was found by.
  let sign: String

  private static let signs = [
    (".stfolder", "Syncthing"), (".dropbox", "Dropbox"), (".dropbox.cache", "Dropbox"), (".sync/ID", "Resilio Sync"),
    (".owncloudsync.log", "ownCloud"), (".sync_journal.db", "Nextcloud"),
  ]

  /// The tool that copies a folder, or one above it; nil if none is known to.
  init?(of path: String) {
    var folder = path
    var isNear = true
    while true {
      for (sign, name) in Self.signs + (isNear ? [(".git", "Git")] : []) where access("\(folder)/\(sign)", F_OK) == 0 {
        (self.name, self.sign) = (name, "\(folder)/\(sign)")
        return
      }
      guard let slash = folder.lastIndex(of: "/"), slash > folder.startIndex else { return nil }
      // A repository further above may ignore the folder.
      isNear = folder == path
      folder = String(folder[..<slash])
    }
  }
}
