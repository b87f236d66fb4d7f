import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

#if COFFER_THREAD_SANITIZER
  /// A replacement for `Mutex` that the thread sanitizer understands.
  ///
  /// On Linux the standard library's waits on futexes that the sanitizer cannot see, so all access under it would be
  /// reported as a race.
  package final class Lock<Value>: @unchecked Sendable {
    /// Not a property: the sanitizer takes the address of an empty one for that of the object itself, whose type is read without
    /// the lock.
    private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    package init(_ value: sending Value) {
      self.value.initialize(to: value)
      pthread_mutex_init(mutex, nil)
    }

    deinit {
      pthread_mutex_destroy(mutex)
      mutex.deallocate()
      value.deinitialize(count: 1)
      value.deallocate()
    }

    package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      return try body(&value.pointee)
    }
  }
#else
  /// A value accessed by one thread at a time.
  package typealias Lock = Mutex
#endif
