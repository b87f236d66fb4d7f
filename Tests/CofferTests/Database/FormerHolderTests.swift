import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

/// What someone has kept who had a slot: the whole file of then, and its root key.
private struct FormerHolder {
  let file: Data
  let rootKey: SecretBytes
  let envelope: Envelope

  init(copying store: TemporaryStore, key: KeySource) throws {
    file = try store.bytes()
    envelope = try Envelope(copy: [UInt8](file.prefix(Layout.envelopeCopyByteCount))[...])
    rootKey = try envelope.open(key).key
  }

  /// How he fakes the epoch that is in use now, whose key he does not have.
  enum CurrentEpoch: CaseIterable {
    /// A record that no key opens.
    case junk
    /// A record of another key.
    case otherKey
    /// No record.
    case missing
  }

  /// What he says of the succession.
  enum FalseSuccession: CaseIterable {
    /// Nothing: this root key is the first.
    case none
    /// That his root key follows itself.
    case itself
    /// What the owner's envelope says.
    case copied
  }

  /// Both copies of an envelope as he can write one: the slots of his copy, among them the owner's, which wraps the former
  /// root key; an epoch of his own, the newest; a MAC under the former root key.
  func forgery(over present: Envelope, _ epoch: CurrentEpoch, _ succession: FalseSuccession) throws -> [UInt8] {
    var forged = envelope
    forged.sequence = present.sequence + 1
    func made(_ number: UInt32) throws -> Epoch {
      try Epoch(number: number, created: 1, rootKey: rootKey, storeID: envelope.storeID)
    }
    switch epoch {
    case .junk:
      var record = try made(present.currentEpoch).encoded
      record[record.count - 1] ^= 1
      forged.epochs.append(try Epoch(encoded: record[...]))
    case .otherKey: forged.epochs.append(try made(present.currentEpoch))
    case .missing: break
    }
    forged.epochs.append(try made(present.currentEpoch + 1))
    switch succession {
    case .none: forged.succession = nil
    case .itself: forged.succession = try Succession(from: rootKey, to: rootKey, storeID: envelope.storeID)
    case .copied: forged.succession = present.succession
    }
    let copy = try forged.encoded(rootKey: rootKey)
    return copy + copy
  }

  /// The whole store of then, with what he wants in it, under an epoch of his own, and with higher numbers than the present one
  /// has.
  func rewrittenStore(_ key: KeySource, beyond commit: Int, envelope sequence: UInt64) throws -> Data {
    let store = try TemporaryStore()
    try file.write(to: URL(fileURLWithPath: store.path))
    chmod(store.path, 0o600)
    let database = try Database.open(at: store.path, key: key, options: .quiet)
    try database.rotate()
    while try database.storeOnDisk().envelopeSequence <= sequence { try database.setLabel("his", forSlot: 1) }
    let connection = try database.makeConnection()
    for number in 0...commit { try connection.readWrite { try $0.setObject("planted \(number)", forKey: "k") } }
    try database.close()
    return try store.bytes()
  }
}

/// Each test is named after its row of the threat table in `SECURITY.md`.
@Suite("A former holder of a slot, who can write the file") struct FormerHolderTests {
  private let store: TemporaryStore
  private let anchor = RecordedAnchor()
  private let holderKey: KeySource
  private let holder: FormerHolder
  /// The owner's program; it has the store open all the time.
  private let database: Database

