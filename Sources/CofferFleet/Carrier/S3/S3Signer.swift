import CofferCrypto

/// Signs requests: AWS Signature Version 4, with the signature in the header `Authorization`.
struct S3Signer {
  let credentials: S3Credentials
  let region: String
  /// That of a storage is `s3`.
  var service = "s3"

  struct Request {
    var method: String
    /// With percent-encoding, as in the URL.
    var path: String
    /// Neither sorted nor encoded.
    var query: [(name: String, value: String)] = []
    /// All that are signed, with `host`; names in lower case, each once, and no needless spaces in values.
    var headers: [(name: String, value: String)]
    /// The SHA-256 of the body, in hexadecimal.
    var bodyDigest: String

    /// The query as it is in the URL and signed.
    var encodedQuery: String {
      query.map { (S3Signer.encoded($0.name), S3Signer.encoded($0.value)) }.sorted { $0 < $1 }
        .map { "\($0)=\($1)" }.joined(separator: "&")
    }
  }

  /// The value of `Authorization`.
  ///
  /// - Parameter time: As in the header `x-amz-date`, such as `20130524T000000Z`.
  func authorization(_ request: Request, time: String) throws -> String {
    let headers = request.headers.sorted { $0.name < $1.name }
    let names = headers.map(\.name).joined(separator: ";")
    let canonical = """
      \(request.method)
      \(request.path)
      \(request.encodedQuery)
      \(headers.map { "\($0.name):\($0.value)\n" }.joined())
      \(names)
      \(request.bodyDigest)
      """
    let day = String(time.prefix(8))
    let scope = "\(day)/\(region)/\(service)/aws4_request"
    let text = "AWS4-HMAC-SHA256\n\(time)\n\(scope)\n\(try Self.digest(of: Array(canonical.utf8)))"
    let signature = try Self.code(text, try key(of: day)).hex
    return
      "AWS4-HMAC-SHA256 Credential=\(credentials.accessKey)/\(scope), SignedHeaders=\(names), Signature=\(signature)"
  }

  /// The key for a day, region and service.
  private func key(of day: String) throws -> SecretBytes {
    let start = SecretBytes(copying: "AWS4")
    var key = SecretBytes(joining: [start, credentials.secretKey])
    for part in [day, region, service, "aws4_request"] {
      let code = try Self.code(part, key)
      key = code.withUnsafeBytes { SecretBytes(copying: $0) }
    }
    return key
  }

  private static func code(_ text: String, _ key: SecretBytes) throws -> [UInt8] {
    try Array(text.utf8).withUnsafeBytes { try HMACSHA256.authenticate($0, key: key) }
  }

  /// The SHA-256 of a body, in hexadecimal.
  static func digest(of bytes: [UInt8]) throws -> String { try bytes.withUnsafeBytes { try SHA256.digest($0) }.hex }

  /// With percent-encoding of all but letters, digits and `-._~`.
  ///
  /// - Parameter keepsSlashes: Whether it is a path.
  static func encoded(_ text: String, keepsSlashes: Bool = false) -> String {
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        bytes.append(byte)
      case UInt8(ascii: "/") where keepsSlashes: bytes.append(byte)
      default: bytes += "%\(byte < 16 ? "0" : "")\(String(byte, radix: 16, uppercase: true))".utf8
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
