import CofferCrypto
import Testing

@testable import CofferFleet

private let unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
private let token = """
  AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==
  """

@Suite("The signature of a request to a storage")
struct S3SignerTests {
  struct Vector: Sendable, CustomTestStringConvertible {
    let (testDescription, method, path, body, signature): (String, String, String, String, String)
    let query: [(String, String)]
    let headers: [(String, String)]

    init(
      _ name: String, _ method: String, path: String = "/", query: [(String, String)] = [],
      headers: [(String, String)] = [],
      body: String = "", _ signature: String
    ) {
      (testDescription, self.method, self.path, self.body, self.signature) = (name, method, path, body, signature)
      (self.query, self.headers) = (query, headers)
    }
  }

  /// Of Amazon's Signature Version 4 Test Suite: what does not need a normal form that requests to a storage have anyway.
  static let suiteVectors = [
    Vector(
      "get-unreserved", "GET", path: "/" + unreserved,
      "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
    Vector(
      "get-vanilla", "GET",
      "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    Vector(
      "get-vanilla-empty-query-key", "GET", query: [("Param1", "value1")],
      "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"),
    Vector(
      "get-vanilla-query-order-key", "GET", query: [("Param1", "value2"), ("Param1", "Value1")],
      "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1"),
    Vector(
      "get-vanilla-query-order-key-case", "GET", query: [("Param2", "value2"), ("Param1", "value1")],
      "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
    Vector(
      "get-vanilla-query-order-value", "GET", query: [("Param1", "value2"), ("Param1", "value1")],
      "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"),
    Vector(
      "get-vanilla-query-unreserved", "GET", query: [(unreserved, unreserved)],
      "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"),
    Vector(
      "get-vanilla-utf8-query", "GET", query: [("\u{1234}", "bar")],
      "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
    Vector(
      "post-vanilla", "POST",
      "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    Vector(
      "post-vanilla-query", "POST", query: [("Param1", "value1")],
      "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"),
    Vector(
      "post-header-key-sort", "POST", headers: [("my-header1", "value1")],
      "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"),
    Vector(
      "post-header-value-case", "POST", headers: [("my-header1", "VALUE1")],
      "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"),
    Vector(
      "post-x-www-form-urlencoded", "POST", headers: [("content-type", "application/x-www-form-urlencoded")],
      body: "Param1=value1",
      "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
    Vector(
      "post-sts-header-before", "POST", headers: [("x-amz-security-token", token)],
      "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"),
  ]

  @Test("is that of Amazon's test suite", arguments: suiteVectors)
  func suite(_ vector: Vector) throws {
    let credentials = S3Credentials(
      accessKey: "AKIDEXAMPLE", secretKey: SecretBytes(copying: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
    let signer = S3Signer(credentials: credentials, region: "us-east-1", service: "service")
    let headers = vector.headers + [("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")]
    let request = S3Signer.Request(
      method: vector.method, path: vector.path, query: vector.query.map { ($0.0, $0.1) },
      headers: headers.map { ($0.0, $0.1) }, bodyDigest: try S3Signer.digest(of: Array(vector.body.utf8)))
    let names = headers.map(\.0).sorted().joined(separator: ";")
    #expect(
      try signer.authorization(request, time: "20150830T123600Z")
        == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=\(names), "
        + "Signature=\(vector.signature)")
  }

  /// Of Amazon's page on the header `Authorization` for S3.
  static let exampleVectors = [
    Vector(
      "GET Object", "GET", path: "/test.txt", headers: [("range", "bytes=0-9")],
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    Vector(
      "PUT Object", "PUT", path: "/" + S3Signer.encoded("test$file.text", keepsSlashes: true),
      headers: [("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")],
      body: "Welcome to Amazon S3.", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    Vector(
      "GET Bucket Lifecycle", "GET", query: [("lifecycle", "")],
      "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    Vector(
      "List Objects", "GET", query: [("max-keys", "2"), ("prefix", "J")],
      "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  @Test("is that of Amazon's examples for S3", arguments: exampleVectors)
  func examples(_ vector: Vector) throws {
    let credentials = S3Credentials(
      accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: SecretBytes(copying: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"))
    let digest = try S3Signer.digest(of: Array(vector.body.utf8))
    let time = S3Time.text(1_369_353_600)
    let headers =
      vector.headers + [
        ("host", "examplebucket.s3.amazonaws.com"), ("x-amz-content-sha256", digest), ("x-amz-date", time),
      ]
    let request = S3Signer.Request(
      method: vector.method, path: vector.path, query: vector.query.map { ($0.0, $0.1) },
      headers: headers.map { ($0.0, $0.1) }, bodyDigest: digest)
    let signer = S3Signer(credentials: credentials, region: "us-east-1")
    #expect(try signer.authorization(request, time: time).hasSuffix("Signature=\(vector.signature)"))
  }
}
