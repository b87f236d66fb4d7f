#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An error response of a storage.
struct S3Problem {
  private let status: Int
  /// Such as `AccessDenied`; empty if it sent none.
  private let code: String
  private let message: String
  private let region: String?
  /// By the storage's clock.
  private let date: Int64?

  /// Nil if it is a response that requests expect: also that an object is absent, or a condition does not hold.
  init?(_ answer: HTTPResponse) {
    guard answer.status >= 300, answer.status != 304 else { return nil }
    var values: [String: String] = [:]
    try? S3XML.read(answer.body) { path, text in values[path] = text }
    let code = values["Error/Code"] ?? ""
    switch answer.status {
    case 409 where code == "OperationAborted" || code.hasPrefix("ConditionalRequest"), 412: return nil
    case 404 where code != "NoSuchBucket": return nil
    default: break
    }
    self.code = Self.printable(code)
    status = answer.status
    message = Self.printable(values["Error/Message"] ?? "")
    region = (answer.headers["x-amz-bucket-region"] ?? values["Error/Region"]).map(Self.printable)
    date = answer.headers.date
  }

  private static func printable(_ text: String) -> String {
    String(
      String.UnicodeScalarView(text.unicodeScalars.prefix(300).filter { $0.properties.generalCategory != .control }))
  }

  /// Whether a repetition may succeed.
  var isPassing: Bool { [429, 500, 502, 503, 504].contains(status) || code == "SlowDown" || code == "RequestTimeout" }

  /// Whether another access key may be accepted.
  var isOfCredentials: Bool {
    ["ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch", "TokenRefreshRequired"].contains(
      code)
  }

  func error(at address: S3Address) -> CarrierError {
    let (carrier, answer) = (
      address.text, "\(code.isEmpty ? "status \(status)" : code)\(message.isEmpty ? "" : ": \(message)")"
    )
    switch code {
    case "NoSuchBucket":
      return .unreachable(
        carrier: carrier,
        reason: "there is no bucket \(address.bucket) at \(address.host): create it, or correct the address")
    case "InvalidAccessKeyId": return .refused(carrier: carrier, reason: "it does not know the access key (\(answer))")
    case "SignatureDoesNotMatch":
      return .refused(
        carrier: carrier, reason: "the secret access key is wrong, or is that of another access key (\(answer))")
    case "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
      return .refused(
        carrier: carrier, reason: "the temporary access key is no longer valid: get another one (\(answer))")
    case "RequestTimeTooSkewed": return .refused(carrier: carrier, reason: skew)
    case "NotImplemented": return .withoutConditions(address.text)
    case "QuotaExceeded", "XMinioStorageFull", "InsufficientStorage": return .full(carrier: carrier, reason: answer)
    default: break
    }
    if let region, region != address.region, [301, 307, 400].contains(status) {
      return .badAddress(carrier, reason: "the bucket is in the region \(region): write region=\(region)")
    }
    switch status {
    case 507: return .full(carrier: carrier, reason: answer)
    case 501: return .withoutConditions(address.text)
    case 401, 403:
      return .refused(
        carrier: carrier,
        reason: """
          \(answer). The access key needs s3:GetObject, s3:PutObject and s3:DeleteObject for \(address.bucket)/\(address.prefix)*, and \
          s3:ListBucket for \(address.bucket)
          """)
    case 301, 302, 307, 308:
      return .badAddress(
        carrier, reason: "\(address.host) redirects to another server: name that as the endpoint, or correct the region"
      )
    case _ where isPassing: return .unreachable(carrier: carrier, reason: "\(address.host): \(answer)")
    default: return .garbled(carrier: carrier, reason: "\(address.host) answered \(answer)")
    }
  }

  private var skew: String {
    let ahead = date.map { Int64(Date().timeIntervalSince1970) - $0 } ?? 0
    let minutes = "\(abs(ahead) / 60) minutes \(ahead > 0 ? "ahead of" : "behind")"
    return
      "the clock of this host is \(ahead == 0 ? "more than 15 minutes off" : "\(minutes) that of the storage"): set it"
  }
}

extension CarrierError {
  static func withoutConditions(_ address: String) -> CarrierError {
    .badAddress(
      address,
      reason: """
        its storage does not heed the condition of a write (If-Match and If-None-Match), without which two hosts would overwrite each \
        other's commits
        """)
  }
}
