import Coffer

/// Settings for mail.
enum Mail {
  static let isEnabled = Key("isEnabled", in: "mail", default: true, summary: "Whether messages are sent at all")
  static let host = Key(
    "host", in: "mail", default: "localhost", limits: .notEmpty, summary: "The host that takes messages")
  static let port = Key("port", in: "mail", default: 587, limits: .range(1...65535), summary: "Its port")
  static let user = Key("user", in: "mail", default: "mail", limits: .notEmpty, summary: "The user to sign in as")
  static let password = Key<Secret?>("password", in: "mail", limits: .notEmpty, summary: "The password of that user")
  static let from = Key(
    "from", in: "mail", default: "noreply@example.org", limits: .pattern("[^@ ]+@[^@ ]+"),
    summary: "The address that messages come from")
  static let replyTo = Key(
    "replyTo", in: "mail", default: "help@example.org", limits: .pattern("[^@ ]+@[^@ ]+"),
    summary: "The address that answers go to")
  static let isUsingTLS = Key("isUsingTLS", in: "mail", default: true, summary: "Whether the connection is encrypted")
  static let timeout = Key(
    "timeout", in: "mail", default: 15.0, limits: .range(1...300), summary: "Seconds until sending is given up")
  static let retryCount = Key(
    "retryCount", in: "mail", default: 5, limits: .range(0...50), summary: "How often a message is tried again")
  static let retryInterval = Key(
    "retryInterval", in: "mail", default: 60.0, limits: .range(1...86_400), summary: "Seconds between two tries")
  static let queueLimit = Key(
    "queueLimit", in: "mail", default: 10_000, limits: .range(1...1_000_000), summary: "How many messages may wait")
  static let hourlyLimit = Key(
    "hourlyLimit", in: "mail", default: 1000, limits: .range(1...1_000_000),
    summary: "How many messages are sent in an hour")
  static let footer = Key(
    "footer", in: "mail", default: "", limits: .count(...500), summary: "What every message ends with")
  static let language = Key(
    "language", in: "mail", default: "en", limits: .pattern("[a-z]{2}"), summary: "The language of messages")
  static let isSendingHTML = Key(
    "isSendingHTML", in: "mail", default: true, summary: "Whether messages have an HTML part")
  static let attachmentLimit = Key(
    "attachmentLimit", in: "mail", default: 5_242_880, limits: .range(0...52_428_800),
    summary: "The largest attachment, in bytes")
  static let bounceAddress = Key(
    "bounceAddress", in: "mail", default: "bounce@example.org", limits: .pattern("[^@ ]+@[^@ ]+"),
    summary: "The address that bounces go to")
  static let blockedDomains = Key(
    "blockedDomains", in: "mail", default: [String](), limits: .count(...1000), summary: "Domains that get no messages")
  static let isSandboxed = Key(
    "isSandboxed", in: "mail", default: false, summary: "Whether messages are written to the log instead")

  static let settings = Settings {
    isEnabled
    host
    port
    user
    password
    from
    replyTo
    isUsingTLS
    timeout
    retryCount
    retryInterval
    queueLimit
    hourlyLimit
    footer
    language
    isSendingHTML
    attachmentLimit
    bounceAddress
    blockedDomains
    isSandboxed
  }
}
