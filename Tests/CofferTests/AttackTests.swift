import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

/// What the tables see of an attack; the files themselves are attacked in CofferStorageTests.
///
/// Each test is named after its row of the threat table in `SECURITY.md`.
@Suite("An attacker who can write the files") struct AttackTests {
  @Test("who has the store's key and replays one sealed value is not detected: a limit that SECURITY.md names")
  func replayOfASealedValue() throws {
    let fixture = try SealedFixture()
    try fixture.set(Secret("old"))
    try fixture.execute("CREATE TABLE kept AS SELECT type, data FROM items WHERE key = 'k'")
    try fixture.set(Secret("new"))
    try fixture.execute("UPDATE items SET (type, data) = (SELECT type, data FROM kept) WHERE key = 'k'")
    #expect(try fixture.object(as: Secret.self) == Secret("old"))
    // Nowhere else, and not under another key of the vault.
    try fixture.vault.rotate(newKeyFor: [fixture.vaultKey])
    // Until it is locked, this process has the earlier key, for what is pending under it.
    fixture.vault.lock()
    try fixture.vault.unlock(fixture.vaultKey)
    try fixture.execute("UPDATE items SET (type, data) = (SELECT type, data FROM kept) WHERE key = 'k'")
    #expect { try fixture.object(as: Secret.self) } throws: {
      if case CofferError.damaged = $0 { true } else { false }
    }
  }

  @Test("who puts back an older envelope, to open the store with a revoked secret, is detected")
  func envelopeDowngrade() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let revoked = KeySource.passphrase(SecretBytes(copying: "revoked".utf8))
    try database.addSlot(revoked, stretching: .scrypt(log2N: 14, r: 8, p: 1))
    try database.close()
    let older = try store.bytes().prefix(Layout.envelopeByteCount)
    let reopened = try store.open()
    try reopened.removeSlot(1)
    try reopened.close()
    try (older + store.bytes().dropFirst(Layout.envelopeByteCount)).write(to: URL(fileURLWithPath: store.path))
    for key in [revoked, store.key] {
      #expect { try Database.open(at: store.path, key: key) } throws: {
        if case CofferError.damaged(part: "envelope", _) = $0 { true } else { false }
      }
    }
  }
}