  init() throws {
    store = try TemporaryStore()
    holderKey = .key(try .random(count: 32))
    let first = try Database.create(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    try first.addSlot(holderKey, label: "his")
    try first.makeConnection().readWrite { try $0.setObject("before", forKey: "k") }
    try first.close()
    holder = try FormerHolder(copying: store, key: holderKey)
    database = try Database.open(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    try database.rotate(newRootKeyFor: [store.key], droppingSlots: [1])
    try database.makeConnection().readWrite { try $0.setObject("after", forKey: "k") }
  }

  /// Overwrites the file in place, as another program does.
  private func overwrite(_ bytes: some Sequence<UInt8>) throws { try Self.overwrite(store, bytes) }

  private static func overwrite(_ store: TemporaryStore, _ bytes: some Sequence<UInt8>) throws {
    let source = store.folder + "/forged"
    try Data(bytes).write(to: URL(fileURLWithPath: source))
    let child = try Child.run("/bin/dd", ["if=" + source, "of=" + store.path, "conv=notrunc", "status=none"])
    try #require(child.status == 0)
  }

  private func value(_ database: Database) throws -> String? {
    try database.makeConnection().read { try $0.object(forKey: "k") }
  }

  /// Everything but the envelope.
  private func rest() throws -> [Data] { try [store.bytes().dropFirst(Layout.envelopeByteCount), store.bytes("-wal")] }

  @Test("whose slot was only removed, can put himself back: a limit that SECURITY.md names")
  func removedSlot() throws {
    let other = try TemporaryStore()
    let options = Database.Options.quiet.anchored(RecordedAnchor())
    let first = try Database.create(at: other.path, key: other.key, options: options)
    try first.addSlot(holderKey, label: "his")
    try first.close()
    let former = try FormerHolder(copying: other, key: holderKey)
    let second = try Database.open(at: other.path, key: other.key, options: options)
    try second.removeSlot(1)
    try second.makeConnection().readWrite { try $0.setObject("after", forKey: "k") }
    try second.close()
    #expect(throws: CofferError.self) { try Database.open(at: other.path, key: holderKey, options: options) }
    var file = try other.bytes()
    var envelope = try Envelope(copy: [UInt8](file.prefix(Layout.envelopeCopyByteCount))[...])
    envelope.sequence += 1
    envelope.slots.append(former.envelope.slots[1])
    let copy = try envelope.encoded(rootKey: former.rootKey)
    file.replaceSubrange(0..<Layout.envelopeByteCount, with: copy + copy)
    try file.write(to: URL(fileURLWithPath: other.path))
    for key in [holderKey, other.key] {
      let database = try Database.open(at: other.path, key: key, options: options)
      #expect(try value(database) == "after")
      try database.close()
    }
  }

  @Test("gets no program that has the store open to write under his envelope")
  func running() throws {
    let connection = try database.makeConnection()
    let (own, rest) = (try store.bytes().prefix(Layout.envelopeByteCount), try rest())
    let error = CofferError.rootKeyUnverified(path: database.path)
    for epoch in FormerHolder.CurrentEpoch.allCases {
      for succession in FormerHolder.FalseSuccession.allCases {
        try overwrite(holder.forgery(over: database.storeOnDisk().envelope, epoch, succession))
        #expect(throws: error) { try connection.readWrite { try $0.setObject("secret", forKey: "k") } }
        #expect(throws: error) { try database.addSlot(.key(.random(count: 32))) }
        #expect(throws: error) { try database.rotate() }
        #expect(throws: error) { try database.slots() }
        #expect(try self.rest() == rest)
        // Nor does his key open what this process has open.
        for key in [store.key, holderKey] {
          #expect(throws: CofferError.self) { try Database.open(at: store.path, key: key, options: .quiet) }
        }
        try overwrite(own)
        #expect(try value(database) == "after")
      }
    }
    try connection.readWrite { try $0.setObject("later", forKey: "k") }
    #expect(try value(database) == "later")
  }

  /// What he puts in place of the present store, beside a program that has had the state of then open all the time.
  enum Past: CaseIterable {
    /// His pages, under an envelope with a higher sequence.
    case newerEnvelope
    /// The file as that program knows it: not even its sequence differs.
    case wholeFile
  }

  /// A program that was idle while the root key was replaced, and what it does when he has put back the state of before.
  ///
  /// - Parameter isRemembered: Whether the program finds a record of the newest state.
  private func idleProgram(_ past: Past, isRemembered: Bool) throws -> (outcome: String?, isRecordKept: Bool) {
    let store = try TemporaryStore()
    let anchor = FileAnchor(folder: store.folder + "/records")
    let options = Database.Options.quiet.anchored(anchor)
    let first = try Database.create(at: store.path, key: store.key, options: options)
    try first.addSlot(holderKey, label: "his")
    try first.makeConnection().readWrite { try $0.setObject("before", forKey: "k") }
    try first.close()
    let holder = try FormerHolder(copying: store, key: holderKey)
    let program = try Child.start(
      TemporaryStore.worker, ["follow", store.path, store.keyFile] + (isRemembered ? [store.folder + "/records"] : []))
    #expect(program.readLine() == "ready")
    // The program follows each commit, and truncating the log waits for its reading.
    var patient = options
    patient.busyTimeout = .seconds(60)
    let owner = try Database.open(at: store.path, key: store.key, options: patient)
    try owner.makeConnection().readWrite { try $0.setObject("after", forKey: "k") }
    try owner.rotate(newRootKeyFor: [store.key], droppingSlots: [1])
    #expect(try owner.makeConnection().perform { try $0.connection.checkpointAndTruncate {} })
    let present = try owner.storeOnDisk().envelope
    try owner.close()
    let record = try #require(anchor.record(ofStoreAt: store.path))
    var forged = holder.file
    if past == .newerEnvelope {
      forged.replaceSubrange(
        ..<Layout.envelopeByteCount, with: try holder.forgery(over: present, .missing, .none))
    }
    try Self.overwrite(store, forged)
    try program.write("go")
    let outcome = program.readLine()
    if isRemembered {
      #expect(try store.bytes().dropFirst(Layout.envelopeByteCount) == forged.dropFirst(Layout.envelopeByteCount))
    }
    return (outcome, anchor.record(ofStoreAt: store.path) == record)
  }

  @Test(
    "gets no program that was idle while the root key was replaced to write for him, where a newer state is remembered, and the record stays",
    arguments: Past.allCases)
  func idle(_ past: Past) throws {
    let (outcome, isRecordKept) = try idleProgram(past, isRemembered: true)
    // The whole file is a copy that was written over the open store, and is refused as that.
    let refusal = past == .wholeFile ? "or written over" : "under another root key than the one last used here"
    #expect(outcome?.contains(refusal) ?? false, "\(outcome ?? "")")
    #expect(isRecordKept)
  }

  @Test(
    "gets what a program writes that was idle while the root key was replaced, where nothing is remembered: a limit that SECURITY.md names",
    arguments: Past.allCases)
  func idleWithoutRecord(_ past: Past) throws {
    #expect(try idleProgram(past, isRemembered: false).outcome == "wrote")
  }

  @Test("gets no fresh opening of the store with his envelope, with or without a record")
  func fresh() throws {
    let envelope = try database.storeOnDisk().envelope
    try database.close()
    for epoch in FormerHolder.CurrentEpoch.allCases {
      for succession in FormerHolder.FalseSuccession.allCases {
        try overwrite(holder.forgery(over: envelope, epoch, succession))
        let before = try store.bytes()
        for options in [Database.Options.quiet, .quiet.anchored(anchor)] {
          for key in [store.key, holderKey] {
            #expect(throws: CofferError.self) { try Database.open(at: store.path, key: key, options: options) }
          }
        }
        #expect(try store.bytes() == before)
      }
    }
  }

  /// The whole store, rewritten by him, as another process finds it.
  private func rewritten() throws -> TemporaryStore {
    let place = try TemporaryStore()
    try holder.rewrittenStore(holderKey, beyond: 20, envelope: database.storeOnDisk().envelopeSequence)
      .write(to: URL(fileURLWithPath: place.path))
    chmod(place.path, 0o600)
    return place
  }

  @Test("cannot pass off the whole store, rewritten under an epoch of his own, where a newer state is remembered")
  func wholeStore() throws {
    let place = try rewritten()
    let (forged, record) = (try place.bytes(), anchor.record)
    for _ in 0..<2 {
      #expect { try Database.open(at: place.path, key: store.key, options: .quiet.anchored(anchor)) } throws: {
        guard case CofferError.rolledBack(let known, let found) = $0 else { return false }
        return known.commit == nil && found.envelope > known.envelope
      }
    }
    #expect(anchor.record == record)
    #expect(try place.bytes() == forged)
    // As for any older state, the owner may accept it.
    var options = Database.Options.quiet.anchored(anchor)
    options.acceptsOlderStore = true
    #expect(try value(Database.open(at: place.path, key: store.key, options: options)) == "planted 20")
  }

  @Test("can pass off the whole store, rewritten, where no newer state is remembered: a limit that SECURITY.md names")
  func wholeStoreWithoutRecord() throws {
    let place = try rewritten()
    #expect(try value(Database.open(at: place.path, key: store.key, options: .quiet)) == "planted 20")
  }

  @Test("cannot replace the file of a program that has the store open by one of his own")
  func replacedFile() throws {
    let connection = try database.makeConnection()
    let forged = try holder.rewrittenStore(
      holderKey, beyond: 20, envelope: database.storeOnDisk().envelopeSequence)
    // Without a record, too.
    anchor.keep(nil, ofStoreAt: store.path)
    let file = store.folder + "/forged"
    try forged.write(to: URL(fileURLWithPath: file))
    chmod(file, 0o600)
    for suffix in ["-wal", "-shm"] { unlink(store.path + suffix) }
    try #require(rename(file, store.path) == 0)
    let replaced = CofferError.storeReplaced(path: database.path)
    #expect(throws: replaced) { try connection.readWrite { try $0.setObject("secret", forKey: "k") } }
    #expect(throws: replaced) { try database.makeConnection() }
    #expect(try store.bytes() == forged)
  }

  @Test("reads nothing that is written under a new root key, with all that he has kept, even by a salvage")
  func readingLater() throws {
    try database.makeConnection().readWrite { try $0.setObject("for the owner", forKey: "later") }
    let place = try TemporaryStore()
    try store.copyAsAfterCrash(to: place)
    let present = try store.bytes().dropFirst(Layout.envelopeByteCount)
    try (holder.file.prefix(Layout.envelopeByteCount) + present).write(to: URL(fileURLWithPath: place.path))
    for key in [holderKey, store.key] {
      #expect(throws: CofferError.self) { try Database.open(at: place.path, key: key, options: .quiet) }
    }
    let output = place.folder + "/salvaged.coffer"
    let report = try? Database.salvage(at: place.path, key: holderKey, to: output, newKey: store.key)
    #expect(report?.itemCount ?? 0 == 0)
    // What he copied stays readable to him.
    try holder.file.write(to: URL(fileURLWithPath: place.path + "-then"))
    chmod(place.path + "-then", 0o600)
    #expect(try value(Database.open(at: place.path + "-then", key: holderKey, options: .quiet)) == "before")
  }

  @Test("who still has a slot cannot give an epoch another key")
  func otherKeyOfAnEpoch() throws {
    let store = try database.storeOnDisk()
    var forged = store.envelope
    let number = forged.currentEpoch
    forged.sequence += 1
    forged.epochs = [try Epoch(number: number, created: 1, rootKey: store.rootKey, storeID: store.storeID)]
    let copy = try forged.encoded(rootKey: store.rootKey)
    let connection = try database.makeConnection()
    try overwrite(copy + copy)
    #expect(
      throws: CofferError.damaged(part: "envelope", reason: "it has another key for epoch \(number)")
    ) {
      try connection.readWrite { try $0.setObject("secret", forKey: "k") }
    }
  }
}

