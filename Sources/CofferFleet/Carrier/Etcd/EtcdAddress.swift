/// The endpoints of an etcd, and the carrier's prefix.
struct EtcdAddress: Sendable {
  let text: String
  /// The members' addresses, as `https://host:2379`.
  let endpoints: [String]
  /// The prefix of the carrier's keys; it ends with a slash.
  let prefix: [UInt8]
  let user: String?
  let tls: HTTPTLS

  init(_ text: String) throws(CarrierError) {
    let address = try CarrierAddress(text)
    guard ["etcd", "etcds"].contains(address.scheme) else {
      throw .badAddress(text, reason: "it must begin with etcd://, or etcds:// for TLS")
    }
    let isSecure = address.scheme == "etcds"
    guard !address.hosts.contains("") else {
      throw .badAddress(text, reason: "it must name a host, or several separated by commas")
    }
    let segments = address.path.split(separator: "/")
    guard !segments.isEmpty else {
      throw .badAddress(text, reason: "a prefix of keys must follow the hosts, as in etcd://host:2379/coffer/team")
    }
    var options = address.options
    let tls = HTTPTLS(
      authorities: options.removeValue(forKey: "ca"), certificate: options.removeValue(forKey: "cert"),
      key: options.removeValue(forKey: "key"))
    if let unknown = options.keys.min() {
      throw .badAddress(text, reason: "unknown option \(unknown); the options are ca, cert and key")
    }
    guard isSecure || tls == HTTPTLS() else {
      throw .badAddress(text, reason: "certificates need TLS: it must begin with etcds://")
    }
    guard (tls.certificate == nil) == (tls.key == nil) else {
      throw .badAddress(text, reason: "cert and key must be given together")
    }
    for host in address.hosts where !Self.isHost(host) {
      throw .badAddress(text, reason: "\(host) is not a host with an optional port")
    }
    self.text = text
    endpoints = address.hosts.map { host in
      "\(isSecure ? "https" : "http")://\(host)\(Self.hasPort(host) ? "" : ":2379")"
    }
    prefix = Array("/\(segments.joined(separator: "/"))/".utf8)
    guard prefix.count <= 256 else { throw .badAddress(text, reason: "the prefix has more than 255 bytes") }
    (self.user, self.tls) = (address.user, tls)
  }

  static func isHost(_ host: String) -> Bool {
    host.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: ":"),
        UInt8(ascii: "["), UInt8(ascii: "]"):
        true
      default: false
      }
    }
  }

  /// `[::1]` has none.
  private static func hasPort(_ host: String) -> Bool {
    host.lastIndex(of: ":").map { $0 > host.lastIndex(of: "]") ?? host.startIndex } ?? false
  }

  func key(of name: String) -> [UInt8] { prefix + Array(name.utf8) }

  /// The object's name; nil for a key that is not the carrier's.
  func name(of key: [UInt8]) -> String? {
    guard key.starts(with: prefix) else { return nil }
    let name = String(decoding: key.dropFirst(prefix.count), as: UTF8.self)
    return CarrierName.isValid(name) ? name : nil
  }
}
