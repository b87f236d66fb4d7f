import Coffer

enum TLSVersion: String, Codable, CaseIterable { case v12 = "1.2", v13 = "1.3" }

/// Settings for the HTTP server.
enum HTTP {
  static let port = Key(
    "port", in: "http", default: 8080, limits: .range(1...65535), summary: "The port to listen on", effect: .restart)
  static let address = Key(
    "address", in: "http", default: "127.0.0.1", limits: .pattern(#"[0-9a-fA-F.:]+"#),
    summary: "The address to listen on", effect: .restart)
  static let maximumConnections = Key(
    "maximumConnections", in: "http", default: 1000, limits: .range(1...100_000),
    summary: "How many connections may be open at once")
  static let requestTimeout = Key(
    "requestTimeout", in: "http", default: 30.0, limits: .range(0.1...600),
    summary: "Seconds until a request is given up")
  static let idleTimeout = Key(
    "idleTimeout", in: "http", default: 60.0, limits: .range(1...3600),
    summary: "Seconds until an idle connection is closed")
  static let maximumBodySize = Key(
    "maximumBodySize", in: "http", default: 1_048_576, limits: .range(0...1_073_741_824),
    summary: "The largest body of a request, in bytes")
  static let maximumHeaderSize = Key(
    "maximumHeaderSize", in: "http", default: 16_384, limits: .range(1024...1_048_576),
    summary: "The largest header of a request, in bytes")
  static let isCompressing = Key("isCompressing", in: "http", default: true, summary: "Whether answers are compressed")
  static let compressionLevel = Key(
    "compressionLevel", in: "http", default: 6, limits: .range(1...9), summary: "How hard to compress")
  static let isKeepingAlive = Key(
    "isKeepingAlive", in: "http", default: true, summary: "Whether a connection serves several requests")
  static let allowedOrigins = Key(
    "allowedOrigins", in: "http", default: [String](), limits: .count(...50),
    summary: "The origins that browsers may ask from")
  static let allowedMethods = Key(
    "allowedMethods", in: "http", default: ["GET", "POST"], limits: .notEmpty, summary: "The methods that are answered")
  static let trustedProxies = Key(
    "trustedProxies", in: "http", default: [String](), limits: .count(...20),
    summary: "Addresses whose forwarding headers are believed")
  static let serverName = Key(
    "serverName", in: "http", default: "example", limits: .count(1...63), summary: "What the service calls itself")
  static let isRedirectingToTLS = Key(
    "isRedirectingToTLS", in: "http", default: false, summary: "Whether plain requests are sent to the encrypted port")
  static let tlsPort = Key(
    "tlsPort", in: "http", default: 8443, limits: .range(1...65535), summary: "The port for encrypted requests",
    effect: .restart)
  static let minimumTLSVersion = Key(
    "minimumTLSVersion", in: "http", default: TLSVersion.v12, summary: "The oldest version of TLS that is spoken",
    effect: .restart)
  static let rateLimit = Key(
    "rateLimit", in: "http", default: 100, limits: .range(1...10_000), summary: "Requests a client may make in a minute"
  )
  static let rateBurst = Key(
    "rateBurst", in: "http", default: 20, limits: .range(0...1000), summary: "Requests a client may make at once")
  static let isAnsweringHealthChecks = Key(
    "isAnsweringHealthChecks", in: "http", default: true, summary: "Whether /health is answered")

  static let settings = Settings {
    port
    address
    maximumConnections
    requestTimeout
    idleTimeout
    maximumBodySize
    maximumHeaderSize
    isCompressing
    compressionLevel
    isKeepingAlive
    allowedOrigins
    allowedMethods
    trustedProxies
    serverName
    isRedirectingToTLS
    tlsPort
    minimumTLSVersion
    rateLimit
    rateBurst
    isAnsweringHealthChecks
  }
}