@Suite("A new root key") struct SuccessionTests {
  private let store: TemporaryStore

  init() throws { store = try TemporaryStore() }

  @Test("is vouched for by the former one, in this store and for no other key; zeros stand for none")
  func succession() throws {
    let (former, next, other) = (
      try SecretBytes.random(count: 32), try SecretBytes.random(count: 32), try SecretBytes.random(count: 32)
    )
    let id = try RandomSource.bytes(count: 16)
    let succession = try Succession(from: former, to: next, storeID: id)
    #expect(succession.encoded.count == Succession.byteCount)
    #expect(try Succession(encoded: succession.encoded[...]) == succession)
    #expect(try Succession(encoded: Succession.none[...]) == nil)
    #expect(try succession.names(next, after: former, storeID: id))
    #expect(try !succession.names(other, after: former, storeID: id))
    #expect(try !succession.names(next, after: other, storeID: id))
    #expect(try !succession.names(next, after: next, storeID: id))
    #expect(try !succession.names(next, after: former, storeID: RandomSource.bytes(count: 16)))
    let key = try succession.formerWitnessKey(rootKey: next, storeID: id)
    #expect(key.isEqual(to: try Witness.key(rootKey: former, storeID: id)))
    #expect(throws: StorageError.self) { try succession.formerWitnessKey(rootKey: other, storeID: id) }
  }

