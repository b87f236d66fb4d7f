#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

#if canImport(Glibc)
  private let fileSize = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
#else
  private let fileSize = RLIMIT_FSIZE
#endif

/// Runs `body` while no file of this process can grow beyond a megabyte: a write beyond it fails, `setrlimit(2)`.
///
/// Scripts are played one after the other, on one thread.
func withFullDisk<Result>(_ body: () throws -> Result) throws -> Result {
  signal(SIGXFSZ, SIG_IGN)
  var limit = rlimit()
  guard getrlimit(fileSize, &limit) == 0 else { throw Refusal() }
  let before = limit
  limit.rlim_cur = 1 << 20
  guard setrlimit(fileSize, &limit) == 0 else { throw Refusal() }
  defer {
    limit = before
    setrlimit(fileSize, &limit)
  }
  return try body()
}
