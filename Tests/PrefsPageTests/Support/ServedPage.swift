import Coffer
import CofferCrypto
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

/// What a page has of its session: what it seals and opens.
struct PageSession: Sendable {
  /// nil before there is one.
  var name: String?
  let key: SecretBytes

  /// What a page has that was given a token.
  init(token: String) throws {
    key = try HKDF.deriveKey(
      from: SecretBytes(copying: token), salt: [], info: Array("prefs-ui token".utf8), count: XAES256GCM.keyByteCount)
  }

  init(name: String, key: SecretBytes) { (self.name, self.key) = (name, key) }

  /// - Parameter answer: That to the request that trades a token.
  init(_ answer: RawAnswer) throws {
    let text = try #require(answer.object["key"] as? String)
    let base64 = text.replacing("-", with: "+").replacing("_", with: "/") + "="
    let bytes = try #require(Data(base64Encoded: base64))
    (name, key) = (answer.object["session"] as? String, bytes.withUnsafeBytes { SecretBytes(copying: $0) })
  }

  func seal(_ text: String, for purpose: String) throws -> [UInt8] {
    var sealed: [UInt8] = []
    try Array(text.utf8).withUnsafeBytes {
      try XAES256GCM(key: key).seal($0, additionalData: Array(purpose.utf8), appendingTo: &sealed)
    }
    return sealed
  }

  func open(_ sealed: some Collection<UInt8>, for purpose: String, answering request: [UInt8]) throws -> String {
    let purpose = Array(purpose.utf8) + request.prefix(XAES256GCM.nonceByteCount)
    return try XAES256GCM(key: key).withOpened(Array(sealed)[...], additionalData: purpose) {
      String(decoding: $0, as: UTF8.self)
    }
  }
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
    let clock = clock
    credentials = Credentials { clock.now }
    lifetime = PageLifetime(idleLimit: .seconds(900)) { clock.now }
    let events = EventStream(lifetime)
    self.events = events
    let session = try CommandSession(SessionOptions(store: database.path))
    let vault = PageVault(database, session, keyFile: nil, time: .seconds(900)) { _ in }
    store = try PageStore(
      database, session: session, scope: CollectionScope(named: collections), isReadOnly: readOnly, vault: vault)
    server = try PageServer(.loopback(port: 0))
    port = server.port
    let handler = PageHandler(
      gate: RequestGate(place: .loopback(port: port), folder: Self.folder), credentials: credentials, store: store,
      events: events, lifetime: lifetime, didOpen: {})
    server.serve { handler.answer($0, $1) }
    registration = try store.follow { events.send("commit", $0) }
  }

  func close() async throws {
    registration.cancel()
    events.end("ended")
    server.stop()
    try await database.close()
  }

  /// A session, as the page gets it.
  func session() async throws -> PageSession {
    try PageSession(try await trade(try credentials.makeToken()))
  }

  /// What the page does with the token of its address.
  func trade(_ token: String) async throws -> RawAnswer {
    try await call("session", session: PageSession(token: token))
  }

  // MARK: - Requests

  /// What the page sends with each call.
  func headers(session: PageSession? = nil) -> [String: String] {
    var headers = [
      "Host": "127.0.0.1:\(port)", "Origin": "http://127.0.0.1:\(port)", "Sec-Fetch-Site": "same-origin",
      "Content-Type": "application/octet-stream",
    ]
    headers["X-Coffer-Session"] = session?.name
    return headers
  }

  /// A call as the page makes it; `changing` headers, of which nil leaves one out.
  func call(
    _ name: String, _ body: String = "{}", session: PageSession, changing: [String: String?] = [:]
  ) async throws -> RawAnswer {
    var headers = headers(session: session)
    for (name, value) in changing { headers[name] = value }
    let sealed = try session.seal(body, for: "request \(name)")
    let answer = try await send("POST", "/\(Self.folder)/api/\(name)", headers, sealed)
    return try answer.opened {
      try session.open($0, for: "\(answer.status == 200 ? "answer" : "failure") \(name)", answering: sealed)
    }
  }

  /// Sends a request byte by byte as it is written here.
  func send(_ method: String, _ path: String, _ headers: [String: String], _ body: [UInt8] = []) async throws
    -> RawAnswer
  {
    var text = "\(method) \(path) HTTP/1.1\r\nConnection: close\r\n"
    for (name, value) in headers { text += "\(name): \(value)\r\n" }
    if method == "POST" { text += "Content-Length: \(body.count)\r\n" }
    return try await send(Array((text + "\r\n").utf8) + body)
  }

  func send(_ bytes: [UInt8]) async throws -> RawAnswer {
    let port = port
    return try await offPool {
      let connection = try RawConnection(port: port)
      defer { connection.close() }
      try connection.write(bytes)
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
