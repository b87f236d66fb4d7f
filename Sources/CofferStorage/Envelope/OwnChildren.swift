import Synchronization

/// The processes that the library starts and waits for, in any thread.
///
/// A program that waits for every child of its process, as the first process of a container must, would otherwise take their
/// exit status.
package enum OwnChildren {
  private static let count = Mutex(0)

  /// Runs `body`, which starts a process and waits for it.
  static func keeping<R>(_ body: () throws -> R) rethrows -> R {
    count.withLock { $0 += 1 }
    defer { count.withLock { $0 -= 1 } }
    return try body()
  }

  /// Runs `body`, which may wait for any child, unless the library has one; it starts none meanwhile.
  package static func unlessThereAreAny(_ body: () -> Void) {
    count.withLock { if $0 == 0 { body() } }
  }
}
