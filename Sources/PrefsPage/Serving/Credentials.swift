import Coffer
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Who may use the page: one-time tokens, and the sessions that they are traded for.
///
/// Tokens and keys are 256 random bits. Neither is ever sent: they seal the messages.
final class Credentials: Sendable {
  /// How long a token is valid.
  static let tokenLifetime = Duration.seconds(60)
  /// The maximum number of open pages; beyond it the oldest one loses its session.
  private static let sessionLimit = 32

  /// A new session, as the page gets it.
  struct Session {
    /// Its name in requests; not a secret.
    let name: String
    let key: String
    /// The channel of the token, with which the answer is sealed.
    let tokenChannel: SealedChannel
  }

  private struct State {
    var token: (channel: SealedChannel, end: ContinuousClock.Instant)?
    var sessions: [(name: String, channel: SealedChannel)] = []
  }

  private let state = Mutex(State())
  private let now: @Sendable () -> ContinuousClock.Instant

  /// - Parameter now: The clock, which tests advance.
  init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
    self.now = now
  }

  /// A token for one page, which replaces an unused one.
  func makeToken() throws -> String {
    let text = try RandomText.make()
    let channel = try SealedChannel(token: text)
    state.withLock { $0.token = (channel, now() + Self.tokenLifetime) }
    return text
  }

  /// Trades the token that has sealed a request for a session; it cannot be used again.
  ///
  /// - Returns: nil for a wrong, used or expired token.
  func session(for request: SealedChannel.Request) throws -> Session? {
    let secret = try SecretBytes.random(count: 32)
    let name = try RandomText.make(byteCount: 16)
    return state.withLock { state in
      guard let token = state.token, now() < token.end,
        (try? token.channel.open(request, for: "request session", { _ in })) != nil
      else { return nil }
      state.token = nil
      state.sessions = state.sessions.suffix(Self.sessionLimit - 1) + [(name, SealedChannel(key: secret))]
      return Session(name: name, key: RandomText.text(secret), tokenChannel: token.channel)
    }
  }

  /// Whether a token is the newest, and unused.
  func isUnused(_ token: String) -> Bool {
    guard let channel = try? SealedChannel(token: token) else { return false }
    return state.withLock { $0.token?.channel.isSame(as: channel) ?? false }
  }

  /// The channel of the session of that name.
  func channel(named name: String) -> SealedChannel? {
    state.withLock { $0.sessions.first { $0.name == name }?.channel }
  }
}

/// Random text for addresses and headers.
enum RandomText {
  /// Random bytes in base64url.
  static func make(byteCount: Int = 32) throws -> String { text(try SecretBytes.random(count: byteCount)) }

  static func text(_ bytes: SecretBytes) -> String {
    bytes.withUnsafeBytes { Data($0) }.base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}
