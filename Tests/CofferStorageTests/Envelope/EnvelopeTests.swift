import CofferCrypto
import Foundation
import Testing

@testable import CofferStorage

@Suite("The envelope") struct EnvelopeTests {
  /// The cheapest passphrase slot that is allowed.
  private static let cheap = Slot.Stretching.password(.scrypt(log2N: 14, r: 8, p: 1))

  private struct Made {
    let envelope: Envelope
    let rootKey: SecretBytes
    let key: SecretBytes
    let passphrase = secret("correct horse")

    init() throws {
      rootKey = try SecretBytes.random(count: 32)
      key = try SecretBytes.random(count: 32)
      let storeID = try RandomSource.bytes(count: 16)
      var slots: [Slot] = []
      for secret in [
        try PreparedSecret(.key(key), label: "laptop", owner: storeID),
        try PreparedSecret(.passphrase(passphrase), stretching: cheap, label: "é", owner: storeID),
      ] {
        _ = try slots.add(secret, wrapping: rootKey, owner: storeID)
      }
      envelope = Envelope(
        storeID: storeID, created: 3, slots: slots,
        epochs: [try Epoch(number: 1, created: 4, rootKey: rootKey, storeID: storeID)])
    }
  }

  private static func secret(_ text: String) -> SecretBytes {
    SecretBytes(count: text.utf8.count) { $0.copyBytes(from: text.utf8) }
  }

  @Test("decodes from its bytes, and opens with each of its slots")
  func roundTrip() throws {
    let made = try Made()
    let bytes = try made.envelope.encoded(rootKey: made.rootKey)
    #expect(bytes.count == Layout.envelopeCopyByteCount)
    let read = try Envelope(copy: bytes[...])
    #expect(read.slots == made.envelope.slots)
    #expect(read.epochs == made.envelope.epochs)
    #expect(try read.open(.key(made.key)).key.isEqual(to: made.rootKey))
    #expect(try read.open(.passphrase(made.passphrase)).key.isEqual(to: made.rootKey))
  }

  @Test("detects a wrong key")
  func wrongKey() throws {
    let made = try Made()
    let read = try Envelope(copy: made.envelope.encoded(rootKey: made.rootKey)[...])
    #expect(throws: StorageError.wrongKey) { try read.open(.key(SecretBytes.random(count: 32))) }
    #expect(throws: StorageError.wrongKey) { try read.open(.passphrase(Self.secret("Correct horse"))) }
    #expect(throws: StorageError.wrongKey) { try read.open(.passphrase(made.key)) }
  }

  @Test("detects every flipped bit")
  func flippedBits() throws {
    let made = try Made()
    let bytes = try made.envelope.encoded(rootKey: made.rootKey)
    for position in bytes.indices {
      var damaged = bytes
      damaged[position] ^= 1 << (position % 8)
      #expect(throws: EnvelopeError.self, "byte \(position)") { try Envelope(copy: damaged[...]) }
    }
  }

