import CofferCrypto

/// A POST request with JSON.
struct HTTPRequest: Sendable {
  var url: String
  var body: HTTPBody
  /// Lines such as `Authorization: abc`.
  var headers: [String] = []
  var tls = HTTPTLS()
  /// The limit for the whole response; nil for a continuous one.
  var timeout: Duration? = .seconds(15)
  var connectTimeout = Duration.seconds(5)
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
  let body: [UInt8]
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

enum HTTPProblem {
  case unreachable
  /// A certificate is not accepted, on either side.
  case refused
  /// The answer is not HTTP.
  case garbled
}
