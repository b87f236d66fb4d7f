import CofferCrypto
import CofferStorage
import Dispatch

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Flushes the proxies of this process at its normal exit.
enum ExitFlush {
  /// How long flushes may delay the exit, for all proxies together.
  static let timeout = DispatchTimeInterval.seconds(5)

  private static let proxies = Lock<[WeakPendingChanges]>([])
  /// The process whose exit counts: a forked child inherits the handler, and must not write its parent's changes again.
  private static let process = ProcessToken.current

  /// Registered with the first proxy.
  ///
  /// Its database has used OpenSSL by then, so this handler runs before OpenSSL's own ("functions are called in the
  /// reverse order of their registration", atexit(3)).
  private static let registration: Void = {
    _ = process
    atexit {
      guard ProcessToken.current == ExitFlush.process else { return }
      let deadline = DispatchTime.now() + ExitFlush.timeout
      for changes in ExitFlush.proxies.withLock({ $0.compactMap(\.changes) }) {
        changes.flushAtExit(deadline: deadline)
      }
    }
  }()

  static func register(_ changes: PendingChanges) {
    _ = registration
    proxies.withLock { proxies in
      proxies.removeAll { $0.changes == nil }
      proxies.append(WeakPendingChanges(changes: changes))
    }
  }
}
