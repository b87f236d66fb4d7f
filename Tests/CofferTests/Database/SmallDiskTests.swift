import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

/// A store on a disk that its log fills up while another program has it open.
@Suite("A disk that the log has filled") struct SmallDiskTests {
  private let store: TemporaryStore
  private let recorder = RecordingVFS()
  private let database: Database
  private let other: Database
  private var path: String { store.path }

  init() throws {
    store = try TemporaryStore()
    let vfs = recorder.encrypting()
    database = try store.create(vfs: vfs)
    other = try Database.open(at: store.path, key: store.key, options: .quiet, vfs: vfs)
  }

  private var logByteCount: Int {
    var status = stat()
    return lstat(path + "-wal", &status) == 0 ? Int(status.st_size) : 0
  }

  /// Lets no write make the log longer.
  private func limitLog(to byteCount: Int) {
    recorder.failCalls { call in
      guard call.kind == .write, call.path.hasSuffix("-wal"), Int(call.offset) + call.byteCount > byteCount else {
        return nil
      }
      return .error(errno: ENOSPC)
    }
  }

  @Test("takes the next commit after one that failed: the log gives back its room, is checkpointed, and starts over")
  func startsOver() throws {
    let (connection, reader) = try (database.makeConnection(), other.makeConnection())
    limitLog(to: 200_000)
    var failedCount = 0
    for number in 1...150 {
      do {
        try connection.readWrite { try $0.setObject(number, forKey: "n") }
      } catch CofferError.diskFull(path) {
        failedCount += 1
        try connection.readWrite { try $0.setObject(number, forKey: "n") }
      }
      #expect(try reader.read { try $0.object(forKey: "n") } == number)
    }
    #expect(failedCount > 1)
    // What takes more room than there is fails as before, and leaves the room to others.
    let before = logByteCount
    #expect(throws: CofferError.diskFull(path: path)) {
      try connection.readWrite { try $0.setObject(Data(count: 600_000), forKey: "large") }
    }
    #expect(logByteCount <= before)
    try connection.readWrite { try $0.setObject(151, forKey: "n") }
    #expect(try reader.read { try $0.object(forKey: "n") } == 151)
    #expect(try other.verify().problems.isEmpty && other.status().log.problems.isEmpty)
    try other.close()
    try database.close()
  }

  @Test(
    "is not filled with zeros ahead of commits where little is left", .enabled(if: Child.canMount, "it takes root"),
    arguments: [(size: "100m", hasZeros: true), (size: "900k", hasZeros: false)])
  func nearlyFull(size: String, hasZeros: Bool) throws {
    try other.close()
    try database.close()
    let disk = path + "-disk"
    let mount = """
      mkdir "$2" && mount -t tmpfs -o size=$1,mode=700 tmpfs "$2" && cp "$3" "$2/s" && exec "$4" set-lines "$2/s" "$5"
      """
    let worker = try Child.start(
      "/usr/bin/unshare", ["-m", "sh", "-c", mount, "sh", size, disk, path, TemporaryStore.worker, store.keyFile])
    #expect(worker.readLine() == "open")
    for number in 1...20 {
      try worker.write("\(number)")
      #expect(worker.readLine() == "done")
    }
    var log = stat()
    #expect(lstat("/proc/\(worker.id)/root\(disk)/s-wal", &log) == 0 && log.st_size > 20 * Layout.frameByteCount)
    #expect(((Int(log.st_size) - Layout.logHeaderByteCount) % Layout.frameByteCount != 0) == hasZeros)
    try worker.input.close()
    worker.end()
  }

  @Test(
    "is reported with the name of the file that was to be made, and never a temporary one: a new store, a restored one")
  func names() throws {
    let copy = path + "-copy"
    try database.makeConnection().readWrite { try $0.setObject(Data(count: 50_000), forKey: "k") }
    try database.backup(to: copy, key: store.key)
    // From the first byte, and as SQLite fills it, or makes its log.
    for limit in [0, 20_000, 40_000] {
      recorder.failCalls { call in
        let isTemporary = call.path.hasSuffix(".tmp") || call.path.hasSuffix(".tmp-wal")
        guard isTemporary, call.kind == .write, Int(call.offset) + call.byteCount > limit else { return nil }
        return .error(errno: ENOSPC)
      }
      let vfs = recorder.encrypting()
      let made = path + "-new"
      #expect(throws: CofferError.diskFull(path: made)) {
        try Database.create(at: made, key: store.key, options: .quiet, vfs: vfs).makeConnection().readWrite {
          try $0.setObject(1, forKey: "k")
        }
      }
      #expect(throws: CofferError.diskFull(path: made)) {
        try Database.restore(at: made, from: copy, key: store.key, options: .quiet, vfs: vfs) { _ in }
      }
      #expect(!FileManager.default.fileExists(atPath: made))
    }
    for name in ["copy", "copy-wal", "copy-shm"] {
      let suffix = name.dropFirst(4)
      let error = StorageError.inputOutput(path: "/f/.copy.0123456789abcdef.tmp\(suffix)", reason: "r")
      #expect(CofferError(error) == .inputOutput(path: "/f/copy", reason: "r"))
    }
    let own = StorageError.diskFull(path: "/f/.copy.0123.tmp")
    #expect(CofferError(own) == .diskFull(path: "/f/.copy.0123.tmp"))
    try other.close()
    try database.close()
  }
}