  @Test("does not open if it was edited with correct checksums but without the key")
  func forged() throws {
    let made = try Made()
    let bytes = try made.envelope.encoded(rootKey: made.rootKey)
    let end = Envelope.checkedByteCount
    var refusals = 0
    // The slots, the epoch, the MAC, and the padding at its beginning and its end.
    for position in Array(12..<700) + [end - 1] {
      var forged = bytes
      forged[position] ^= 1
      forged = try Envelope.checksummed(forged)
      #expect(throws: (any Error).self, "byte \(position)") {
        try Envelope(copy: forged[...]).open(.key(made.key))
      }
      refusals += 1
    }
    #expect(refusals == 689)
  }

  @Test("refuses costs outside its bounds before it computes")
  func costs() throws {
    let storeID = [UInt8](repeating: 1, count: 16)
    for hash: PasswordHash in [
      .scrypt(log2N: 13, r: 8, p: 1), .scrypt(log2N: 40, r: 8, p: 1), .scrypt(log2N: 17, r: 1, p: 1),
      .pbkdf2HMACSHA512(iterations: 1000), .pbkdf2HMACSHA512(iterations: .max),
      .argon2id(memoryKiB: 64, iterations: 1, lanes: 1), .argon2id(memoryKiB: .max, iterations: 1, lanes: 1),
    ] {
      #expect(throws: StorageError.self, "\(hash)") {
        try PreparedSecret(.passphrase(Self.secret("p")), stretching: .password(hash), owner: storeID)
      }
    }
  }

  @Test("tries cheap slots first, up to the total cost of an opening")
  func totalCost() throws {
    let owner = try RandomSource.bytes(count: 16)
    let key = try SecretBytes.random(count: 32)
    var slots: [Slot] = []
    for (number, log2N) in [UInt8(15), 15, 14].enumerated() {
      let stretching = Slot.Stretching.password(.scrypt(log2N: log2N, r: 8, p: 1))
      _ = try slots.add(
        PreparedSecret(.passphrase(Self.secret("\(number)")), stretching: stretching, owner: owner), wrapping: key,
        owner: owner)
    }
    _ = try slots.add(PreparedSecret(.key(key), owner: owner), wrapping: key, owner: owner)
    // Enough for the cheap one and one of the others.
    func opened(_ source: KeySource) throws -> UInt8 {
      try slots.open(source, owner: owner, maximumWork: (1 << 17) + (1 << 18)) { _ in }.slotID
    }
    #expect(try opened(.passphrase(Self.secret("2"))) == 2)
    #expect(try opened(.passphrase(Self.secret("0"))) == 0)
    #expect(try opened(.key(key)) == 3)
    #expect {
      try opened(.passphrase(Self.secret("1")))
    } throws: {
      guard case StorageError.unsupported(let reason) = $0 else { return false }
      return reason.contains("slot 1 was not tried") && reason.contains("cost")
    }
  }

  @Test("counts the cost of each algorithm in time: what two units of scrypt cost, one iteration of PBKDF2 does")
  func costsAlike() throws {
    let owner = try RandomSource.bytes(count: 16)
    let key = try SecretBytes.random(count: 32)
    var slots: [Slot] = []
    for id in ["0", "1"] {
      let stretching = Slot.Stretching.password(.pbkdf2HMACSHA512(iterations: 100_000))
      _ = try slots.add(
        PreparedSecret(.passphrase(Self.secret(id)), stretching: stretching, owner: owner), wrapping: key, owner: owner)
    }
    // Enough for the first, but not for the second.
    func opened(_ secret: String) throws -> UInt8 {
      try slots.open(.passphrase(Self.secret(secret)), owner: owner, maximumWork: 399_999) { _ in }.slotID
    }
    #expect(try opened("0") == 0)
    #expect(throws: StorageError.self) { try opened("1") }
    // The costliest slot of each algorithm has the same work, and two of them are all that an opening tries.
    let costliest: [PasswordHash] = [
      .scrypt(log2N: 20, r: 8, p: 1), .scrypt(log2N: 14, r: 32, p: 16), .pbkdf2HMACSHA512(iterations: 1 << 22),
      .argon2id(memoryKiB: 1 << 21, iterations: 1, lanes: 1), .argon2id(memoryKiB: 1 << 16, iterations: 32, lanes: 4),
    ]
    #expect(costliest.allSatisfy { Slot.Stretching.password($0).work == Slot.Stretching.maximumTotalWork / 2 })
    let tooCostly: [PasswordHash] = [
      .scrypt(log2N: 21, r: 8, p: 1), .scrypt(log2N: 20, r: 8, p: 2), .pbkdf2HMACSHA512(iterations: (1 << 22) + 1),
      .argon2id(memoryKiB: (1 << 21) + 1, iterations: 1, lanes: 1),
      .argon2id(memoryKiB: .max, iterations: .max, lanes: 1),
    ]
    #expect(tooCostly.allSatisfy { Slot.Stretching.password($0).work == nil })
    // Each of the 16 slots may be of the standard cost.
    #expect(16 * PasswordHash.standard.work <= Slot.Stretching.maximumTotalWork)
  }

  @Test("accepts no slot with which an opening could cost too much")
  func addedCost() throws {
    let made = try Made()
    var slots = made.envelope.slots
    let cheap = slots[1].encoded
    // Two of the most expensive ones, which are never computed here.
    for id: UInt8 in [2, 3] {
      var costly = cheap
      costly[0] = id
      costly[7] = 20
      slots.append(try Slot(encoded: costly[...]))
    }
    slots.remove(at: 1)
    let before = slots
    let secret = try PreparedSecret(
      .passphrase(made.passphrase), stretching: Self.cheap, owner: made.envelope.storeID)
    func isRefused(_ change: () throws -> Void) -> Bool {
      do { try change() } catch StorageError.unsupported(let reason) { return reason.contains("cost") } catch {}
      return false
    }
    #expect(isRefused { _ = try slots.add(secret, wrapping: made.rootKey, owner: made.envelope.storeID) })
    #expect(isRefused { _ = try slots.replace(0, with: secret, wrapping: made.rootKey, owner: made.envelope.storeID) })
    #expect(slots == before)
    _ = try slots.replace(2, with: secret, wrapping: made.rootKey, owner: made.envelope.storeID)
  }

  @Test("reads a slot of impossible cost, and skips it", arguments: [1, 2, 3])
  func absurdCost(_ algorithm: UInt8) throws {
    let made = try Made()
    var bytes = made.envelope.slots[1].encoded
    bytes.replaceSubrange(2..<16, with: [algorithm, 0] + [1, 2, 3, 4] + [0, 0, 0, 8] + [0, 0, 0, 1])
    let slot = try Slot(encoded: bytes[...])
    #expect(slot.encoded == bytes)
    #expect {
      try [slot].open(.passphrase(made.passphrase), owner: made.envelope.storeID) { _ in }
    } throws: {
      guard case StorageError.unsupported(let reason) = $0 else { return false }
      return reason.contains("cost") && reason.contains(slot.stretching.name)
    }
  }

  @Test("holds sixteen slots with the longest labels")
  func room() throws {
    let made = try Made()
    var envelope = made.envelope
    envelope.slots = []
    let secret = try PreparedSecret(
      .key(made.key), label: String(repeating: "l", count: 64), owner: envelope.storeID)
    for _ in 0..<16 { _ = try envelope.slots.add(secret, wrapping: made.rootKey, owner: envelope.storeID) }
    #expect(throws: StorageError.slotsFull(maximum: 16)) {
      try envelope.slots.add(secret, wrapping: made.rootKey, owner: envelope.storeID)
    }
    envelope.epochs = try (1...4).map {
      try Epoch(number: $0, created: 0, rootKey: made.rootKey, storeID: envelope.storeID)
    }
    let read = try Envelope(copy: envelope.encoded(rootKey: made.rootKey)[...])
    #expect(read.slots.count == 16)
    #expect(read.currentEpoch == 4)
  }
}

