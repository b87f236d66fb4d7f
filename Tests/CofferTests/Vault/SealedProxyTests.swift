import CofferCrypto
import Foundation
import Testing

@testable import Coffer

extension Keys {
  fileprivate static let token = Key<Secret?>("k", in: "tokens")
  fileprivate static let text = Key("k", in: "tokens", default: "default")
}

@Suite("A sealed collection through a proxy") struct SealedProxyTests {
  private let fixture: SealedFixture
  private let proxy: ConnectionProxy
  private var vault: Vault { fixture.vault }
  private let locked = CofferError.vaultLocked(collection: "tokens")

  init() throws {
    fixture = try SealedFixture()
    proxy = try ConnectionProxy(database: fixture.database, flushPolicy: .manually)
  }

  private func set(_ object: some Encodable, forKey key: String = "k") throws {
    try proxy.setObject(object, forKey: key, inCollection: "tokens")
  }

  private func object<Object: Decodable>(as type: Object.Type = Object.self) throws -> Object? {
    try proxy.object(forKey: "k", inCollection: "tokens")
  }

  /// What the proxy has in memory for a key.
  private func held(_ key: String = "k") -> HeldItem? {
    proxy.state.lock.withShared { proxy.state.items.find(key, "tokens")?.object.visible.item }
  }

  private func isSealed(_ item: HeldItem?) -> Bool {
    guard let item else { return false }
    return item.object.stored.kind == .sealed && item.metadata.map { $0.kind == .sealed } ?? true
  }

  @Test("keeps only ciphertext in memory, of pending and cached values, and reads it back")
  func memory() throws {
    for value in ["text", 1, true, 2.5, .secret(Secret("s3cret")), ["list"]] as [Value] {
      try set(value)
      #expect(isSealed(held()))
      #expect(try object() == value)
      try proxy.flushAndWait()
      #expect(try object() == value)
      #expect(isSealed(held()))
    }
    try proxy.setObject(7, forKey: "k", inCollection: "tokens", withMetadata: "note")
    try proxy.replaceObject("replaced", forKey: "k", inCollection: "tokens")
    #expect(isSealed(held()))
    #expect(
      try proxy.row(forKey: "k", inCollection: "tokens", as: String.self, metadata: String.self)?.metadata == "note")
    try proxy.replaceMetadata("other", forKey: "k", inCollection: "tokens")
    try proxy.flushAndWait()
    #expect(try object() == "replaced" && proxy.metadata(forKey: "k", inCollection: "tokens") == "other")
    #expect(try proxy.objects(inCollection: "tokens", as: String.self).map(\.object) == ["replaced"])
    #expect(isSealed(held()))
    // Read as a whole.
    for number in 0..<20 { try fixture.set(number, forKey: "\(number)") }
    for number in 0..<20 { #expect(try proxy.object(forKey: "\(number)", inCollection: "tokens") == number) }
    for number in 0..<20 { #expect(isSealed(held("\(number)"))) }
  }

  @Test("throws immediately on reads and sets while the vault is locked, and serves other collections")
  func lockedProxy() throws {
    try set("s3cret")
    try proxy.flushAndWait()
    #expect(try object() == "s3cret")
    vault.lock()
    #expect(throws: locked) { try object(as: String.self) }
    #expect(throws: locked) { try object(as: Int.self) }
    #expect(throws: locked) { try proxy.value(forKey: "k", inCollection: "tokens") }
    #expect(throws: locked) { try proxy.objects(inCollection: "tokens", as: String.self) }
    #expect(throws: locked) { try set("x") }
    #expect(throws: locked) { try set(1, forKey: "new") }
    #expect(throws: locked) { try proxy.replaceObject("x", forKey: "k", inCollection: "tokens") }
    #expect(throws: locked) { try proxy.replaceMetadata("x", forKey: "k", inCollection: "tokens") }
    #expect(throws: locked) { try proxy.update("k", inCollection: "tokens", as: String.self) { _ in "x" } }
    #expect(throws: locked) { try proxy.update("new", inCollection: "tokens", as: String.self) { _ in "x" } }
    #expect(throws: locked) { try proxy.compareAndSet("k", inCollection: "tokens", expected: "s3cret", new: "x") }
    #expect(throws: locked) {
      try proxy.performBatch { batch in
        try batch.setObject(1, forKey: "other")
        try batch.setObject(1, forKey: "k", inCollection: "tokens")
      }
    }
    #expect(proxy.pendingChangeCount == 0)
    #expect(try proxy.hasObject(forKey: "k", inCollection: "tokens"))
    #expect(try proxy.allKeys(inCollection: "tokens") == ["k"])
    try proxy.setObject(1, forKey: "k")
    #expect(try proxy.object(forKey: "k") == 1)
    try proxy.removeObject(forKey: "k", inCollection: "tokens")
    try proxy.flushAndWait()
    #expect(try fixture.storedItem() == nil)
  }

