import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

/// Each test is named after its row of the threat table in `SECURITY.md`.
@Suite("An attacker who can write the files") struct AttackTests {
  private let store: SmallStore
  private let rows: [String]
  private static let cheap = Slot.Stretching.password(.scrypt(log2N: 14, r: 8, p: 1))

  init() throws {
    store = try SmallStore(rows: 1200)
    rows = try store.contents()
  }

  // MARK: Files

  private func edit(_ store: SmallStore, _ suffix: String = "", _ change: (inout [UInt8]) throws -> Void) throws {
    var bytes = try store.bytes(suffix)
    try change(&bytes)
    try store.overwrite(bytes, suffix: suffix)
  }

  private func range(ofPage number: Int) -> Range<Int> {
    let start = Layout.envelopeByteCount + (number - 1) * Layout.pageByteCount
    return start..<start + Layout.pageByteCount
  }

  private func pageCount() throws -> Int {
    (try store.bytes().count - Layout.envelopeByteCount) / Layout.pageByteCount
  }

  /// Changes one row, and folds the log in.
  private func set(_ key: String, _ value: String) throws {
    let connection = try store.connect()
    try connection.write { try connection.set(key, value) }
    try connection.close()
  }

  /// Reads all rows: whether they are what was set, and the error that ended it.
  private func read(_ key: KeySource? = nil) -> (isRight: Bool, error: StorageError?) {
    do {
      return (try store.contents(openedWith: key ?? store.key) == rows, nil)
    } catch {
      return (false, error as? StorageError)
    }
  }

  private func expectDamage(sourceLocation: SourceLocation = #_sourceLocation) {
    let result = read()
    guard case .damaged = result.error else {
      Issue.record("\(result)", sourceLocation: sourceLocation)
      return
    }
  }

  /// Never a wrong value, and an error, if not of reading, then of verification.
  private func expectNotice(_ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let result = read()
    guard result.error == nil else { return }
    #expect(result.isRight, comment, sourceLocation: sourceLocation)
    let pages = try Store.open(at: store.path, key: store.key).verifyPages { _ in }
    #expect(!pages.damaged.isEmpty || !pages.missing.isEmpty, comment, sourceLocation: sourceLocation)
  }

  // MARK: Pages

  @Test("who swaps any two pages is detected")
  func swap() throws {
    let original = try store.bytes()
    let count = try pageCount()
    for (first, second) in [(1, 2), (2, 3), (count - 1, count), (3, count)] {
      try edit(store) { bytes in
        let (one, other) = (bytes[range(ofPage: first)], bytes[range(ofPage: second)])
        bytes.replaceSubrange(range(ofPage: first), with: other)
        bytes.replaceSubrange(range(ofPage: second), with: one)
      }
      try expectNotice("\(first), \(second)")
      try store.overwrite(original)
    }
  }

  @Test("who moves a page is detected")
  func move() throws {
    let count = try pageCount()
    try edit(store) { $0.replaceSubrange(range(ofPage: count), with: $0[range(ofPage: 2)]) }
    try expectNotice()
  }

  @Test("who truncates the store anywhere is detected")
  func cut() throws {
    let original = try store.bytes()
    for pages in [1, 2, try pageCount() - 1] {
      for extra in [0, 1, 4095] {
        try edit(store) { $0.removeLast(pages * Layout.pageByteCount - extra) }
        try expectNotice()
        try store.overwrite(original)
      }
    }
  }

