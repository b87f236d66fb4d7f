import Coffer
import CofferCrypto
import Testing

@testable import PrefsPage

/// Requests by hand: who gets in, and what others learn.
@Suite("Access to the settings page", .serialized) struct RefusalTests {
  /// What is refused looks the same, whatever the reason.
  private func expectRefusal(_ answer: RawAnswer, _ comment: Comment) {
    #expect(answer.status == 403, comment)
    #expect(answer.body.isEmpty, comment)
  }

  private static let wrongHeaders: [[String: String?]] = [
    ["Host": "evil.example.org"], ["Host": "localhost:8080"], ["Host": "127.0.0.1"], ["Host": nil],
    ["Origin": "http://evil.example.org"], ["Origin": "null"], ["Origin": nil],
    ["Sec-Fetch-Site": "cross-site"], ["Sec-Fetch-Site": "same-site"], ["Sec-Fetch-Site": "none"],
    ["Content-Type": "text/plain"], ["Content-Type": "application/x-www-form-urlencoded"], ["Content-Type": nil],
    ["X-Coffer-Session": nil], ["X-Coffer-Session": ""], ["X-Coffer-Session": "AAAA"],
  ]

  @Test("A request that is not from the page is refused, and reveals nothing", arguments: wrongHeaders)
  func refusedCall(changing: [String: String?]) async throws {
    let page = try await ServedPage { try $0.setObject("dark", forKey: "theme", inCollection: "editor") }
    let session = try await page.session()
    #expect(try await page.call("list", session: session).status == 200)
    expectRefusal(try await page.call("list", session: session, changing: changing), "\(changing)")
    try await page.close()
  }

  @Test("A DNS name that resolves to loopback is not accepted as host of the page, not even for its files")
  func rebinding() async throws {
    let page = try await ServedPage()
    for host in ["evil.example.org:\(page.port)", "localhost:\(page.port)", "[::1]:\(page.port)", "127.0.0.1:1"] {
      expectRefusal(try await page.send("GET", "/\(ServedPage.folder)/", ["Host": host]), "\(host)")
    }
    try await page.close()
  }