@Suite("An envelope in a file") struct EnvelopeFileTests {
  private func edited(_ store: SmallStore, _ edit: (inout [UInt8]) throws -> Void) throws {
    var bytes = try store.bytes()
    try edit(&bytes)
    try store.overwrite(bytes)
  }

  @Test("opens if either of its copies is damaged", arguments: [0, 1])
  func oneCopy(_ copy: Int) throws {
    let store = try SmallStore(rows: 10)
    let original = try store.bytes()[..<Layout.envelopeByteCount]
    try edited(store) { $0[copy * Layout.envelopeCopyByteCount + 300] ^= 1 }
    #expect(try store.contents().count == 10)
    #expect(try Store.open(at: store.path, key: store.key).damagedEnvelopeCopies() == [copy])
    // Reading repairs nothing, the next write does.
    let connection = try store.connect()
    #expect(try connection.contents().count == 10)
    #expect(try Store.open(at: store.path, key: store.key).damagedEnvelopeCopies() == [copy])
    try connection.beginWrite(.full)
    try connection.commit()
    #expect(try Store.open(at: store.path, key: store.key).damagedEnvelopeCopies().isEmpty)
    try connection.close()
    #expect(try store.bytes()[..<Layout.envelopeByteCount] == original)
  }

  @Test("is damaged when both copies are")
  func bothCopies() throws {
    let store = try SmallStore(rows: 10)
    try edited(store) { bytes in
      bytes[100] ^= 1
      bytes[Layout.envelopeCopyByteCount + 500] ^= 1
    }
    #expect(throws: StorageError.damaged(part: "envelope", reason: "both of its copies are damaged")) {
      try store.connect()
    }
  }

  @Test("of a newer format is refused by its version number")
  func newerFormat() throws {
    let store = try SmallStore(rows: 10)
    try edited(store) { bytes in
      for copy in 0..<2 {
        let start = copy * Layout.envelopeCopyByteCount
        let end = start + Layout.envelopeCopyByteCount
        bytes[start + 9] = 9
        bytes.replaceSubrange(start..<end, with: try Envelope.checksummed(bytes[start..<end]))
      }
    }
    #expect(throws: StorageError.newerFormat(part: "format", found: 9, supported: 1)) { try store.connect() }
  }

  /// A copy as it would be whole with other bytes in it, for those who have no key.
  private func write(_ bytes: inout [UInt8], copy: Int, _ edit: (inout ArraySlice<UInt8>) -> Void) throws {
    let start = copy * Layout.envelopeCopyByteCount
    let end = start + Layout.envelopeCopyByteCount
    edit(&bytes[start..<end])
    bytes.replaceSubrange(start..<end, with: try Envelope.checksummed(bytes[start..<end]))
  }

  @Test(
    "is refused as a newer format if either copy has parts unknown to this version",
    arguments: [
      (0, 11, 2, "suite of algorithms", 1), (1, 15, 4, "set of flags", 1), (0, 59, 6, "kind of slot", 5),
      (1, 60, 4, "stretching of a slot", 3),
    ])
  func unknownFields(_ copy: Int, _ offset: Int, _ value: UInt8, _ part: String, _ supported: Int) throws {
    let store = try SmallStore(rows: 10)
    try edited(store) { bytes in
      try write(&bytes, copy: copy) { $0[$0.startIndex + offset] = value }
    }
    #expect(throws: StorageError.newerFormat(part: part, found: Int(value), supported: supported)) {
      try store.connect()
    }
  }

  @Test(
    "is the copy with the higher sequence; the MAC of the other one, perhaps under another root key, is ignored")
  func otherCopy() throws {
    let store = try SmallStore(rows: 10)
    let before = try Array(store.bytes()[..<Layout.envelopeCopyByteCount])
    // As a change of the root key leaves it that was cut off between the two copies.
    let connection = try store.connect()
    let replacement = try RootKeyReplacement(
      Store.open(at: store.path, key: store.key), for: [store.key], dropping: [])
    try connection.beginWrite(.full)
    _ = try connection.changeEnvelope { try $0.replaceRootKey(replacement) }
    try connection.commit()
    try connection.close()
    let after = try Array(store.bytes()[..<Layout.envelopeCopyByteCount])
    try edited(store) { bytes in
      bytes.replaceSubrange(Layout.envelopeCopyByteCount..<Layout.envelopeByteCount, with: before)
      // Nor when it was edited by someone without any key.
      try write(&bytes, copy: 1) { $0[$0.startIndex + 47] ^= 1 }
    }
    #expect(try store.contents().count == 10)
    #expect(try Store.open(at: store.path, key: store.key).damagedEnvelopeCopies() == [1])
    let next = try store.connect()
    try next.beginWrite(.full)
    try next.commit()
    try next.close()
    #expect(try Array(store.bytes()[..<Layout.envelopeByteCount]) == after + after)
  }

  @Test("is the first copy if both have the same sequence but differ, and the next write makes them equal")
  func equalSequences() throws {
    let store = try SmallStore(rows: 10)
    let first = try Array(store.bytes()[..<Layout.envelopeCopyByteCount])
    try edited(store) { bytes in
      try write(&bytes, copy: 1) { $0[$0.startIndex + 47] ^= 1 }
    }
    #expect(try store.contents().count == 10)
    let connection = try store.connect()
    try connection.beginWrite(.full)
    try connection.commit()
    try connection.close()
    #expect(try Array(store.bytes()[..<Layout.envelopeByteCount]) == first + first)

    // The other way round the one that counts has a wrong MAC, which is an error.
    try edited(store) { bytes in
      try write(&bytes, copy: 0) { $0[$0.startIndex + 47] ^= 1 }
    }
    #expect(throws: StorageError.damaged(part: "envelope", reason: "it was changed by someone without the key")) {
      try store.connect()
    }
  }

  @Test("that has used up its sequence numbers refuses further changes, and stays as it is")
  func lastSequence() throws {
    let store = try SmallStore(rows: 10)
    var envelope = try Envelope(copy: store.bytes()[..<Layout.envelopeCopyByteCount])
    envelope.sequence = .max
    let copy = try envelope.encoded(rootKey: envelope.open(store.key).key)
    try edited(store) { $0.replaceSubrange(..<Layout.envelopeByteCount, with: copy + copy) }
    let connection = try store.connect()
    try connection.beginWrite(.full)
    #expect(throws: StorageError.unsupported(reason: "the envelope has used up all of its sequence numbers")) {
      _ = try connection.changeEnvelope { try $0.apply(.label(0, "another")) }
    }
    try connection.commit()
    try connection.close()
    #expect(try store.bytes()[..<Layout.envelopeByteCount].elementsEqual(copy + copy))
    #expect(try store.contents().count == 10)
  }

  @Test("has no page beyond SQLite's last, whatever size the file claims")
  func pageNumbers() {
    #expect(Layout.pageCount(inFileOf: 0) == 0)
    #expect(Layout.pageCount(inFileOf: Int64(Layout.envelopeByteCount + 2 * Layout.pageByteCount) - 1) == 1)
    #expect(Layout.pageCount(inFileOf: .max) == 0xffff_fffe)
    #expect(LogFile.offset(ofFrame: 0) < 0)
    #expect(LogFile.offset(ofFrame: .max) == 32 + 0xffff_fffe * 4120)
  }

  #if os(Linux)
    @Test("has readable pages, whatever size the file claims")
    func largestFile() throws {
      let store = try SmallStore(rows: 10)
      // A file system in memory takes any length.
      let path = "/dev/shm/coffer-\(UUID().uuidString)"
      defer { unlink(path) }
      try FileManager.default.copyItem(atPath: store.path, toPath: path)
      try #require(truncate(path, .max) == 0)
      let reader = try PageReader(Store.open(at: path, key: store.key))
      #expect(reader.isPageCountKnown && reader.pageCount < 100)
    }
  #endif

  @Test("of another store does not open these pages, even under the same key")
  func swapped() throws {
    let (one, other) = (try SmallStore(rows: 10), try SmallStore(rows: 10))
    let envelope = try other.bytes()[..<Layout.envelopeByteCount]
    try edited(one) { $0.replaceSubrange(..<Layout.envelopeByteCount, with: envelope) }
    #expect(throws: StorageError.damaged(part: "page 1", reason: "it does not authenticate")) {
      try SQLiteConnection(store: Store.open(at: one.path, key: other.key), busyTimeout: .zero)
    }
  }
}
