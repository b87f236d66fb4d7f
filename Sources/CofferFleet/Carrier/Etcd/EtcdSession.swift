import Coffer
import CofferCrypto

/// Sends requests to an etcd, to one endpoint after another, with its token.
actor EtcdSession {
  nonisolated let address: EtcdAddress
  private let password: SecretBytes?
  /// The endpoint that answered last.
  private var current = 0
  private var token: (text: String, time: ContinuousClock.Instant)?
  private var authentication: Task<String?, any Error>?

  /// etcd forgets a token after 300 seconds without use.
  private static let tokenLifetime = Duration.seconds(240)
  /// Answers are requested in parts of about a megabyte.
  private static let responseLimit = 32 << 20
  private static let contentType = "Content-Type: application/json"

  init(address: EtcdAddress, password: SecretBytes?) { (self.address, self.password) = (address, password) }

  // MARK: - Requests

  /// Asks the endpoints in turn until one answers.
  ///
  /// - Parameter isRepeatable: Whether two endpoints may carry it out. Otherwise the next one is asked only if the previous one
  ///   received nothing.
  /// - Throws: ``CarrierError``, `CancellationError`.
  func ask(_ path: String, _ body: String, isRepeatable: Bool = true) async throws -> Value {
    guard let answer = try await perform(path, body, isRepeatable) else {
      throw try carrierError(.tooLong, of: current)
    }
    return answer
  }

  /// The same, for a request that can be split.
  ///
  /// - Returns: Nil if the answer is too long.
  func ask(_ path: String, _ body: String, mayBeTooLong: Bool) async throws -> Value? {
    mayBeTooLong ? try await perform(path, body, true) : try await ask(path, body)
  }

  private func perform(_ path: String, _ body: String, _ isRepeatable: Bool) async throws -> Value? {
    do {
      return try await sendWithToken(path, .bytes(Array(body.utf8)), isRepeatable)
    } catch let answer as EtcdAnswer {
      throw carrierError(answer)
    } catch HTTPFailure.tooLong {
      return nil
    }
  }

  private func sendWithToken(_ path: String, _ body: HTTPBody, _ isRepeatable: Bool) async throws -> Value {
    do {
      return try await send(path, body, headers: headers(), isRepeatable)
    } catch let answer as EtcdAnswer where answer.isTokenRefused && password != nil {
      token = nil
      return try await send(path, body, headers: headers(), isRepeatable)
    }
  }

  private func send(_ path: String, _ body: HTTPBody, headers: [String], _ isRepeatable: Bool) async throws -> Value {
    var failure: CarrierError?
    for _ in address.endpoints {
      let index = current
      let request = HTTPRequest(
        url: address.endpoints[index] + path, body: body, headers: headers + [Self.contentType], tls: address.tls)
      do {
        let response = try await HTTPLoop.shared.response(to: request, limit: Self.responseLimit)
        return try answer(response, of: index)
      } catch let answer as EtcdAnswer where answer.isPassing && isRepeatable {
        failure = carrierError(answer)
      } catch HTTPFailure.tooLong {
        throw HTTPFailure.tooLong
      } catch let problem as HTTPFailure {
        failure = try carrierError(problem, of: index)
        if case .connection(_, _, wasSent: true) = problem, !isRepeatable { break }
      } catch let error as CarrierError {
        // Its answer is invalid.
        failure = error
        if !isRepeatable { break }
      }
      moveOn(from: index)
    }
    throw failure ?? .unreachable(carrier: address.text, reason: "it has no endpoint")
  }

  private func moveOn(from index: Int) {
    // Others may have tried the next endpoint meanwhile.
    if current == index { current = (index + 1) % address.endpoints.count }
  }

  private func answer(_ response: HTTPResponse, of index: Int) throws -> Value {
    guard let value = EtcdJSON.value(response.body), case .dictionary = value else {
      let start = response.body.prefix(80).map { (0x20..<0x7f).contains($0) ? Character(Unicode.Scalar($0)) : "." }
      throw CarrierError.garbled(
        carrier: address.text,
        reason: "\(address.endpoints[index]) did not answer with JSON, status \(response.status): \(String(start))")
    }
    guard response.status == 200 else { throw EtcdAnswer(value) }
    return value
  }

  // MARK: - Streams

  /// Begins a request with a continuous response, at the current endpoint.
  func stream(_ path: String, _ body: String) async throws -> (transfer: HTTPTransfer, endpoint: Int) {
    // A member that has lost the others, and gets no changes, should end the stream instead of staying silent.
    let headers = try await headers() + ["Grpc-Metadata-hasleader: true", Self.contentType]
    let request = HTTPRequest(
      url: address.endpoints[current] + path, body: .bytes(Array(body.utf8)), headers: headers, tls: address.tls,
      timeout: nil)
    return (HTTPTransfer(request, on: .shared), current)
  }

  /// Switches to another endpoint, and to another token.
  func giveUp(on endpoint: Int) {
    moveOn(from: endpoint)
  }

  func forgetToken() { token = nil }

  // MARK: - Authentication

  private func headers() async throws -> [String] {
    guard let user = address.user, let password else { return [] }
    if let token, token.time.duration(to: .now) < Self.tokenLifetime { return ["Authorization: \(token.text)"] }
    // It takes etcd 0.2 seconds, so all that wait share one request.
    let task = authentication ?? Task { try await authenticate(user, password) }
    authentication = task
    defer { authentication = nil }
    return try await task.value.map { ["Authorization: \($0)"] } ?? []
  }

  /// - Returns: A token; nil if etcd has no users.
  private func authenticate(_ user: String, _ password: SecretBytes) async throws -> String? {
    do {
      let body = HTTPBody.secret(EtcdJSON.credentials(user: user, password: password))
      let text = try await send("/v3/auth/authenticate", body, headers: [], true)["token"].etcdText
      guard !text.isEmpty, text.utf8.allSatisfy({ (0x21..<0x7f).contains($0) }) else {
        throw CarrierError.garbled(carrier: address.text, reason: "it sent no token")
      }
      token = (text, .now)
      return text
    } catch let answer as EtcdAnswer {
      if answer.text.contains("authentication is not enabled") { return nil }
      throw answer.text.contains("authentication failed") ? refused(answer.text) : carrierError(answer)
    }
  }

  // MARK: - Errors

  private nonisolated func refused(_ reason: String) -> CarrierError { .refused(carrier: address.text, reason: reason) }

  /// The error to throw for an error response.
  nonisolated func carrierError(_ answer: EtcdAnswer) -> CarrierError {
    if answer.isRefusal { return refused(answer.text) }
    if answer.isFull { return .full(carrier: address.text, reason: answer.text) }
    return .unreachable(carrier: address.text, reason: answer.text)
  }

  /// The error to throw for a missing or incomplete response.
  ///
  /// - Throws: `CancellationError`.
  nonisolated func carrierError(_ failure: HTTPFailure, of index: Int) throws -> CarrierError {
    try failure.carrierError(of: address.text, at: address.endpoints[index])
  }
}

/// An error response of etcd.
struct EtcdAnswer: Error {
  /// etcd's message, printable and shortened.
  let text: String
  /// A gRPC status code.
  let code: Int64

  init(_ value: Value?) { self.init(text: value["error"].etcdText, code: value["code"].etcdNumber) }

  init(text: String, code: Int64) {
    let scalars = text.unicodeScalars.prefix(300).filter { $0.properties.generalCategory != .control }
    self.text = scalars.isEmpty ? "etcd sent an error without a message" : String(String.UnicodeScalarView(scalars))
    self.code = code
  }

  var isCompacted: Bool { text.contains("has been compacted") }

  /// The token is not, or no longer, valid; a new one may be.
  var isTokenRefused: Bool {
    text.contains("invalid auth token") || text.contains("revision of auth store is old")
  }

  /// The user is refused, or may not do this.
  var isRefusal: Bool {
    text.contains("permission denied") || text.contains("user name is empty") || isTokenRefused
  }

  /// The database has reached its quota.
  var isFull: Bool { text.contains("database space exceeded") }

  /// The member cannot answer now; another one may.
  var isPassing: Bool { code == 14 || code == 4 || text.contains("no leader") || text.contains("server stopped") }
}