  @Test("Anyone who finds only the port gets 403 for every path and method")
  func portAlone() async throws {
    let page = try await ServedPage()
    let host = ["Host": "127.0.0.1:\(page.port)"]
    for path in ["/", "/index.html", "/api/list", "/favicon.ico", "/other/", "/\(ServedPage.folder)", "/../etc/passwd"]
    {
      expectRefusal(try await page.send("GET", path, host), "\(path)")
      expectRefusal(try await page.send("POST", path, page.headers()), "\(path)")
    }
    for method in ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"] {
      expectRefusal(try await page.send(method, "/\(ServedPage.folder)/", host), "\(method)")
    }
    try await page.close()
  }

  @Test("A token is good for one session")
  func tokenUsedTwice() async throws {
    let page = try await ServedPage()
    let token = try page.credentials.makeToken()
    #expect(try await page.trade(token).status == 200)
    expectRefusal(try await page.trade(token), "the second time")
    try await page.close()
  }

  @Test("An unused token expires after a minute")
  func oldToken() async throws {
    let page = try await ServedPage()
    let token = try page.credentials.makeToken()
    page.clock.advance(by: .seconds(60))
    expectRefusal(try await page.trade(token), "a minute later")
    try await page.close()
  }

  @Test("A wrong token is refused and does not use up the right one")
  func wrongToken() async throws {
    let page = try await ServedPage()
    let token = try page.credentials.makeToken()
    for wrong in ["A", String(token.dropLast()), token + "A", String(token.reversed())] {
      expectRefusal(try await page.trade(wrong), "\(wrong)")
    }
    for body in ["", "no JSON", "{\"token\":\"\(token)\"}"] {
      let path = "/\(ServedPage.folder)/api/session"
      expectRefusal(try await page.send("POST", path, page.headers(), Array(body.utf8)), "\(body)")
    }
    #expect(try await page.trade(token).status == 200)
    try await page.close()
  }

  @Test("Neither a token, nor a session's key, nor what a page asks and gets, is sent in plaintext")
  func sealed() async throws {
    let page = try await ServedPage { try $0.setObject("dark", forKey: "theme", inCollection: "editor") }
    let token = try page.credentials.makeToken()
    let session = try PageSession(try await page.trade(token))
    // The session's name, which is no secret, opens nothing.
    let stranger = PageSession(name: try #require(session.name), key: try .random(count: 32))
    expectRefusal(try await page.call("list", session: stranger), "another key")
    let plain = Array("{}".utf8)
    expectRefusal(
      try await page.send("POST", "/\(ServedPage.folder)/api/list", page.headers(session: session), plain), "plaintext")
    // A request is for one purpose.
    let list = try session.seal("{}", for: "request list")
    expectRefusal(
      try await page.send("POST", "/\(ServedPage.folder)/api/doctor", page.headers(session: session), list),
      "another call")
    let answer = try await page.send("POST", "/\(ServedPage.folder)/api/list", page.headers(session: session), list)
    #expect(answer.status == 200)
    #expect(!answer.body.contains("dark"))
    #expect(try session.open(answer.bodyBytes, for: "answer list", answering: list).contains("dark"))
    // And its answer passes for that to no other.
    let other = try session.seal("{}", for: "request list")
    #expect(throws: CryptoError.authenticationFailed) {
      try session.open(answer.bodyBytes, for: "answer list", answering: other)
    }
    try await page.close()
  }

  @Test("A frame, script or image of another page gets no file of the page")
  func filesElsewhere() async throws {
    let page = try await ServedPage()
    let path = "/\(ServedPage.folder)/"
    func get(_ path: String, _ site: String, _ mode: String, _ destination: String) async throws -> RawAnswer {
      try await page.send(
        "GET", path,
        [
          "Host": "127.0.0.1:\(page.port)", "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode,
          "Sec-Fetch-Dest": destination,
        ])
    }
    #expect(try await get(path, "none", "navigate", "document").status == 200)
    // From the file that leads a browser to the page.
    #expect(try await get(path, "cross-site", "navigate", "document").status == 200)
    #expect(try await get(path + "page.js", "same-origin", "cors", "script").status == 200)
    expectRefusal(try await get(path, "cross-site", "navigate", "iframe"), "a frame")
    expectRefusal(try await get(path, "cross-site", "no-cors", "image"), "an image")
    expectRefusal(try await get(path + "page.js", "cross-site", "no-cors", "script"), "a script")
    try await page.close()
  }

  @Test("Every answer has headers against abuse of the page", arguments: ["", "page.js", "page.css", "missing"])
  func headers(path: String) async throws {
    let page = try await ServedPage()
    let answer = try await page.send("GET", "/\(ServedPage.folder)/\(path)", ["Host": "127.0.0.1:\(page.port)"])
    let policy = try #require(answer.headers["content-security-policy"])
    for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
      #expect(policy.contains(part))
    }
    #expect(!policy.contains("unsafe"))
    #expect(answer.headers["cache-control"] == "no-store")
    #expect(answer.headers["referrer-policy"] == "no-referrer")
    #expect(answer.headers["x-content-type-options"] == "nosniff")
    #expect(answer.headers["x-frame-options"] == "DENY")
    #expect(answer.headers["set-cookie"] == nil)
    try await page.close()
  }

  @Test("A body too large, or of unknown length, is not read, and the connection ends")
  func largeBody() async throws {
    let page = try await ServedPage()
    let session = try await page.session()
    let answer = try await page.send(head(page, session, "Content-Length: 99999999"))
    #expect(answer.status == 413)
    #expect(answer.headers["connection"] == "close")
    let chunked = try await page.send(
      head(page, session, "Transfer-Encoding: chunked") + Array("2\r\n{}\r\n0\r\n\r\n".utf8))
    #expect(chunked.status == 413)
    try await page.close()
  }

  private func head(_ page: ServedPage, _ session: PageSession, _ last: String) -> [UInt8] {
    let headers = page.headers(session: session).map { "\($0.key): \($0.value)\r\n" }.joined()
    return Array("POST /\(ServedPage.folder)/api/list HTTP/1.1\r\n\(headers)\(last)\r\n\r\n".utf8)
  }

  @Test(
    "A head that is too long, or malformed, ends the connection without an answer",
    arguments: [
      ("GET / HTTP/1.1\r\nCookie: ", 200_000), ("a", 200_000), ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 0),
      ("GET /\r\n\r\n", 0), ("\r\n\r\n", 0),
    ])
  func longHead(text: String, letters: Int) async throws {
    let page = try await ServedPage()
    let rest = [UInt8](repeating: UInt8(ascii: "a"), count: letters)
    #expect(try await page.send(Array(text.utf8) + rest).status == 0)
    let session = try await page.session()
    #expect(try await page.call("list", session: session).status == 200)
    try await page.close()
  }

  @Test("A refusal ends the connection, and what else comes over it is not answered")
  func closes() async throws {
    let page = try await ServedPage()
    let request = "GET / HTTP/1.1\r\nHost: 127.0.0.1:\(page.port)\r\n\r\n"
    let answer = try await page.send(Array((request + request).utf8))
    expectRefusal(answer, "one answer alone")
    #expect(answer.headers["connection"] == "close")
    try await page.close()
  }

  @Test("Behind a proxy, the origin must be the host that the proxy was asked for")
  func proxy() {
    let gate = RequestGate(place: .socket, folder: "f")
    func passed(_ host: String?, _ origin: String?) -> RequestGate.Passed? {
      gate.passed(
        .init(
          method: "POST", path: "/f/api/list", host: host, origin: origin, contentType: "application/octet-stream",
          session: "s"), isSession: { $0 == "s" })
    }
    #expect(passed("settings.example.org", "https://settings.example.org") == .call("list"))
    #expect(passed("settings.example.org", "https://evil.example.org") == nil)
    #expect(passed("settings.example.org", nil) == nil)
    #expect(passed("", "https://") == nil)
    #expect(passed(nil, nil) == nil)
  }

  @Test("A page of some collections does not say of another one whether it keeps history, or what changed there")
  func timelineOfOthers() async throws {
    let page = try await ServedPage(collections: ["web"]) { transaction in
      try transaction.setObject(1, forKey: "limit", inCollection: "web")
      try transaction.setObject(1, forKey: "hidden", inCollection: "other")
    }
    let session = try await page.session()
    for name in ["other", "absent"] {
      let answer = try await page.call("timeline", #"{"collection":"\#(name)"}"#, session: session)
      #expect(answer.status == 422)
      #expect(answer.object["without"] == nil)
    }
    let all = try await page.call("timeline", session: session)
    #expect(all.object["without"] as? [String] == ["web"])
    #expect(!all.body.contains("other"))
    try await page.close()
  }

  @Test("Idle connections do not block the page for others")
  func silentConnections() async throws {
    let page = try await ServedPage()
    let silent = try (0..<200).map { _ in try RawConnection(port: page.port) }
    defer { silent.forEach { $0.close() } }
    let session = try await page.session()
    #expect(try await page.call("list", session: session).status == 200)
    try await page.close()
  }
}