  @Test("is in the envelope from the replacement on, over later changes")
  func kept() throws {
    let database = try store.open()
    func succession() throws -> Succession? { try Store.peekEnvelope(at: store.path).succession }
    #expect(try succession() == nil)
    try database.rotate()
    #expect(try succession() == nil)
    try database.rotate(newRootKeyFor: [store.key])
    let first = try #require(try succession())
    try database.addSlot(.key(.random(count: 32)))
    try database.rotate()
    #expect(try succession() == first)
    try database.rotate(newRootKeyFor: [store.key], droppingSlots: [1])
    #expect(try succession() != first)
  }

  @Test("that a program missed, and another after it, is refused with a reason; the store opens again")
  func missedTwo() throws {
    let database = try store.open()
    let process = try store.startWorker("follow")
    #expect(process.readLine() == "ready")
    try database.rotate(newRootKeyFor: [store.key])
    try process.write("go")
    #expect(process.readLine() == "wrote")
    for _ in 0..<2 { try database.rotate(newRootKeyFor: [store.key]) }
    for _ in 0..<2 {
      try process.write("go")
      #expect(process.readLine() == "\(CofferError.rootKeyUnverified(path: database.path))")
    }
    let written: String? = try database.makeConnection().read { try $0.object(forKey: "follower") }
    #expect(written == "1")
    let again = try store.startWorker("follow")
    #expect(again.readLine() == "ready")
    try again.write("go")
    #expect(again.readLine() == "wrote")
  }

