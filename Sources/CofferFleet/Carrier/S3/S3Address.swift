/// A bucket of an S3-compatible storage, and the carrier's prefix in it.
struct S3Address: Sendable {
  let text: String
  let bucket: String
  let region: String
  /// What precedes the keys in a URL, such as `https://bucket.s3.eu-west-1.amazonaws.com` or `https://host:9000/bucket`.
  let base: String
  /// The host as the server sees it, with a port unless it is that of the scheme.
  let host: String
  /// The path before the keys: empty, or a slash and the bucket.
  let path: String
  /// The prefix of the carrier's keys; it ends with a slash.
  let prefix: String
  let tls: HTTPTLS
  /// The time between two looks at the storage for changes.
  let pollInterval: Duration

  init(_ text: String) throws(CarrierError) {
    let address = try CarrierAddress(text)
    guard address.scheme == "s3" else { throw .badAddress(text, reason: "it must begin with s3://") }
    guard address.user == nil else {
      throw .badAddress(text, reason: "an access key is not part of it, but of the credentials")
    }
    guard address.hosts.count == 1, let bucket = address.hosts.first, Self.isBucket(bucket) else {
      throw .badAddress(
        text, reason: "the name of a bucket must follow s3://: 3 to 63 characters of a-z, 0-9, - and .")
    }
    let segments = address.path.split(separator: "/")
    guard !segments.isEmpty else {
      throw .badAddress(text, reason: "a prefix of keys must follow the bucket, as in s3://\(bucket)/fleets/team")
    }
    // Servers and proxies may resolve them.
    guard !segments.contains(where: { $0 == "." || $0 == ".." }) else {
      throw .badAddress(text, reason: "its prefix must not contain . or ..")
    }
    prefix = segments.joined(separator: "/") + "/"
    guard prefix.utf8.count <= 512 else { throw .badAddress(text, reason: "the prefix has more than 511 bytes") }
    var options = address.options
    let region = options.removeValue(forKey: "region") ?? "us-east-1"
    guard !region.isEmpty, region.utf8.allSatisfy({ $0 == UInt8(ascii: "-") || Self.isLetterOrDigit($0) }) else {
      throw .badAddress(text, reason: "region is a name such as eu-central-1")
    }
    let endpoint = options.removeValue(forKey: "endpoint")
    (self.text, self.bucket, self.region) = (text, bucket, region)
    tls = HTTPTLS(authorities: options.removeValue(forKey: "ca"))
    pollInterval = try Self.pollInterval(options.removeValue(forKey: "poll"), of: text)
    if let unknown = options.keys.min() {
      throw .badAddress(text, reason: "unknown option \(unknown); the options are endpoint, region, ca and poll")
    }
    if let endpoint {
      let (scheme, host) = try Self.server(endpoint, of: text)
      (self.host, path) = (host, "/\(bucket)")
      base = "\(scheme)://\(host)\(path)"
      guard scheme == "https" || tls == HTTPTLS() else {
        throw .badAddress(text, reason: "ca needs TLS: the endpoint must begin with https://")
      }
    } else {
      let domain = "s3.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")"
      // A certificate for all buckets has none with a dot.
      (host, path) = bucket.contains(".") ? (domain, "/\(bucket)") : ("\(bucket).\(domain)", "")
      base = "https://\(host)\(path)"
    }
  }

  private static func pollInterval(_ option: String?, of text: String) throws(CarrierError) -> Duration {
    guard let option else { return .seconds(5) }
    guard let seconds = Double(option), (0.1...3600).contains(seconds) else {
      throw .badAddress(text, reason: "poll is a number of seconds from 0.1 to 3600")
    }
    return .milliseconds(Int(seconds * 1000))
  }

  /// The scheme and host of an endpoint; libcurl sends the host without the usual port, and the host is signed.
  private static func server(_ endpoint: String, of text: String) throws(CarrierError) -> (String, String) {
    for (scheme, port) in [("https", ":443"), ("http", ":80")] where endpoint.hasPrefix("\(scheme)://") {
      var host = endpoint.dropFirst(scheme.count + 3)
      if host.hasSuffix("/") { host = host.dropLast() }
      guard !host.isEmpty, EtcdAddress.isHost(String(host)) else { break }
      return (scheme, (host.hasSuffix(port) ? host.dropLast(port.count) : host).lowercased())
    }
    throw .badAddress(
      text, reason: "endpoint is https:// or http:// and a host with an optional port, as in https://host:9000")
  }

  private static func isBucket(_ name: String) -> Bool {
    (3...63).contains(name.utf8.count) && !name.hasPrefix(".") && !name.hasSuffix(".") && !name.contains("..")
      && name.utf8.allSatisfy { byte in
        byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || Self.isLetterOrDigit(byte)
      }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}