  @Test("keeps pending changes through a lock, and writes them while the vault is locked")
  func pending() throws {
    try set(Secret("s3cret"))
    vault.lock()
    #expect(proxy.pendingChangeCount == 1)
    #expect(throws: locked) { try object(as: Secret.self) }
    try proxy.flushAndWait()
    #expect(proxy.pendingChangeCount == 0)
    try vault.unlock(fixture.vaultKey)
    #expect(try object() == Secret("s3cret"))
    #expect(try fixture.object() == Secret("s3cret"))
  }

  @Test("has no change if an equal value is set, and announces none")
  func equalValues() async throws {
    try proxy.setObject("s3cret", forKey: "k", inCollection: "tokens", withMetadata: 1)
    try proxy.flushAndWait()
    #expect(try object() == "s3cret")
    let (before, snapshot) = (try fixture.storedItem(), try fixture.commitNumber())
    try proxy.setObject("s3cret", forKey: "k", inCollection: "tokens", withMetadata: 1)
    #expect(proxy.pendingChangeCount == 0)
    var changes = try proxy.changes(inCollection: "tokens").makeAsyncIterator()
    try proxy.setObject("s3cret", forKey: "k", inCollection: "tokens", withMetadata: 1)
    try await proxy.update("k", inCollection: "tokens", as: String.self) { $0 }
    // Not in memory: decided by the flush.
    let other = try ConnectionProxy(database: fixture.database)
    try other.setObject("s3cret", forKey: "k", inCollection: "tokens", withMetadata: 1)
    try await other.flush()
    #expect(try fixture.storedItem() == before && fixture.commitNumber() == snapshot)
    try proxy.setObject("last", forKey: "last", inCollection: "tokens")
    let event = await changes.next()
    #expect(event?.changes.map(\.key) == ["last"])
  }

  @Test("updates, compares and sets atomically")
  func updates() throws {
    #expect(try object(as: String.self) == nil)
    #expect(try proxy.compareAndSet("k", inCollection: "tokens", expected: String?.none, new: "one"))
    #expect(try !proxy.compareAndSet("k", inCollection: "tokens", expected: "other", new: "two"))
    #expect(try proxy.compareAndSet("k", inCollection: "tokens", expected: "one", new: "two"))
    #expect(try proxy.update("k", inCollection: "tokens", as: String.self) { ($0 ?? "") + "!" } == "two!")
    #expect(isSealed(held()))
    #expect(try fixture.object() == "two!")
    try proxy.update("k", inCollection: "tokens", as: String.self) { _ in nil }
    #expect(try fixture.storedItem() == nil && held() == nil)
  }

  @Test("announces keys, with values that stay sealed until requested")
  func events() async throws {
    var changes = try proxy.changes().makeAsyncIterator()
    try set("hunter2")
    let own = try #require(await changes.next())
    // A pending change would hide the other one.
    try await proxy.flush()
    try fixture.set("hunter3")
    let others = try #require(await changes.next())
    var text = ""
    for event in [own, others] {
      dump(event.changes.map { ($0.key, $0.before, $0.after) }, to: &text)
      #expect(event.changes.map(\.key) == ["k"])
    }
    #expect(!text.contains("hunter"))
    #expect(try own.changes[0].object() == "hunter2")
    #expect(try own.changes[0].oldObject(as: String.self) == nil)
    vault.lock()
    #expect(throws: locked) { try own.changes[0].object(as: String.self) }
  }

