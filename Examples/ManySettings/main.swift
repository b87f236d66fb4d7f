// 200 settings in 10 modules, for 3 tenants: each declared once, with separate values per tenant.
//
//   ManySettings [FOLDER]   in a temporary folder by default

import Coffer
import Foundation

// MARK: - Opening

let arguments = CommandLine.arguments.dropFirst()
let temporary = FileManager.default.temporaryDirectory.appending(path: "coffer-\(UUID().uuidString)").path
let folder = arguments.first ?? temporary
defer { if arguments.isEmpty { try? FileManager.default.removeItem(atPath: temporary) } }

// Each module declares its own settings; the program combines them.
let declared = Settings(version: "1.0") {
  HTTP.settings
  Database.settings
  Cache.settings
  Mail.settings
  Billing.settings
  Search.settings
  Logging.settings
  Auth.settings
  Uploads.settings
  Jobs.settings
}
try KeyFile.create(at: "\(folder)/key")

/// Opens the settings; strict opening also refuses a bad variable.
func open(variables: [String: String] = [:], strict: Bool = false) throws -> Preferences {
  try Preferences.open(
    application: "org.example.portal", at: "\(folder)/settings.coffer", key: .keyFile("\(folder)/key"),
    layers: [.variables(prefix: "PORTAL_", variables)], declaring: declared, strict: strict)
}
let settings = try open()
print("\(declared.keys.count) settings declared")

// MARK: - Tenants

// A tenant is a suite. "billing" read through it is the tenant's own part of the module.
let acme = settings.suite(named: "acme")
let globex = settings.suite(named: "globex")
let initech = settings.suite(named: "initech")
acme[Billing.rate] = 80
globex[Billing.currency] = "USD"
for tenant in [acme, globex, initech] {
  print("\(tenant.collection): \(tenant[Billing.rate]) cents an hour, in \(tenant[Billing.currency])")
}

// MARK: - Limits

do {
  try initech.set(-1, for: Billing.rate)
} catch CofferError.invalidValue(let collection, let key, let reason) {
  print("Refused: \(collection)/\(key) must be \(reason)")
}

// A typo in a variable hides nothing: the stored value is used, and the problem is logged.
// Committed before the settings are opened again, as by another process.
try settings.set(200, for: HTTP.rateLimit, durability: .committed)
let slipped = try open(variables: ["PORTAL_HTTP_RATELIMIT": "many"])
print("The variable says \"many\"; the limit is \(slipped[HTTP.rateLimit]) requests a minute")
try slipped.close()

// A deployment that must use exactly its given settings fails instead.
do {
  _ = try open(variables: ["PORTAL_HTTP_RATELIMIT": "0", "PORTAL_CACHE_SHARDCOUNT": "3"], strict: true)
} catch CofferError.invalidSettings(let problems) {
  for problem in problems { print("Not started: \(problem)") }
}
try settings.close()
