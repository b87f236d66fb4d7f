import CSQLite
import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import CofferStorage

extension LogTests {
  /// Damages the second frame of the log, and returns what the log holds then.
  private func damage(_ store: SmallStore) throws -> [UInt8] {
    var log = try store.bytes("-wal")
    log[frame(2).lowerBound + 100] ^= 1
    try store.overwrite(log, suffix: "-wal")
    return log
  }

  /// Why a recovery kept no copy of the log; nil if it kept one, or lost nothing.
  private func reasonForNoCopy(in connection: SQLiteConnection) -> String? {
    guard case .missing(let reason)? = connection.logLoss?.copy else { return nil }
    return reason
  }

  @Test("that ends at swapped, missing or old frames is detected if frames of its generation follow")
  func foreignFrames() throws {
    let (store, connection) = try threeCommits()
    let old = try store.copyAsAfterCrash().bytes("-wal")
    try connection.execute("PRAGMA wal_checkpoint(RESTART)")
    for key in ["d", "e", "f", "g"] {
      try connection.beginWrite(.full)
      try connection.set(key, "1")
      try connection.commit()
    }
    let copy = try store.copyAsAfterCrash()
    let (file, log) = (try copy.bytes(), try copy.bytes("-wal"))
    func loss(
      leaving contents: [String] = ["a=1", "b=1", "c=1", "d=1"], _ change: (inout [UInt8]) -> Void
    ) throws -> UInt32? {
      var changed = log
      change(&changed)
      try copy.overwrite(file)
      try copy.overwrite(changed, suffix: "-wal")
      let recovering = try copy.connect()
      defer { try? recovering.close() }
      #expect(try recovering.contents() == contents)
      #expect(recovering.logLoss?.wasSynced ?? true)
      return recovering.logLoss?.firstFrame
    }
    // Swapped; an old frame; one that is missing, while the last one is still in its place.
    #expect(try loss { $0.replaceSubrange(frame(2), with: log[frame(3)]) } == 2)
    #expect(try loss { $0.replaceSubrange(frame(2), with: old[frame(2)]) } == 2)
    #expect(try loss { $0.replaceSubrange(frame(2), with: log[frame(4)]) } == 2)
    // The last two swapped look like an end, a limit that SECURITY.md names.
    let swapped = Array(log[frame(4)] + log[frame(3)])
    #expect(
      try loss(leaving: ["a=1", "b=1", "c=1", "d=1", "e=1"]) {
        $0.replaceSubrange(frame(3).lowerBound..<frame(4).upperBound, with: swapped)
      } == nil)
    // What an earlier generation left is no loss.
    #expect(try loss { $0.replaceSubrange(frame(2).lowerBound..., with: old[frame(2).lowerBound...]) } == nil)
    try connection.close()
  }

  @Test("that the last program removes while another is about to scan it is no log, and no missing store")
  func removedBeforeScan() throws {
    let store = try SmallStore()
    let connection = try store.connect()
    try connection.write(.full) { try connection.set("a", "1") }
    let copy = try store.copyAsAfterCrash()
    let recorder = RecordingVFS()
    recorder.failCalls { $0.kind == .open && $0.path.hasSuffix("-wal") ? .error(errno: ENOENT) : nil }
    let scan = try LogScan(of: Store.open(at: copy.path, key: copy.key, vfs: recorder.encrypting()))
    #expect(scan.firstDamagedFrame == nil)
    try connection.close()
  }

  @Test("that lost only frames that were not synced says so, and is not copied: a power cut leaves any part of them")
  func unsyncedFrames() throws {
    let store = try SmallStore()
    let connection = try store.connect()
    try connection.write(.full) { try connection.set("a", "1") }
    for key in ["b", "c", "d"] { try connection.write(.normal) { try connection.set(key, "1") } }
    let copy = try store.copyAsAfterCrash()
    let (file, log) = (try copy.bytes(), try copy.bytes("-wal"))
    func loss(ofFrame number: Int) throws -> LogLoss? {
      var damaged = log
      damaged[frame(number).lowerBound + 100] ^= 1
      try copy.overwrite(file)
      try copy.overwrite(damaged, suffix: "-wal")
      let scan = try LogScan(of: Store.open(at: copy.path, key: copy.key))
      #expect(scan.firstDamagedFrame == number && scan.lostSyncedFrames == (number == 1))
      let recovering = try copy.connect()
      defer { try? recovering.close() }
      #expect(try recovering.contents() == ["a=1", "b=1", "c=1", "d=1"].prefix(number - 1).map { $0 })
      return recovering.logLoss
    }
    for number in 2...4 {
      let loss = try #require(try loss(ofFrame: number))
      #expect(loss.firstFrame == number && !loss.wasSynced && loss.copy == nil)
    }
    #expect(!FileManager.default.fileExists(atPath: copy.path + "-damaged-log-1"))
    // The first one was synced, as all later ones say, and a power cut cannot have damaged it.
    let loss = try #require(try loss(ofFrame: 1))
    #expect(loss.firstFrame == 1 && loss.wasSynced)
    #expect(FileManager.default.fileExists(atPath: copy.path + "-damaged-log-1"))
    try connection.close()
  }

  @Test("whose header is torn has lost nothing if the database has all of its commits")
  func tornHeader() throws {
    let (store, connection) = try threeCommits()
    let before = try store.copyAsAfterCrash()
    try connection.execute("PRAGMA wal_checkpoint(FULL)")
    let after = try store.copyAsAfterCrash()
    try connection.close()
    for (copy, isLost) in [(before, true), (after, false)] {
      var log = try copy.bytes("-wal")
      log[20] ^= 1
      try copy.overwrite(log, suffix: "-wal")
      let recovering = try copy.connect()
      #expect(try recovering.contents() == (isLost ? [] : ["a=1", "b=1", "c=1"]))
      #expect((recovering.logLoss != nil) == isLost)
      try recovering.close()
    }
  }

  @Test("that was emptied, and not truncated before a power cut, has lost nothing")
  func emptiedLog() throws {
    let (store, connection) = try threeCommits()
    try connection.execute("PRAGMA wal_checkpoint(FULL)")
    let copy = try store.copyAsAfterCrash()
    try connection.close()
    var log = try copy.bytes("-wal")
    log.replaceSubrange(..<32, with: Array("coffer/1 log emptied".utf8) + [UInt8](repeating: 0, count: 12))
    // A frame of a commit that was not synced.
    log[frame(1).lowerBound + 100] ^= 1
    try copy.overwrite(log, suffix: "-wal")
    let scan = try LogScan(of: Store.open(at: copy.path, key: copy.key))
    #expect(!scan.isHeaderDamaged && scan.committedFrameCount == 0 && scan.lostFrameCount == 0)
    let recovering = try copy.connect()
    #expect(try recovering.contents() == ["a=1", "b=1", "c=1"])
    #expect(recovering.logLoss == nil)
    try recovering.close()
  }

  @Test("whose header is torn was synced only if a frame says so: a power cut may leave frames without it")
  func tornFirstHeader() throws {
    for (commits, wasSynced) in [([.normal, .normal], false), ([.full], false), ([.full, .normal], true)]
      as [([SQLiteConnection.Synchronization], Bool)]
    {
      let store = try SmallStore()
      let connection = try store.connect()
      for (number, synchronization) in commits.enumerated() {
        try connection.write(synchronization) { try connection.set("\(number)", "1") }
      }
      let copy = try store.copyAsAfterCrash()
      try connection.close()
      var log = try copy.bytes("-wal")
      log[20] ^= 1
      try copy.overwrite(log, suffix: "-wal")
      #expect(try LogScan(of: Store.open(at: copy.path, key: copy.key)).isHeaderDamaged == wasSynced)
      let recovering = try copy.connect()
      #expect(try recovering.contents() == [])
      #expect(recovering.logLoss?.firstFrame == 0 && recovering.logLoss?.wasSynced == wasSynced)
      #expect(FileManager.default.fileExists(atPath: copy.path + "-damaged-log-1") == wasSynced)
      try recovering.close()
    }
  }

  @Test("that loses frames is copied before a commit overwrites them, once, and never over another file")
  func copyOfLog() throws {
    let (store, connection) = try threeCommits()
    let copy = try store.copyAsAfterCrash()
    try connection.close()
    let log = try damage(copy)
    try copy.overwrite([1], suffix: "-damaged-log-1")
    for _ in 0..<2 {
      let recovering = try copy.connect()
      #expect(try recovering.contents() == ["a=1"])
      guard case .kept(let path)? = recovering.logLoss?.copy else {
        Issue.record("no copy: \(String(describing: recovering.logLoss))")
        return
      }
      #expect(path == copy.path + "-damaged-log-2")
      // The log stays: recovered again, it is the same.
      try recovering.closeUntouched()
      try? FileManager.default.removeItem(atPath: copy.path + "-shm")
    }
    let writer = try copy.connect()
    try writer.beginWrite(.full)
    try writer.set("b", "2")
    try writer.commit()
    try writer.close()
    #expect(try copy.contents() == ["a=1", "b=2"])
    #expect(try copy.bytes("-damaged-log-1") == [1] && copy.bytes("-damaged-log-2") == log)
    let attributes = try FileManager.default.attributesOfItem(atPath: copy.path + "-damaged-log-2")
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(!FileManager.default.fileExists(atPath: copy.path + "-damaged-log-3"))
  }

  @Test("that loses frames is not copied where four copies are kept already, and the store still opens")
  func copyBesideFour() throws {
    let (store, connection) = try threeCommits()
    let copy = try store.copyAsAfterCrash()
    try connection.close()
    _ = try damage(copy)
    for number in 1...4 { try copy.overwrite([1], suffix: "-damaged-log-\(number)") }
    let recovering = try copy.connect()
    #expect(try recovering.contents() == ["a=1"])
    #expect(reasonForNoCopy(in: recovering) == "there are 4 copies already; move or remove them")
    try recovering.close()
    #expect(!FileManager.default.fileExists(atPath: copy.path + "-damaged-log-5"))
  }

  @Test("that has lost frames stays as the last connection closes, and is copied by the next one, which says so")
  func lossOnClosing() throws {
    let (store, connection) = try threeCommits()
    var log = try store.bytes("-wal")
    log[frame(2).lowerBound + 100] ^= 1
    // In place: the connection has both open. A header whose copies differ is what a killed writer leaves.
    for (suffix, offset, byte) in [
      ("-wal", frame(2).lowerBound + 100, log[frame(2).lowerBound + 100]), ("-shm", 50, 0xff),
    ] {
      let file = try FileHandle(forWritingTo: URL(fileURLWithPath: store.path + suffix))
      try file.seek(toOffset: UInt64(offset))
      try file.write(contentsOf: [byte])
      try file.close()
    }
    try connection.close()
    #expect(try store.bytes("-wal") == log)
    let recovering = try store.connect()
    #expect(try recovering.contents() == ["a=1"])
    #expect(recovering.logLoss?.firstFrame == 2)
    #expect(try store.bytes("-damaged-log-1") == log)
    try recovering.close()
  }

  @Test("that was extended beyond the size of the disk is copied and searched only as far as possible")
  func sparseLog() throws {
    let (store, connection) = try threeCommits()
    let copy = try store.copyAsAfterCrash()
    try connection.close()
    let log = try damage(copy)
    try #require(truncate(copy.path + "-wal", 1 << 40) == 0)
    let scan = try LogScan(of: Store.open(at: copy.path, key: copy.key))
    #expect(scan.firstDamagedFrame == 2 && scan.committedFrameCount == 1)
    let recovering = try copy.connect()
    #expect(try recovering.contents() == ["a=1"])
    let kept = try #require(FileHandle(forReadingAtPath: copy.path + "-damaged-log-1"))
    #expect(try kept.read(upToCount: log.count).map(Array.init) == log)
    var status = stat()
    #expect(fstat(kept.fileDescriptor, &status) == 0 && status.st_size == 1 << 40 && status.st_blocks * 512 <= 2 << 20)
    try recovering.close()
  }

  @Test("that loses frames on a full disk is still opened and written, and reports that there is no copy")
  func copyOnFullDisk() throws {
    let (store, connection) = try threeCommits()
    let recorder = RecordingVFS()
    let copy = try store.copyAsAfterCrash(vfs: recorder.encrypting())
    try connection.close()
    _ = try damage(copy)
    recorder.failCalls { $0.path.contains("damaged-log") && $0.kind == .write ? .error(errno: ENOSPC) : nil }
    let recovering = try copy.connect()
    #expect(try recovering.contents() == ["a=1"])
    #expect(reasonForNoCopy(in: recovering) == "the disk is full")
    try recovering.beginWrite(.full)
    try recovering.set("b", "2")
    try recovering.commit()
    try recovering.close()
    #expect(try copy.contents() == ["a=1", "b=2"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: copy.folder.path) == ["test.coffer"])
  }
}
