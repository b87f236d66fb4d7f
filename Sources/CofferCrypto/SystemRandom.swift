internal import COpenSSL

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// OpenSSL's random generators (NIST SP 800-90A), one pair for each thread, so that no call waits for another thread.
///
/// OpenSSL reseeds them from the system after a fork, and by itself now and then (`EVP_RAND(7)`).
enum SystemRandom {
  /// What the bytes are for: those that others see come from another generator than those that must stay secret.
  enum Purpose {
    case keys
    case nonces
  }

  /// Fills `buffer` with random bytes.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` when the generator is out of order; the buffer is zero then.
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
    // They belong to the calling thread: look them up each time, never keep them.
    let generator =
      switch purpose {
      case .keys: RAND_get0_private(context)
      case .nonces: RAND_get0_public(context)
      }
    guard let generator else { throw .failure(of: "RAND_get0") }

    // Two machines resumed from one image have the same generator, but hardly the same clocks.
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

  /// The time of day and the time since the start of the machine, in nanoseconds.
  static func clockReadings() -> (UInt64, UInt64) {
    (nanoseconds(CLOCK_REALTIME), nanoseconds(CLOCK_MONOTONIC))
  }

  private static func nanoseconds(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(truncatingIfNeeded: time.tv_sec) &* 1_000_000_000 &+ UInt64(truncatingIfNeeded: time.tv_nsec)
  }
}