  @Test("with another key for their slot is followed by programs whose key file has it")
  func replacedKeyFile() throws {
    let database = try store.open()
    let process = try store.startWorker("follow")
    #expect(process.readLine() == "ready")
    let new = store.folder + "/new-key"
    try KeyFile.create(at: new)
    let slot = try database.addSlot(.keyFile(new))
    try #require(rename(new, store.keyFile) == 0)
    try database.rotate(newRootKeyFor: [store.key], droppingSlots: [0])
    #expect(try database.slots().map(\.id) == [slot.id])
    for _ in 0..<2 {
      try process.write("go")
      #expect(process.readLine() == "wrote")
    }
  }

  // MARK: Records

  /// Opens the store with a record, as it was left there.
  private func open(_ record: [UInt8]?) throws -> Database {
    try Database.open(at: store.path, key: store.key, options: .quiet.anchored(RecordedAnchor(record)))
  }

  @Test("makes no alarm of a record under the former one, as a rotation leaves it that is killed before its record")
  func formerRecord() throws {
    let anchor = RecordedAnchor()
    let database = try Database.create(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "n") }
    let older = try #require(anchor.record)
    let olderFile = try store.bytes()
    try database.rotate(newRootKeyFor: [store.key])
    try database.close()
    let newer = try #require(anchor.record)
    try open(older).close()
    // The next commit is remembered under the present root key.
    let former = RecordedAnchor(older)
    let reopened = try Database.open(at: store.path, key: store.key, options: .quiet.anchored(former))
    let disk = try reopened.storeOnDisk()
    try reopened.makeConnection().readWrite { try $0.setObject(2, forKey: "n") }
    guard case .whole(let witness, isFormer: false) = try disk.read(witness: #require(former.record)) else {
      Issue.record("not under the present root key")
      return
    }
    #expect(witness.commit > 1)
    try reopened.close()
    // A record under the former root key still says what is older.
    let ahead = try Witness(envelope: 1, commit: 1000, link: .origin).sealed(
      storeID: disk.storeID, key: #require(disk.witnessKeys().former))
    #expect { try open(ahead) } throws: { if case CofferError.rolledBack = $0 { true } else { false } }
    // And the store of then is older than a record under the present one.
    let place = try TemporaryStore()
    try olderFile.write(to: URL(fileURLWithPath: place.path))
    chmod(place.path, 0o600)
    #expect {
      try Database.open(at: place.path, key: store.key, options: .quiet.anchored(RecordedAnchor(newer)))
    } throws: {
      if case CofferError.rolledBack = $0 { true } else { false }
    }
  }

  @Test("needs consent if a record missed it and another after it")
  func olderRecord() throws {
    let anchor = RecordedAnchor()
    let database = try Database.create(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "n") }
    let older = anchor.record
    for _ in 0..<2 { try database.rotate(newRootKeyFor: [store.key]) }
    let newest = anchor.record
    try database.close()
    #expect { try open(older) } throws: { if case CofferError.rolledBack = $0 { true } else { false } }
    try open(newest).close()
  }

  /// Notes what is kept and synced; keeps nothing of its own while `isDeaf`, as if killed before.
  private final class NotingAnchor: SynchronizedAnchor {
    let kept = Lock<[UInt8]?>(nil)
    let isDeaf = Lock(false)
    let calls = Lock<[String]>([])
    let interval: Duration

    init(interval: Duration) { self.interval = interval }

    func record(ofStoreAt path: String) -> [UInt8]? { kept.withLock { $0 } }
    func keep(_ record: [UInt8]?, ofStoreAt path: String) {
      guard !isDeaf.withLock({ $0 }) else { return }
      kept.withLock { $0 = record }
      calls.withLock { $0.append("keep") }
    }
    func synchronizeRecord(ofStoreAt path: String) { calls.withLock { $0.append("sync") } }
    func replacing<Result>(storeAt path: String, _ body: () throws -> Result) rethrows -> Result {
      try body()
    }
  }

  @Test("is not begun before the record is under the present one, and on the disk")
  func settled() throws {
    let anchor = NotingAnchor(interval: .seconds(3600))
    let database = try Database.create(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "n") }
    anchor.isDeaf.withLock { $0 = true }
    try database.rotate(newRootKeyFor: [store.key])
    anchor.isDeaf.withLock { $0 = false }
    let disk = try database.storeOnDisk()
    guard case .whole(_, isFormer: true) = try disk.read(witness: #require(anchor.record(ofStoreAt: ""))) else {
      Issue.record("the record is not the one from before the rotation")
      return
    }
    anchor.calls.withLock { $0 = [] }
    try database.rotate(newRootKeyFor: [store.key])
    #expect(anchor.calls.withLock { $0.prefix(2) } == ["keep", "sync"])
    // So it is of the last but one root key at most, wherever this one was interrupted.
    guard case .whole = try disk.read(witness: #require(anchor.record(ofStoreAt: ""))) else {
      Issue.record("the record is of an earlier root key")
      return
    }
  }
}
