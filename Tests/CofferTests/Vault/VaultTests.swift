import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("The vault of a store") struct VaultTests {
  private let fixture: SealedFixture
  private var vault: Vault { fixture.vault }

  init() throws {
    fixture = try SealedFixture()
  }

  private static let cheap = PasswordHash.scrypt(log2N: 14, r: 8, p: 1)

  private func passphrase(_ text: String) -> KeySource { .passphrase(SecretBytes(copying: text.utf8)) }

  @Test("is created once, and then unlocked; without one nothing can be sealed")
  func creation() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    #expect(try !database.vault.exists() && !database.vault.isUnlocked)
    #expect(throws: CofferError.vaultNotFound) { try database.vault.unlock(fixture.vaultKey) }
    #expect(throws: CofferError.vaultNotFound) { try database.seal(collection: "tokens") }
    #expect(throws: CofferError.vaultNotFound) { try database.vault.slots() }
    try database.vault.create(key: passphrase("correct horse"), label: "me", stretching: Self.cheap)
    #expect(try database.vault.exists() && database.vault.isUnlocked)
    #expect(throws: CofferError.vaultExists) { try database.vault.create(key: fixture.vaultKey) }
    let slots = try database.vault.slots()
    #expect(slots.map(\.label) == ["me"] && slots.map(\.kind) == [.passphrase])
    try database.close()
    #expect(!database.vault.isUnlocked)
    // For another process.
    let again = try store.open()
    #expect(try again.vault.exists() && !again.vault.isUnlocked)
    #expect(throws: CofferError.wrongKey) { try again.vault.unlock(passphrase("wrong horse")) }
    #expect(!again.vault.isUnlocked)
    try again.vault.unlock(passphrase("correct horse"))
    #expect(again.vault.isUnlocked)
  }

  @Test("does not open with the secrets of the store")
  func otherKey() throws {
    vault.lock()
    #expect(throws: CofferError.wrongKey) { try vault.unlock(fixture.store.key) }
  }

  @Test("opens with each of its slots, until it is changed or removed")
  func slots() throws {
    try fixture.set("s3cret")
    let slot = try vault.addSlot(passphrase("second"), label: "second", stretching: Self.cheap)
    let recovery = try vault.addRecoveryKey(label: "paper")
    #expect(try vault.slots().map(\.label) == ["test", "second", "paper"])
    for key in [fixture.vaultKey, passphrase("second"), .recoveryKey(recovery.text)] {
      vault.lock()
      try vault.unlock(key)
      #expect(try fixture.object() == "s3cret")
    }
    let changed = try vault.changeSlot(slot.id, to: passphrase("third"), stretching: Self.cheap)
    #expect(changed.id == slot.id && changed.label == "second")
    #expect(throws: CofferError.wrongKey) { try vault.unlock(passphrase("second")) }
    try vault.unlock(passphrase("third"))
    try vault.setLabel("third", forSlot: slot.id)
    #expect(try vault.slots().map(\.label) == ["test", "third", "paper"])
    try vault.removeSlot(slot.id)
    #expect(throws: CofferError.wrongKey) { try vault.unlock(passphrase("third")) }
    try vault.removeSlot(try #require(try vault.slots().last).id)
    #expect(throws: CofferError.lastSlot) { try vault.removeSlot(try #require(try vault.slots().first).id) }
    for id in [77, 300, -1] {
      #expect(throws: CofferError.slotNotFound(id: id)) { try vault.removeSlot(id) }
      #expect(throws: CofferError.slotNotFound(id: id)) { try vault.setLabel("x", forSlot: id) }
      #expect(throws: CofferError.slotNotFound(id: id)) { try vault.changeSlot(id, to: fixture.vaultKey) }
    }
    #expect(throws: CofferError.self) { try vault.setLabel(String(repeating: "x", count: 65), forSlot: 0) }
    vault.lock()
    try vault.unlock(fixture.vaultKey)
  }

  @Test("refuses a secret that opens one of its slots already, and changes nothing")
  func sameSecret() throws {
    try vault.addSlot(passphrase("known"), stretching: Self.cheap)
    let before = try vault.record()
    for (source, slot) in [(fixture.vaultKey, 0), (passphrase("known"), 1)] {
      #expect(throws: CofferError.secretInUse(slot: slot)) { try vault.addSlot(source, stretching: Self.cheap) }
      for id in 0..<2 {
        #expect(throws: CofferError.secretInUse(slot: slot)) {
          try vault.changeSlot(id, to: source, stretching: Self.cheap)
        }
      }
    }
    #expect(try vault.record() == before)
  }

  @Test("takes no more than 16 slots")
  func slotsFull() throws {
    for _ in 1..<16 { try vault.addSlot(.key(.random(count: 32))) }
    #expect(throws: CofferError.slotsFull(maximum: 16)) { try vault.addSlot(.key(.random(count: 32))) }
    #expect(try vault.slots().count == 16)
  }

  @Test("is not changed while it is locked")
  func lockedChanges() throws {
    vault.lock()
    let locked = CofferError.vaultLocked(collection: nil)
    #expect(throws: locked) { try vault.addSlot(fixture.store.key) }
    #expect(throws: locked) { try vault.addRecoveryKey() }
    #expect(throws: locked) { try vault.changeSlot(0, to: fixture.store.key) }
    #expect(throws: locked) { try vault.setLabel("x", forSlot: 0) }
    #expect(throws: locked) { try vault.removeSlot(0) }
    #expect(throws: locked) { try vault.rotate(newKeyFor: [fixture.vaultKey]) }
    #expect(throws: locked) { try vault.vaultKey() }
    #expect(throws: CofferError.vaultLocked(collection: "more")) { try fixture.database.seal(collection: "more") }
    #expect(throws: CofferError.vaultLocked(collection: "tokens")) { try fixture.database.unseal(collection: "tokens") }
  }

  @Test("lends its key to an agent, and accepts no other")
  func vaultKey() throws {
    try fixture.set("s3cret")
    let key = try vault.vaultKey()
    #expect(try vault.id().count == 16)
    vault.lock()
    #expect(throws: CofferError.wrongKey) { try vault.unlock(vaultKey: .random(count: 32)) }
    #expect(!vault.isUnlocked)
    try vault.unlock(vaultKey: key)
    #expect(try fixture.object() == "s3cret")
  }

  @Test("stays locked when it is locked while its key is being read")
  func lockMeanwhile() throws {
    let key = try SecretBytes.random(count: 32)
    try vault.addSlot(.key(key))
    let scratch = try ScratchFolder()
    let pipe = scratch.file("pipe")
    try #require(mkfifo(pipe, 0o600) == 0)
    vault.lock()
    let writer = Thread { [vault] in
      // Opens once there is a reader.
      let descriptor = open(pipe, O_WRONLY)
      vault.lock()
      key.withUnsafeBytes { _ = write(descriptor, $0.baseAddress, $0.count) }
      close(descriptor)
    }
    writer.start()
    #expect(throws: CofferError.vaultLocked(collection: nil)) { try vault.unlock(.keyFile(pipe)) }
    #expect(!vault.isUnlocked)
    try vault.unlock(.key(key))
    #expect(vault.isUnlocked)
  }

  @Test("is refused if any byte of its row was edited by someone without its key")
  func edits() throws {
    try vault.addSlot(.key(.random(count: 32)), label: "other")
    let original = try #require(try vault.record())
    let columns = [
      ("slots", original.encodedSlots), ("sealed", original.encodedSealedCollections), ("mac", original.mac),
      ("id", original.id),
    ]
    func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }
    let restored = "generation = 1, " + columns.map { "\($0) = x'\(hex($1))'" }.joined(separator: ", ")
    vault.lock()
    var outcomes: Set<String> = []
    for (column, bytes) in columns {
      for offset in bytes.indices {
        var edited = bytes
        edited[offset] ^= 1 << UInt8(offset % 8)
        try fixture.execute("UPDATE vault SET \(column) = x'\(hex(edited))'")
        do {
          try vault.unlock(fixture.vaultKey)
          Issue.record("byte \(offset) of \(column) was changed, and the vault opened")
          vault.lock()
        } catch CofferError.damaged {
          outcomes.insert("damaged")
        } catch CofferError.newerFormat {
          // A kind of slot, or a stretching, that is not known.
          outcomes.insert("newer")
        } catch CofferError.wrongKey {
          outcomes.insert("wrong key")
        }
      }
      try fixture.execute("UPDATE vault SET \(restored)")
    }
    #expect(outcomes == ["damaged", "newer", "wrong key"])
    // What ends one field begins no other.
    let list = hex(original.encodedSealedCollections)
    for sql in [
      "generation = 2", "id = zeroblob(16)", "id = x'00'", "slots = x''", "generation = -1", "sealed = x''",
      "sealed = x'', slots = x'\(hex(original.encodedSlots))\(list)'", "sealed = x'\(list)\(list)'",
    ] {
      try fixture.execute("UPDATE vault SET \(sql)")
      #expect(throws: CofferError.self, "\(sql)") { try vault.unlock(fixture.vaultKey) }
      try fixture.execute("UPDATE vault SET \(restored)")
    }
    try vault.unlock(fixture.vaultKey)
  }

  @Test("gets a new key, which reseals everything, including history; the earlier key opens nothing")
  func rotation() throws {
    try fixture.connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "tokens") }
    try fixture.database.seal(collection: "more")
    for number in 0..<600 { try fixture.set("value \(number)", "note", forKey: "\(number % 300)") }
    try fixture.connection.readWrite {
      try $0.setObject(Secret("s3cret"), forKey: "k", inCollection: "more")
      try $0.setObject("plain", forKey: "k", inCollection: "other")
    }
    let proxy = try ConnectionProxy(database: fixture.database)
    #expect(try proxy.object(forKey: "7", inCollection: "tokens") == "value 307")
    let (oldKey, before) = (try vault.vaultKey(), try fixture.storedItem(forKey: "7"))
    let version = try fixture.connection.read { try $0.version(forKey: "7", inCollection: "tokens") }
    try vault.addSlot(passphrase("second"), stretching: Self.cheap)

    var shares: [Double] = []
    #expect(throws: CofferError.slotsNotOpened(ids: [1])) { try vault.rotate(newKeyFor: [fixture.vaultKey]) }
    #expect(throws: CofferError.wrongKey) { try vault.rotate(newKeyFor: [fixture.store.key], droppingSlots: [1]) }
    #expect(throws: CofferError.slotNotFound(id: 9)) {
      try vault.rotate(newKeyFor: [fixture.vaultKey], droppingSlots: [9])
    }
    struct Enough: Error {}
    #expect(throws: Enough.self) {
      try vault.rotate(newKeyFor: [fixture.vaultKey], droppingSlots: [1]) { _ in throw Enough() }
    }
    #expect(try vault.record()?.generation == 1 && fixture.storedItem(forKey: "7") == before)
    try vault.rotate(newKeyFor: [fixture.vaultKey], droppingSlots: [1]) { shares.append($0) }
    #expect(shares.last == 1 && shares == shares.sorted() && shares.count > 1)

    #expect(try vault.record()?.generation == 2)
    #expect(try fixture.storedItem(forKey: "7") != before)
    #expect(try fixture.connection.read { try $0.version(forKey: "7", inCollection: "tokens") } == version)
    func check() throws {
      #expect(try fixture.object(forKey: "7") == "value 307")
      #expect(try proxy.object(forKey: "7", inCollection: "tokens") == "value 307")
      try fixture.connection.read { transaction in
        let history = try transaction.history(forKey: "7", inCollection: "tokens")
        #expect(history.map(\.text) == ["value 7"] && history.first?.metadata == "note")
        #expect(try transaction.object(forKey: "k", inCollection: "more") == Secret("s3cret"))
        #expect(try transaction.object(forKey: "k", inCollection: "other") == "plain")
      }
      #expect(try fixture.database.verify().problems.isEmpty)
    }
    try check()
    vault.lock()
    #expect(throws: CofferError.wrongKey) { try vault.unlock(vaultKey: oldKey) }
    #expect(throws: CofferError.wrongKey) { try vault.unlock(passphrase("second")) }
    try vault.unlock(fixture.vaultKey)
    try check()
    try fixture.set("new")
    #expect(try fixture.object() == "new")
  }

  @Test("that got a new key elsewhere is locked for holders of the earlier one, until unlocked again")
  func rotationElsewhere() throws {
    try fixture.set("s3cret")
    // Another database on the same file has keys of its own, as another process has.
    let other = try fixture.store.open()
    try other.vault.unlock(.key(KeyFile.read(at: fixture.vaultKeyFile)))
    let proxy = try ConnectionProxy(database: other, flushPolicy: .manually)
    #expect(try proxy.object(forKey: "k", inCollection: "tokens") == "s3cret")
    try proxy.setObject("pending", forKey: "p", inCollection: "tokens")
    try vault.rotate(newKeyFor: [fixture.vaultKey])
    let locked = CofferError.vaultLocked(collection: "tokens")
    #expect(throws: locked) { try proxy.object(forKey: "k", inCollection: "tokens", as: String.self) }
    #expect(throws: locked) {
      try other.makeConnection().readWrite { try $0.setObject(1, forKey: "n", inCollection: "tokens") }
    }
    // Pending values sealed under the earlier key are resealed as soon as possible.
    #expect(throws: locked) { try proxy.flushAndWait() }
    #expect(proxy.pendingChangeCount == 1)
    try other.vault.unlock(fixture.vaultKey)
    try proxy.flushAndWait()
    #expect(try proxy.object(forKey: "k", inCollection: "tokens") == "s3cret")
    #expect(try fixture.object(forKey: "p") == "pending")
    #expect(try fixture.database.verify().problems.isEmpty)
  }

  @Test("is in a backup, with its slots and sealed collections")
  func backup() throws {
    try fixture.set(Secret("s3cret"), "note")
    let path = "\(fixture.store.folder)/copy.coffer"
    try fixture.database.backup(to: path, key: fixture.store.key)
    let copy = try Database.open(at: path, key: fixture.store.key)
    #expect(try copy.vault.exists() && !copy.vault.isUnlocked)
    #expect(try copy.vault.id() == vault.id())
    let connection = try copy.makeConnection()
    #expect(throws: CofferError.vaultLocked(collection: "tokens")) {
      try connection.read { try $0.object(forKey: "k", inCollection: "tokens", as: Secret.self) }
    }
    try copy.vault.unlock(fixture.vaultKey)
    let item = try connection.read { try $0.item(forKey: "k", inCollection: "tokens") }
    #expect(item?.value == .secret(Secret("s3cret")) && item?.metadata == "note")
    #expect(try copy.verify().problems.isEmpty)
  }

  @Test("can be locked at any moment: a read returns the value or throws that it is locked")
  func lockWhileReading() throws {
    for number in 0..<50 { try fixture.set(Secret("value \(number)"), forKey: "\(number)") }
    let key = try vault.vaultKey()
    let proxy = try ConnectionProxy(database: fixture.database)
    let isDone = Lock(false)
    let group = DispatchGroup()
    let readCount = Lock(0)
    let lockedCount = Lock(0)
    for reader in 0..<3 {
      DispatchQueue.global().async(group: group) {
        var number = reader
        while !isDone.withLock({ $0 }) {
          number = (number + 7) % 50
          do {
            let secret: Secret? = try proxy.object(forKey: "\(number)", inCollection: "tokens")
            #expect(secret == Secret("value \(number)"))
            readCount.withLock { $0 += 1 }
          } catch CofferError.vaultLocked(collection: "tokens") {
            lockedCount.withLock { $0 += 1 }
          } catch {
            Issue.record(error)
          }
        }
      }
    }
    var rounds = 0
    while readCount.withLock({ $0 }) < 500 || lockedCount.withLock({ $0 }) < 500 {
      vault.lock()
      sched_yield()
      try vault.unlock(vaultKey: key)
      rounds += 1
    }
    isDone.withLock { $0 = true }
    group.wait()
    #expect(rounds > 0)
  }

  @Test("describes errors in sentences without secrets")
  func descriptions() {
    #expect("\(CofferError.vaultLocked(collection: "tokens"))".contains("\"tokens\""))
    for error in [CofferError.vaultLocked(collection: nil), .vaultNotFound, .vaultExists] {
      #expect("\(error)".hasSuffix("."))
    }
  }
}
