import CSQLite
import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import CofferStorage

/// Each test ends in a copy of store and log as a crash would leave them, recovered by a new connection.
@Suite("The log") struct LogTests {
  /// A store whose log holds three commits: `a`, `b`, `c`.
  func threeCommits() throws -> (store: SmallStore, connection: SQLiteConnection) {
    let store = try SmallStore()
    let connection = try store.connect()
    for key in ["a", "b", "c"] {
      try connection.beginWrite(.full)
      try connection.set(key, "1")
      try connection.commit()
    }
    return (store, connection)
  }

  func frame(_ number: Int) -> Range<Int> {
    let start = Layout.logHeaderByteCount + (number - 1) * Layout.frameByteCount
    return start..<start + Layout.frameByteCount
  }

  @Test("restores all commits after a crash")
  func recovery() throws {
    let (store, connection) = try threeCommits()
    #expect(try store.copyAsAfterCrash().contents() == ["a=1", "b=1", "c=1"])
    try connection.close()
  }

  @Test("ends at its last complete commit when its tail is torn, at every length")
  func tornTail() throws {
    let (store, connection) = try threeCommits()
    let copy = try store.copyAsAfterCrash()
    let (file, log) = (try copy.bytes(), Array(upToLastFrame(try copy.bytes("-wal"))))
    #expect(log.count == Layout.logHeaderByteCount + 3 * Layout.frameByteCount)
    for count in Array(stride(from: 0, to: log.count, by: 211)) + [31, 32, 4151, 4152, 4153, log.count - 1] {
      try copy.overwrite(file)
      try copy.overwrite(Array(log[..<count]), suffix: "-wal")
      let frames = max(0, count - Layout.logHeaderByteCount) / Layout.frameByteCount
      #expect(try copy.contents() == ["a=1", "b=1", "c=1"].prefix(frames).map { $0 }, "\(count) bytes")
    }
    try connection.close()
  }

  @Test("continues after its last commit if one frame of an interrupted transaction follows")
  func cutOffTransaction() throws {
    let (store, connection) = try threeCommits()
    try connection.beginWrite(.normal)
    try connection.set("d", String(repeating: "x", count: 20_000))
    try connection.commit()
    let copy = try store.copyAsAfterCrash()
    let log = try copy.bytes("-wal")
    #expect(log.count > frame(5).upperBound)
    try copy.overwrite(Array(log[..<frame(4).upperBound]), suffix: "-wal")
    let recovering = try copy.connect()
    #expect(try recovering.contents() == ["a=1", "b=1", "c=1"])
    // The first frame that is written is the last one that recovery read.
    try recovering.beginWrite(.normal)
    try recovering.set("e", "1")
    try recovering.commit()
    #expect(try recovering.contents() == ["a=1", "b=1", "c=1", "e=1"])
    #expect(try copy.copyAsAfterCrash().contents() == ["a=1", "b=1", "c=1", "e=1"])
    try recovering.close()
    try connection.close()
  }

  @Test("repairs holes left by an interrupted checkpoint: nothing is damaged or unencrypted")
  func holes() throws {
    let store = try SmallStore()
    let connection = try store.connect()
    try connection.beginWrite(.normal)
    try connection.set("d", String(repeating: "x", count: 20_000))
    try connection.commit()
    let copy = try store.copyAsAfterCrash()
    try copy.overwrite(copy.bytes() + [UInt8](repeating: 0, count: 3 * Layout.pageByteCount))
    let reopened = try Store.open(at: copy.path, key: copy.key)
    let pages = try reopened.verifyPages { _ in }
    #expect(pages.damaged == [] && pages.clear == [])
    try connection.close()
  }

  @Test("ends before a frame with a flipped bit, anywhere, and reports it; never returns a wrong value")
  func flippedBits() throws {
    let (store, connection) = try threeCommits()
    let copy = try store.copyAsAfterCrash()
    let (file, log) = (try copy.bytes(), try copy.bytes("-wal"))
    for offset in Array(0..<24) + Array(stride(from: 24, to: 4072, by: 397)) + Array(4072..<4120) {
      var damaged = log
      damaged[frame(2).lowerBound + offset] ^= 1 << (offset % 8)
      try copy.overwrite(file)
      try copy.overwrite(damaged, suffix: "-wal")
      let recovering = try copy.connect()
      #expect(try recovering.contents() == ["a=1"], "byte \(offset)")
      #expect(recovering.logLoss?.firstFrame == 2, "byte \(offset)")
      try recovering.close()
    }
    try connection.close()
  }

