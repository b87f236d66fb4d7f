#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The identity of a file, whatever its name.
struct FileIdentity: Equatable {
  let device: UInt64
  let inode: UInt64
  /// How it was opened: a store opened only for reading is another one.
  private let isReadOnly: Bool

  init(_ status: stat, isReadOnly: Bool = false) {
    (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
    self.isReadOnly = isReadOnly
  }

  /// What is at a path.
  enum Found {
    case same, other, nothing
  }

  /// Whether the file at `path` is this one, as far as that can be said.
  func found(at path: String) -> Found {
    var status = stat()
    guard lstat(path, &status) == 0 else { return errno == ENOENT || errno == ENOTDIR ? .nothing : .same }
    return status.st_ino == inode && UInt64(status.st_dev) == device ? .same : .other
  }
}
