import CofferCompat
import CofferCrypto
import CofferStorage
import Foundation
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("An attacker with the store's key and not the vault's") struct HostileVaultTests {
  private let fixture: SealedFixture
  private var vault: Vault { fixture.vault }
  private var connection: Connection { fixture.connection }

  init() throws {
    fixture = try SealedFixture()
    try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: "tokens") }
    try fixture.set("earlier", "note")
    try fixture.set("s3cret", "note")
  }

  /// A version of the item that history has.
  private var earlierVersion: Int64 {
    get throws {
      try connection.perform { session in
        try session.read {
          try session.connection.statement("SELECT version FROM history").first { $0.integer(0) } ?? 0
        }
      }
    }
  }

  // MARK: Values

  @Test(
    "plants no plaintext or sealed value where it does not belong: every read, and verification, reports damage",
    arguments: [
      "type = 5, data = CAST('planted' AS BLOB)", "metadata = CAST(x'05' || 'planted' AS BLOB)",
      "type = 13, data = CAST('planted' AS BLOB), metadata = NULL",
    ], [true, false])
  func planted(_ change: String, isUnlocked: Bool) throws {
    let version = try earlierVersion
    try fixture.execute("UPDATE items SET \(change); UPDATE history SET \(change)")
    if !isUnlocked { vault.lock() }
    let isObject = change.contains("type")
    let proxy = try ConnectionProxy(database: fixture.database)
    try connection.read { transaction in
      for _ in 0..<2 {
        if isObject {
          expectDamage { try transaction.value(forKey: "k", inCollection: "tokens") }
          expectDamage { try transaction.object(forKey: "k", inCollection: "tokens", as: String.self) }
          expectDamage {
            try transaction.enumerateKeysAndObjects(inCollection: "tokens", as: Value.self) { _, _, _ in }
          }
          expectDamage { try proxy.object(forKey: "k", inCollection: "tokens", as: String.self) }
        } else {
          expectDamage { try transaction.metadata(forKey: "k", inCollection: "tokens", as: String.self) }
          expectDamage { try proxy.metadata(forKey: "k", inCollection: "tokens", as: String.self) }
        }
      }
      if isUnlocked || isObject {
        expectDamage { try transaction.item(forKey: "k", inCollection: "tokens") }
        expectDamage { try transaction.serializedRow(forKey: "k", inCollection: "tokens") }
        expectDamage { try transaction.history(forKey: "k", inCollection: "tokens") }
      }
      let keys = try transaction.allKeys(inCollection: "tokens")
      #expect(keys == ["k"])
    }
    let problems = try fixture.database.verify().problems.map(\.description)
    #expect(problems.contains { $0.hasPrefix("The value for \"k\" in \"tokens\" is damaged: it is unsealed") })
    #expect(problems.contains { $0.hasPrefix("An earlier value for \"k\" in \"tokens\" is damaged: it is unsealed") })
    guard isUnlocked else { return }
    // Nor is it sealed, or opened for all, as if it had been the owner's.
    #expect(throws: CofferError.self) {
      try connection.readWrite { try $0.restoreObject(forKey: "k", inCollection: "tokens", version: version) }
    }
    expectDamage { try vault.rotate(newKeyFor: [fixture.vaultKey]) }
    expectDamage { try fixture.database.unseal(collection: "tokens") }
    // The owner's own value takes its place.
    try fixture.set("new", "note")
    #expect(try fixture.object() == "new")
  }

  @Test("gets no sealed value read in an unsealed collection")
  func sealedElsewhere() throws {
    try connection.readWrite { try $0.setObject(1, forKey: "k", inCollection: "other") }
    try fixture.execute(
      "UPDATE items SET (type, data) = (SELECT type, data FROM items WHERE collection = 1) WHERE collection = 2")
    expectDamage { try connection.read { try $0.value(forKey: "k", inCollection: "other") } }
    let problems = try fixture.database.verify().problems.map(\.description)
    #expect(problems.count == 1 && problems[0].contains("\"k\" in \"other\" is damaged: it is unsealed in a sealed"))
  }

  // MARK: Declarations

  private static let declarations = [
    "UPDATE collections SET flags = flags & ~1 WHERE name = 'tokens'",
    "UPDATE collections SET name = 'elsewhere' WHERE name = 'tokens'",
    "DELETE FROM collections WHERE name = 'tokens'",
    "UPDATE collections SET flags = flags & ~1 WHERE name = 'tokens'; UPDATE vault SET sealed = x''",
    "UPDATE collections SET flags = flags & ~1 WHERE name = 'tokens'; DELETE FROM vault",
    "UPDATE collections SET flags = flags & ~1 WHERE name = 'tokens'; UPDATE vault SET generation = 99",
    "UPDATE collections SET flags = flags & ~1 WHERE name = 'tokens'; UPDATE vault SET mac = zeroblob(32)",
    "UPDATE collections SET flags = flags & ~1 WHERE name = 'tokens'; UPDATE vault SET id = zeroblob(16), mac = x''",
  ]

  @Test(
    "removes no declaration unnoticed: no plaintext is written there while the vault is unlocked",
    arguments: declarations
  )
  func declarationTakenAway(_ sql: String) throws {
    let proxy = try ConnectionProxy(database: fixture.database)
    try fixture.execute(sql)
    func expectRefusal<Result>(_ body: () throws -> Result, location: SourceLocation = #_sourceLocation) {
      #expect(sourceLocation: location) { _ = try body() } throws: { error in
        guard let error = error as? CofferError else { return false }
        return error.isDamage || error == .vaultLocked(collection: "tokens")
      }
    }
    for _ in 0..<2 {
      expectRefusal { try fixture.set("an open value", forKey: "new") }
      expectRefusal { try fixture.set("an open value") }
      expectRefusal {
        try proxy.setObject("an open value", forKey: "p", inCollection: "tokens", durability: .committed)
      }
      expectRefusal { try fixture.object(as: String.self) }
      expectRefusal { try proxy.object(forKey: "k", inCollection: "tokens", as: String.self) }
    }
    let text = try connection.perform { session in
      try session.read { try session.connection.text(ofAllRowsIn: "items") }
    }
    #expect(!text.contains("an open value"))
    // Other collections are not affected as long as there is a vault.
    if !sql.contains("vault") { try connection.readWrite { try $0.setObject(1, forKey: "k", inCollection: "other") } }
    #expect(try fixture.database.verify().problems != [])
  }

  @Test(
    "is reported by verification with the vault locked, and by unlocking if the list was edited",
    arguments: declarations)
  func declarationWhileLocked(_ sql: String) throws {
    vault.lock()
    try fixture.execute(sql)
    let problems = try fixture.database.verify().problems.map(\.description)
    #expect(
      problems.contains {
        $0.contains("declaration of \"tokens\"") || $0.contains("unsealed") || $0.contains("vault")
      })
    guard sql.contains("vault") else { return }
    #expect(throws: CofferError.self) { try vault.unlock(fixture.vaultKey) }
  }

  @Test(
    "makes no unsealed environment of a sealed collection: it is damage to read and to set, and to verification",
    arguments: [true, false], [0, 4])
  func environmentMade(isUnlocked: Bool, flags: Int) throws {
    let name = "tokens@prod"
    try fixture.execute(
      """
      INSERT INTO collections(name, flags) VALUES ('\(name)', \(flags));
      INSERT INTO items SELECT id, 'k', (SELECT type FROM items LIMIT 1), version, modified, NULL, NULL, NULL, NULL, x'00'
      FROM collections, (SELECT version, modified FROM items LIMIT 1) WHERE name = '\(name)' AND flags = 0
      """)
    if !isUnlocked { vault.lock() }
    let proxy = try ConnectionProxy(database: fixture.database)
    for _ in 0..<2 {
      expectDamage { try connection.read { try $0.value(forKey: "k", inCollection: name) } }
      expectDamage { try connection.read { try $0.allKeys(inCollection: name) } }
      expectDamage { try connection.readWrite { try $0.setObject("new", forKey: "new", inCollection: name) } }
      expectDamage { try connection.readWrite { try $0.makeEnvironment("prod", of: "tokens") } }
      expectDamage { try proxy.object(forKey: "k", inCollection: name, as: String.self) }
      expectDamage { try proxy.setObject("new", forKey: "p", inCollection: name, durability: .committed) }
    }
    let problems = try fixture.database.verify().problems.map(\.description)
    #expect(problems.contains { $0.hasPrefix("The declaration of \"\(name)\" is damaged: it is an environment") })
    guard isUnlocked else { return }
    expectDamage { try vault.rotate(newKeyFor: [fixture.vaultKey]) }
    try fixture.execute("DELETE FROM items WHERE data = x'00'")
    try fixture.database.seal(collection: "tokens")
    #expect(try fixture.database.verify().problems.isEmpty)
    try connection.readWrite { try $0.setObject("new", forKey: "new", inCollection: name) }
    #expect(try connection.read { try $0.isSealed(collection: name) })
    // Nor does the owner make one by mistake.
    #expect { try fixture.database.unseal(collection: name) } throws: {
      if case CofferError.unsupported = $0 { true } else { false }
    }
    try fixture.database.unseal(collection: "tokens")
    #expect(try connection.read { try !$0.isSealed(collection: name) })
  }

  @Test("adds no declaration that the vault lacks, which would lock the owner out")
  func declarationMade() throws {
    try connection.readWrite { try $0.setObject("plain", forKey: "k", inCollection: "mail") }
    try fixture.execute("UPDATE collections SET flags = flags | 1 WHERE name = 'mail'")
    expectDamage { try connection.read { try $0.value(forKey: "k", inCollection: "mail") } }
    #expect(try fixture.database.verify().problems.contains { $0.description.contains("declaration of \"mail\"") })
    // It can still be removed.
    try connection.readWrite { try $0.removeAllObjects(inCollection: "mail") }
    try fixture.database.unseal(collection: "mail")
    #expect(try fixture.database.verify().problems.isEmpty)
  }

  @Test("adds no declaration the owner cannot repair: sealing seals the contents, unsealing keeps them")
  func declarationMadeAndMended() throws {
    for seals in [true, false] {
      let name = "mail \(seals)"
      try connection.readWrite {
        try $0.setHistoryLimits(HistoryLimits(), forCollection: name)
        for value in ["earlier", "plain"] { try $0.setObject(value, forKey: "k", inCollection: name) }
      }
      try fixture.execute("UPDATE collections SET flags = flags | 1 WHERE name = '\(name)'")
      if seals { try fixture.database.seal(collection: name) } else { try fixture.database.unseal(collection: name) }
      #expect(try connection.read { try $0.object(forKey: "k", inCollection: name) } == "plain")
      #expect(try connection.read { try $0.isSealed(collection: name) } == seals)
      #expect(try fixture.database.verify().problems.isEmpty)
    }
  }

  @Test("gains nothing while the vault is locked: what was read then is read again once it is unlocked")
  func readWhileLocked() throws {
    let proxy = try ConnectionProxy(database: fixture.database)
    vault.lock()
    try fixture.execute(
      """
      UPDATE collections SET flags = flags & ~1 WHERE name = 'tokens';
      UPDATE items SET type = 5, data = CAST('planted' AS BLOB), metadata = NULL
      """)
    func read() throws -> [String?] {
      [
        try proxy.object(forKey: "k", inCollection: "tokens"), try fixture.object(),
        try connection.readWrite { try $0.object(forKey: "k", inCollection: "tokens") },
      ]
    }
    // Impossible to know with the vault locked.
    #expect(try read() == ["planted", "planted", "planted"])
    // So that the connection knows its collections with the next write.
    try connection.readWrite { try $0.setObject(1, forKey: "k", inCollection: "other") }
    try connection.readWrite { try $0.setObject(2, forKey: "k2", inCollection: "tokens") }
    let pinned = try fixture.database.makeConnection()
    try pinned.beginLongLivedReadTransaction()
    #expect(try pinned.read { try $0.object(forKey: "k", inCollection: "tokens") } == "planted")
    try vault.unlock(fixture.vaultKey)
    expectDamage { try fixture.set("new") }
    expectDamage { try fixture.object(as: String.self) }
    expectDamage { try proxy.object(forKey: "k", inCollection: "tokens", as: String.self) }
    expectDamage { try proxy.setObject("new", forKey: "k", inCollection: "tokens") }
    expectDamage { try pinned.read { try $0.object(forKey: "k", inCollection: "tokens", as: String.self) } }
  }

  @Test("cannot prevent a repair: sealing again declares the collection, and opens the owner's values")
  func mending() throws {
    try fixture.execute(Self.declarations[0])
    expectDamage { try fixture.object(as: String.self) }
    try fixture.database.seal(collection: "tokens")
    #expect(try fixture.object() == "s3cret")
    #expect(try fixture.database.verify().problems.isEmpty)
    try fixture.execute(Self.declarations[0])
    try fixture.database.unseal(collection: "tokens")
    #expect(try fixture.object() == "s3cret")
    #expect(try connection.read { try $0.sealedCollections() } == [])
    #expect(try fixture.database.verify().problems.isEmpty)
  }

  @Test("can put back an older list of the same key, with its declarations: a limit that SECURITY.md names")
  func replayedList() throws {
    try fixture.execute("CREATE TABLE kept AS SELECT * FROM vault")
    try fixture.database.seal(collection: "more")
    let replay = """
      DELETE FROM vault; INSERT INTO vault SELECT * FROM kept;
      UPDATE collections SET flags = 0 WHERE name = 'more'
      """
    try fixture.execute(replay)
    try connection.readWrite { try $0.setObject("an open value", forKey: "k", inCollection: "more") }
    #expect(try connection.storedItem(inCollection: "more")?.object.kind == .string)
    try fixture.execute("DROP TABLE kept")
    #expect(try fixture.database.verify().problems.isEmpty)
  }

  @Test("can put back an older row of the vault, with its slots: a limit that SECURITY.md names")
  func replayedSlots() throws {
    let revoked = try KeySource.key(.random(count: 32))
    try vault.addSlot(revoked)
    try fixture.execute("CREATE TABLE kept AS SELECT * FROM vault")
    try vault.removeSlot(1)
    vault.lock()
    #expect(throws: CofferError.wrongKey) { try vault.unlock(revoked) }
    try fixture.execute("DELETE FROM vault; INSERT INTO vault SELECT * FROM kept; DROP TABLE kept")
    try vault.unlock(revoked)
    #expect(try fixture.object() == "s3cret")
    // Until the vault gets a new key.
    try fixture.execute("CREATE TABLE kept AS SELECT * FROM vault")
    try vault.rotate(newKeyFor: [fixture.vaultKey], droppingSlots: [1])
    vault.lock()
    try fixture.execute("DELETE FROM vault; INSERT INTO vault SELECT * FROM kept; DROP TABLE kept")
    #expect(throws: CofferError.vaultKeyUnverified(known: 2, found: 1)) { try vault.unlock(revoked) }
  }

  @Test("can remove the vault with all sealed collections, undetected: a limit that SECURITY.md names")
  func removedVault() throws {
    vault.lock()
    // Values that are gone without a line in the change log are missed; so he removes them as anyone else does.
    try connection.readWrite { try $0.removeAllObjects(inCollection: "tokens") }
    try fixture.execute("DELETE FROM vault; DELETE FROM history; DELETE FROM collections WHERE name = 'tokens'")
    #expect(try !vault.exists())
    let problems = try fixture.database.verify().problems
    #expect(problems.isEmpty, "\(problems)")
  }

  @Test("cannot remove values without a line in the change log, which verification misses")
  func removedValues() throws {
    vault.lock()
    try fixture.execute("DELETE FROM items; DELETE FROM history")
    let problems = try fixture.database.verify().problems
    #expect(problems.contains { "\($0)".contains("no line that it was removed") }, "\(problems)")
  }

  @Test("can hide a removed declaration from verification while the vault is locked: a limit that SECURITY.md names")
  func hiddenDeclaration() throws {
    vault.lock()
    try fixture.execute(
      """
      UPDATE collections SET flags = flags & ~1; UPDATE vault SET sealed = x''; DELETE FROM history;
      UPDATE items SET type = 5, data = CAST('planted' AS BLOB), metadata = NULL
      """)
    let problems = try fixture.database.verify().problems
    #expect(problems.isEmpty, "\(problems)")
    expectDamage { try vault.unlock(fixture.vaultKey) }
  }

  // MARK: The owner

  @Test(
    "is noticed by every process that has the vault unlocked, and not confused with the owner's declarations")
  func elsewhere() throws {
    // Another database on the same file has keys of its own, as another process has.
    let other = try fixture.store.open()
    try other.vault.unlock(.key(KeyFile.read(at: fixture.vaultKeyFile)))
    let proxy = try ConnectionProxy(database: other)
    try proxy.setObject("before", forKey: "k", inCollection: "mail", durability: .committed)
    try fixture.database.seal(collection: "mail")
    try proxy.setObject("after", forKey: "k", inCollection: "mail", durability: .committed)
    #expect(try connection.storedItem(inCollection: "mail")?.object.kind == .sealed)
    try vault.addSlot(.key(.random(count: 32)))
    try fixture.database.unseal(collection: "tokens")
    #expect(try proxy.object(forKey: "k", inCollection: "tokens") == "s3cret")
    try proxy.setObject("an open value by now", forKey: "k", inCollection: "tokens", durability: .committed)
    #expect(try connection.storedItem()?.object.kind == .string)
    // A new key, of which the other knows nothing: what was sealed stays so, and the rest works.
    try vault.rotate(newKeyFor: [fixture.vaultKey], droppingSlots: [1])
    #expect(throws: CofferError.vaultLocked(collection: "mail")) {
      try proxy.setObject("x", forKey: "k", inCollection: "mail", durability: .committed)
    }
    try proxy.setObject("x", forKey: "k", inCollection: "tokens", durability: .committed)
    try other.vault.unlock(fixture.vaultKey)
    #expect(try proxy.object(forKey: "k", inCollection: "mail") == "after")
    #expect(try fixture.database.verify().problems.isEmpty)
  }

  @Test("gets nothing signed by a new key of the vault that was not valid under the earlier one")
  func rotation() throws {
    try fixture.execute(Self.declarations[3])
    expectDamage { try vault.rotate(newKeyFor: [fixture.vaultKey]) }
    expectDamage { try vault.addSlot(.key(.random(count: 32))) }
    expectDamage { try fixture.database.seal(collection: "more") }
  }
}
