import Coffer
import CofferCrypto
import CofferStorage
import Foundation

/// The stores in `Tests/Formats/1`: made once, by version 1, and opened, read, written and salvaged by every later version.
///
/// They are never recreated. `StoreWorker make-golden FOLDER -` creates those of a later version.
package enum GoldenStore: String, CaseIterable, Sendable {
  /// Each kind of value, sealed values, history, expiry, and a log left open as by a crash: `StoreVector` as it was then.
  case log = "store-1"
  /// A slot of each kind, declarations, an environment, the tables of fleets, a collection that was erased, a replaced root key,
  /// and a replaced key of the vault; closed.
  case closed
  /// An interrupted re-encryption, with the first page under the new key in the log.
  case rotating

  package static let commandKey = SecretBytes(count: 32) { $0.copyBytes(from: 64..<96) }
  package static let credentialKey = SecretBytes(count: 32) { $0.copyBytes(from: 96..<128) }
  /// Stretched by PBKDF2, as ``StoreVector/passphrase`` is by scrypt.
  ///
  /// Argon2id, which OpenSSL 3.0 lacks, is in no store here.
  package static let otherPassphrase = "battery staple"

  private static let author = Author(program: "golden", user: "maker", host: "nowhere", actor: nil)

  // MARK: Making

  package static func make(in folder: String) throws {
    _ = try StoreVector.make(in: folder)
    try makeClosed(in: folder)
    try makeRotating(in: folder)
  }

  private static func create(_ path: String, _ anchor: RecordedAnchor = RecordedAnchor()) throws -> Database {
    let database = try Database.create(at: path, key: .key(StoreVector.key), options: .quiet.anchored(anchor))
    database.core.setAuthor(author)
    return database
  }

  private static func makeClosed(in folder: String) throws {
    let scratch = try ScratchFolder()
    let path = scratch.path + "/settings.coffer"
    let anchor = RecordedAnchor()
    let database = try create(path, anchor)
    try database.addSlot(
      .passphrase(Secret(StoreVector.passphrase).bytes), label: "scrypt", stretching: .scrypt(log2N: 14, r: 8, p: 1))
    try database.addSlot(
      .passphrase(Secret(otherPassphrase).bytes), label: "PBKDF2", stretching: .pbkdf2HMACSHA512(iterations: 100_000))
    let recoveryKey = try database.addRecoveryKey(label: "paper").text.withUnsafeBytes {
      String(decoding: $0, as: UTF8.self)
    }
    let digits = commandKey.withUnsafeBytes { HexText.text($0) }
    try database.addSlot(.keyCommand("echo coffer-key-1:\(digits)"), label: "command")
    try credentialKey.withUnsafeBytes { try Data($0).write(to: URL(fileURLWithPath: scratch.file("credential"))) }
    setenv("CREDENTIALS_DIRECTORY", scratch.path, 1)
    try database.addSlot(.credential("credential"), label: "credential")
    try database.vault.create(key: .key(StoreVector.vaultKey), label: "vault")
    try database.seal(collection: "sealed")
    let connection = try database.makeConnection()
    try connection.readWrite { transaction in
      try transaction.setObject("dark", forKey: "theme", inCollection: "editor")
      try transaction.setObject(Secret("open sesame"), forKey: "token", inCollection: "sealed")
      try transaction.setObject(1, forKey: "key", inCollection: "removed")
      try transaction.makeEnvironment("staging", of: "editor")
      try transaction.setObject("light", forKey: "theme", inCollection: "editor@staging")
    }
    let preferences = try Preferences(database: database, collection: "editor")
    try preferences.declare(
      Settings(version: "1.0") {
        Key("theme", default: "light", limits: .choices("light", "dark"), summary: "How it looks")
        Key("size", default: 12, limits: .range(6...72), effect: .restart)
      })
    try connection.readWrite { try $0.erase(collection: "removed") }
    try joinFleet(connection)
    try database.vault.rotate(newKeyFor: [.key(StoreVector.vaultKey)])
    try database.rotate(newRootKeyFor: [
      .key(StoreVector.key), .passphrase(Secret(StoreVector.passphrase).bytes),
      .passphrase(Secret(otherPassphrase).bytes), .recoveryKey(Secret(recoveryKey).bytes),
      .keyCommand("echo coffer-key-1:\(digits)"), .credential("credential"),
    ])
    let contents = try StoreVector.contents(of: database, recoveryKey: recoveryKey)
    try database.close()
    let record = HexText.text(anchor.record ?? [])
    try Data("\(record)\n".utf8).write(to: URL(fileURLWithPath: folder + "/closed-witness.hex"))
    try write(path, contents, .closed, in: folder)
  }

  /// As a member that has seen one setting of another; FLEET.md specifies the objects.
  private static func joinFleet(_ connection: Connection) throws {
    try connection.writeFleets { transaction in
      let id = try transaction.save(
        StoredFleet(
          fleet: Array(0..<16), carrier: "file:///nowhere", member: Array(16..<32), identity: StoreVector.key,
          firstAuthority: [1], number: 7, pushed: 3, synced: 1, head: [2], authority: [3], members: [4],
          sum: [UInt8](repeating: 0, count: 2048)))
      try transaction.save(
        StoredRecord(
          collection: "editor", key: "theme", name: [5], counter: 1, clock: 2, author: Array(16..<32), isRemoved: false,
          expires: nil, version: StoredRecord.notInStep, digest: [6]), of: id)
      try transaction.addConflict("theme", in: "editor", version: 2, winner: "one", loser: "other", of: id)
      try transaction.setRule(1, for: "editor", of: id)
    }
  }

  private static func makeRotating(in folder: String) throws {
    let scratch = try ScratchFolder()
    let path = scratch.path + "/settings.coffer"
    let database = try create(path)
    try database.makeConnection().readWrite { transaction in
      for number in 0..<50 {
        try transaction.setObject(
          String(repeating: "value \(number) ", count: 20), forKey: "key \(number)", inCollection: "many")
      }
    }
    let contents = try StoreVector.contents(of: database, recoveryKey: "")
    try database.close()
    let connection = try SQLiteConnection(store: Store.open(at: path, key: .key(StoreVector.key)), busyTimeout: .zero)
    try connection.beginWrite(.full)
    _ = try connection.changeEnvelope { try $0.beginRotation() }
    // Rewrites the page even if it stays the same.
    let version = try connection.statement("PRAGMA user_version").first { $0.integer(0) } ?? 0
    try connection.execute("PRAGMA user_version=\(version)")
    try connection.commit()
    try write(path, contents, .rotating, in: folder)
    try connection.close()
  }

  private static func write(
    _ path: String, _ contents: StoreVector.Contents, _ kind: GoldenStore, in folder: String
  ) throws {
    let target = URL(fileURLWithPath: folder, isDirectory: true)
    for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path + suffix) {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: path + suffix))
      try Data(StoreVector.dump(bytes).utf8).write(
        to: target.appendingPathComponent("\(kind.rawValue)\(suffix).hex"))
    }
    try StoreVector.encoded(contents).write(to: target.appendingPathComponent("\(kind.rawValue).json"))
  }
}
