// Secrets for deployments: who can open the store, what stays sealed while it is open, and how to revoke access.
//
//   SecretsStore [FOLDER]  in a temporary folder by default

import Coffer
import Foundation

let arguments = CommandLine.arguments.dropFirst()
let temporary = FileManager.default.temporaryDirectory.appending(path: "coffer-\(UUID().uuidString)").path
let folder = arguments.first ?? temporary
defer { if arguments.isEmpty { try? FileManager.default.removeItem(atPath: temporary) } }
let path = "\(folder)/secrets.coffer"
// The example starts over each time.
for file in [path, "\(folder)/machine.key", "\(folder)/colleague.key"] {
  try? FileManager.default.removeItem(atPath: file)
}

/// Simulates typed input; a program would read it without echo, directly into `SecretBytes`.
func typed(_ text: String) -> SecretBytes { Secret(text).bytes }

/// The lowest allowed cost, for an example that runs often.
///
/// Omit it, or let `PasswordHash.calibrated(for: .seconds(1))` choose a cost for this machine.
let quick = PasswordHash.scrypt(log2N: 14, r: 8, p: 1)

func show(_ slots: [SlotInfo]) {
  for slot in slots { print("  \(slot.id)  \(slot.kind.rawValue), \(slot.label)") }
}

// MARK: - Who can open the store

try KeyFile.create(at: "\(folder)/machine.key")
let machine = KeySource.keyFile("\(folder)/machine.key")
let database = try Database.create(at: path, key: machine)
try database.setLabel("this machine", forSlot: 0)

// Write it down, and keep it away from the machine.
let recoveryKey = try database.addRecoveryKey(label: "the safe")
let groupCount = recoveryKey.text.withUnsafeBytes { $0.split(separator: UInt8(ascii: "-")).count }
print("The recovery key has \(groupCount) groups. The store opens with:")
show(try database.slots())

// MARK: - What stays sealed while the store is open

let vault = database.vault
try vault.create(key: .passphrase(typed("correct horse battery staple")), label: "Ada", stretching: quick)
try database.seal(collection: "tokens")

let settings = try ConnectionProxy(database: database)
try settings.setObject("https://example.org", forKey: "server")
try settings.setObject(Secret("s3cret-t0ken"), forKey: "deploy", inCollection: "tokens")
try settings.flushAndWait()

// Printed, logged or reflected, it shows only its length.
let token = try settings.object(forKey: "deploy", inCollection: "tokens", as: Secret.self)
print("The token: \(token.map { "\($0)" } ?? "none")")

vault.lock()
print("Locked. Keys: \(try settings.allKeys(inCollection: "tokens").joined(separator: ", "))")
print("Server: \(try settings.object(forKey: "server", as: String.self) ?? "none")")
do {
  _ = try settings.object(forKey: "deploy", inCollection: "tokens", as: Secret.self)
} catch CofferError.vaultLocked {
  print("The token is locked")
}
do {
  try vault.unlock(.passphrase(typed("correct horse")))
} catch CofferError.wrongKey {
  print("That is not the passphrase")
}
try vault.unlock(.passphrase(typed("correct horse battery staple")))
let length = try settings.object(forKey: "deploy", inCollection: "tokens", as: Secret.self)?.count ?? 0
print("Unlocked: \(length) bytes")

// MARK: - Granting and revoking access

try KeyFile.create(at: "\(folder)/colleague.key")
let colleague = KeySource.keyFile("\(folder)/colleague.key")
let slot = try database.addSlot(colleague, label: "Bob's laptop")

// Removing the slot would keep Bob from opening the file. A new root key also keeps him from anything written from now on,
// even if he kept a copy of the file from before. It needs every secret that stays.
do {
  try database.rotate(newRootKeyFor: [machine], droppingSlots: [slot.id])
} catch CofferError.slotsNotOpened(let ids) {
  print("Of \(ids.count) slot the secret is missing; nothing was changed")
}
try database.rotate(newRootKeyFor: [machine, .recoveryKey(recoveryKey.text)], droppingSlots: [slot.id])
print("Re-encrypted. The store opens with:")
show(try database.slots())
try settings.close()
try database.close()

do {
  _ = try Database.open(at: path, key: colleague)
} catch CofferError.wrongKey {
  print("Bob's key opens it no longer")
}

// MARK: - The day the machine is lost

let rescued = try Database.open(at: path, key: .recoveryKey(recoveryKey.text))
let server: String? = try rescued.makeConnection().read { try $0.object(forKey: "server") }
print("With the recovery key: \(server ?? "nothing")")
try rescued.close()
