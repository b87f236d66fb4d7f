import CofferCrypto

/// A request; a POST unless it says otherwise.
struct HTTPRequest: Sendable {
  var method = HTTPMethod.post
  var url: String
  var body: HTTPBody = .bytes([])
  /// Lines such as `Authorization: abc`.
  var headers: [String] = []
  var tls = HTTPTLS()
  /// The limit for the whole response; nil for a continuous one.
  var timeout: Duration? = .seconds(15)
  var connectTimeout = Duration.seconds(5)
}

enum HTTPMethod: String, Sendable {
  case delete = "DELETE"
  case get = "GET"
  case post = "POST"
  case put = "PUT"
}

enum HTTPBody: Sendable {
  case bytes([UInt8])
  case secret(SecretBytes)

  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    switch self {
    case .bytes(let bytes): try bytes.withUnsafeBytes(body)
    case .secret(let secret): try secret.withUnsafeBytes(body)
    }
  }
}

/// Paths of files in PEM, for https.
struct HTTPTLS: Sendable, Equatable {
  /// The certificate authorities that servers are checked against; nil for the system's.
  var authorities: String?
  var certificate: String?
  var key: String?
}

struct HTTPResponse: Sendable {
  let status: Int
  let headers: HTTPHeaders
  let body: [UInt8]
}

/// The headers of a response, by lower-case name; of several with one name, the last.
struct HTTPHeaders: Sendable {
  private var values: [String: String] = [:]
  private var byteCount = 0

  /// libcurl has a limit for a line, and not each version has one for all of them.
  private static let byteLimit = 64 << 10

  subscript(name: String) -> String? { values[name] }

  /// Adds a line such as `ETag: "abc"`; a status line begins the headers of another response.
  mutating func add(line: UnsafeRawBufferPointer) {
    byteCount += line.count
    guard byteCount <= Self.byteLimit else { return }
    let text = String(decoding: line, as: UTF8.self)
    if text.hasPrefix("HTTP/") { return values = [:] }
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return }
    let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
    values[text[..<colon].lowercased()] = String(value.prefix { !$0.isNewline })
  }
}

/// Why there is no complete response.
enum HTTPFailure: Error {
  case cancelled
  /// The response is longer than allowed.
  case tooLong
  case silent(for: Duration)
  /// - Parameter wasSent: Whether the server may have received the request.
  case connection(HTTPProblem, reason: String, wasSent: Bool)

  static let noMemory = notStarted("out of memory for a request")

  static func notStarted(_ reason: String) -> HTTPFailure {
    .connection(.unreachable, reason: reason, wasSent: false)
  }
}

extension HTTPFailure {
  /// The error to throw for a missing or incomplete response.
  ///
  /// - Throws: `CancellationError`.
  func carrierError(of carrier: String, at endpoint: String) throws -> CarrierError {
    switch self {
    case .cancelled: throw CancellationError()
    case .tooLong: return .garbled(carrier: carrier, reason: "the answer of \(endpoint) is too long")
    case .silent(let time): return .unreachable(carrier: carrier, reason: "\(endpoint) has sent nothing for \(time)")
    case .connection(let problem, let reason, _):
      let text = "\(endpoint): \(reason)"
      switch problem {
      case .unreachable: return .unreachable(carrier: carrier, reason: text)
      case .refused: return .refused(carrier: carrier, reason: text)
      case .garbled: return .garbled(carrier: carrier, reason: text)
      }
    }
  }
}

enum HTTPProblem {
  case unreachable
  /// A certificate is not accepted, on either side.
  case refused
  /// The answer is not HTTP.
  case garbled
}
