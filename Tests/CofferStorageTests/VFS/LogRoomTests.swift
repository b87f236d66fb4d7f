import CSQLite
import Foundation
import TestSupport
import Testing

@testable import CofferStorage

/// Zeros behind the last commit of a log, so that the next ones do not make the file longer.
@Suite("Room in the log") struct LogRoomTests {
  private let recorder = RecordingVFS()
  private let store: SmallStore

  init() throws {
    store = try SmallStore(vfs: recorder.encrypting())
  }

  private func roomByteCount() throws -> Int {
    let log = try store.copyAsAfterCrash().bytes("-wal")
    return log.count - upToLastFrame(log).count
  }

  @Test("is made by a connection that syncs commit after commit, when it has used up what there was")
  func made() throws {
    let connection = try store.connect()
    try connection.write { try connection.set("a", "1") }
    #expect(try roomByteCount() == 0)
    var rooms: [Int] = []
    for number in 0..<100 {
      try connection.write { try connection.set("a", "\(number)") }
      rooms.append(try roomByteCount())
    }
    #expect(rooms.allSatisfy { $0 > 0 } && rooms.filter { $0 > 60_000 }.count < 70)
    #expect(try store.copyAsAfterCrash().contents() == ["a=99"])
    try connection.close()
    #expect(try store.contents() == ["a=99"])
  }

  @Test("is not made for commits that are not synced, and used by those of others")
  func used() throws {
    let (connection, other) = (try store.connect(), try store.connect())
    for number in 0..<3 { try connection.write(.normal) { try connection.set("a", "\(number)") } }
    #expect(try roomByteCount() == 0)
    for number in 0..<3 { try connection.write { try connection.set("b", "\(number)") } }
    let room = try roomByteCount()
    try other.write(.normal) { try other.set("c", "1") }
    #expect(try roomByteCount() < room)
    #expect(try store.copyAsAfterCrash().contents() == ["a=2", "b=2", "c=1"])
    try other.close()
    try connection.close()
  }

  @Test("is given back where the disk has none, and every commit succeeds")
  func fullDisk() throws {
    let connection = try store.connect()
    recorder.failCalls { call in
      // A frame is written in one piece.
      call.kind == .write && call.path.hasSuffix("-wal") && call.byteCount > Layout.frameByteCount
        && call.offset > 40_000 ? .error(errno: ENOSPC) : nil
    }
    for number in 0..<20 {
      try connection.write { try connection.set("a", "\(number)") }
      #expect(try roomByteCount() == 0)
    }
    #expect(try store.copyAsAfterCrash().contents() == ["a=19"])
    try connection.close()
  }

  @Test("is given back for the store, where the disk has none for a checkpoint")
  func fullStore() throws {
    let connection = try store.connect()
    for number in 0..<10 { try connection.write { try connection.set("a", "\(number)") } }
    let log = store.path + "-wal"
    let size = { @Sendable in (try? FileManager.default.attributesOfItem(atPath: log))?[.size] as? Int }
    let withRoom = size()
    recorder.failCalls { call in
      call.kind == .write && call.path.hasSuffix("coffer") && size() == withRoom
        ? .error(errno: ENOSPC, code: SQLITE_FULL) : nil
    }
    #expect(try roomByteCount() > 0)
    try connection.close()
    #expect(size() == nil)
    #expect(try store.contents() == ["a=9"])
  }

  @Test("is no frame of an older epoch, which would keep the key of that")
  func epochs() throws {
    let connection = try store.connect()
    for number in 0..<3 { try connection.write { try connection.set("a", "\(number)") } }
    #expect(try roomByteCount() > 0)
    let copy = try store.copyAsAfterCrash(vfs: .standard)
    #expect(try !Store.open(at: copy.path, key: copy.key).logNeedsOldEpochs())
    try connection.close()
  }

  @Test("is nothing that was lost, for salvage")
  func salvage() throws {
    let connection = try store.connect()
    for number in 0..<3 { try connection.write { try connection.set("a", "\(number)") } }
    let copy = try store.copyAsAfterCrash(vfs: .standard)
    let log = try LogScan(of: Store.open(at: copy.path, key: copy.key))
    #expect(log.committedFrameCount == 3 && log.lostFrameCount == 0 && log.firstDamagedFrame == nil)
    try connection.close()
  }
}
