import Coffer
import CofferStorage
import Foundation
import TestSupport
import Testing

/// A store on a disk of which a sync fails.
@Suite("A failed sync") struct FailedSyncTests {
  private let folder: ScratchFolder
  private let recorder = RecordingVFS()
  private let vfs: EncryptingVFS
  private let key: KeySource
  private let database: Database

  init() throws {
    folder = try ScratchFolder()
    vfs = recorder.encrypting()
    key = .key(try .random(count: 32))
    database = try Database.create(at: folder.file("settings.coffer"), key: key, options: .quiet, vfs: vfs)
  }

  private func failSyncs(of suffix: String, count: Int, _ body: () throws -> Void) rethrows {
    let injector = FaultInjector(in: recorder, count: count) { call in
      call.kind == .sync && call.path.hasSuffix(suffix) ? .error(errno: ENOSPC) : nil
    }
    try body()
    injector.stop()
    #expect(!injector.failedCalls.isEmpty)
  }

  /// What is on the disk whatever happens, as another store.
  private func contentsOnDisk() throws -> StoreValues {
    let place = try ScratchFolder()
    try Disk.write(Disk(recorder).surely, of: folder, to: place.path)
    let database = try Database.open(at: place.file("settings.coffer"), key: key, options: .quiet)
    defer { try? database.close() }
    return try database.contents()
  }

  @Test("is told as the full disk that it is", arguments: ["-wal", "settings.coffer"])
  func error(_ suffix: String) throws {
    let full = CofferError.diskFull(path: database.path)
    failSyncs(of: suffix, count: 1) {
      #expect(throws: full) { try database.addSlot(.key(.random(count: 32))) }
    }
    try database.addSlot(.key(.random(count: 32)))
    try database.close()
  }

  @Test("of the log is not hidden by the next one: what only an earlier commit wrote is on the disk then, too")
  func earlierCommits() throws {
    let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    let connection = try database.makeConnection()
    // More syncs fail than the system has errors to report, and another connection makes the one that succeeds.
    for (number, writer) in [connection, try database.makeConnection()].enumerated() {
      try proxy.setObject(number, forKey: "committed \(number)", durability: .committed)
      failSyncs(of: "-wal", count: number + 1) {
        for _ in 0...number {
          #expect(throws: CofferError.self) { try connection.readWrite { try $0.setObject(0, forKey: "synced") } }
        }
      }
      try writer.readWrite { try $0.setObject(number, forKey: "synced", inCollection: "\(number)") }
      let contents = try contentsOnDisk()
      #expect(contents[""]?["committed \(number)"] == .int(Int64(number)))
      #expect(contents["\(number)"]?["synced"] == .int(Int64(number)))
    }
    try proxy.close()
    try database.close()
  }

  @Test("of the log is not hidden from who asks for what is committed to be synced")
  func synced() throws {
    let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    try proxy.setObject("value", forKey: "key", durability: .committed)
    failSyncs(of: "-wal", count: 2) {
      for _ in 0..<2 {
        #expect(throws: CofferError.self) { try proxy.performBatch(durability: .synced) { _ in } }
      }
    }
    try proxy.performBatch(durability: .synced) { _ in }
    #expect(try contentsOnDisk() == ["": ["key": .string("value")]])
    try proxy.close()
    try database.close()
  }

  @Test("of the envelope leaves nothing of a slot that was removed, once something else is written")
  func envelope() throws {
    let slot = try database.addSlot(.key(.random(count: 32)))
    failSyncs(of: "settings.coffer", count: 1) {
      #expect(throws: CofferError.self) { try database.removeSlot(slot.id) }
    }
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "key") }
    let bytes = try #require(Disk(recorder).surely[database.path])
    let half = Layout.envelopeCopyByteCount
    #expect(bytes[..<half].elementsEqual(bytes[half..<2 * half]))
    let place = try ScratchFolder()
    try Disk.write([database.path: bytes], of: folder, to: place.path)
    #expect(try Store.peekEnvelope(at: place.file("settings.coffer")).slots.map { Int($0.id) } == [0])
    try database.close()
  }
}
