#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The states of a store's file and log, to tell whether anything has changed there.
package struct StoreFiles: Equatable {
  private let store: [Int]
  private let log: [Int]

  /// - Parameter path: A path that leads to a store, or to nothing at present.
  package init(at path: String) {
    store = Self.state(of: path) ?? []
    // Opening a store makes an empty log, and closing it removes that.
    log = Self.state(of: path + "-wal").flatMap { $0[0] > 0 ? $0 : nil } ?? []
  }

  /// nil without a file; its size first.
  private static func state(of path: String) -> [Int]? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    #if canImport(Darwin)
      let times = [status.st_mtimespec, status.st_ctimespec]
    #else
      let times = [status.st_mtim, status.st_ctim]
    #endif
    return [Int(status.st_size), Int(status.st_dev), Int(status.st_ino), Int(status.st_mode)]
      + times.flatMap { [Int($0.tv_sec), Int($0.tv_nsec)] }
  }
}
