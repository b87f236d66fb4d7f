import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferCrypto
@testable import CofferMaintenance
@testable import CofferStorage

@Suite("Inspection") struct InspectionTests {
  private func filled() throws -> TemporaryStore {
    let store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { transaction in
      try transaction.setHistoryLimits(HistoryLimits(), forCollection: "c")
      for number in 0..<200 {
        try transaction.setObject("value \(number)", forKey: "key \(number)", inCollection: "c")
      }
    }
    try database.makeConnection().readWrite { try $0.setObject("later", forKey: "key 7", inCollection: "c") }
    try database.close()
    return store
  }

  private func change(_ store: TemporaryStore, _ body: (inout Data) throws -> Void) throws {
    var bytes = try store.bytes()
    try body(&bytes)
    try bytes.write(to: URL(fileURLWithPath: store.path))
    chmod(store.path, 0o600)
  }

  @Test("counts earlier values among what it decodes, and finds each page random")
  func verification() throws {
    let store = try filled()
    let database = try store.open()
    let report = try database.verify()
    #expect(report.problems.isEmpty && report.itemCount == 200 && report.historicItemCount == 1)
    #expect(report.leastPageEntropyBitsPerByte > 7.9)
    #expect(try database.status().notes == [Store.noteOnSQLite].compactMap(\.self))
    try database.close()
  }

  @Test("reports what is in the log, and whether it can be recovered completely")
  func log() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let connection = try database.makeConnection()
    for number in 0..<5 { try connection.readWrite { try $0.setObject(number, forKey: "key \(number)") } }
    let status = try database.status()
    #expect(status.log.isWhole && status.log.frameCount > 5)
    #expect(status.log.byteCount == status.logByteCount && status.logByteCount > 5 * 4096)
    let copy = try TemporaryStore()
    try store.copyAsAfterCrash(to: copy)
    try database.close()
    #expect(try store.open().status().log.frameCount == 0)

    var damaged = upToLastFrame(try copy.bytes("-wal"))
    damaged[damaged.count - 3 * Layout.frameByteCount + 100] ^= 1
    try damaged.write(to: URL(fileURLWithPath: copy.path + "-wal"))
    let recovered = try copy.open()
    let log = try recovered.status().log
    #expect(!log.isWhole && log.frameCount < status.log.frameCount && log.lostFrameCount > 0)
    #expect(log.frameCount + log.lostFrameCount == status.log.frameCount)
    #expect(log.problems.count == 1)
    try recovered.close()
  }

  @Test("names the damaged and the missing pages of a store that no longer opens")
  func unopenable() throws {
    let store = try filled()
    let count = (try store.bytes().count - Layout.envelopeByteCount) / Layout.pageByteCount
    try change(store) { data in
      for page in [1, 2, 3, 6] { data.flipBit(ofPage: page) }
    }
    #expect(throws: CofferError.self) { try store.open() }
    let report = try Database.verifyPages(at: store.path, key: store.key)
    #expect(report.problems.map(\.kind) == [.damagedPages(1...3), .damagedPages(6...6)])
    #expect(
      report.problems.map(\.description) == ["Pages 1 to 3 do not authenticate.", "Page 6 does not authenticate."])
    #expect(report.pageCount == count)

    let cut = try filled()
    try change(cut) { $0 = $0.prefix(SalvageFixture.offset(ofPage: 5)) }
    let problems = try Database.verifyPages(at: cut.path, key: cut.key).problems
    #expect(problems.map(\.kind) == [.missingPages(5...count)])
    #expect(problems.map(\.description) == ["The file is truncated: pages 5 to \(count) are missing."])
    #expect(throws: CofferError.wrongKey) {
      try Database.verifyPages(at: cut.path, key: .key(SecretBytes.random(count: 32)))
    }
  }

  @Test("finds an unencrypted page")
  func clearPage() throws {
    let store = try filled()
    try change(store) { data in
      let offset = SalvageFixture.offset(ofPage: 4)
      data.replaceSubrange(offset..<offset + 4096, with: Data("SQLite format 3\0".utf8) + Data(count: 4080))
    }
    let problems = try Database.verifyPages(at: store.path, key: store.key).problems.map(\.description)
    #expect(problems.contains { $0.hasPrefix("Pages 4 to 4 do not look random") })
  }

  @Test("notes a passphrase that is stretched less than a new one")
  func weakSlot() throws {
    let folder = try TemporaryStore()
    for (stretching, isWeak) in [
      (Slot.Stretching.password(.scrypt(log2N: 14, r: 8, p: 1)), true), (.standard, false),
      (.password(.pbkdf2HMACSHA512(iterations: 100_000)), true),
    ] {
      let key = KeySource.passphrase(SecretBytes(copying: "correct horse"))
      try Store.create(at: folder.path, key: key, stretching: stretching) { connection, store in
        try Schema.create(in: connection)
        try Metadata(connection: connection).bind(to: store)
      }
      let database = try Database.open(at: folder.path, key: key)
      let notes = try database.status().notes
      #expect(notes.contains { $0.contains("stretches its passphrase") } == isWeak, "\(stretching.name)")
      try database.close()
      try FileManager.default.removeItem(atPath: folder.path)
    }
  }

  @Test("notes an unfinished re-encryption, and leftover files")
  func unfinished() throws {
    let store = try filled()
    try change(store) { data in
      var envelope = try Store.peekEnvelope(at: store.path)
      let rootKey = try envelope.open(store.key).key
      envelope.epochs.append(
        try Epoch(number: 2, created: envelope.created, rootKey: rootKey, storeID: envelope.storeID))
      envelope.sequence += 1
      let copy = try envelope.encoded(rootKey: rootKey)
      data.replaceSubrange(0..<Layout.envelopeByteCount, with: copy + copy)
    }
    let leftover = store.folder + "/.settings.coffer.0123456789abcdef.tmp"
    try Data("x".utf8).write(to: URL(fileURLWithPath: leftover))
    // Opened for writing it would go on with it.
    let database = try Database.open(at: store.path, key: store.key, options: .init(isReadOnly: true))
    let status = try database.status()
    #expect(status.epochCount == 2 && status.notes.count == (Store.noteOnSQLite == nil ? 2 : 3))
    #expect(status.notes[0].contains("Rotate again") && status.notes[1].contains("0123456789abcdef.tmp"))
    #expect(try database.verify().problems.isEmpty)
    try database.close()
  }

  @Test("names a folder that others can write, and a key file that they can read")
  func folders() throws {
    let store = try filled()
    chmod(store.folder, 0o770)
    let database = try store.open()
    let problems = try database.status().fileProblems
    #expect(problems.count == 1 && problems[0].contains("mode 770"))
    chmod(store.folder, 0o1777)
    #expect(try database.status().fileProblems.first?.contains("mode 1777") ?? false)
    // Besides the note on this SQLite.
    func notes() throws -> [String] { try database.status().notes.filter { $0 != Store.noteOnSQLite } }
    #expect(try notes() == [])
    chmod(store.folder, 0o755)
    #expect(try notes().count == 1)
    #expect(try database.status().fileProblems.isEmpty && KeyFile.fileProblems(at: store.keyFile).isEmpty)
    chmod(store.keyFile, 0o640)
    #expect(KeyFile.fileProblems(at: store.keyFile) == ["\(store.keyFile) is open to others (mode 640)."])
    try database.close()
  }
}
