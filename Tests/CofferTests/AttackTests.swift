import CofferCrypto
import CofferStorage
import Foundation
import Testing

@testable import Coffer
@testable import CofferMaintenance

/// Each test is named after its row of the threat table in `SECURITY.md`.
@Suite("An attacker who can write the files") struct AttackTests {
  private let store: TemporaryStore
  private static let cheap = PasswordHash.scrypt(log2N: 14, r: 8, p: 1)

  init() throws {
    store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { transaction in
      for number in 0..<400 { try transaction.setObject("value \(number)", forKey: Self.key(number)) }
    }
    try database.close()
  }

  private static func key(_ number: Int) -> String { "key \(1000 + number)" }

  // MARK: Files

  private func edit(_ path: String, _ change: (inout Data) throws -> Void) throws {
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    try change(&bytes)
    try bytes.write(to: URL(fileURLWithPath: path))
  }

  private func range(ofPage number: Int) -> Range<Int> {
    let start = Layout.envelopeByteCount + (number - 1) * Layout.pageByteCount
    return start..<start + Layout.pageByteCount
  }

  private func pageCount() throws -> Int {
    (try store.bytes().count - Layout.envelopeByteCount) / Layout.pageByteCount
  }

  /// Reads all that was set; as many values as come back, and whether an error ended it.
  private func readAll(_ key: KeySource? = nil) -> (right: Int, wrong: Int, error: CofferError?) {
    var (right, wrong) = (0, 0)
    do {
      let database = try Database.open(at: store.path, key: key ?? store.key)
      defer { try? database.close() }
      try database.makeConnection().read { transaction in
        for number in 0..<400 {
          let value: String? = try transaction.object(forKey: Self.key(number))
          if value == "value \(number)" { right += 1 } else { wrong += 1 }
        }
      }
      return (right, wrong, nil)
    } catch {
      return (right, wrong, error as? CofferError)
    }
  }

  private func expectDamage(sourceLocation: SourceLocation = #_sourceLocation) {
    let result = readAll()
    #expect(result.wrong == 0, "a wrong value came back", sourceLocation: sourceLocation)
    guard case .damaged = result.error else {
      Issue.record("\(String(describing: result.error))", sourceLocation: sourceLocation)
      return
    }
  }

  /// Never a wrong value, and an error, if not of reading, then of verification.
  private func expectNotice(_ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
    let result = readAll()
    #expect(result.wrong == 0, comment, sourceLocation: sourceLocation)
    let isNoticed = result.error != nil || (try? store.open().verify().problems.isEmpty) != true
    #expect(isNoticed, comment, sourceLocation: sourceLocation)
  }

  // MARK: Pages

  @Test("who swaps two pages is found out, whichever they are")
  func swap() throws {
    let original = try store.bytes()
    let count = try pageCount()
    for (first, second) in [(1, 2), (2, 3), (count - 1, count), (3, count)] {
      try edit(store.path) { bytes in
        let (one, other) = (bytes[range(ofPage: first)], bytes[range(ofPage: second)])
        bytes.replaceSubrange(range(ofPage: first), with: other)
        bytes.replaceSubrange(range(ofPage: second), with: one)
      }
      expectNotice("\(first), \(second)")
      try original.write(to: URL(fileURLWithPath: store.path))
    }
  }

  @Test("who moves a page to another place is found out")
  func move() throws {
    let count = try pageCount()
    try edit(store.path) { $0.replaceSubrange(range(ofPage: count), with: $0[range(ofPage: 2)]) }
    expectNotice()
  }

  @Test("who cuts the store off, anywhere, is found out")
  func cut() throws {
    let original = try store.bytes()
    for pages in [1, 2, try pageCount() - 1] {
      for extra in [0, 1, 4095] {
        try edit(store.path) { $0 = $0.prefix($0.count - (pages - 1) * Layout.pageByteCount - 4096 + extra) }
        expectNotice()
        try original.write(to: URL(fileURLWithPath: store.path))
      }
    }
  }

  @Test("who splices in a page of another store is found out, even where the same key opens both")
  func splice() throws {
    let other = try TemporaryStore()
    try FileManager.default.removeItem(atPath: other.keyFile)
    try FileManager.default.copyItem(atPath: store.keyFile, toPath: other.keyFile)
    let database = try other.open()
    try database.makeConnection().readWrite { transaction in
      for number in 0..<400 { try transaction.setObject("forged \(number)", forKey: Self.key(number)) }
    }
    try database.close()
    let foreign = try other.bytes()
    let original = try store.bytes()
    for page in 1...(try pageCount()) {
      try edit(store.path) { $0.replaceSubrange(range(ofPage: page), with: foreign[range(ofPage: page)]) }
      expectNotice("page \(page)")
      try original.write(to: URL(fileURLWithPath: store.path))
    }
  }

