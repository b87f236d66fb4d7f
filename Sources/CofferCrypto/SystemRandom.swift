internal import COpenSSL

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// OpenSSL's random generators (NIST SP 800-90A), one pair per thread, so that no call waits for another thread.
///
/// OpenSSL reseeds them from the system after a fork, and periodically (`EVP_RAND(7)`).
enum SystemRandom {
  /// The use of the bytes: public ones come from another generator than secret ones.
  enum Purpose {
    case keys
    case nonces
  }

  /// Fills `buffer` with random bytes.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` when the generator fails; `buffer` is then zero.
  static func fill(_ buffer: UnsafeMutableRawBufferPointer, from purpose: Purpose) throws(CryptoError) {
    try OpenSSLLibrary.setUp()
    let context = OpenSSLLibrary.context
    try AlgorithmContext.withFallback(context) { () throws(CryptoError) in
      try fill(buffer, from: purpose, in: context?.object)
    }
  }

  private static func fill(
    _ buffer: UnsafeMutableRawBufferPointer, from purpose: Purpose, in context: OpaquePointer?
  ) throws(CryptoError) {
    guard let start = buffer.baseAddress, buffer.count > 0 else { return }
    // They belong to the calling thread: never keep them across calls.
    let generator =
      switch purpose {
      case .keys: RAND_get0_private(context)
      case .nonces: RAND_get0_public(context)
      }
    guard let generator else { throw .failure(of: "RAND_get0") }

    // Two machines resumed from one image have the same generator state, but hardly the same clocks.
    var clocks = clockReadings()
    let status = withUnsafeBytes(of: &clocks) { clocks in
      EVP_RAND_generate(
        generator, start.assumingMemoryBound(to: UInt8.self), buffer.count, 0, 0,
        clocks.baseAddress?.assumingMemoryBound(to: UInt8.self), clocks.count)
    }
    guard status == 1 else {
      Memory.wipe(buffer)
      throw .failure(of: "EVP_RAND_generate")
    }
  }

  /// The time of day and the time since boot, in nanoseconds.
  static func clockReadings() -> (UInt64, UInt64) {
    (nanoseconds(CLOCK_REALTIME), nanoseconds(CLOCK_MONOTONIC))
  }

  private static func nanoseconds(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(truncatingIfNeeded: time.tv_sec) &* 1_000_000_000 &+ UInt64(truncatingIfNeeded: time.tv_nsec)
  }
}
