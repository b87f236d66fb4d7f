import Coffer
import Dispatch
import FlyingFox
import PrefsCommands
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Answers the requests of the page.
struct PageHandler: HTTPHandler {
  let gate: RequestGate
  let credentials: Credentials
  let store: PageStore
  let events: EventStream
  let lifetime: PageLifetime
  let vaultClock: VaultClock
  /// Runs when a token was traded: what led to it is not needed any more.
  let didOpen: @Sendable () -> Void

  /// Larger requests are refused.
  private static let bodyLimit = 8 << 20
  private static let sessionHeader = HTTPHeader("X-Coffer-Session")
  /// Marks what the page asks for by itself: it does not keep the page alive.
  private static let automaticHeader = HTTPHeader("X-Coffer-Automatic")
  private static let queue = DispatchQueue(label: "prefs-ui.requests", attributes: .concurrent)

  func handleRequest(_ request: HTTPRequest) async -> HTTPResponse {
    let head = RequestGate.Head(
      method: request.method.rawValue, path: request.target.path(), host: request.headers[.host],
      origin: request.headers[HTTPHeader("Origin")], fetchSite: request.headers[HTTPHeader("Sec-Fetch-Site")],
      fetchMode: request.headers[HTTPHeader("Sec-Fetch-Mode")],
      fetchDestination: request.headers[HTTPHeader("Sec-Fetch-Dest")], contentType: request.headers[.contentType],
      session: request.headers[Self.sessionHeader])
    guard let passed = gate.passed(head, isSession: credentials.isSession) else { return Self.refused }
    switch passed {
    case .file(let path):
      guard let file = PageFiles.file(path) else { return Self.refused }
      return Self.response(.ok, file.type, Data(file.bytes))
    case .session: return await session(request)
    case .call(let name): return await answer(name, request)
    }
  }

  // MARK: - Calls

  private func session(_ request: HTTPRequest) async -> HTTPResponse {
    guard let body = try? await body(of: request), let asked = try? PageRequest(String(decoding: body, as: UTF8.self)),
      let token = try? asked.text("token"), let key = try? credentials.session(for: token)
    else { return Self.refused }
    lifetime.use()
    didOpen()
    return Self.json(.ok, JSONText.object([("session", JSONText.quoted(key)), ("about", store.about())]))
  }

  private func answer(_ name: String, _ request: HTTPRequest) async -> HTTPResponse {
    if request.headers[Self.automaticHeader] == nil { lifetime.use() }
    if name == "events" {
      guard let body = events.open() else { return Self.json(.tooManyRequests, Self.error("busy", "Too many pages.")) }
      return Self.response(.ok, "text/event-stream", body)
    }
    do {
      let body = try await body(of: request)
      if name == "unlock" { return try await unlock(body) }
      return Self.json(.ok, try await onQueue { try call(name, PageRequest(String(decoding: body, as: UTF8.self))) })
    } catch {
      return Self.response(of: error)
    }
  }

  private func call(_ name: String, _ request: PageRequest) throws -> String {
    switch name {
    case "list": return try store.list(request)
    case "setting": return try store.setting(request)
    case "reveal": return try store.reveal(request)
    case "history": return try store.history(request)
    case "change": return try store.change(request)
    case "undo": return try store.undo(request)
    case "export": return try store.export(request)
    case "doctor": return try store.examination()
    case "lock":
      store.lock()
      events.send("vault", #"{"unlocked":false}"#)
      return "{}"
    default: throw Failure(.usage, "unknown request.")
    }
  }

  /// The body is the passphrase and nothing else: it goes to memory that is wiped, past every text.
  private func unlock(_ body: Data) async throws -> HTTPResponse {
    var body = body
    let secret = body.withUnsafeBytes(SecretBytes.init(copying:))
    body.resetBytes(in: body.indices)
    return Self.json(
      .ok,
      try await onQueue {
        try store.unlock(secret)
        vaultClock.start()
        events.send("vault", #"{"unlocked":true}"#)
        return "{}"
      })
  }

  /// Away from the threads that serve: a passphrase takes a second, and a check of the store longer.
  private func onQueue(_ body: @escaping @Sendable () throws -> String) async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
      Self.queue.async { continuation.resume(with: Result(catching: body)) }
    }
  }

  private struct TooLarge: Error {}

