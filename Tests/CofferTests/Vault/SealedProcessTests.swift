import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Several processes with a sealed collection", .serialized) struct SealedProcessTests {
  private let fixture: SealedFixture
  private let locked = CofferError.vaultLocked(collection: "mail")

  init() throws {
    fixture = try SealedFixture()
  }

  private func worker(_ command: String, _ arguments: String..., keyFile: String? = nil) throws -> Child {
    try Child.run(
      TemporaryStore.worker,
      [command, fixture.store.path, fixture.store.keyFile, keyFile ?? fixture.vaultKeyFile] + arguments)
  }

  @Test("read what another one set, once each has unlocked the vault")
  func reading() throws {
    try fixture.set(Secret("s3cret"))
    #expect(try worker("get-sealed", "tokens", "k").text == "s3cret\n")
    #expect(try worker("get-locked", "tokens", "k").text == "\(CofferError.vaultLocked(collection: "tokens"))\n")
    #expect(try worker("set-sealed", "tokens", "k", "new").status == 0)
    #expect(try fixture.object() == Secret("new"))
    fixture.vault.lock()
    #expect(throws: CofferError.vaultLocked(collection: "tokens")) { try fixture.object(as: Secret.self) }
  }

  @Test("drop plaintext when another one seals the collection, and keep pending changes until they can be sealed")
  func sealing() throws {
    let database = try fixture.store.open()
    let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    for key in ["cached", "pending"] {
      try proxy.setObject("old", forKey: key, inCollection: "mail", durability: .committed)
    }
    #expect(try proxy.object(forKey: "cached", inCollection: "mail") == "old")
    try proxy.setObject("new", forKey: "pending", inCollection: "mail")
    #expect(try worker("seal", "mail").status == 0)
    #expect(throws: locked) { try proxy.object(forKey: "cached", inCollection: "mail", as: String.self) }
    #expect(throws: locked) { try proxy.setObject("x", forKey: "cached", inCollection: "mail") }
    // Earlier values are pending, and not written as plaintext.
    #expect(try proxy.object(forKey: "pending", inCollection: "mail") == "new")
    #expect(throws: locked) { try proxy.flushAndWait() }
    #expect(proxy.pendingChangeCount == 1)
    #expect(try fixture.connection.storedItem(forKey: "pending", inCollection: "mail")?.object.kind == .sealed)
    try database.vault.unlock(fixture.vaultKey)
    try proxy.flushAndWait()
    #expect(proxy.pendingChangeCount == 0)
    #expect(try fixture.connection.storedItem(forKey: "pending", inCollection: "mail")?.object.kind == .sealed)
    #expect(try worker("get-sealed", "mail", "pending").text == "new\n")
    #expect(try proxy.object(forKey: "cached", inCollection: "mail") == "old")
    #expect(try proxy.state.visible("pending", in: "mail").item?.object.stored.kind == .sealed)
  }

  @Test("learn with their first flush, without having read, of a vault created before by another one")
  func vaultBeforeFirstFlush() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    let child = try Child.run(
      TemporaryStore.worker, ["make-vault", store.path, store.keyFile, fixture.vaultKeyFile, "mail"])
    #expect(child.status == 0)
    try proxy.setObject("plain", forKey: "k", inCollection: "other", durability: .committed)
    #expect(throws: locked) { try proxy.setObject("x", forKey: "k", inCollection: "mail") }
    #expect(proxy.pendingChangeCount == 0)
  }

  @Test("learn of a vault and a sealed collection of another one before they set a value there")
  func newVault() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    try proxy.setObject("plain", forKey: "k", inCollection: "mail", durability: .committed)
    let isThere = database.core.vault.isThere.load(ordering: .relaxed)
    #expect(!isThere)
    let child = try Child.run(
      TemporaryStore.worker, ["make-vault", store.path, store.keyFile, fixture.vaultKeyFile, "mail"])
    #expect(child.status == 0)
    #expect(throws: locked) { try proxy.object(forKey: "k", inCollection: "mail", as: String.self) }
    #expect(throws: locked) { try proxy.setObject("x", forKey: "k", inCollection: "mail") }
    #expect(proxy.pendingChangeCount == 0)
  }

  @Test("continue when another one gives the vault a new key, if theirs came from a file")
  func followed() async throws {
    try fixture.set("s3cret")
    let proxy = try ConnectionProxy(database: fixture.database)
    try proxy.setObject("pending", forKey: "p", inCollection: "tokens")
    var events = fixture.vault.events.makeAsyncIterator()
    #expect(try worker("rotate-vault").status == 0)
    #expect(await events.next() == .keyReplaced(isFollowed: true))
    #expect(try fixture.object() == "s3cret")
    #expect(try proxy.object(forKey: "k", inCollection: "tokens") == "s3cret")
    try proxy.setObject("new", forKey: "k", inCollection: "tokens")
    try proxy.flushAndWait()
    #expect(try fixture.object() == "new" && fixture.object(forKey: "p") == "pending")
    fixture.vault.lock()
    #expect(await events.next() == .locked)
    // A process with a locked vault follows nothing.
    #expect(try worker("rotate-vault").status == 0)
    #expect(throws: CofferError.vaultLocked(collection: "tokens")) { try fixture.object(as: String.self) }
  }

  @Test("are not found damaged when another one has given the vault a new key since they read")
  func verified() throws {
    try fixture.set("s3cret")
    #expect(try worker("rotate-vault").status == 0)
    #expect(try fixture.database.verify().problems.isEmpty)
    // The worker finds the key where it always was; this process does not.
    let file = fixture.vaultKeyFile
    try FileManager.default.moveItem(atPath: file, toPath: file + "-away")
    #expect(try worker("rotate-vault", keyFile: file + "-away").status == 0)
    #expect(try fixture.database.verify().problems.isEmpty)
  }

  @Test("are locked when another one gives the vault a new key, until it is in their file")
  func missed() async throws {
    try fixture.set("s3cret")
    let proxy = try ConnectionProxy(database: fixture.database)
    #expect(try proxy.object(forKey: "k", inCollection: "tokens") == "s3cret")
    let file = fixture.vaultKeyFile
    // The worker finds the key where it always was; this process does not.
    try FileManager.default.moveItem(atPath: file, toPath: file + "-away")
    var events = fixture.vault.events.makeAsyncIterator()
    #expect(try worker("rotate-vault", keyFile: file + "-away").status == 0)
    #expect(await events.next() == .keyReplaced(isFollowed: false))
    let locked = CofferError.vaultLocked(collection: "tokens")
    #expect(throws: locked) { try proxy.object(forKey: "k", inCollection: "tokens", as: String.self) }
    #expect(throws: locked) { try fixture.object(as: String.self) }
    try FileManager.default.moveItem(atPath: file + "-away", toPath: file)
    #expect(try fixture.object() == "s3cret")
    #expect(try proxy.object(forKey: "k", inCollection: "tokens") == "s3cret")
    #expect(await events.next() == .keyReplaced(isFollowed: true))
  }

  @Test("are locked when another one gives the vault a new key, and continue when they unlock it again")
  func rotation() throws {
    try fixture.set("s3cret")
    // A plain key does not tell where to find a new one.
    try fixture.vault.unlock(.key(KeyFile.read(at: fixture.vaultKeyFile)))
    #expect(try worker("rotate-vault").status == 0)
    #expect(throws: CofferError.vaultLocked(collection: "tokens")) { try fixture.object(as: String.self) }
    try fixture.vault.unlock(fixture.vaultKey)
    #expect(try fixture.object() == "s3cret")
    #expect(try worker("get-sealed", "tokens", "k").status == 0)
  }
}
