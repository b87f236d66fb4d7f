/// Decides from a request's head whether it may come from the opened page.
///
/// Refusals reveal nothing: the answer is the same for every reason.
struct RequestGate: Sendable {
  /// How browsers reach the page.
  enum Place: Sendable {
    case loopback(port: UInt16)
    /// Behind a reverse proxy in front of a socket: only the proxy knows the page's own address.
    case socket
  }

  /// The parts of a request's head that matter here.
  struct Head {
    var method: String
    var path: String
    var host: String?
    var origin: String?
    /// `Sec-Fetch-Site`, `-Mode` and `-Dest`.
    var fetchSite: String?
    var fetchMode: String?
    var fetchDestination: String?
    var contentType: String?
    var session: String?
  }

  /// What a permitted request asks for.
  enum Passed: Equatable {
    /// A file of the page, by its path within it.
    case file(String)
    /// Trades a token for a session.
    case session
    /// A call within a session.
    case call(String)
  }

  /// The type of sealed bodies.
  private static let type = "application/octet-stream"

  let place: Place
  /// The random folder of the page: anyone who only finds the port gets nothing.
  let folder: String

  /// - Returns: nil if the request is refused.
  func passed(_ head: Head, isSession: (String) -> Bool) -> Passed? {
    guard isOwnHost(head.host), let path = path(head.path) else { return nil }
    switch head.method {
    case "GET":
      guard isOwnOrigin(head.origin, head.host, required: false), mayFetchFile(head, path) else { return nil }
      return .file(path)
    case "POST":
      // No form can send this type, and other pages would need our consent to send it, which we do not give.
      guard isOwnOrigin(head.origin, head.host, required: true), head.fetchSite.map({ $0 == "same-origin" }) ?? true,
        head.contentType == Self.type, path.hasPrefix("api/")
      else { return nil }
      let call = String(path.dropFirst("api/".count))
      if call == "session" { return .session }
      return head.session.map(isSession) ?? false ? .call(call) : nil
    default: return nil
    }
  }

  /// The host of a refused request with the right path but another host or port of this computer: the port was forwarded from
  /// another computer.
  func otherPort(_ head: Head) -> String? {
    guard case .loopback(let port) = place, path(head.path) != nil, let host = head.host else { return nil }
    let names = ["127.0.0.1:", "localhost:"]
    return names.contains(where: host.hasPrefix) && host != "127.0.0.1:\(port)" ? host : nil
  }

  // MARK: - Parts

  private func isOwnHost(_ host: String?) -> Bool {
    switch place {
    case .loopback(let port): host == "127.0.0.1:\(port)"
    case .socket: host.map { !$0.isEmpty } ?? false
    }
  }

  private func isOwnOrigin(_ origin: String?, _ host: String?, required: Bool) -> Bool {
    guard let origin, let host else { return !required }
    switch place {
    case .loopback: return origin == "http://\(host)"
    case .socket: return origin == "http://\(host)" || origin == "https://\(host)"
    }
  }

  private func path(_ path: String) -> String? {
    let prefix = "/\(folder)/"
    return path.hasPrefix(prefix) ? String(path.dropFirst(prefix.count)) : nil
  }

  /// The page itself is opened from the terminal, or by a file that redirects to it; the page requests everything else.
  private func mayFetchFile(_ head: Head, _ path: String) -> Bool {
    guard let site = head.fetchSite else { return true }
    if path.isEmpty { return head.fetchMode == "navigate" && head.fetchDestination == "document" }
    return site == "same-origin"
  }
}
