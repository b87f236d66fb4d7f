import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

/// What the status says of a log while others write it, and after someone has changed the shared memory.
@Suite("The status of a log") struct LogStatusTests {
  private let store: TemporaryStore
  private let recorder = RecordingVFS()
  private let vfs: EncryptingVFS
  private let writer: Database
  /// Open all the time: the last one that closes removes the log.
  private let connection: Connection
  private var path: String { store.path }

  init() throws {
    store = try TemporaryStore()
    vfs = recorder.encrypting()
    writer = try store.create(vfs: vfs)
    connection = try writer.makeConnection()
    for number in 0..<3 { try set(number) }
  }

  private func set(_ number: Int) throws {
    try connection.readWrite { try $0.setObject(number, forKey: "n") }
  }

  private func copyIndex(from source: String, to target: String) throws {
    let child = try Child.run("/bin/dd", ["if=\(source)", "of=\(target)", "bs=136", "count=1", "conv=notrunc"])
    try #require(child.status == 0)
  }

  @Test("names no frames as hidden that another process is about to publish, as it has to sync them first")
  func unpublished() throws {
    let reader = try Database.open(at: path, key: store.key, options: .quiet)
    let seen = Lock<[LogStatus?]>([])
    recorder.failCalls { call in
      guard call.kind == .sync, call.path.hasSuffix("-wal") else { return nil }
      let log = try? reader.status().log
      seen.withLock { $0.append(log) }
      return nil
    }
    try set(4)
    recorder.failCalls { _ in nil }
    let looks = seen.withLock { $0 }
    #expect(looks.count > 0)
    #expect(looks.last??.frameCount == (try reader.status().log.frameCount))
    #expect(looks.allSatisfy { $0?.problems == [] && $0?.hiddenFrameCount == 0 })
    #expect(try reader.status().log.problems.isEmpty)
    try reader.close()
    try writer.close()
  }

  @Test("is that of no log, if another process removes it between two looks at the folder")
  func removed() throws {
    let reader = try Store.open(at: path, key: store.key, isReadOnly: true, vfs: vfs)
    #expect(try LogStatus(of: reader).frameCount > 0)
    recorder.failCalls { call in
      call.kind == .open && call.path.hasSuffix("-wal") ? .error(errno: ENOENT) : nil
    }
    #expect(try LogStatus(of: reader).byteCount == 0)
    recorder.failCalls { _ in nil }
    try writer.close()
  }

  @Test("names the frames that an earlier state of the shared memory hides, and changes nothing")
  func hidden() throws {
    let saved = path + "-saved"
    let reader = try Database.open(at: path, key: store.key, options: .quiet)
    try copyIndex(from: path + "-shm", to: saved)
    let frameCount = try reader.status().log.frameCount
    try set(5)
    try copyIndex(from: saved, to: path + "-shm")
    for _ in 0..<2 {
      let log = try reader.status().log
      #expect(log.hiddenFrameCount == log.frameCount - frameCount && log.hiddenFrameCount > 0)
      #expect(log.problems.count == 1)
    }
    try set(6)
    #expect(try reader.status().log.problems.isEmpty)
    try reader.close()
    try writer.close()
  }
}
