import Coffer

enum Level: String, Codable, CaseIterable { case debug, info, warning, error }
enum Destination: String, Codable, CaseIterable { case standardError, file, journal }
enum Format: String, Codable, CaseIterable { case text, json }

/// Settings for logging.
enum Logging {
  static let level = Key("level", in: "logging", default: Level.info, summary: "The least that is logged")
  static let destination = Key(
    "destination", in: "logging", default: Destination.standardError, summary: "Where it goes", effect: .restart)
  static let path = Key(
    "path", in: "logging", default: "/var/log/app.log", limits: .pattern("/.+"),
    summary: "The file, where it goes into one", effect: .restart)
  static let format = Key("format", in: "logging", default: Format.text, summary: "How a line looks")
  static let isColored = Key("isColored", in: "logging", default: false, summary: "Whether lines have colours")
  static let rotationSize = Key(
    "rotationSize", in: "logging", default: 10_485_760, limits: .range(1024...1_073_741_824),
    summary: "Bytes after which a new file begins")
  static let filesKept = Key(
    "filesKept", in: "logging", default: 7, limits: .range(1...365), summary: "How many old files stay")
  static let isCompressingOldFiles = Key(
    "isCompressingOldFiles", in: "logging", default: true, summary: "Whether they are compressed")
  static let bufferSize = Key(
    "bufferSize", in: "logging", default: 8192, limits: .range(0...1_048_576),
    summary: "Bytes that may wait to be written")
  static let flushInterval = Key(
    "flushInterval", in: "logging", default: 1.0, limits: .range(0.01...60), summary: "Seconds until they are")
  static let isIncludingTime = Key(
    "isIncludingTime", in: "logging", default: true, summary: "Whether lines begin with the time")
  static let isIncludingSource = Key(
    "isIncludingSource", in: "logging", default: false, summary: "Whether lines name file and line")
  static let timeZone = Key(
    "timeZone", in: "logging", default: "UTC", limits: .notEmpty, summary: "The time zone of times")
  static let redactedFields = Key(
    "redactedFields", in: "logging", default: ["password", "token"], limits: .notEmpty,
    summary: "Fields that are never written")
  static let sampleRate = Key(
    "sampleRate", in: "logging", default: 1.0, limits: .range(0...1), summary: "The share of requests that is logged")
  static let slowRequestTime = Key(
    "slowRequestTime", in: "logging", default: 1.0, limits: .range(0...600),
    summary: "Seconds from which a request is slow")
  static let isLoggingRequests = Key(
    "isLoggingRequests", in: "logging", default: true, summary: "Whether requests are logged")
  static let isLoggingBodies = Key(
    "isLoggingBodies", in: "logging", default: false, summary: "Whether their bodies are")
  static let maximumLineLength = Key(
    "maximumLineLength", in: "logging", default: 4096, limits: .range(80...65_536), summary: "Where a line is cut")
  static let errorWebhook = Key(
    "errorWebhook", in: "logging", default: "", limits: .pattern("(https://.+)?"), summary: "Where errors are posted")

  static let settings = Settings {
    level
    destination
    path
    format
    isColored
    rotationSize
    filesKept
    isCompressingOldFiles
    bufferSize
    flushInterval
    isIncludingTime
    isIncludingSource
    timeZone
    redactedFields
    sampleRate
    slowRequestTime
    isLoggingRequests
    isLoggingBodies
    maximumLineLength
    errorWebhook
  }
}
