import CofferCrypto
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CofferFleet

@Suite("A bucket as a carrier", .timeLimit(.minutes(10)))
struct S3CarrierTests {
  private static let key = S3Credentials(accessKey: "AKIA", secretKey: SecretBytes(copying: "hunter2hunter2"))

  private func carrier(_ server: LoopbackServer) throws -> S3Carrier {
    try S3Carrier(
      address: "s3://data/web?endpoint=http://127.0.0.1:\(server.port)&region=eu-central-1", credentials: { Self.key })
  }

  private func answer(_ status: String, _ headers: [String] = [], _ body: String = "") -> String {
    (["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + headers).joined(separator: "\r\n") + "\r\n\r\n"
      + body
  }

  private func problem(_ code: String, _ more: String = "") -> String {
    "<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message>It is so.</Message>\(more)</Error>"
  }

  private func expect(_ kind: String, _ text: String, _ body: () async throws -> Void) async {
    do {
      try await body()
      Issue.record("it was not refused: \(kind) \(text)")
    } catch let error as CarrierError {
      let found =
        switch error {
        case .unreachable: "unreachable"
        case .refused: "refused"
        case .full: "full"
        case .badAddress: "badAddress"
        case .garbled: "garbled"
        default: "\(error)"
        }
      #expect(found == kind && error.description.contains(text), "\(error)")
      #expect(!error.description.contains("hunter2"))
    } catch {
      Issue.record(error)
    }
  }

  // MARK: - Access

  @Test("says what is wrong with an access key, or that there is no such bucket")
  func access() async throws {
    guard let server = try await S3Server.common() else { try Test.cancel("moto is not installed") }
    let prefix = "access-\(UUID().uuidString)"
    func carrier(_ name: String, _ secret: String, bucket: String = "fleets") throws -> S3Carrier {
      try S3Carrier(address: server.address(bucket: bucket, prefix: prefix)) {
        S3Credentials(accessKey: name, secretKey: SecretBytes(copying: secret))
      }
    }
    let writer = try carrier(server.writer.name, server.writer.secret)
    #expect(try await writer.swapHead(from: nil, to: [1]))
    await expect("refused", "secret access key is wrong") {
      _ = try await carrier(server.writer.name, server.reader.secret).contents()
    }
    await expect("refused", "does not know the access key") {
      _ = try await carrier("AKIAIOSFODNN7EXAMPLE", "x").contents()
    }
    await expect("unreachable", "no bucket nothing-here") {
      _ = try await carrier(server.writer.name, server.writer.secret, bucket: "nothing-here").contents()
    }
    let reader = try carrier(server.reader.name, server.reader.secret)
    #expect(try await reader.contents().objects == ["head": [1]])
    await expect("refused", "s3:PutObject") { try await reader.swapHead(from: [1], to: [2]) }
    #expect(try await writer.bytes("head") == [1])
  }

  @Test("asks for its access key again once that is no longer accepted")
  func renewedKey() async throws {
    guard let server = try await S3Server.common() else { try Test.cancel("moto is not installed") }
    let count = Counter()
    let carrier = try S3Carrier(address: server.address(prefix: "renewed-\(UUID().uuidString)")) {
      let secret = count.next() == 0 ? "of yesterday" : server.writer.secret
      return S3Credentials(accessKey: server.writer.name, secretKey: SecretBytes(copying: secret))
    }
    #expect(try await carrier.swapHead(from: nil, to: [1]))
    #expect(try await carrier.contents().objects == ["head": [1]])
    #expect(count.next() == 2)
  }

  @Test("has keys that need encoding in a URL")
  func encodedPrefix() async throws {
    guard let server = try await S3Server.common() else { try Test.cancel("moto is not installed") }
    let carrier = try S3Carrier(address: server.address(prefix: "ü%25%20+&=/~\(UUID().uuidString)")) {
      S3Credentials(accessKey: server.writer.name, secretKey: SecretBytes(copying: server.writer.secret))
    }
    #expect(try await carrier.swapHead(from: nil, to: [1], [.put("records/a", .init(repeating: 3, count: 40_000))]))
    #expect(try await carrier.contents().objects.count == 2)
  }

  // MARK: - Answers

  @Test("says what to do about a wrong region, a wrong clock, or a server that is not the bucket's")
  func advice() async throws {
    let format = DateFormatter()
    (format.locale, format.timeZone) = (Locale(identifier: "en_US_POSIX"), .gmt)
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    let here = format.string(from: Date())
    let cases = [
      (
        "badAddress", "region=eu-west-1",
        answer("301 Moved", ["x-amz-bucket-region: eu-west-1"], problem("PermanentRedirect"))
      ),
      (
        "badAddress", "region=eu-west-1",
        answer("400 Bad", [], problem("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"))
      ),
      ("badAddress", "redirects", answer("307 Moved", ["Location: http://127.0.0.1:1/"], problem("TemporaryRedirect"))),
      (
        "refused", "clock of this host is",
        answer("403 No", ["Date: Fri, 24 May 2013 00:00:00 GMT"], problem("RequestTimeTooSkewed"))
      ),
      ("refused", "clock of this host is", answer("403 No", ["Date: \(here)"], problem("RequestTimeTooSkewed"))),
      ("refused", "no longer valid", answer("400 Bad", [], problem("ExpiredToken"))),
      ("full", "QuotaExceeded", answer("403 No", [], problem("QuotaExceeded"))),
      ("full", "status 507", answer("507 Full")),
      ("badAddress", "If-Match", answer("501 No", [], problem("NotImplemented"))),
      ("garbled", "status 418", answer("418 Teapot", [], "<html>")),
    ]
    for (kind, text, answer) in cases {
      let server = try LoopbackServer(saying: answer)
      let carrier = try carrier(server)
      await expect(kind, text) { _ = try await carrier.contents() }
      await expect(kind, text) { try await carrier.swapHead(from: nil, to: [1]) }
    }
  }

  @Test("is asked again if it is busy, and is unreachable if that goes on")
  func busy() async throws {
    let count = Counter()
    let slow = answer("503 Slow Down", [], problem("SlowDown"))
    let none = answer("404 None", [], problem("NoSuchKey"))
    let server = try LoopbackServer { _ in count.next() < 3 ? slow : none }
    #expect(try await carrier(server).contents().objects.isEmpty)
    #expect(count.next() == 4)
    let busyServer = try LoopbackServer(saying: slow)
    let busy = try carrier(busyServer)
    await expect("unreachable", "SlowDown") { _ = try await busy.contents() }
    let port = try LoopbackPort.free(count: 1)[0]
    let away = try S3Carrier(address: "s3://data/web?endpoint=http://127.0.0.1:\(port)", credentials: { Self.key })
    await expect("unreachable", "127.0.0.1:\(port)") { _ = try await away.contents() }
  }

  @Test(
    "is garbled when its answer is not that of a storage",
    arguments: [
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nETag: \"a\"\r\n\r\n\u{2}",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\u{1}",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nETag: W/\"a\"\r\n\r\n\u{1}", "HTTP/1.1 304 No\r\n\r\n",
      "HTTP/1.1 206 Part\r\nContent-Length: 1\r\nETag: \"a\"\r\n\r\n\u{1}", "SSH-2.0-OpenSSH\r\n",
      "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 100000000\r\n\r\n\u{1}",
    ])
  func garbage(_ answer: String) async throws {
    // It ends in the middle of the long one, which is a broken connection until the limit is reached.
    let server = try LoopbackServer(saying: answer)
    let carrier = try carrier(server)
    do {
      _ = try await carrier.contents()
      Issue.record("it was accepted")
    } catch let error as CarrierError {
      switch error {
      case .garbled: break
      case .unreachable: #expect(answer.contains("100000000"))
      default: Issue.record(error)
      }
    }
  }

  @Test("is not read without end")
  func endless() async throws {
    let head = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\n\r\n"
    let server = try LoopbackServer(
      saying: head + String(repeating: "\u{1}", count: PackedRoot.maximumByteCount + 100_000))
    await expect("garbled", "too long") { _ = try await carrier(server).contents() }
  }

  @Test("does not list the same objects without end", arguments: [true, false])
  func endlessList(_ hasToken: Bool) async throws {
    let token = hasToken ? "<NextContinuationToken>a</NextContinuationToken>" : ""
    let server = try LoopbackServer(
      saying: answer("200 OK", [], "<ListBucketResult><IsTruncated>true</IsTruncated>\(token)</ListBucketResult>"))
    let bucket = try S3Bucket(
      address: try S3Address("s3://data/web?endpoint=http://127.0.0.1:\(server.port)"), credentials: { Self.key })
    await expect("garbled", "list") { try await bucket.list("") { _ in } }
  }

  // MARK: - The stream

  @Test("that goes away ends no stream, which misses nothing when it is back")
  func away() async throws {
    guard let server = try await S3Server.common() else { try Test.cancel("moto is not installed") }
    let relay = try RecordingRelay(to: server.port)
    func carrier(_ port: Int?) throws -> S3Carrier {
      try S3Carrier(address: server.address(prefix: prefix, port: port, options: "&poll=0.1")) {
        S3Credentials(accessKey: server.writer.name, secretKey: SecretBytes(copying: server.writer.secret))
      }
    }
    let prefix = "away-\(UUID().uuidString)"
    let writer = try carrier(nil)
    try await writer.swapHead(from: nil, to: [1])
    let reader = try carrier(relay.port)
    var iterator = reader.changes(after: try await reader.contents().revision).makeAsyncIterator()
    relay.cut()
    #expect(try await iterator.next() == .interrupted)
    try await writer.swapHead(from: [1], to: [2])
    relay.mend()
    guard case .changed(let changes, _)? = try await iterator.next() else { throw StreamEnded() }
    #expect(changes == [.put("head", [2])])
    // What was sent shows no secret.
    #expect(!relay.sent.contains(sequence: Array(server.writer.secret.utf8)))
  }
}

extension [UInt8] {
  fileprivate func contains(sequence: [UInt8]) -> Bool { firstRange(of: sequence) != nil }
}
