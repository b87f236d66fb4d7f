import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Rotating the keys") struct RotationTests {
  private let store: TemporaryStore
  private let database: Database
  private static let cheap = PasswordHash.scrypt(log2N: 14, r: 8, p: 1)

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    try database.makeConnection().readWrite { transaction in
      for number in 0..<2000 { try transaction.setObject("value \(number)", forKey: "\(number)") }
    }
  }

  private func passphrase(_ text: String) -> KeySource { .passphrase(SecretBytes(copying: text.utf8)) }

  private func expectWhole(_ database: Database, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let values = try database.makeConnection().read { transaction in
      try (0..<2000).filter { try transaction.object(forKey: "\($0)") == "value \($0)" }.count
    }
    #expect(values == 2000, sourceLocation: sourceLocation)
  }

  @Test("leaves no page under the old key, and no trace of that key")
  func everythingIsResealed() throws {
    let oldKey = try Store.peekEnvelope(at: store.path).epochs[0].wrappedKey.encoded
    #expect(try store.bytes().ranges(of: Data(oldKey)).count == 2)
    let shares = Lock<[Double]>([])
    try database.rotate { share in shares.withLock { $0.append(share) } }
    #expect(shares.withLock { $0 == $0.sorted() && $0.last == 1 && $0.count > 2 })
    #expect(try StoreFiles.epochs(store) == [2])
    let bytes = try store.bytes()
    #expect(bytes.ranges(of: Data(oldKey)).isEmpty)
    try expectWhole(database)
    try database.makeConnection().readWrite { try $0.setObject("after", forKey: "after") }
    try database.rotate()
    try database.close()
    #expect(try StoreFiles.epochs(store) == [3])
    try expectWhole(store.open())
    #expect(try store.open().verify().problems.isEmpty)
  }

  @Test("works while this process and others read")
  func readers() throws {
    let reader = try database.makeConnection()
    let other = try store.open()
    let otherReader = try other.makeConnection()
    let readCount = Lock(0)
    try database.rotate { _ in
      for connection in [reader, otherReader] {
        let value = try? connection.read { try $0.object(forKey: "7", as: String.self) }
        if value == "value 7" { readCount.withLock { $0 += 1 } }
      }
    }
    #expect(readCount.withLock { $0 } > 4)
    // Written under the new key by one who was there before it.
    try otherReader.readWrite { try $0.setObject("other", forKey: "other") }
    try other.close()
    try database.close()
    #expect(try StoreFiles.epochs(store) == [2])
  }

  @Test("does not drop the old key while an old snapshot is read, and finishes when repeated")
  func oldSnapshot() throws {
    let hasty = try store.open(busyTimeout: .milliseconds(50))
    let process = try store.startWorker("hold-snapshot")
    #expect(process.readLine() == "pinned")
    #expect(throws: CofferError.oldKeyInUse) { try hasty.rotate() }
    #expect(try Store.peekEnvelope(at: store.path).epochs.map(\.number) == [1, 2])
    try expectWhole(hasty)
    try process.input.close()
    process.end()
    try hasty.rotate()
    // The epoch that had begun is the one that is finished.
    #expect(try StoreFiles.epochs(store) == [2])
    #expect(try Store.peekEnvelope(at: store.path).epochs.map(\.number) == [2])
  }

  @Test("resumes by itself after an interruption at any point")
  func cutShort() throws {
    let copies = Lock<[TemporaryStore]>([])
    try database.rotate { _ in
      guard copies.withLock({ $0.count < 12 }), let copy = try? TemporaryStore(),
        (try? store.copyAsAfterCrash(to: copy)) != nil
      else { return }
      copies.withLock { $0.append(copy) }
    }
    let cut = copies.withLock { $0 }
    #expect(cut.count > 3)
    for copy in cut {
      let reopened = try copy.open()
      try expectWhole(reopened)
      #expect(try Store.peekEnvelope(at: copy.path).epochs.count == 2, "reading alone changes nothing")
      try reopened.makeConnection().readWrite { try $0.setObject("next", forKey: "next") }
      try reopened.close()
      #expect(try StoreFiles.epochs(copy) == [2])
      #expect(try Store.peekEnvelope(at: copy.path).epochs.map(\.number) == [2])
    }
  }

  @Test("runs in one process at a time")
  func oneAtATime() throws {
    let hasty = try Database.open(at: store.path, key: store.key, options: .init(busyTimeout: .milliseconds(50)))
    let refusals = Lock(0)
    try database.rotate { share in
      guard share < 0.5 else { return }
      if (try? hasty.rotate()) == nil { refusals.withLock { $0 += 1 } }
    }
    #expect(refusals.withLock { $0 } > 0)
    #expect(try StoreFiles.epochs(store) == [2])
  }

  // MARK: A new root key

  @Test("with a new root key keeps the slots whose secrets are given, and drops the named ones")
  func newRootKey() throws {
    try database.addSlot(passphrase("stays"), label: "Ada", stretching: Self.cheap)
    try database.addSlot(passphrase("goes"), label: "Bob", stretching: Self.cheap)
    let before = try database.slots()
    try database.rotate(newRootKeyFor: [store.key, passphrase("stays")], droppingSlots: [2])
    #expect(try database.slots() == Array(before.prefix(2)))
    try expectWhole(database)
    try database.close()
    try expectWhole(Database.open(at: store.path, key: passphrase("stays")))
    try expectWhole(store.open())
    #expect(throws: CofferError.wrongKey) { try Database.open(at: store.path, key: passphrase("goes")) }
    #expect(try StoreFiles.epochs(store) == [2])
  }

  @Test("with a new root key never drops a slot silently, and changes nothing")
  func refusedRootKeys() throws {
    try database.addSlot(passphrase("stays"), stretching: Self.cheap)
    let before = try store.bytes().prefix(Layout.envelopeByteCount)
    #expect(throws: CofferError.slotsNotOpened(ids: [1])) { try database.rotate(newRootKeyFor: [store.key]) }
    #expect(throws: CofferError.wrongKey) {
      try database.rotate(newRootKeyFor: [store.key, passphrase("wrong")], droppingSlots: [1])
    }
    #expect(throws: CofferError.slotNotFound(id: 9)) {
      try database.rotate(newRootKeyFor: [store.key], droppingSlots: [1, 9])
    }
    #expect(throws: CofferError.lastSlot) { try database.rotate(newRootKeyFor: [], droppingSlots: [0, 1]) }
    #expect(try store.bytes().prefix(Layout.envelopeByteCount) == before)
  }

  /// The keys that the owner of a slot finds in a copy of the store.
  private func pageKeys(_ database: Database) throws -> [SecretBytes] {
    try database.storeOnDisk().secrets.filter { $0.name == "page key" }.map(\.key)
  }

  @Test("with a new root key creates a key that no copy of the envelope has, also over an interrupted rotation")
  func newRootKeyOverUnfinished() throws {
    let copies = Lock<[TemporaryStore]>([])
    try database.rotate { _ in
      guard copies.withLock({ $0.isEmpty }) else { return }
      // Two copies of the same state: one to take the keys from, and one to continue with.
      guard let (copied, goesOn) = try? (TemporaryStore(), TemporaryStore()),
        (try? store.copyAsAfterCrash(to: copied)) != nil, (try? copied.copyAsAfterCrash(to: goesOn)) != nil
      else { return }
      copies.withLock { $0 = [copied, goesOn] }
    }
    let (copied, goesOn) = try #require(copies.withLock { $0.count == 2 ? ($0[0], $0[1]) : nil })
    let known = try pageKeys(copied.open())
    #expect(known.count == 2)
    let reopened = try goesOn.open()
    try reopened.rotate(newRootKeyFor: [goesOn.key])
    let keys = try pageKeys(reopened)
    #expect(keys.count == 1)
    #expect(!keys.contains { key in known.contains { $0.isEqual(to: key) } })
    #expect(try StoreFiles.epochs(goesOn) == [3])
    try expectWhole(reopened)
  }

  @Test("with a new root key first finishes an earlier rotation if the envelope has no room for another epoch")
  func newRootKeyWithoutRoom() throws {
    let hasty = try store.open(busyTimeout: .milliseconds(50))
    let process = try store.startWorker("hold-snapshot")
    #expect(process.readLine() == "pinned")
    func epochs() throws -> [UInt32] { try Store.peekEnvelope(at: store.path).epochs.map(\.number) }
    for count: UInt32 in 2...4 {
      #expect(throws: CofferError.oldKeyInUse) { try hasty.rotate(newRootKeyFor: [store.key]) }
      #expect(try epochs() == Array(1...count))
    }
    let full = try store.bytes().prefix(Layout.envelopeByteCount)
    #expect(throws: CofferError.oldKeyInUse) { try hasty.rotate(newRootKeyFor: [store.key]) }
    #expect(try store.bytes().prefix(Layout.envelopeByteCount) == full, "the root key is the same")
    try process.input.close()
    process.end()
    let known = try pageKeys(hasty)
    try hasty.rotate(newRootKeyFor: [store.key])
    #expect(try epochs() == [5])
    #expect(try !pageKeys(hasty).contains { key in known.contains { $0.isEqual(to: key) } })
    try expectWhole(hasty)
  }

  @Test("with a new root key is followed by programs that have the store open, unless their slot was dropped")
  func followers() throws {
    try database.addSlot(passphrase("other"), stretching: Self.cheap)
    // As another process, since one process shares the keys of a store.
    let process = try store.startWorker("follow")
    #expect(process.readLine() == "ready")
    try database.rotate(newRootKeyFor: [store.key, passphrase("other")])
    try process.write("go")
    #expect(process.readLine() == "wrote")
    try database.changeSlot(0, to: passphrase("another"), stretching: Self.cheap)
    try database.rotate(newRootKeyFor: [passphrase("another"), passphrase("other")])
    try process.write("go")
    #expect(process.readLine() == "\(CofferError.wrongKey)")
    let written: String? = try database.makeConnection().read { try $0.object(forKey: "follower") }
    #expect(written == "1")
  }
}

/// What lies in the files of a store.
enum StoreFiles {
  /// The epochs that the pages and the frames of a store name.
  static func epochs(_ store: TemporaryStore) throws -> Set<UInt32> {
    var epochs: Set<UInt32> = []
    func add(_ bytes: Data, from start: Int, step: Int, at offset: Int) {
      for page in stride(from: start, to: bytes.count, by: step) where page + offset + 4 <= bytes.count {
        epochs.insert(bytes[(page + offset)..<(page + offset + 4)].reduce(0) { $0 << 8 | UInt32($1) })
      }
    }
    add(try store.bytes(), from: Layout.envelopeByteCount, step: Layout.pageByteCount, at: 4088)
    add(try store.bytes("-wal"), from: Layout.logHeaderByteCount, step: Layout.frameByteCount, at: 24 + 4088)
    return epochs
  }
}
