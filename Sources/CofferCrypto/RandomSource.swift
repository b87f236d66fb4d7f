/// Random bytes for nonces, salts and identifiers, drawn ahead: a nonce then costs a copy and a look at the clocks.
///
/// For keys there is ``SecretBytes/random(count:)``.
///
/// What was drawn ahead is dropped in a forked child, which would hand out the same bytes as its parent. A machine that is
/// resumed twice from one image has the same bytes twice, too: the clocks are added, bit by bit, to the first 16 bytes of
/// what is handed out at a time, which stay as random as they were. So two nonces differ where the clocks do.
///
/// Not thread-safe, and for that reason not `Sendable`. Make one for each file handle.
public final class RandomSource {
  /// How much is drawn ahead: the nonces of 170 pages.
  private static let drawnByteCount = 4096

  private let drawn = UnsafeMutableRawBufferPointer.allocate(byteCount: drawnByteCount, alignment: 16)

  /// Where the bytes not yet handed out are, within `drawn`.
  private var position = 0
  private var end = 0

  /// The process that drew them; zero is none.
  private var process: UInt64 = 0

  /// What is drawn ahead and not yet handed out.
  var drawnAhead: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: drawn[position..<end]) }

  /// Makes a source that has drawn nothing yet.
  public init() {}

  deinit {
    Memory.wipe(drawn)
    drawn.deallocate()
  }

  /// Fills `buffer` with bytes that have not been handed out before.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` when the generator is out of order.
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

  /// Adds both clocks to the first 16 bytes, or as many as there are.
  private static func add(_ clocks: (UInt64, UInt64), to buffer: UnsafeMutableRawBufferPointer) {
    withUnsafeBytes(of: clocks) { clocks in
      for index in 0..<min(buffer.count, clocks.count) { buffer[index] ^= clocks[index] }
    }
  }

  /// As many bytes that have not been handed out before.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` when the generator is out of order.
  public func bytes(count: Int) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      try fill(UnsafeMutableRawBufferPointer(buffer))
      initializedCount = count
    }
  }

  /// Draws `count` bytes directly, for what is needed once.
  ///
  /// Safe on any thread.
  ///
  /// - Throws: ``CryptoError/openSSL(function:reason:)`` when the generator is out of order.
  public static func bytes(count: Int) throws -> [UInt8] {
    precondition(count >= 0, "Ask for zero random bytes or more.")
    return try [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      try SystemRandom.fill(UnsafeMutableRawBufferPointer(buffer), from: .nonces)
      initializedCount = count
    }
  }

  /// Replaces what is drawn ahead, also what is left of it, as handing it out in two parts is not worth the code.
  private func draw() throws(CryptoError) {
    // Nothing may be handed out of a buffer that was filled halfway.
    position = 0
    end = 0
    try SystemRandom.fill(drawn, from: .nonces)
    end = drawn.count
  }
}
