import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferStorage

@Suite("A change that rewrites the whole store") struct RewritingTests {
  private static let lines = 3000

  @Test("begins nothing in a store with a page that does not authenticate")
  func damaged() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { transaction in
      for number in 0..<Self.lines { try transaction.setObject("\(number)", forKey: "\(number)") }
    }
    try database.addSlot(.key(.random(count: 32)))
    try database.vault.create(key: store.key)
    try database.close()
    var bytes = try Data(contentsOf: URL(fileURLWithPath: store.path))
    // A page of the values, which nothing reads here.
    let pageCount = (bytes.count - Layout.envelopeByteCount) / Layout.pageByteCount
    bytes[Layout.envelopeByteCount + pageCount / 2 * Layout.pageByteCount + 500] ^= 1
    try bytes.write(to: URL(fileURLWithPath: store.path))
    let open = try store.open()
    try open.vault.unlock(store.key)
    let envelope = try Store.peekEnvelope(at: store.path)
    func expectDamage(_ body: () throws -> Void, location: SourceLocation = #_sourceLocation) {
      do {
        try body()
        Issue.record("it was done", sourceLocation: location)
      } catch CofferError.damaged(let part, _) {
        #expect(part.hasPrefix("page "), sourceLocation: location)
      } catch {
        Issue.record("\(error)", sourceLocation: location)
      }
    }
    expectDamage { try open.rotate() }
    expectDamage { try open.rotate(newRootKeyFor: [store.key], droppingSlots: [1]) }
    expectDamage { try open.vault.rotate(newKeyFor: [store.key]) }
    expectDamage { try open.seal(collection: "web") }
    #expect(try Store.peekEnvelope(at: store.path).sequence == envelope.sequence)
    #expect(try open.vault.existingRecord().generation == 1)
    #expect(try open.vault.existingRecord().sealedCollections == [])
  }

  /// Adds a key to the envelope, as a rotation does that is killed then.
  private func beginRotation(of store: TemporaryStore) throws {
    var bytes = try Data(contentsOf: URL(fileURLWithPath: store.path))
    var envelope = try Store.peekEnvelope(at: store.path)
    let rootKey = try envelope.open(store.key).key
    envelope.epochs.append(
      try Epoch(number: 2, created: envelope.created, rootKey: rootKey, storeID: envelope.storeID))
    envelope.sequence += 1
    let copy = try envelope.encoded(rootKey: rootKey)
    bytes.replaceSubrange(0..<Layout.envelopeByteCount, with: copy + copy)
    try bytes.write(to: URL(fileURLWithPath: store.path))
  }

  @Test("waits for the interrupted rotation that its own database resumes", arguments: ["vault", "seal"])
  func resumed(_ change: String) throws {
    for round in 0..<8 {
      let store = try TemporaryStore()
      let database = try store.open()
      try database.vault.create(key: store.key)
      try database.makeConnection().readWrite { transaction in
        for number in 0..<Self.lines { try transaction.setObject("\(number)", forKey: "\(number)") }
      }
      try database.close()
      try beginRotation(of: store)
      let open = try store.open(busyTimeout: .seconds(20))
      try open.vault.unlock(store.key)
      if change == "seal" {
        try open.seal(collection: "web")
      } else {
        try open.vault.rotate(newKeyFor: [store.key])
      }
      try open.close()
      #expect(try Store.peekEnvelope(at: store.path).epochs.count == 1, "round \(round)")
    }
  }
}
