/// The head of a request: its first line and its headers.
struct HTTPHead: Sendable {
  let method: String
  /// The path without its query.
  let path: String
  private let headers: [String: String]

  /// The maximum length of a head.
  static let byteLimit = 16 << 10

  /// - Parameter bytes: The head without the empty line at its end.
  /// - Returns: nil if it is malformed.
  init?(_ bytes: ArraySlice<UInt8>) {
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
      String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
    }
    let words = lines[0].split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, words[2].hasPrefix("HTTP/1.") else { return nil }
    method = String(words[0])
    path = String(words[1].prefix { $0 != "?" })
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
      let name = line[..<colon].lowercased()
      let value = line[line.utf8.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      let end = value.lastIndex { $0 != " " && $0 != "\t" }.map(value.index(after:)) ?? value.startIndex
      // A repeated header gets a value that nothing here accepts.
      headers[name] = (headers[name].map { $0 + ", " } ?? "") + value[..<end]
    }
    self.headers = headers
  }

  /// A header, by its lower-case name.
  subscript(_ name: String) -> String? { headers[name] }

  /// How many bytes follow the head; nil if it does not say.
  var bodyCount: Int? {
    guard self["transfer-encoding"] == nil else { return nil }
    guard let text = self["content-length"] else { return method == "GET" ? 0 : nil }
    guard text.utf8.count <= 12, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
      return nil
    }
    return Int(text)
  }

  var asksToClose: Bool { self["connection"]?.lowercased() == "close" }
}

/// An answer to a request.
struct HTTPAnswer {
  enum Body {
    case bytes([UInt8])
    /// Pieces, each sent when `next` returns it, until that is nil or the connection closes.
    case pieces(next: () -> [UInt8]?, end: () -> Void)
  }

  var status: Int
  var headers: [(name: String, value: String)]
  var body: Body
  /// Whether the connection closes after it.
  var closes = false

  private static let reasons = [
    200: "OK", 403: "Forbidden", 409: "Conflict", 413: "Content Too Large", 422: "Unprocessable Content",
    423: "Locked", 429: "Too Many Requests", 500: "Internal Server Error",
  ]

  /// The bytes before the body.
  func head(closes: Bool) -> [UInt8] {
    var text = "HTTP/1.1 \(status) \(Self.reasons[status] ?? "Other")\r\n"
    for (name, value) in headers { text += "\(name): \(value)\r\n" }
    if case .bytes(let bytes) = body { text += "Content-Length: \(bytes.count)\r\n" }
    text += closes ? "Connection: close\r\n\r\n" : "\r\n"
    return Array(text.utf8)
  }
}
