#if canImport(Glibc)
  import Glibc
#endif

/// Memory that this process has freed.
enum FreeMemory {
  /// Gives it back to the system: on its own, glibc's allocator keeps most of what a large store needed while it was read.
  static func giveBack() {
    #if canImport(Glibc)
      // Swift's module of glibc has no malloc.h.
      guard let symbol = dlsym(nil, "malloc_trim") else { return }
      _ = unsafeBitCast(symbol, to: (@convention(c) (Int) -> CInt).self)(0)
    #endif
  }
}
