import Coffer
import CofferCrypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Sends requests to a storage with the interface of Amazon S3.
struct S3Bucket: ConditionalStorage {
  let address: S3Address
  private let credentials: KnownCredentials
  /// The number of objects in a part of a list; nil for the storage's own, usually 1,000.
  private let pageSize: Int?

  var description: String { address.text }

  /// Attempts of a request that may be repeated.
  private static let attemptCount = 5
  private static let errorByteLimit = 64 << 10
  private static let listByteLimit = 8 << 20

  init(
    address: S3Address, pageSize: Int? = nil, credentials: @escaping @Sendable () throws -> S3Credentials?
  ) throws {
    (self.address, self.pageSize) = (address, pageSize)
    self.credentials = try KnownCredentials(of: address.text, read: credentials)
  }

  // MARK: - Objects

  func get(_ key: String, unless tag: String?, limit: Int) async throws -> StorageAnswer<ReadObject> {
    let answer = try await ask(.get, key, headers: tag.map { [("if-none-match", $0)] } ?? [], limit: limit)
    switch answer.status {
    case 404: return StorageAnswer(content: .absent, date: date(of: answer))
    case 304 where tag != nil: return StorageAnswer(content: .unchanged, date: date(of: answer))
    case 200:
      return StorageAnswer(content: .present(answer.body, tag: try self.tag(of: answer)), date: date(of: answer))
    default: throw unexpected(answer)
    }
  }

  func get(_ key: String, _ range: Range<Int>) async throws -> [UInt8]? {
    let header = ("range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
    let answer = try await ask(.get, key, headers: [header], limit: range.count)
    if answer.status == 404 { return nil }
    guard answer.status == 206, answer.body.count == range.count else { throw unexpected(answer) }
    return answer.body
  }

  func put(_ key: String, _ bytes: [UInt8], if condition: PutCondition) async throws -> StorageAnswer<PutResult> {
    var headers = [("content-type", "application/octet-stream")]
    switch condition {
    case .none: break
    case .absent: headers.append(("if-none-match", "*"))
    case .unchanged(let tag): headers.append(("if-match", tag))
    }
    // One with a condition is not: the second would be refused because of the first.
    let answer = try await ask(.put, key, headers: headers, body: bytes, isRepeatable: condition == .none)
    switch answer.status {
    case 200: return StorageAnswer(content: .stored(tag: try tag(of: answer)), date: date(of: answer))
    // The object that should be replaced is gone, or another request is at it.
    case 404 where condition != .none, 409 where condition != .none, 412 where condition != .none:
      return StorageAnswer(content: .refused, date: date(of: answer))
    default: throw unexpected(answer)
    }
  }

  func remove(_ key: String) async throws {
    let answer = try await ask(.delete, key)
    guard [200, 204, 404].contains(answer.status) else { throw unexpected(answer) }
  }

  func list(_ start: String, _ body: ([ListedObject]) -> Void) async throws {
    var token: String?
    repeat {
      var query = [("list-type", "2"), ("prefix", address.prefix + start)]
      if let pageSize { query.append(("max-keys", "\(pageSize)")) }
      if let token { query.append(("continuation-token", token)) }
      let answer = try await ask(.get, nil, query: query, limit: Self.listByteLimit)
      guard answer.status == 200 else { throw unexpected(answer) }
      let list = try self.list(answer.body)
      // A storage must not keep this going round.
      guard list.token == nil || list.token != token else { throw garbled("it lists the same objects again") }
      token = list.token
      body(list.objects)
    } while token != nil
  }

  private func list(_ bytes: [UInt8]) throws -> (objects: [ListedObject], token: String?) {
    var (objects, key, token, isTruncated) = ([ListedObject](), "", String?.none, false)
    do {
      try S3XML.read(bytes) { path, text in
        switch path {
        case "ListBucketResult/Contents/Key": key = text
        case "ListBucketResult/Contents/LastModified":
          guard let date = Timestamp.date(text), key.hasPrefix(address.prefix) else { throw S3XML.Invalid() }
          let name = String(key.dropFirst(address.prefix.count))
          objects.append(ListedObject(key: name, date: Int64(date.timeIntervalSince1970)))
        case "ListBucketResult/IsTruncated": isTruncated = text == "true"
        case "ListBucketResult/NextContinuationToken": token = text
        default: break
        }
      }
    } catch is S3XML.Invalid {
      throw garbled("its list of objects is not the XML of a list")
    }
    guard isTruncated == (token != nil) else { throw garbled("its list of objects is incomplete") }
    return (objects, token)
  }

  // MARK: - Requests

  private func ask(
    _ method: HTTPMethod, _ key: String?, query: [(String, String)] = [], headers: [(String, String)] = [],
    body: [UInt8] = [], limit: Int = 0, isRepeatable: Bool = true
  ) async throws -> HTTPResponse {
    var hasOtherCredentials = false
    var attempt = 0
    while true {
      attempt += 1
      let isLast = !isRepeatable || attempt == Self.attemptCount
      do {
        let credentials = await credentials.current
        let request = try request(method, key, query, headers, body, limit, credentials)
        let answer = try await HTTPLoop.shared.response(to: request, limit: max(limit, Self.errorByteLimit))
        guard let problem = S3Problem(answer) else { return answer }
        if problem.isOfCredentials, !hasOtherCredentials, await self.credentials.renew(credentials) {
          hasOtherCredentials = true
          continue
        }
        guard problem.isPassing, !isLast else { throw problem.error(at: address) }
      } catch let failure as HTTPFailure {
        let error = try failure.carrierError(of: description, at: address.base)
        guard case .unreachable = error, !isLast else { throw error }
      }
      try await Task.sleep(for: .milliseconds(Int.random(in: 25...(100 << attempt))))
    }
  }

  private func request(
    _ method: HTTPMethod, _ key: String?, _ query: [(String, String)], _ headers: [(String, String)], _ body: [UInt8],
    _ limit: Int, _ credentials: S3Credentials
  ) throws -> HTTPRequest {
    let time = S3Time.text(Int64(Date().timeIntervalSince1970))
    let digest = try S3Signer.digest(of: body)
    let suffix =
      key.map { "/" + S3Signer.encoded(address.prefix + $0, keepsSlashes: true) } ?? (address.path.isEmpty ? "/" : "")
    var signed = headers + [("host", address.host), ("x-amz-content-sha256", digest), ("x-amz-date", time)]
    if let token = credentials.sessionToken {
      signed.append(("x-amz-security-token", token.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }))
    }
    let request = S3Signer.Request(
      method: method.rawValue, path: address.path + suffix, query: query.map { ($0.0, $0.1) },
      headers: signed.map { ($0.0, $0.1) }, bodyDigest: digest)
    let authorization = try S3Signer(credentials: credentials, region: address.region).authorization(
      request, time: time)
    let encodedQuery = query.isEmpty ? "" : "?\(request.encodedQuery)"
    return HTTPRequest(
      method: method, url: address.base + suffix + encodedQuery, body: .bytes(body),
      headers: signed.filter { $0.0 != "host" }.map { "\($0.0): \($0.1)" } + ["authorization: \(authorization)"],
      tls: address.tls,
      // 50 KB a second are enough.
      timeout: .seconds(15 + (body.count + limit) / 50_000))
  }

