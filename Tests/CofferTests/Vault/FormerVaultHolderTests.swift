import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

/// What someone has kept who could unlock the vault.
private struct Holder {
  let row: VaultRecord
  let key: SecretBytes

  private func derived(_ info: String) throws -> SecretBytes {
    try HKDF.deriveKey(from: key, salt: row.id, info: Array("coffer v1 vault \(info)".utf8), count: 32)
  }

  private func number(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian, Array.init) }

  /// That his key follows itself.
  func succession(_ generation: UInt32) throws -> [UInt8] {
    let commitment = try derived("commitment").withUnsafeBytes(Array.init)
    return try (row.id + number(generation) + commitment).withUnsafeBytes {
      try HMACSHA256.authenticate($0, key: derived("succession"))
    }
  }

  /// Puts back the row of then, with the owner's slot, under another number, and a MAC under the key of then.
  func plant(_ generation: UInt32, _ succession: [UInt8], _ connection: Connection) throws {
    let slots = row.encodedSlots
    let bytes =
      row.id + number(generation) + succession + number(UInt32(slots.count)) + slots + row.encodedSealedCollections
    let mac = try bytes.withUnsafeBytes { try HMACSHA256.authenticate($0, key: derived("MAC")) }
    try connection.perform { session in
      try session.connection.beginWrite(.full)
      let statement = try session.connection.statement(
        "UPDATE vault SET generation = ?, slots = ?, mac = ?, succession = ?")
      statement.bind(Int64(generation), at: 1)
      for (index, bytes) in zip(Int32(2)..., [slots, mac, succession]) { statement.bind(bytes, at: index) }
      try statement.run()
      try session.connection.commit()
      session.cache.removeAll()
    }
  }
}

/// Each test is named after its row of the threat table in `SECURITY.md`.
@Suite("A former holder of a slot of the vault, who has the store's key") struct FormerVaultHolderTests {
  private let store: TemporaryStore
  private let anchor = RecordedAnchor()
  private let vaultKeyFile: String
  private var vaultKey: KeySource { .keyFile(vaultKeyFile) }
  /// The owner's program; it has the vault unlocked.
  private let database: Database
  private let connection: Connection
  private let holder: Holder
  private var formerRow: VaultRecord { holder.row }
  private var formerKey: SecretBytes { holder.key }
  private let presentSuccession: [UInt8]

