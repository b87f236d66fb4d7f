import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

/// Stores with a log, as left by a crash; SQLite's own recovery gives the expected result.
@Suite("Salvage of a log") struct SalvageLogTests {
  /// A store with commits that are in its log alone.
  private func makeCrashed() throws -> (file: Data, log: Data, key: KeySource, keyFile: TemporaryStore) {
    let store = try TemporaryStore()
    let connection = try store.open().makeConnection()
    for commit in 0..<6 {
      try connection.readWrite { transaction in
        for number in 0..<60 {
          try transaction.setObject(
            String(repeating: "commit \(commit) ", count: 30), forKey: "key \(number)", inCollection: "c \(number % 3)")
        }
        try transaction.setObject(
          Data(repeating: UInt8(commit), count: 9000), forKey: "big \(commit)", withMetadata: commit)
      }
    }
    let copy = try TemporaryStore()
    try store.copyAsAfterCrash(to: copy)
    try connection.database.close()
    return (try copy.bytes(), try copy.bytes("-wal"), copy.key, copy)
  }

  /// What SQLite makes of the files.
  private func recovered(_ file: Data, _ log: Data, _ store: TemporaryStore) throws -> StoreContents {
    try? FileManager.default.removeItem(atPath: store.path + "-shm")
    try file.write(to: URL(fileURLWithPath: store.path))
    try log.write(to: URL(fileURLWithPath: store.path + "-wal"))
    let database = try store.open()
    defer { try? database.close() }
    return try StoreContents(database)
  }

  @Test("reads the newest committed frame of each page")
  func intact() throws {
    let (file, log, key, store) = try makeCrashed()
    let (report, saved) = try SalvageFixture.salvage(file, log: log, key: key)
    #expect(try saved == recovered(file, log, store))
    #expect(report.isComplete && report.logFrameCount > 0 && report.lostLogFrameCount == 0)
  }

  @Test("uses all commits before a damaged frame, as SQLite does, and counts what is lost")
  func damagedFrame() throws {
    let (file, log, key, store) = try makeCrashed()
    let frameCount = (upToLastFrame(log).count - Layout.logHeaderByteCount) / Layout.frameByteCount
    for frame in stride(from: 1, through: frameCount, by: 3) {
      for position in [10, 1000] {
        var damaged = log
        damaged[Layout.logHeaderByteCount + (frame - 1) * Layout.frameByteCount + position] ^= 0x10
        let (report, saved) = try SalvageFixture.salvage(file, log: damaged, key: key)
        #expect(try saved == recovered(file, damaged, store), "frame \(frame)")
        #expect(!report.isComplete && report.logFrameCount < frame)
        #expect(report.logFrameCount + report.lostLogFrameCount == frameCount, "frame \(frame)")
      }
    }
  }

  @Test("that was truncated uses all complete commits")
  func cut() throws {
    let (file, log, key, store) = try makeCrashed()
    for count in stride(from: 0, to: log.count, by: 9001) {
      let (_, saved) = try SalvageFixture.salvage(file, log: log.prefix(count), key: key)
      #expect(try saved == recovered(file, log.prefix(count), store), "\(count) bytes")
    }
  }

  @Test("works without the header of the log, whose damage SQLite treats as an empty log")
  func damagedHeader() throws {
    let (file, log, key, store) = try makeCrashed()
    let whole = try recovered(file, log, store)
    for position in [20, 30] {
      var damaged = log
      damaged[position] ^= 1
      let (report, saved) = try SalvageFixture.salvage(file, log: damaged, key: key)
      #expect(saved == whole)
      #expect(report.lostLogFrameCount == 0)
    }
  }

  @Test("takes a page torn by a checkpoint from the log")
  func tornCheckpoint() throws {
    let (file, log, key, store) = try makeCrashed()
    let whole = try recovered(file, log, store)
    var damaged = file
    damaged.flipBit(ofPage: 1)
    let (report, saved) = try SalvageFixture.salvage(damaged, log: log, key: key)
    #expect(saved == whole && report.isComplete)
  }

  @Test("is refused while another program writes")
  func busy() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setObject(1, forKey: "a") }
    #expect(throws: CofferError.busy) {
      try Database.salvage(at: store.path, key: store.key, to: store.folder + "/new", newKey: store.key) { _ in
        try connection.readWrite { try $0.setObject(Data(count: 9000), forKey: "b") }
      }
    }
    #expect(!FileManager.default.fileExists(atPath: store.folder + "/new"))
    // And beside an open database that rests it works.
    let report = try Database.salvage(at: store.path, key: store.key, to: store.folder + "/new", newKey: store.key)
    #expect(report.itemCount == 2 && report.isComplete)
    try connection.readWrite { try $0.setObject(3, forKey: "a") }
    try database.close()
  }
}
