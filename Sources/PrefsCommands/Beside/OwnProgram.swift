#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The executable of this process.
enum OwnProgram {
  /// A path to start another instance.
  static var executable: String {
    #if os(Linux)
      return "/proc/self/exe"
    #else
      var size: UInt32 = 0
      _NSGetExecutablePath(nil, &size)
      var path = [CChar](repeating: 0, count: Int(size))
      _NSGetExecutablePath(&path, &size)
      return path.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    #endif
  }

  /// Its path with links resolved; nil if the file is no longer there.
  static var path: String? {
    guard let path = realpath(executable, nil) else { return nil }
    defer { free(path) }
    return String(cString: path)
  }
}