  @Test("who replays one page is not found out: a limit that SECURITY.md names")
  func replayOfAPage() throws {
    let before = try store.bytes()
    let database = try store.open()
    try database.makeConnection().readWrite { try $0.setObject("changed", forKey: Self.key(0)) }
    try database.close()
    let after = try store.bytes()
    #expect(before.count == after.count)
    // The page that holds the value: of those that changed, the one that brings it back.
    var replayed = 0
    for page in 2...(try pageCount()) where before[range(ofPage: page)] != after[range(ofPage: page)] {
      try edit(store.path) { $0.replaceSubrange(range(ofPage: page), with: before[range(ofPage: page)]) }
      let result = readAll()
      if result.error == nil, result.right == 400 { replayed += 1 }
      try after.write(to: URL(fileURLWithPath: store.path))
    }
    #expect(replayed == 1)
  }

  @Test("who replays a whole older file is not found out: a limit that SECURITY.md names")
  func replayOfTheFile() throws {
    let before = try store.bytes()
    let database = try store.open()
    try database.makeConnection().readWrite { try $0.setObject("changed", forKey: Self.key(0)) }
    try database.close()
    try before.write(to: URL(fileURLWithPath: store.path))
    #expect(readAll().right == 400)
  }

  // MARK: The log

  @Test("who replays one frame of the log, in its place or another, ends the log there")
  func replayOfAFrame() throws {
    // Two generations of the log, each with changes of the same pages.
    let database = try store.open()
    let connection = try database.makeConnection()
    func commit(_ text: String) throws -> TemporaryStore {
      for number in 0..<3 { try connection.readWrite { try $0.setObject("\(text) \(number)", forKey: "logged") } }
      let copy = try TemporaryStore()
      try store.copyAsAfterCrash(to: copy)
      return copy
    }
    let old = try commit("old")
    try connection.perform { try $0.connection.execute("PRAGMA wal_checkpoint(RESTART)") }
    let new = try commit("new")
    let oldLog = try old.bytes("-wal")
    let newLog = try new.bytes("-wal")
    let frameCount = (min(oldLog.count, newLog.count) - Layout.logHeaderByteCount) / Layout.frameByteCount
    #expect(frameCount >= 3)
    func frame(_ number: Int) -> Range<Int> {
      let start = Layout.logHeaderByteCount + number * Layout.frameByteCount
      return start..<start + Layout.frameByteCount
    }
    for target in 0..<frameCount {
      for source in [oldLog[frame(target)], newLog[frame((target + 1) % frameCount)]] {
        let attacked = try TemporaryStore()
        try new.copyAsAfterCrash(to: attacked)
        try edit(attacked.path + "-wal") { $0.replaceSubrange(frame(target), with: source) }
        let value = try? attacked.open().makeConnection().read { try $0.object(forKey: "logged", as: String.self) }
        #expect([nil, "old 2", "new 0", "new 1", "new 2"].contains(value ?? nil))
        #expect(value != "new 2", "frame \(target) was taken")
      }
    }
  }

  @Test("who cuts the log off gets an earlier commit, as after a crash: a limit that SECURITY.md names")
  func cutOfTheLog() throws {
    let database = try store.open()
    let connection = try database.makeConnection()
    for number in 0..<3 { try connection.readWrite { try $0.setObject(number, forKey: "logged") } }
    let copy = try TemporaryStore()
    try store.copyAsAfterCrash(to: copy)
    try edit(copy.path + "-wal") { $0 = $0.dropLast(Layout.frameByteCount) }
    #expect(try copy.open().makeConnection().read { try $0.object(forKey: "logged") } == 1)
  }

  // MARK: Sealed values

  @Test("who has the store's key and replays one sealed value is not found out: a limit that SECURITY.md names")
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

  // MARK: The envelope

  /// Changes both copies of the envelope as someone can who knows the format and no key: with right checksums.
  private func editEnvelope(_ change: (inout [UInt8]) -> Void) throws {
    try edit(store.path) { bytes in
      for copy in 0..<2 {
        let start = copy * Layout.envelopeCopyByteCount
        let end = start + Layout.envelopeCopyByteCount
        var envelope = Array(bytes[start..<end - 32])
        change(&envelope)
        bytes.replaceSubrange(start..<end, with: try envelope + envelope.withUnsafeBytes(SHA256.digest))
      }
    }
  }

