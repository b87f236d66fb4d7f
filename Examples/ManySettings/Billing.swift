import Coffer

enum Gateway: String, Codable, CaseIterable { case test, live }
enum Rounding: String, Codable, CaseIterable { case up, down, halfEven }

/// Settings for billing.
enum Billing {
  static let currency = Key(
    "currency", in: "billing", default: "EUR", limits: .choices("EUR", "USD", "GBP", "CHF"),
    summary: "The currency of prices")
  static let taxRate = Key(
    "taxRate", in: "billing", default: 0.19, limits: .range(0...1), summary: "The share of taxes")
  static let rate = Key(
    "rate", in: "billing", default: 100, limits: .range(0...100_000), summary: "The price of an hour, in cents")
  static let minimumCharge = Key(
    "minimumCharge", in: "billing", default: 500, limits: .range(0...1_000_000),
    summary: "The smallest invoice, in cents")
  static let isTaxIncluded = Key("isTaxIncluded", in: "billing", default: true, summary: "Whether prices include taxes")
  static let invoicePrefix = Key(
    "invoicePrefix", in: "billing", default: "INV-", limits: .pattern("[A-Z]+-"),
    summary: "What invoice numbers begin with")
  static let paymentDays = Key(
    "paymentDays", in: "billing", default: 14, limits: .range(0...120), summary: "Days until an invoice is due")
  static let reminderDays = Key(
    "reminderDays", in: "billing", default: [7, 14], limits: .count(...5),
    summary: "Days after which somebody is reminded")
  static let lateFee = Key(
    "lateFee", in: "billing", default: 500, limits: .range(0...100_000), summary: "What a reminder costs, in cents")
  static let discountLimit = Key(
    "discountLimit", in: "billing", default: 0.5, limits: .range(0...1), summary: "The largest discount")
  static let isTrialOffered = Key(
    "isTrialOffered", in: "billing", default: true, summary: "Whether new customers try for nothing")
  static let trialDays = Key(
    "trialDays", in: "billing", default: 30, limits: .range(1...365), summary: "How long they do")
  static let gateway = Key(
    "gateway", in: "billing", default: Gateway.test, summary: "Who takes payments", effect: .restart)
  static let gatewayKey = Key<Secret?>(
    "gatewayKey", in: "billing", limits: .count(16...), summary: "What the program shows them")
  static let retryCount = Key(
    "retryCount", in: "billing", default: 3, limits: .range(0...10), summary: "How often a payment is tried again")
  static let roundingMode = Key(
    "roundingMode", in: "billing", default: Rounding.halfEven, summary: "How fractions of a cent are rounded")
  static let invoiceHour = Key(
    "invoiceHour", in: "billing", default: 6, limits: .range(0...23),
    summary: "The hour of the day that invoices are made in")
  static let isArchiving = Key("isArchiving", in: "billing", default: true, summary: "Whether invoices are archived")
  static let archiveYears = Key(
    "archiveYears", in: "billing", default: 10, limits: .range(1...30), summary: "How long they are")
  static let contact = Key(
    "contact", in: "billing", default: "billing@example.org", limits: .pattern("[^@ ]+@[^@ ]+"),
    summary: "Who answers questions")

  static let settings = Settings {
    currency
    taxRate
    rate
    minimumCharge
    isTaxIncluded
    invoicePrefix
    paymentDays
    reminderDays
    lateFee
    discountLimit
    isTrialOffered
    trialDays
    gateway
    gatewayKey
    retryCount
    roundingMode
    invoiceHour
    isArchiving
    archiveYears
    contact
  }
}
