// The C library, under its name on each system, for the whole module.
#if canImport(Glibc)
  @_exported import Glibc
#elseif canImport(Musl)
  @_exported import Musl
#elseif canImport(Darwin)
  @_exported import Darwin
#endif

/// System calls that a method of the same name would hide.
enum Platform {
  /// Opens a file for reading; never the store's own, see `Store`.
  ///
  /// Does not follow links or wait for pipes, which someone may have planted there.
  static func openForReading(_ path: String) -> Int32 {
    open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
  }

  static func read(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
    #if canImport(Glibc)
      Glibc.read(descriptor, buffer, count)
    #elseif canImport(Musl)
      Musl.read(descriptor, buffer, count)
    #else
      Darwin.read(descriptor, buffer, count)
    #endif
  }

  static func write(_ descriptor: Int32, _ buffer: UnsafeRawPointer, _ count: Int) -> Int {
    #if canImport(Glibc)
      Glibc.write(descriptor, buffer, count)
    #elseif canImport(Musl)
      Musl.write(descriptor, buffer, count)
    #else
      Darwin.write(descriptor, buffer, count)
    #endif
  }
}

/// How long files of this process may become (`RLIMIT_FSIZE`).
enum FileLimit {
  /// The maximum if there is no limit.
  static var byteCount: Int64 {
    var limit = rlimit()
    #if canImport(Glibc)
      let code = getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    #else
      let code = getrlimit(RLIMIT_FSIZE, &limit)
    #endif
    return code == 0 ? Int64(clamping: limit.rlim_cur) : .max
  }
}

extension stat {
  /// When the file's contents were last changed.
  var modificationTime: timespec {
    #if canImport(Darwin)
      st_mtimespec
    #else
      st_mtim
    #endif
  }
}
