import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@Suite("Verification of pages") struct VerificationTests {
  /// A store of some hundred pages.
  private func filled(_ count: Int, vfs: EncryptingVFS = .standard) throws -> SmallStore {
    let store = try SmallStore(vfs: vfs)
    let connection = try store.connect()
    for number in 0..<count { try connection.set("\(number)", String(repeating: "8 bytes ", count: 1000)) }
    try connection.close()
    return store
  }

  /// Has hardly any page left in the file.
  private func shorten(_ store: SmallStore) throws {
    let connection = try store.connect(timeout: .zero)
    try connection.execute("DELETE FROM kv")
    try connection.vacuum()
    try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    try connection.close()
  }

  @Test("finds no damage in pages that another's checkpoint truncates during the check")
  func cutOff() throws {
    let store = try filled(300)
    let opened = try Store.open(at: store.path, key: store.key)
    var isCut = false
    let result = try opened.verifyPages { _ in
      guard !isCut else { return }
      isCut = true
      do {
        try shorten(store)
      } catch {
        Issue.record(error)
      }
    }
    #expect(isCut && result.damaged.isEmpty && result.clear.isEmpty && result.missing.isEmpty)
  }

  @Test("finds no page missing if others shorten the file after the log was read")
  func shortened() throws {
    let recorder = RecordingVFS()
    let store = try filled(30, vfs: recorder.encrypting())
    // The log names the number of pages, and has hardly any of them.
    let connection = try store.connect()
    try connection.write { try connection.set("one more", "1") }
    let other = SmallStore(sharing: store, vfs: .standard)
    let progress = Lock((hasReadPages: false, hasReadLog: false, isCut: false))
    recorder.failCalls { call in
      let isDue = progress.withLock { progress in
        // The log is read once before the pages, and once after them.
        if call.kind == .read, call.path == store.path { progress.hasReadPages = true }
        if call.kind == .read, call.path.hasSuffix("-wal") { progress.hasReadLog = progress.hasReadPages }
        guard call.kind == .size, call.path == store.path, progress.hasReadLog, !progress.isCut else { return false }
        progress.isCut = true
        return true
      }
      guard isDue else { return nil }
      do {
        try shorten(other)
      } catch {
        Issue.record(error)
      }
      return nil
    }
    let result = try Store.open(at: store.path, key: store.key, vfs: store.vfs).verifyPages { _ in }
    #expect(progress.withLock { $0.isCut } && result.missing.isEmpty && result.damaged.isEmpty)
    try connection.close()
  }
}