  init() throws {
    store = try TemporaryStore()
    vaultKeyFile = store.folder + "/vault-key"
    try KeyFile.create(at: vaultKeyFile)
    database = try Database.create(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    connection = try database.makeConnection()
    try database.vault.create(key: .keyFile(vaultKeyFile))
    try database.seal(collection: "tokens")
    try database.vault.addSlot(.key(.random(count: 32)), label: "his")
    holder = Holder(row: try #require(try database.vault.record()), key: try database.vault.vaultKey())
    try database.vault.rotate(newKeyFor: [.keyFile(vaultKeyFile)], droppingSlots: [1])
    presentSuccession = try #require(try database.vault.record()).succession
    try connection.readWrite { try $0.setObject("s3cret", forKey: "k", inCollection: "tokens") }
  }

  // MARK: What he writes

  /// What he says of the succession: nothing, anything, and that his key follows itself.
  private func successions(_ generation: UInt32) throws -> [[UInt8]] {
    [
      [UInt8](repeating: 0, count: 32), [UInt8](repeating: 7, count: 32), try holder.succession(generation),
      presentSuccession,
    ]
  }

  private func plant(_ generation: UInt32, _ succession: [UInt8]) throws {
    try holder.plant(generation, succession, connection)
  }

  private func plants() throws -> [(generation: UInt32, succession: [UInt8])] {
    try [1, 2, 3, 4, 1000].flatMap { generation in try successions(generation).map { (generation, $0) } }
  }

  private func isRefused(_ error: any Error) -> Bool {
    switch error as? CofferError {
    case .vaultKeyUnverified, .damaged(part: "vault", _): true
    default: false
    }
  }

  // MARK: What comes of it

  @Test("gets no program that has the vault unlocked to seal anything under his key")
  func running() throws {
    for (generation, succession) in try plants() {
      try plant(generation, succession)
      #expect(throws: CofferError.self, "\(generation)") {
        try connection.readWrite { try $0.setObject("new", forKey: "new", inCollection: "tokens") }
      }
      let count = try connection.perform { session in
        try session.connection.statement("SELECT count(*) FROM items WHERE key = 'new'").first { $0.integer(0) }
      }
      #expect(count == 0)
      #expect { try database.vault.unlock(vaultKey) } throws: { isRefused($0) }
      #expect { try database.vault.unlock(vaultKey: formerKey) } throws: { isRefused($0) }
    }
  }

  @Test(
    "gets no program that was idle while the vault's key was replaced to seal anything under his key, where the present one is remembered"
  )
  func idle() throws {
    let anchor = FileAnchor(folder: store.folder + "/records")
    let place = try TemporaryStore()
    let database = try Database.create(at: place.path, key: place.key, options: .quiet.anchored(anchor))
    try database.vault.create(key: vaultKey)
    try database.seal(collection: "tokens")
    try database.vault.addSlot(.key(.random(count: 32)), label: "his")
    let row = try #require(try database.vault.record())
    let holder = Holder(row: row, key: try database.vault.vaultKey())
    let program = try place.startWorker("follow-sealed", vaultKeyFile, store.folder + "/records")
    #expect(program.readLine() == "ready")
    try database.vault.rotate(newKeyFor: [vaultKey], droppingSlots: [1])
    let present = try #require(try database.vault.record())
    func remembered() throws -> VaultMemory? {
      let record = try #require(anchor.record(ofStoreAt: place.path))
      guard case .whole(let witness, _) = try database.storeOnDisk().read(witness: record) else { return nil }
      return witness.vault
    }
    let memory = try #require(try remembered())
    let connection = try database.makeConnection()
    for (generation, succession) in [(1, row.succession), (2, try holder.succession(2)), (3, try holder.succession(3))]
    {
      try holder.plant(UInt32(generation), succession, connection)
      try program.write("go")
      let outcome = program.readLine()
      #expect(outcome != nil && outcome != "wrote", "\(generation): \(outcome ?? "")")
      if generation == 1 { #expect(outcome == "\(CofferError.vaultKeyUnverified(known: 2, found: 1))") }
      // This program may keep its last commit a moment later.
      #expect(try remembered()?.isSame(as: memory) ?? false)
    }
    // The owner's new key is followed.
    try connection.perform { session in
      try session.connection.beginWrite(.full)
      try session.vaultTable.set(present)
      try session.connection.commit()
    }
    try program.write("go")
    #expect(program.readLine() == "wrote")
  }

  @Test("gets no fresh program to unlock the vault under his key, where the present one is remembered")
  func fresh() throws {
    let record = anchor.record
    for (generation, succession) in try plants() {
      try plant(generation, succession)
      let fresh = try Database.open(
        at: store.path, key: store.key, options: .quiet.anchored(RecordedAnchor(record)))
      #expect(throws: (any Error).self, "\(generation)") { try fresh.vault.unlock(vaultKey) }
      #expect { try fresh.vault.unlock(vaultKey) } throws: { isRefused($0) }
      // Nor with a key that an agent or the keyring has kept.
      #expect { try fresh.vault.unlock(vaultKey: formerKey) } throws: { isRefused($0) }
      #expect(!fresh.vault.isUnlocked)
      try fresh.close()
    }
    // As for any older state, the owner may accept it.
    try plant(3, successions(3)[2])
    var options = Database.Options.quiet.anchored(RecordedAnchor(record))
    options.acceptsOlderStore = true
    let accepted = try Database.open(at: store.path, key: store.key, options: options)
    try accepted.vault.unlock(vaultKey)
    try accepted.close()
  }

  @Test("gets the next secret of a fresh program where no newer key is remembered: a limit that SECURITY.md names")
  func withoutRecord() throws {
    try plant(3, successions(3)[2])
    let fresh = try Database.open(at: store.path, key: store.key, options: .quiet)
    try fresh.vault.unlock(vaultKey)
    try fresh.makeConnection().readWrite { try $0.setObject("new", forKey: "new", inCollection: "tokens") }
    #expect(try fresh.vault.vaultKey().isEqual(to: formerKey))
    try fresh.close()
  }

  @Test(
    "can have a value under his key read, by a program that has it in memory since before: a limit that SECURITY.md names"
  )
  func plantedValue() throws {
    let forged = try VaultKey(formerKey, of: formerRow)
      .seal(Value.string("planted").stored, .object, "k", in: "tokens")
    try connection.perform { session in
      try session.connection.beginWrite(.full)
      let statement = try session.connection.statement("UPDATE items SET data = ? WHERE key = 'k'")
      statement.bind(forged.array, at: 1)
      try statement.run()
      try session.connection.commit()
      session.cache.removeAll()
    }
    func value() throws -> String? { try connection.read { try $0.object(forKey: "k", inCollection: "tokens") } }
    #expect(try value() == "planted")
    database.vault.lock()
    try database.vault.unlock(vaultKey)
    expectDamage { try value() }
  }

  // MARK: The owner

  @Test("is not confused with the owner: a new key is followed once, remembered, and known over processes")
  func owner() throws {
    let other = try Database.open(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    try other.vault.unlock(vaultKey)
    try database.vault.rotate(newKeyFor: [vaultKey])
    try other.makeConnection().readWrite { try $0.setObject("new", forKey: "new", inCollection: "tokens") }
    #expect(try other.makeConnection().read { try $0.object(forKey: "new", inCollection: "tokens") } == "new")
    try other.close()
    // One that does not use the vault keeps what is remembered of it.
    let locked = try Database.open(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    try locked.makeConnection().readWrite { try $0.setObject(1, forKey: "n") }
    try locked.close()
    try database.rotate(newRootKeyFor: [store.key])
    let remembered = try #require(try database.core.witness?.rememberedVault(database.storeOnDisk()))
    #expect(remembered.generation == 3)
    for _ in 0..<2 { try database.vault.rotate(newKeyFor: [vaultKey]) }
    try database.close()
    let last = try Database.open(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    try last.vault.unlock(vaultKey)
    #expect(try last.makeConnection().read { try $0.object(forKey: "k", inCollection: "tokens") } == "s3cret")
    try last.close()
  }

  @Test(
    "is not confused with the owner: a record from before the last new key vouches for it, and one before that does not"
  )
  func olderRecords() throws {
    let before = anchor.record
    try database.vault.rotate(newKeyFor: [vaultKey])
    func unlock(_ record: [UInt8]?) throws {
      let fresh = try Database.open(
        at: store.path, key: store.key, options: .quiet.anchored(RecordedAnchor(record)))
      defer { try? fresh.close() }
      try fresh.vault.unlock(vaultKey)
    }
    try unlock(before)
    try database.vault.rotate(newKeyFor: [vaultKey])
    #expect(throws: CofferError.vaultKeyUnverified(known: 2, found: 4)) { try unlock(before) }
    try unlock(anchor.record)
  }

  @Test("is not confused with the owner: after two new keys elsewhere, a program opens the store again")
  func missedTwo() throws {
    let other = try Database.open(at: store.path, key: store.key, options: .quiet)
    try other.vault.unlock(vaultKey)
    for _ in 0..<2 { try database.vault.rotate(newKeyFor: [vaultKey]) }
    #expect(throws: CofferError.vaultLocked(collection: "tokens")) {
      try other.makeConnection().readWrite { try $0.setObject("new", forKey: "new", inCollection: "tokens") }
    }
    #expect(throws: CofferError.vaultKeyUnverified(known: 2, found: 4)) { try other.vault.unlock(vaultKey) }
    try other.close()
    let again = try Database.open(at: store.path, key: store.key, options: .quiet)
    try again.vault.unlock(vaultKey)
    try again.close()
  }
}