  private func passphrase(_ text: String) -> KeySource { .passphrase(SecretBytes(copying: text.utf8)) }

  /// Where the record of a slot begins in a copy of the envelope.
  private func offset(ofSlot index: Int) throws -> Int {
    let slots = try Store.peekEnvelope(at: store.path).slots
    return 56 + slots.prefix(index).reduce(0) { $0 + 2 + $1.encoded.count } + 2
  }

  private func addPassphrase(_ text: String, cost: PasswordHash) throws {
    let database = try store.open()
    try database.addSlot(passphrase(text), stretching: cost)
    try database.close()
  }

  @Test("who lowers the cost of a slot locks it, and the others notice")
  func costLowered() throws {
    try addPassphrase("secret", cost: .scrypt(log2N: 15, r: 8, p: 1))
    let slot = try offset(ofSlot: 1)
    try editEnvelope { bytes in
      #expect(bytes[slot + 7] == 15)
      bytes[slot + 7] = 14
    }
    #expect(readAll(passphrase("secret")).error == .wrongKey)
    expectDamage()
  }

  @Test("who raises the cost of a slot to the absurd makes nobody compute it")
  func costRaised() throws {
    try addPassphrase("secret", cost: Self.cheap)
    let slot = try offset(ofSlot: 1)
    for cost: UInt8 in [13, 22, 40, 63, 64, 255] {
      try editEnvelope { $0[slot + 7] = cost }
      guard case .unsupported(let reason) = readAll(passphrase("secret")).error else {
        Issue.record("cost \(cost) was tried")
        continue
      }
      #expect(reason.contains("2^\(cost)"))
    }
  }

  @Test("who puts a slot of another store in, whose secret he knows, does not get in")
  func slotOfAnotherStore() throws {
    let other = try TemporaryStore()
    try other.open().close()
    // His own slot, over the owner's: then beside it.
    let slot = try Store.peekEnvelope(at: other.path).slots[0].encoded
    let mine = try Store.peekEnvelope(at: store.path).slots[0].encoded
    #expect(slot.count == mine.count)
    let offset = try offset(ofSlot: 0)
    let original = try store.bytes()
    try editEnvelope { $0.replaceSubrange(offset..<offset + slot.count, with: slot) }
    #expect(readAll(other.key).error == .wrongKey)
    try original.write(to: URL(fileURLWithPath: store.path))
    try editEnvelope { bytes in
      var added = slot
      added[0] = 1
      let record = [UInt8(added.count >> 8), UInt8(added.count & 255)] + added
      bytes.insert(contentsOf: record, at: offset + mine.count)
      bytes.removeLast(record.count)
      bytes[54] = 2
    }
    #expect(readAll(other.key).error == .wrongKey)
    expectDamage()
  }

  @Test("who puts an older envelope back, to open the store with a secret that was revoked, is found out")
  func envelopeDowngrade() throws {
    try addPassphrase("revoked", cost: Self.cheap)
    let older = try store.bytes().prefix(Layout.envelopeByteCount)
    let database = try store.open()
    try database.removeSlot(1)
    try database.close()
    try edit(store.path) { $0.replaceSubrange(..<Layout.envelopeByteCount, with: older) }
    for key in [passphrase("revoked"), store.key] {
      guard case .damaged(part: "envelope", _) = readAll(key).error else {
        Issue.record("it was opened")
        continue
      }
    }
  }

  @Test("who puts the envelope of another store before the pages is found out")
  func foreignEnvelope() throws {
    let other = try TemporaryStore()
    try FileManager.default.removeItem(atPath: other.keyFile)
    try FileManager.default.copyItem(atPath: store.keyFile, toPath: other.keyFile)
    try other.open().close()
    let foreign = try other.bytes().prefix(Layout.envelopeByteCount)
    try edit(store.path) { $0.replaceSubrange(..<Layout.envelopeByteCount, with: foreign) }
    expectDamage()
  }

  @Test("who puts an old epoch's page back after a rotation is found out")
  func oldEpoch() throws {
    let before = try store.bytes()
    let database = try store.open()
    try database.rotate()
    try database.close()
    for page in 1...3 {
      let after = try store.bytes()
      try edit(store.path) { $0.replaceSubrange(range(ofPage: page), with: before[range(ofPage: page)]) }
      expectNotice("page \(page)")
      try after.write(to: URL(fileURLWithPath: store.path))
    }
  }
}