  private func body(of request: HTTPRequest) async throws -> Data {
    // A length that is not known before is no page's.
    guard let length = request.headers[.contentLength].flatMap(Int.init), length <= Self.bodyLimit else {
      throw TooLarge()
    }
    return try await request.bodyData
  }

  // MARK: - Answers

  /// The same for every reason, to reveal nothing.
  private static var refused: HTTPResponse { response(.forbidden, nil, Data(), closes: true) }

  private static func json(_ status: HTTPStatusCode, _ text: String) -> HTTPResponse {
    response(status, "application/json", Data(text.utf8))
  }

  private static func error(_ status: String, _ message: String, _ others: [(name: String, json: String)] = [])
    -> String
  {
    JSONText.object([("error", JSONText.quoted(status)), ("message", JSONText.quoted(message))] + others)
  }

  private static func response(of error: any Error) -> HTTPResponse {
    switch error {
    case is TooLarge:
      return response(
        .payloadTooLarge, "application/json", Data(self.error("format", "The value is too large for the page.").utf8),
        closes: true)
    case let conflict as ChangeConflict:
      return json(
        .conflict,
        self.error(
          "conflict", "It was changed elsewhere in the meantime; nothing was changed.",
          [("settings", JSONText.array(conflict.settings))]))
    case CofferError.vaultLocked(let collection):
      return json(
        .locked,
        self.error("vaultLocked", "The vault is locked.", [("collection", collection.map(JSONText.quoted) ?? "null")]))
    case let failure as Failure:
      return json(.unprocessableContent, self.error("\(failure.status)", failure.message))
    case CofferError.invalidValue(let collection, let key, let reason):
      return json(
        .unprocessableContent,
        self.error(
          "format", "\(KeyText.of(key, in: collection)) must be \(reason). Nothing was changed.",
          [
            ("collection", JSONText.quoted(collection)), ("key", JSONText.quoted(key)),
            ("reason", JSONText.quoted(reason)),
          ]
        ))
    case CofferError.undeclaredSetting(let collection, let key, let reason):
      return json(
        .unprocessableContent,
        self.error(
          "format",
          "\(KeyText.of(key, in: collection)) is \(reason) Nothing was changed; `prefs ui --undeclared` permits it.",
          [("collection", JSONText.quoted(collection)), ("key", JSONText.quoted(key))]))
    case let error as CofferError:
      return json(.unprocessableContent, self.error("\(error.exitStatus)", error.description))
    default:
      return json(.internalServerError, self.error("other", "\(error)"))
    }
  }

  private static func response(
    _ status: HTTPStatusCode, _ type: String?, _ body: Data, closes: Bool = false
  ) -> HTTPResponse {
    HTTPResponse(statusCode: status, headers: headers(type, closes: closes), body: body)
  }

  private static func response(_ status: HTTPStatusCode, _ type: String, _ body: HTTPBodySequence) -> HTTPResponse {
    HTTPResponse(statusCode: status, headers: headers(type), body: body)
  }

  private static let policy = """
    default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'
    """

  private static func headers(_ type: String?, closes: Bool = false) -> HTTPHeaders {
    var headers = HTTPHeaders([
      HTTPHeader("Content-Security-Policy"): policy, HTTPHeader("X-Content-Type-Options"): "nosniff",
      HTTPHeader("X-Frame-Options"): "DENY", HTTPHeader("Referrer-Policy"): "no-referrer",
      .cacheControl: "no-store", HTTPHeader("Cross-Origin-Opener-Policy"): "same-origin",
      HTTPHeader("Cross-Origin-Resource-Policy"): "same-origin",
    ])
    if let type { headers[.contentType] = type }
    if closes { headers[.connection] = "close" }
    return headers
  }
}

/// Locks the vault when its time is over.
final class VaultClock: Sendable {
  private let store: PageStore
  private let events: EventStream
  private let time: Duration
  private let round = Mutex(0)

  init(_ store: PageStore, _ events: EventStream, time: Duration) {
    (self.store, self.events, self.time) = (store, events, time)
  }

  /// Restarts the timer.
  func start() {
    let own = round.withLock { round in
      round += 1
      return round
    }
    Task {
      try await Task.sleep(for: time)
      guard round.withLock({ $0 == own }) else { return }
      store.lock()
      events.send("vault", #"{"unlocked":false}"#)
    }
  }
}
