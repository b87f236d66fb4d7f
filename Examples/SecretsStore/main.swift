// Secrets for deployments: who can open the store, what stays shut while it is open, and how somebody is let out.
//
//   SecretsStore [FOLDER]  in a temporary folder unless one is named

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

/// Stands for what somebody types; a program would read it without echo, straight into `SecretBytes`.
func typed(_ text: String) -> SecretBytes { Secret(text).bytes }

/// The lowest cost that is allowed, for an example that is run often.
///
/// Leave it out, or let `PasswordHash.calibrated(for: .seconds(1))` find what this machine can bear.
let quick = PasswordHash.scrypt(log2N: 14, r: 8, p: 1)

func show(_ slots: [SlotInfo]) {
  for slot in slots { print("  \(slot.id)  \(slot.kind.rawValue), \(slot.label)") }
}

// MARK: - Who can open the store

try KeyFile.create(at: "\(folder)/machine.key")
let machine = KeySource.keyFile("\(folder)/machine.key")
let database = try Database.create(at: path, key: machine)
try database.setLabel("this machine", forSlot: 0)

// To be written down, and put where the machine is not.
let recoveryKey = try database.addRecoveryKey(label: "the safe")
let groupCount = recoveryKey.text.withUnsafeBytes { $0.split(separator: UInt8(ascii: "-")).count }
print("The recovery key has \(groupCount) groups. The store opens with:")
show(try database.slots())

// MARK: - What stays shut while it is open

let vault = database.vault
try vault.create(key: .passphrase(typed("correct horse battery staple")), label: "Ada", stretching: quick)
try database.seal(collection: "tokens")

let settings = try ConnectionProxy(database: database)
try settings.setObject("https://example.org", forKey: "server")
try settings.setObject(Secret("s3cret-t0ken"), forKey: "deploy", inCollection: "tokens")
try settings.flushAndWait()

// Printed, logged or reflected it is as long as it is, and no more.
let token = try settings.object(forKey: "deploy", inCollection: "tokens", as: Secret.self)
print("The token: \(token.map { "\($0)" } ?? "none")")

vault.lock()
print("Locked. Keys: \(try settings.allKeys(inCollection: "tokens").joined(separator: ", "))")
print("Server: \(try settings.object(forKey: "server", as: String.self) ?? "none")")
do {
  _ = try settings.object(forKey: "deploy", inCollection: "tokens", as: Secret.self)
} catch CofferError.locked {
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

// MARK: - Letting somebody in, and out again

try KeyFile.create(at: "\(folder)/colleague.key")
let colleague = KeySource.keyFile("\(folder)/colleague.key")
let slot = try database.addSlot(colleague, label: "Bob's laptop")

// Removing the slot would keep Bob from opening the file. A new root key keeps him from what is written from now on, also if
// he kept a copy of the file from when he could open it. It wants every secret that is to stay.
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

// MARK: - The day the machine is gone

let rescued = try Database.open(at: path, key: .recoveryKey(recoveryKey.text))
let server: String? = try rescued.makeConnection().read { try $0.object(forKey: "server") }
print("With the recovery key: \(server ?? "nothing")")
try rescued.close()