  @Test("who splices in a page of another store is detected, even if the same key opens both")
  func splice() throws {
    let other = try SmallStore(key: store.key)
    let connection = try other.connect()
    try connection.execute(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<1200) "
        + "INSERT INTO kv SELECT 'key '||i, 'forge '||i FROM n")
    try connection.close()
    let foreign = try other.bytes()
    let original = try store.bytes()
    for page in 1...(try pageCount()) {
      try edit(store) { $0.replaceSubrange(range(ofPage: page), with: foreign[range(ofPage: page)]) }
      try expectNotice("page \(page)")
      try store.overwrite(original)
    }
  }

  @Test("who replays one page is not detected: a limit that SECURITY.md names")
  func replayOfAPage() throws {
    let before = try store.bytes()
    try set("key 1", "changed")
    let after = try store.bytes()
    #expect(before.count == after.count)
    // The page that holds the value: of those that changed, the one that brings it back.
    var replayed = 0
    for page in 2...(try pageCount()) where before[range(ofPage: page)] != after[range(ofPage: page)] {
      try edit(store) { $0.replaceSubrange(range(ofPage: page), with: before[range(ofPage: page)]) }
      if read().isRight { replayed += 1 }
      try store.overwrite(after)
    }
    #expect(replayed == 1)
  }

  @Test(
    "who replays a whole older file is not detected without a record of a newer one: a limit that SECURITY.md names"
  )
  func replayOfTheFile() throws {
    let before = try store.bytes()
    try set("key 1", "changed")
    try store.overwrite(before)
    #expect(read().isRight)
  }

  // MARK: The log

  @Test("who replays one frame of the log, in its place or elsewhere, ends the log there")
  func replayOfAFrame() throws {
    // Two generations of the log, each with changes of the same pages.
    let connection = try store.connect()
    func commit(_ text: String) throws -> SmallStore {
      for number in 0..<3 { try connection.write { try connection.set("logged", "\(text) \(number)") } }
      return try store.copyAsAfterCrash()
    }
    let old = try commit("old")
    try connection.execute("PRAGMA wal_checkpoint(RESTART)")
    let new = try commit("new")
    let oldLog = upToLastFrame(try old.bytes("-wal"))
    let newLog = upToLastFrame(try new.bytes("-wal"))
    let frameCount = (min(oldLog.count, newLog.count) - Layout.logHeaderByteCount) / Layout.frameByteCount
    #expect(frameCount >= 3)
    func frame(_ number: Int) -> Range<Int> {
      let start = Layout.logHeaderByteCount + number * Layout.frameByteCount
      return start..<start + Layout.frameByteCount
    }
    for target in 0..<frameCount {
      for source in [oldLog[frame(target)], newLog[frame((target + 1) % frameCount)]] {
        let attacked = try new.copyAsAfterCrash()
        try edit(attacked, "-wal") { $0.replaceSubrange(frame(target), with: source) }
        let value = (try? attacked.contents())?.last { $0.hasPrefix("logged=") }
        #expect([nil, "logged=old 2", "logged=new 0", "logged=new 1", "logged=new 2"].contains(value))
        #expect(value != "logged=new 2", "frame \(target) was taken")
      }
    }
    try connection.close()
  }

  @Test(
    "who truncates the log gets an earlier commit, as after a crash, without a record of a newer one: a limit that SECURITY.md names"
  )
  func cutOfTheLog() throws {
    let connection = try store.connect()
    for number in 0..<3 { try connection.write { try connection.set("logged", "\(number)") } }
    let copy = try store.copyAsAfterCrash()
    try edit(copy, "-wal") { $0 = Array(upToLastFrame($0).dropLast(Layout.frameByteCount)) }
    #expect(try copy.contents().contains("logged=1"))
    try connection.close()
  }

  @Test("who puts back a whole old log beside a closed store has it replayed: a limit that SECURITY.md names")
  func replayOfTheLog() throws {
    let connection = try store.connect()
    try connection.write { try connection.set("logged", "old") }
    let old = try store.copyAsAfterCrash()
    try connection.write { try connection.set("logged", "new") }
    try connection.close()
    #expect(try store.contents().contains("logged=new"))
    try store.overwrite(old.bytes("-wal"), suffix: "-wal")
    #expect(try store.contents() == old.contents())
    #expect(try store.contents().contains("logged=old"))
  }

  // MARK: The envelope

  /// Changes both copies of the envelope as someone can who knows the format and no key: with right checksums.
  private func editEnvelope(_ change: (inout [UInt8]) -> Void) throws {
    try edit(store) { bytes in
      for copy in 0..<2 {
        let start = copy * Layout.envelopeCopyByteCount
        let end = start + Layout.envelopeCopyByteCount
        var envelope = Array(bytes[start..<end])
        change(&envelope)
        bytes.replaceSubrange(start..<end, with: try Envelope.checksummed(envelope))
      }
    }
  }

  private func passphrase(_ text: String) -> KeySource { .passphrase(SecretBytes(copying: text)) }

  /// Where the record of a slot begins in a copy of the envelope.
  private func offset(ofSlot index: Int) throws -> Int {
    let slots = try Store.peekEnvelope(at: store.path).slots
    return 56 + slots.prefix(index).reduce(0) { $0 + 2 + $1.encoded.count } + 2
  }

  private func addPassphrase(_ text: String, cost: Slot.Stretching) throws {
    let opened = try Store.open(at: store.path, key: store.key)
    let connection = try SQLiteConnection(store: opened, busyTimeout: .zero)
    let secret = try PreparedSecret(passphrase(text), stretching: cost, owner: opened.storeID)
    try connection.write { _ = try connection.changeEnvelope { try $0.apply(.add(secret)) } }
    try connection.close()
  }

  @Test("who lowers the cost of a slot locks it, and the others notice")
  func costLowered() throws {
    try addPassphrase("secret", cost: .password(.scrypt(log2N: 15, r: 8, p: 1)))
    let slot = try offset(ofSlot: 1)
    try editEnvelope { bytes in
      #expect(bytes[slot + 7] == 15)
      bytes[slot + 7] = 14
    }
    #expect(read(passphrase("secret")).error == .wrongKey)
    expectDamage()
  }

  @Test("who raises the cost of a slot to the absurd causes no computation")
  func costRaised() throws {
    try addPassphrase("secret", cost: Self.cheap)
    let slot = try offset(ofSlot: 1)
    for cost: UInt8 in [13, 21, 40, 63, 64, 255] {
      try editEnvelope { $0[slot + 7] = cost }
      guard case .unsupported(let reason) = read(passphrase("secret")).error else {
        Issue.record("cost \(cost) was tried")
        continue
      }
      #expect(reason.contains("2^\(cost)"))
    }
  }

  @Test("who inserts a slot of another store, with a known secret, does not get in")
  func slotOfAnotherStore() throws {
    let other = try SmallStore()
    // His own slot, over the owner's: then beside it.
    let slot = try Store.peekEnvelope(at: other.path).slots[0].encoded
    let mine = try Store.peekEnvelope(at: store.path).slots[0].encoded
    #expect(slot.count == mine.count)
    let offset = try offset(ofSlot: 0)
    let original = try store.bytes()
    try editEnvelope { $0.replaceSubrange(offset..<offset + slot.count, with: slot) }
    #expect(read(other.key).error == .wrongKey)
    try store.overwrite(original)
    try editEnvelope { bytes in
      var added = slot
      added[0] = 1
      let record = [UInt8(added.count >> 8), UInt8(added.count & 255)] + added
      bytes.insert(contentsOf: record, at: offset + mine.count)
      bytes.removeLast(record.count)
      bytes[54] = 2
    }
    #expect(read(other.key).error == .wrongKey)
    expectDamage()
  }

  @Test("who puts the envelope of another store before the pages is detected")
  func foreignEnvelope() throws {
    let other = try SmallStore(key: store.key)
    let foreign = try other.bytes().prefix(Layout.envelopeByteCount)
    try edit(store) { $0.replaceSubrange(..<Layout.envelopeByteCount, with: foreign) }
    expectDamage()
  }

  @Test("who puts back a page of an old epoch after a rotation is detected")
  func oldEpoch() throws {
    let before = try store.bytes()
    let connection = try store.connect()
    try connection.write { _ = try connection.changeEnvelope { try $0.beginRotation() } }
    try connection.vacuum()
    #expect(try connection.checkpointAndTruncate {})
    try connection.write {
      guard case .dropped = try connection.dropOldEpochs() else {
        Issue.record("the old epoch is needed")
        return
      }
    }
    try connection.close()
    for page in 1...3 {
      let after = try store.bytes()
      try edit(store) { $0.replaceSubrange(range(ofPage: page), with: before[range(ofPage: page)]) }
      try expectNotice("page \(page)")
      try store.overwrite(after)
    }
  }
}
