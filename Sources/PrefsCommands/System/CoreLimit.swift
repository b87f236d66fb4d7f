#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The core dump limit, restored for a program that replaces this one.
enum CoreLimit {
  /// The limit when the process began; nil when unknown.
  private static let inherited: rlimit? = {
    var limit = rlimit()
    #if canImport(Glibc)
      return getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0 ? limit : nil
    #else
      return getrlimit(RLIMIT_CORE, &limit) == 0 ? limit : nil
    #endif
  }()

  /// Reads it, before `CoreDumps.disable()` lowers it.
  static func remember() {
    _ = inherited
  }

  /// Restores it.
  static func restore() {
    if let inherited { set(inherited) }
  }

  private static func set(_ limit: rlimit) {
    var limit = limit
    #if canImport(Glibc)
      _ = setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    #else
      _ = setrlimit(RLIMIT_CORE, &limit)
    #endif
  }
}
