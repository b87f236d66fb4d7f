import Coffer

enum SameSite: String, Codable, CaseIterable { case lax, strict, none }

/// Settings for authentication.
enum Auth {
  static let sessionTime = Key(
    "sessionTime", in: "auth", default: 3600.0, limits: .range(60...2_592_000), summary: "Seconds that a session lasts")
  static let isRemembering = Key(
    "isRemembering", in: "auth", default: true, summary: "Whether sessions may outlast the browser")
  static let rememberDays = Key("rememberDays", in: "auth", default: 30, limits: .range(1...365), summary: "How long")
  static let passwordLength = Key(
    "passwordLength", in: "auth", default: 12, limits: .range(8...128), summary: "The shortest password")
  static let isRequiringDigits = Key(
    "isRequiringDigits", in: "auth", default: false, summary: "Whether passwords need a digit")
  static let attemptLimit = Key(
    "attemptLimit", in: "auth", default: 5, limits: .range(1...100),
    summary: "Wrong passwords until somebody has to wait")
  static let lockTime = Key(
    "lockTime", in: "auth", default: 900.0, limits: .range(1...86_400), summary: "Seconds that they wait")
  static let isSecondFactorRequired = Key(
    "isSecondFactorRequired", in: "auth", default: false, summary: "Whether everybody needs a second factor")
  static let secondFactors = Key(
    "secondFactors", in: "auth", default: ["totp"], limits: .notEmpty, summary: "The second factors that are taken")
  static let tokenKey = Key<Secret?>(
    "tokenKey", in: "auth", limits: .count(32...), summary: "What tokens are signed with")
  static let tokenTime = Key(
    "tokenTime", in: "auth", default: 900.0, limits: .range(60...86_400), summary: "Seconds that a token is good for")
  static let issuer = Key("issuer", in: "auth", default: "example", limits: .notEmpty, summary: "Who issues tokens")
  static let allowedDomains = Key(
    "allowedDomains", in: "auth", default: [String](), limits: .count(...100),
    summary: "The domains of addresses that may register")
  static let isRegistrationOpen = Key(
    "isRegistrationOpen", in: "auth", default: true, summary: "Whether anybody may register")
  static let isConfirmingAddresses = Key(
    "isConfirmingAddresses", in: "auth", default: true, summary: "Whether addresses are confirmed")
  static let confirmationHours = Key(
    "confirmationHours", in: "auth", default: 48, limits: .range(1...720), summary: "How long somebody has for that")
  static let cookieName = Key(
    "cookieName", in: "auth", default: "session", limits: .pattern("[A-Za-z_]+"), summary: "The name of the cookie")
  static let sameSite = Key("sameSite", in: "auth", default: SameSite.lax, summary: "Where browsers send the cookie")
  static let hashCost = Key(
    "hashCost", in: "auth", default: 12, limits: .range(10...20), summary: "How costly hashing a password is")
  static let auditDays = Key(
    "auditDays", in: "auth", default: 90, limits: .range(1...3650), summary: "How long sign-ins are remembered")

  static let settings = Settings {
    sessionTime
    isRemembering
    rememberDays
    passwordLength
    isRequiringDigits
    attemptLimit
    lockTime
    isSecondFactorRequired
    secondFactors
    tokenKey
    tokenTime
    issuer
    allowedDomains
    isRegistrationOpen
    isConfirmingAddresses
    confirmationHours
    cookieName
    sameSite
    hashCost
    auditDays
  }
}
