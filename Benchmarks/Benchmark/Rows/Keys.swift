import Coffer
import Foundation

/// The cost of keys: slots, opening, re-encryption.
enum Keys {
  private static let megabyteCount = 100
  private static let valueByteCount = 1900

  static func row(_ folder: Folder) throws -> Row {
    let coffer = try CofferPeer(creating: folder.subfolder("keys").file("Coffer"))
    let database = coffer.proxy.database
    let keyFile = KeySource.keyFile(CofferPeer.keyFile(of: coffer.path))
    let passphrase = KeySource.passphrase(SecretBytes(copying: "correct horse battery staple"))
    let another = KeySource.passphrase(SecretBytes(copying: "another"))
    let connection = try database.makeConnection()
    try connection.readWrite { transaction in
      for number in 0..<megabyteCount * 500 {
        try transaction.setObject(Data(repeating: UInt8(number & 255), count: valueByteCount), forKey: "\(number)")
      }
    }
    try database.addSlot(passphrase)
    func measurement(
      _ name: String, lastRound: Int = .max, then finish: @escaping () throws -> Void = {},
      _ body: @escaping () throws -> Void
    ) -> Measurement {
      Measurement(Work(row: "keys", name: name, unit: .milliseconds), coffer.name, lastRound: lastRound) { _ in
        let start = Measure.nanoseconds()
        try body()
        let time = Measure.nanoseconds() - start
        try finish()
        return Double(time) / 1e6
      }
    }
    return Row(measurements: [
      measurement("add a slot for a random key", then: { try database.removeSlot(2) }) {
        try database.addSlot(.key(.random(count: 32)))
      },
      measurement("add a slot for a passphrase (scrypt, 128 MiB)") { try database.addSlot(another) },
      measurement("remove a slot") { try database.removeSlot(2) },
      measurement(
        "re-encrypt \(megabyteCount) MB", lastRound: 3,
        then: { try connection.readWrite { try $0.setObject(1, forKey: "k") } }
      ) { try database.rotate() },
      measurement("open by key file beside an open store, first read, close") { try readOnce(coffer.path, keyFile) },
      measurement("open by passphrase beside an open store, first read, close") {
        try readOnce(coffer.path, passphrase)
      },
    ])
  }

  private static func readOnce(_ path: String, _ key: KeySource) throws {
    let database = try Database.open(at: path, key: key)
    let value: Data? = try database.makeConnection().read { try $0.object(forKey: "1") }
    try require(value == Data(repeating: 1, count: valueByteCount), "another value was read")
    try database.close()
  }
}