  // MARK: - Answers

  /// The tag of an object, with its quotes.
  ///
  /// - Throws: ``CarrierError/garbled(carrier:reason:)`` if it is missing, or weak: then it does not identify the bytes.
  private func tag(of answer: HTTPResponse) throws(CarrierError) -> String {
    guard let tag = answer.headers["etag"], !tag.isEmpty, !tag.hasPrefix("W/"), tag.utf8.count <= 200 else {
      throw garbled("an object has no ETag")
    }
    return tag
  }

  /// By the clock of the storage; this host's, if it sends none.
  private func date(of answer: HTTPResponse) -> Int64 {
    answer.headers.date ?? Int64(Date().timeIntervalSince1970)
  }

  private func unexpected(_ answer: HTTPResponse) -> CarrierError {
    garbled("\(address.base) answered with the status \(answer.status)")
  }

  private func garbled(_ reason: String) -> CarrierError { .garbled(carrier: description, reason: reason) }
}

/// The access key, which is read again when the storage no longer accepts it: a temporary one is replaced from time to time.
actor KnownCredentials {
  private let read: @Sendable () throws -> S3Credentials?
  private(set) var current: S3Credentials

  init(of address: String, read: @escaping @Sendable () throws -> S3Credentials?) throws {
    guard let credentials = try read() else {
      throw CarrierError.badAddress(address, reason: "the access key of its storage is missing")
    }
    guard credentials.isValid else {
      throw CarrierError.badAddress(address, reason: "the access key of its storage has spaces, or no secret")
    }
    (self.read, current) = (read, credentials)
  }

  /// Reads the access key again.
  ///
  /// - Returns: Whether there is another one than that which was refused.
  func renew(_ refused: S3Credentials) -> Bool {
    if let credentials = try? read(), credentials.isValid { current = credentials }
    return !current.isEqual(to: refused)
  }
}

enum S3Time {
  /// As `20130524T000000Z`.
  ///
  /// - Parameter seconds: Since 1970.
  static func text(_ seconds: Int64) -> String {
    Timestamp.text(milliseconds: seconds * 1000).prefix(19).filter { $0 != "-" && $0 != ":" } + "Z"
  }
}
