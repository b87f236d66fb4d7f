import Coffer
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Who may use the page: one-time tokens, and the session keys that they are traded for.
///
/// Both are 256 random bits, compared in constant time, and never leave memory but for the address and the page's header.
final class Credentials: Sendable {
  /// How long a token waits to be used.
  static let tokenLifetime = Duration.seconds(60)
  /// The maximum number of open pages; beyond it the oldest must start over.
  private static let sessionLimit = 32

  private struct State {
    var token: (text: SecretBytes, end: ContinuousClock.Instant)?
    var sessions: [SecretBytes] = []
  }

  private let state = Mutex(State())
  private let now: @Sendable () -> ContinuousClock.Instant

  /// - Parameter now: The clock, which tests put forward.
  init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
    self.now = now
  }

  /// A token for one page, which replaces an unused one.
  func makeToken() throws -> String {
    let text = try RandomText.make()
    state.withLock { $0.token = (SecretBytes(copying: text), now() + Self.tokenLifetime) }
    return text
  }

  /// The key of a new session for a token, which dies with that.
  ///
  /// - Returns: nil for another token, one that was used, and one that is too old.
  func session(for token: String) throws -> String? {
    let key = try RandomText.make()
    return state.withLock { state in
      guard let known = state.token, now() < known.end, known.text.isEqual(to: SecretBytes(copying: token)) else {
        return nil
      }
      state.token = nil
      state.sessions = state.sessions.suffix(Self.sessionLimit - 1) + [SecretBytes(copying: key)]
      return key
    }
  }

  /// Whether `key` is that of a session.
  func isSession(_ key: String) -> Bool {
    let key = SecretBytes(copying: key)
    // All of them are compared: the time says nothing of which it was.
    return state.withLock { $0.sessions.reduce(false) { found, session in session.isEqual(to: key) || found } }
  }
}

/// Random text for addresses and headers.
enum RandomText {
  /// So many random bytes in the letters of base64url.
  static func make(byteCount: Int = 32) throws -> String {
    try SecretBytes.random(count: byteCount).withUnsafeBytes { Data($0) }.base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}