  @Test("reports to typed keys and Preferences that it is locked, in their way of reporting errors")
  func preferences() async throws {
    proxy[.token] = Secret("s3cret")
    #expect(proxy[.token] == Secret("s3cret"))
    try proxy.flushAndWait()
    let preferences = Preferences(proxy: proxy, collection: "tokens")
    vault.lock()
    var errors = proxy.errors.makeAsyncIterator()
    #expect(proxy[.token] == nil)
    #expect(await errors.next()?.error as? CofferError == locked)
    #expect(proxy[.text] == "default")
    #expect(await errors.next()?.error as? CofferError == locked)
    proxy[.token] = Secret("other")
    #expect(await errors.next()?.error as? CofferError == locked)
    #expect(preferences.string(forKey: "k") == nil)
    #expect(await errors.next()?.error as? CofferError == locked)
    #expect(throws: locked) { try proxy.value(of: .token) }
    #expect(throws: locked) { try proxy.set(Secret("other"), for: .token) }
    #expect(throws: locked) { try preferences.throwing.value(forKey: "k") }
    #expect(throws: locked) { try preferences.exportPropertyList() }
    try await vault.unlock(fixture.vaultKey)
    #expect(proxy[.token] == Secret("s3cret"))
    #expect(preferences.object(forKey: "k", as: Secret.self) == Secret("s3cret"))
  }

  @Test("follows when a connection seals and unseals the collection, with values cached and pending")
  func declarations() throws {
    for key in ["cached", "pending"] { try proxy.setObject("old", forKey: key, inCollection: "mail") }
    try proxy.flushAndWait()
    #expect(try proxy.object(forKey: "cached", inCollection: "mail") == "old")
    try proxy.setObject("new", forKey: "pending", inCollection: "mail")
    try fixture.database.seal(collection: "mail")
    #expect(try proxy.object(forKey: "cached", inCollection: "mail") == "old")
    #expect(try proxy.object(forKey: "pending", inCollection: "mail") == "new")
    try proxy.flushAndWait()
    #expect(try fixture.connection.storedItem(forKey: "pending", inCollection: "mail")?.object.kind == .sealed)
    for key in ["cached", "pending"] {
      _ = try proxy.object(forKey: key, inCollection: "mail", as: String.self)
      #expect(try proxy.state.visible(key, in: "mail").item?.object.stored.kind == .sealed)
    }
    try proxy.setObject("sealed", forKey: "pending", inCollection: "mail")
    try fixture.database.unseal(collection: "mail")
    try proxy.flushAndWait()
    vault.lock()
    #expect(try proxy.object(forKey: "pending", inCollection: "mail") == "sealed")
    #expect(try proxy.object(forKey: "cached", inCollection: "mail") == "old")
    #expect(try fixture.connection.storedItem(forKey: "pending", inCollection: "mail")?.object.kind == .string)
    try proxy.setObject("plain", forKey: "pending", inCollection: "mail", durability: .committed)
  }

  @Test("knows that an empty collection was sealed before the first value is set")
  func emptyCollection() throws {
    try proxy.setObject("plain", forKey: "k", inCollection: "mail")
    try proxy.removeObject(forKey: "k", inCollection: "mail")
    try fixture.database.seal(collection: "mail")
    try proxy.setObject("s3cret", forKey: "k", inCollection: "mail")
    #expect(try proxy.state.visible("k", in: "mail").item?.object.stored.kind == .sealed)
    vault.lock()
    #expect(throws: CofferError.vaultLocked(collection: "mail")) {
      try proxy.setObject("x", forKey: "k", inCollection: "mail")
    }
    #expect(throws: CofferError.vaultLocked(collection: "mail")) {
      try proxy.setObject("x", forKey: "n", inCollection: "mail")
    }
  }
}
