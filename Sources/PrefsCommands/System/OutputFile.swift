#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Care with the files that a command writes.
enum OutputFile {
  /// Whether `path` is the store file, its log, or its shared memory, by whatever name.
  static func isPart(_ path: String, ofStore store: String) -> Bool {
    ["", "-wal", "-shm"].contains { isSameFile(path, store + $0) }
  }

  private static func isSameFile(_ left: String, _ right: String) -> Bool {
    var first = stat()
    var second = stat()
    // By path: opening the store's files, even only to look, would cost SQLite its locks at close.
    guard stat(left, &first) == 0, stat(right, &second) == 0 else { return left == right }
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }
}
