import Coffer

enum Isolation: String, Codable, CaseIterable { case readCommitted, repeatableRead, serializable }
enum SSLMode: String, Codable, CaseIterable { case disable, prefer, require }

/// Settings for the database.
enum Database {
  static let host = Key(
    "host", in: "database", default: "localhost", limits: .notEmpty, summary: "The host of the database",
    effect: .restart)
  static let port = Key(
    "port", in: "database", default: 5432, limits: .range(1...65535), summary: "The port of the database",
    effect: .restart)
  static let name = Key(
    "name", in: "database", default: "app", limits: .pattern("[a-z_][a-z0-9_]*"), summary: "The name of the database",
    effect: .restart)
  static let user = Key(
    "user", in: "database", default: "app", limits: .notEmpty, summary: "The user to connect as", effect: .restart)
  static let password = Key<Secret?>(
    "password", in: "database", limits: .count(8...), summary: "The password of that user")
  static let poolSize = Key(
    "poolSize", in: "database", default: 10, limits: .range(1...200), summary: "Connections that are kept open")
  static let poolOverflow = Key(
    "poolOverflow", in: "database", default: 5, limits: .range(0...200),
    summary: "Connections that may be opened beyond those")
  static let connectTimeout = Key(
    "connectTimeout", in: "database", default: 5.0, limits: .range(0.1...120),
    summary: "Seconds until connecting is given up")
  static let statementTimeout = Key(
    "statementTimeout", in: "database", default: 30.0, limits: .range(0.1...3600),
    summary: "Seconds until a statement is given up")
  static let isReadOnly = Key("isReadOnly", in: "database", default: false, summary: "Whether nothing is written")
  static let isolation = Key(
    "isolation", in: "database", default: Isolation.readCommitted, summary: "What transactions see of one another")
  static let retryCount = Key(
    "retryCount", in: "database", default: 3, limits: .range(0...20),
    summary: "How often a failed transaction is tried again")
  static let retryDelay = Key(
    "retryDelay", in: "database", default: 0.1, limits: .range(0...60), summary: "Seconds between two tries")
  static let batchSize = Key(
    "batchSize", in: "database", default: 500, limits: .range(1...10_000), summary: "Rows that are written at once")
  static let isLoggingSlowStatements = Key(
    "isLoggingSlowStatements", in: "database", default: true, summary: "Whether slow statements are logged")
  static let slowStatementTime = Key(
    "slowStatementTime", in: "database", default: 1.0, limits: .range(0.001...600),
    summary: "Seconds from which a statement is slow")
  static let searchPath = Key(
    "searchPath", in: "database", default: ["public"], limits: .notEmpty, summary: "The schemas to look for tables in")
  static let sslMode = Key(
    "sslMode", in: "database", default: SSLMode.prefer, summary: "Whether connections are encrypted")
  static let vacuumHour = Key(
    "vacuumHour", in: "database", default: 3, limits: .range(0...23), summary: "The hour of the day to clean up in")
  static let backupsKept = Key(
    "backupsKept", in: "database", default: 14, limits: .range(1...365), summary: "How many backups stay")

  static let settings = Settings {
    host
    port
    name
    user
    password
    poolSize
    poolOverflow
    connectTimeout
    statementTimeout
    isReadOnly
    isolation
    retryCount
    retryDelay
    batchSize
    isLoggingSlowStatements
    slowStatementTime
    searchPath
    sslMode
    vacuumHour
    backupsKept
  }
}
