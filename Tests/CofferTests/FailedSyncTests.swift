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

  @Test("is told as the full disk that it is", arguments: ["-wal", "settings.coffer"])
  func error(_ suffix: String) throws {
    let full = CofferError.diskFull(path: database.path)
    failSyncs(of: suffix, count: 1) {
      #expect(throws: full) { try database.addSlot(.key(.random(count: 32))) }
    }
    try database.addSlot(.key(.random(count: 32)))
    try database.close()
  }
}
