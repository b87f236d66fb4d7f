/// Random bytes for nonces, salts and identifiers, drawn in advance, so that a nonce costs only a copy and a reading
/// of the clocks.
///
/// For keys, use ``SecretBytes/random(count:)``.
///
/// Buffered bytes are dropped in a forked child, which would return the same ones as its parent. A machine resumed
/// twice from one image also has the same bytes twice, so both clocks are XORed into the first 16 bytes of each
/// output, which stay as random as they were: two nonces then differ if the clocks do.
///
/// Not thread-safe, and therefore not `Sendable`. Make one for each file handle.
public final class RandomSource {
  /// The size of the buffer: the nonces of 170 pages.
  private static let drawnByteCount = 4096

  private let drawn = UnsafeMutableRawBufferPointer.allocate(byteCount: drawnByteCount, alignment: 16)

  /// The start of the unused bytes in `drawn`.
  private var position = 0
  private var end = 0

  /// The process that drew them; zero if nothing was drawn.
  private var process: UInt64 = 0

  /// The buffered bytes that have not been returned yet.
  var drawnAhead: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: drawn[position..<end]) }

  /// Makes an empty source.
  public init() {}

  deinit {
    Memory.wipe(drawn)
    drawn.deallocate()
  }

  /// Fills `buffer` with bytes that have not been returned before.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` when the generator fails.
  public func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(CryptoError) {
    let current = ProcessToken.current
    if process != current {
      position = 0
      end = 0
      process = current
    }
    if buffer.count > end - position {
      guard buffer.count <= Self.drawnByteCount else {
        return try SystemRandom.fill(buffer, from: .nonces)
      }
      try draw()
    }
    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: drawn[position..<position + buffer.count]))
    position += buffer.count
    Self.add(SystemRandom.clockReadings(), to: buffer)
  }

  /// XORs both clocks into the first 16 bytes, or as many as there are.
  private static func add(_ clocks: (UInt64, UInt64), to buffer: UnsafeMutableRawBufferPointer) {
    withUnsafeBytes(of: clocks) { clocks in
      for index in 0..<min(buffer.count, clocks.count) { buffer[index] ^= clocks[index] }
    }
  }

  /// Returns `count` bytes that have not been returned before.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` when the generator fails.
  public func bytes(count: Int) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      try fill(UnsafeMutableRawBufferPointer(buffer))
      initializedCount = count
    }
  }

  /// Draws `count` bytes directly, without buffering.
  ///
  /// Thread-safe.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` when the generator fails.
  public static func bytes(count: Int) throws -> [UInt8] {
    precondition(count >= 0, "Ask for zero random bytes or more.")
    return try [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      try SystemRandom.fill(UnsafeMutableRawBufferPointer(buffer), from: .nonces)
      initializedCount = count
    }
  }

  /// Refills the buffer, discarding unused bytes, because splitting an output in two is not worth the code.
  private func draw() throws(CryptoError) {
    // A partly filled buffer must not be used.
    position = 0
    end = 0
    try SystemRandom.fill(drawn, from: .nonces)
    end = drawn.count
  }
}
