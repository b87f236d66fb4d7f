/// Random bytes for nonces, salts and identifiers, drawn ahead: a nonce then costs a copy.
///
/// For keys there is ``SecretBytes/random(count:)``.
///
/// What was drawn ahead is dropped in a forked child, which would hand out the same bytes as its parent, and on
/// ``refresh()``. The clock goes into every draw, against a machine that is resumed twice from one image.
///
/// Not thread-safe, and for that reason not `Sendable`. Make one for each file handle.
public final class RandomSource {
  /// How much is drawn ahead: little at first, as a transaction often writes few pages.
  private static let firstByteCount = 256
  private static let laterByteCount = 4096

  private let drawn = UnsafeMutableRawBufferPointer.allocate(byteCount: laterByteCount, alignment: 16)

  /// Where the bytes not yet handed out are, within `drawn`.
  private var position = 0
  private var end = 0

  private var nextByteCount = firstByteCount

  /// The process that drew them; zero is none.
  private var process: UInt64 = 0

  /// How many bytes are drawn ahead.
  var availableByteCount: Int { end - position }

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
      refresh()
      process = current
    }
    if buffer.count > availableByteCount {
      guard buffer.count <= Self.laterByteCount else {
        return try SystemRandom.fill(buffer, from: .nonces)
      }
      try draw(atLeast: buffer.count)
    }
    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: drawn[position..<position + buffer.count]))
    position += buffer.count
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

  /// Drops what was drawn ahead, so that what is handed out next was drawn after this call.
  ///
  /// Called at the start of each write transaction: a machine resumed twice from an image taken before it then draws
  /// with different clocks.
  public func refresh() {
    position = 0
    end = 0
    nextByteCount = Self.firstByteCount
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
  private func draw(atLeast count: Int) throws(CryptoError) {
    let byteCount = max(count, nextByteCount)
    // Nothing may be handed out of a buffer that was filled halfway.
    position = 0
    end = 0
    try SystemRandom.fill(UnsafeMutableRawBufferPointer(rebasing: drawn[..<byteCount]), from: .nonces)
    end = byteCount
    nextByteCount = Self.laterByteCount
  }
}