  @Test("accepts no frame from another place, another log, or its own past")
  func moved() throws {
    let (store, connection) = try threeCommits()
    let copy = try store.copyAsAfterCrash()
    let (file, log) = (try copy.bytes(), try copy.bytes("-wal"))
    func expectOnlyFirst(_ log: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) throws {
      try copy.overwrite(file)
      try copy.overwrite(log, suffix: "-wal")
      #expect(try copy.contents() == ["a=1"], sourceLocation: sourceLocation)
    }
    var changed = log
    changed.replaceSubrange(frame(2), with: log[frame(3)])
    try expectOnlyFirst(changed)
    changed.replaceSubrange(frame(2), with: log[frame(1)])
    try expectOnlyFirst(changed)
    let (other, otherConnection) = try threeCommits()
    changed.replaceSubrange(frame(2), with: try other.copyAsAfterCrash().bytes("-wal")[frame(2)])
    try expectOnlyFirst(changed)
    try otherConnection.close()
    try connection.close()
  }

  @Test("returns no old frame to a reader if one replaced a new one")
  func oldGeneration() throws {
    let (store, connection) = try threeCommits()
    let old = try store.copyAsAfterCrash().bytes("-wal")
    // The log starts over: same pages, same frames, new salts.
    try connection.execute("PRAGMA wal_checkpoint(RESTART)")
    for (key, value) in [("a", "2"), ("b", "2"), ("c", "2")] {
      try connection.beginWrite(.normal)
      try connection.set(key, value)
      try connection.commit()
    }
    // In place, below the connection: its wal-index says that frame 3 is good.
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: store.path + "-wal"))
    try file.seek(toOffset: UInt64(frame(3).lowerBound))
    try file.write(contentsOf: Data(old[frame(3)]))
    try file.close()
    let reader = try store.connect()
    #expect(throws: StorageError.damaged(part: "log frame 3", reason: "it does not authenticate")) {
      try reader.contents()
    }
  }

  @Test("survives a transaction that spills and changes its spilled pages again, through a crash")
  func spill() throws {
    let store = try SmallStore()
    let connection = try store.connect()
    try connection.execute("PRAGMA cache_size=10")
    // An earlier commit, so that the checksum to start from stands in a frame; then, after a restart, in the log's header.
    for (round, checkpoint) in ["PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_checkpoint(RESTART)"].enumerated() {
      try connection.beginWrite(.normal)
      try connection.set("round", "\(round)")
      try connection.commit()
      if round == 1 { try connection.execute(checkpoint) }
      try connection.beginWrite(.normal)
      for number in 0..<4000 {
        try connection.set("key \(number * 7919 % 4000)", String(repeating: "\(round)", count: 90))
      }
      try connection.commit()
      try connection.beginWrite(.normal)
      try connection.set("last", "\(round)")
      try connection.commit()
      let contents = try store.copyAsAfterCrash().contents()
      #expect(contents.count == 4002)
      #expect(contents.contains("last=\(round)"))
      #expect(contents.filter { $0.hasSuffix(String(repeating: "\(round)", count: 90)) }.count == 4000)
    }
    try connection.close()
    #expect(try store.contents().count == 4002)
  }

  @Test("drops what a savepoint rolled back after spilling, through a crash")
  func savepoint() throws {
    let store = try SmallStore()
    let connection = try store.connect()
    try connection.execute("PRAGMA cache_size=10")
    try connection.beginWrite(.normal)
    for number in 0..<1000 { try connection.set("kept \(number)", String(repeating: "k", count: 80)) }
    try connection.execute("SAVEPOINT s")
    for number in 0..<3000 { try connection.set("kept \(number % 1000)", String(repeating: "x", count: 80)) }
    try connection.execute("ROLLBACK TO s")
    for number in 0..<50 { try connection.set("later \(number)", "l") }
    try connection.commit()
    let contents = try store.copyAsAfterCrash().contents()
    #expect(contents.count == 1050)
    #expect(!contents.contains { $0.contains("x") })
    try connection.close()
  }

  @Test("is checkpointed, in part and completely, while a reader keeps its snapshot")
  func checkpoint() throws {
    let (store, connection) = try threeCommits()
    let reader = try store.connect()
    try reader.beginRead()
    #expect(try reader.contents().count == 3)
    try connection.beginWrite(.normal)
    try connection.set("d", "1")
    try connection.commit()
    try connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    #expect(try reader.contents().count == 3)
    #expect(try store.copyAsAfterCrash().contents().count == 4)
    try reader.commit()
    try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    #expect(try store.copyAsAfterCrash().bytes("-wal").isEmpty)
    #expect(try store.copyAsAfterCrash().contents().count == 4)
    try connection.close()
  }

  @Test("repairs a page 1 that a checkpoint left torn")
  func tornPage1() throws {
    let (store, connection) = try threeCommits()
    // Page 1 is in the log when something changed it.
    try connection.beginWrite(.normal)
    try connection.execute("CREATE TABLE more(x)")
    try connection.commit()
    let copy = try store.copyAsAfterCrash()
    var file = try copy.bytes()
    for offset in 1000..<2000 { file[Layout.envelopeByteCount + offset] = 0 }
    try copy.overwrite(file)
    #expect(try copy.contents() == ["a=1", "b=1", "c=1"])
    try connection.close()
  }

  @Test("encrypts its salts and checksums: the header and each frame's tail look random")
  func headersAreEnciphered() throws {
    let (store, connection) = try threeCommits()
    let log = try store.copyAsAfterCrash().bytes("-wal")
    // In SQLite's own log every frame repeats the salts of the header.
    let tails = (1...3).map { Array(log[frame($0).lowerBound + 8..<frame($0).lowerBound + 16]) }
    #expect(Set(tails + [Array(log[16..<24])]).count == 4)
    try connection.close()
  }

  @Test("of one connection is read by a second one, which finds a large log", arguments: [100, 5000])
  func reopened(rows: Int) throws {
    let store = try SmallStore()
    let connection = try store.connect()
    try connection.execute("PRAGMA wal_autocheckpoint=0")
    for batch in 0..<10 {
      try connection.beginWrite(.normal)
      for number in 0..<rows / 10 { try connection.set("\(batch) \(number)", String(repeating: "v", count: 200)) }
      try connection.commit()
    }
    let copy = try store.copyAsAfterCrash()
    #expect(try copy.contents().count == rows)
    #expect(try store.contents().count == rows)
    try connection.close()
    #expect(try store.contents().count == rows)
  }

  @Test("that cannot be read is not treated as a log without old epochs")
  func unreadableEpochs() throws {
    let (store, connection) = try threeCommits()
    try connection.close()
    try FileManager.default.createDirectory(atPath: store.path + "-wal", withIntermediateDirectories: false)
    let opened = try Store.open(at: store.path, key: store.key)
    #expect(throws: StorageError.self) { try opened.logNeedsOldEpochs() }
  }

  @Test("does not end at a frame that may or may not authenticate: that is an error, and nothing is lost")
  func unreadableFrame() throws {
    let (store, connection) = try threeCommits()
    let recorder = RecordingVFS()
    let copy = try store.copyAsAfterCrash(vfs: recorder.encrypting())
    try connection.close()
    // The frame names an unknown epoch, so that the envelope is read, which the disk refuses.
    var log = try copy.bytes("-wal")
    let whole = log
    log[frame(2).lowerBound + Layout.frameHeaderByteCount + PageCodec.epochOffset] ^= 1
    try copy.overwrite(log, suffix: "-wal")
    let isInFrame = Lock(false)
    recorder.failCalls { [path = copy.path] call in
      if call.kind == .read, call.path.hasSuffix("-wal") {
        isInFrame.withLock { $0 = call.offset == Int64(Layout.logHeaderByteCount + Layout.frameByteCount) }
      }
      let isEnvelope = call.kind == .read && call.path == path && call.offset < Layout.envelopeByteCount
      return isEnvelope && isInFrame.withLock { $0 } ? .error(errno: EIO) : nil
    }
    #expect {
      try copy.connect()
    } throws: { error in
      if case StorageError.inputOutput = error { true } else { false }
    }
    recorder.failCalls { _ in nil }
    try copy.overwrite(whole, suffix: "-wal")
    #expect(try copy.contents() == ["a=1", "b=1", "c=1"])
  }

  @Test("advances the commit counter when it is recovered empty: no number is used twice")
  func recoveredEmpty() throws {
    let store = try SmallStore()
    let connection = try store.connect()
    #expect(try connection.contents() == [])
    let counter = try #require(connection.commitCounter)
    var seen: Set<UInt64> = [counter.value]
    for number in 1...3 {
      try connection.beginWrite(.normal)
      try connection.set("\(number)", "1")
      try connection.commit()
      try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
      #expect(seen.insert(counter.value).inserted)
      // As by a writer that ends between the two copies of the header: another first byte of the second one's checksum.
      let byte = String(~UInt8(truncatingIfNeeded: counter.value.littleEndian), radix: 8)
      _ = try Child.run(
        "/bin/sh",
        ["-c", "printf '\\\(byte)' | dd of=\"$0\" bs=1 seek=88 conv=notrunc 2>/dev/null", store.path + "-shm"])
      #expect(try connection.contents().count == number)
      #expect(seen.insert(counter.value).inserted, "after recovery \(number)")
    }
    try connection.close()
  }

  @Test("leaks no process memory into the wal-index if it has a header and no frame")
  func clearedIndex() throws {
    let (store, connection) = try threeCommits()
    let copy = try store.copyAsAfterCrash()
    try connection.close()
    var log = try copy.bytes("-wal")
    log.replaceSubrange(frame(1).lowerBound..., with: [UInt8](repeating: 0, count: 3 * Layout.frameByteCount))
    try copy.overwrite(log, suffix: "-wal")
    // What the allocator gives to SQLite's recovery next, it was given back just now.
    for size in stride(from: 36_000, through: 37_600, by: 16) {
      guard let memory = sqlite3_malloc64(UInt64(size)) else { continue }
      memset(memory, 0x5a, size)
      sqlite3_free(memory)
    }
    let recovering = try copy.connect()
    #expect(try recovering.contents() == [])
    let index = try #require(recovering.databaseFile?.index)
    #expect(UnsafeRawBufferPointer(start: index + 136, count: 32_768 - 136).allSatisfy { $0 == 0 })
    try recovering.close()
  }
}
