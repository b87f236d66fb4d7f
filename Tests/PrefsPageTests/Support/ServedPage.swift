import Coffer
import Foundation
import Synchronization
import Testing

@testable import PrefsCommands
@testable import PrefsPage

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  @preconcurrency import Musl
#else
  @preconcurrency import Glibc
#endif

/// A clock that a test puts forward.
final class TestClock: Sendable {
  private let time = Mutex(ContinuousClock.now)

  var now: ContinuousClock.Instant { time.withLock { $0 } }

  func advance(by duration: Duration) { time.withLock { $0 += duration } }
}

/// A page of a store in memory that is really served, in this process.
final class ServedPage: Sendable {
  static let folder = "aFolder"

  let database: Database
  let store: PageStore
  let clock = TestClock()
  let credentials: Credentials
  let lifetime: PageLifetime
  let events: EventStream
  let port: UInt16
  private let server: PageServer
  private let registration: CommitRegistration

  /// - Parameter prepare: Fills the store.
  init(
    readOnly: Bool = false, collections: [String] = [],
    prepare: (borrowing ReadWriteTransaction) throws -> Void = { _ in }
  ) async throws {
    database = try .inMemory()
    try database.makeConnection().readWrite(prepare)
    store = try PageStore(
      database, session: CommandSession(SessionOptions(store: database.path)),
      scope: CollectionScope(named: collections), isReadOnly: readOnly)
    let clock = clock
    credentials = Credentials { clock.now }
    lifetime = PageLifetime(idleLimit: .seconds(900)) { clock.now }
    events = EventStream(lifetime)
    server = try PageServer(.loopback(port: 0))
    port = try await server.start { _ in }
    await server.serve(
      PageHandler(
        gate: RequestGate(place: .loopback(port: port), folder: Self.folder), credentials: credentials, store: store,
        events: events, lifetime: lifetime, vaultClock: VaultClock(store, events, time: .seconds(900)), didOpen: {}))
    let events = events
    registration = try store.follow { events.send("commit", $0) }
  }

  func close() async throws {
    registration.cancel()
    events.close()
    await server.stop()
    try await database.close()
  }

  /// A session, as the page gets it.
  func session() throws -> String {
    try #require(try credentials.session(for: try credentials.makeToken()))
  }

  // MARK: - Requests

  /// What the page sends with each call.
  func headers(session: String? = nil) -> [String: String] {
    var headers = [
      "Host": "127.0.0.1:\(port)", "Origin": "http://127.0.0.1:\(port)", "Sec-Fetch-Site": "same-origin",
      "Content-Type": "application/json",
    ]
    headers["X-Coffer-Session"] = session
    return headers
  }

  /// A call as the page makes it; `changing` headers, of which nil leaves one out.
  func call(
    _ name: String, _ body: String = "{}", session: String? = nil, changing: [String: String?] = [:]
  ) async throws -> RawAnswer {
    var headers = headers(session: session)
    for (name, value) in changing { headers[name] = value }
    return try await send("POST", "/\(Self.folder)/api/\(name)", headers, body)
  }

  /// Sends a request byte by byte as it is written here.
  func send(_ method: String, _ path: String, _ headers: [String: String], _ body: String = "") async throws
    -> RawAnswer
  {
    var text = "\(method) \(path) HTTP/1.1\r\nConnection: close\r\n"
    for (name, value) in headers { text += "\(name): \(value)\r\n" }
    if method == "POST" { text += "Content-Length: \(body.utf8.count)\r\n" }
    return try await send(text + "\r\n" + body)
  }

  func send(_ text: String) async throws -> RawAnswer {
    let port = port
    return try await offPool {
      let connection = try RawConnection(port: port)
      defer { connection.close() }
      try connection.write(text)
      return RawAnswer(connection.readToEnd())
    }
  }
}

/// Runs what blocks away from the threads that the server needs.
func offPool<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
  try await withCheckedThrowingContinuation { continuation in
    // A separate thread: a queue creates few of them for blocking work.
    Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
  }
}
