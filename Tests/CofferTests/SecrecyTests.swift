import CofferCompat
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("On the disk") struct SecrecyTests {
  private static let collection = "canary-collection-8f1c"
  private static let key = "canary-key-77aa"
  private static let value = "canary-value-hunter2-correct-horse"
  private static let metadata = "canary-metadata-4242"

  /// What must not stand there: each canary raw, in UTF-16, base64 (at each of its three alignments) and hexadecimal.
  private static let forbidden: [(name: String, bytes: Data)] = [collection, key, value, metadata].flatMap { text in
    let raw = Data(text.utf8)
    let base64 = (0..<3).map { shift in
      // Without the characters that depend on their neighbours.
      Data((Data(count: shift) + raw).base64EncodedString().dropFirst(4).dropLast(4).utf8)
    }
    let hexadecimal = Data(raw.map { String(format: "%02x", $0) }.joined().utf8)
    let utf16 = text.utf16.reduce(into: Data()) { $0.append(contentsOf: [UInt8($1 & 0xff), UInt8($1 >> 8)]) }
    return ([raw, hexadecimal, utf16] + base64).map { (text, $0) }
  }

  private func expectNoCanary(_ store: TemporaryStore, _ moment: String) throws {
    for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: store.path + suffix) {
      let bytes = try store.bytes(suffix)
      #expect(bytes.count > 0)
      for (name, canary) in Self.forbidden {
        #expect(bytes.range(of: canary) == nil, "\(name) stands in settings.coffer\(suffix) \(moment)")
      }
    }
  }

  @Test("no key, value, metadata or collection name is readable, while open, after a kill and after closing")
  func canaries() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let proxy = try ConnectionProxy(database: database)
    for number in 0..<50 {
      try proxy.setObject(
        Self.value + "\(number)", forKey: Self.key + "\(number)", inCollection: Self.collection,
        withMetadata: Self.metadata)
    }
    try proxy.flushAndWait()
    #expect(FileManager.default.fileExists(atPath: store.path + "-wal"))
    try expectNoCanary(store, "while open")
    let killed = try TemporaryStore()
    try store.copyAsAfterCrash(to: killed)
    try expectNoCanary(killed, "after a crash")
    let found: String? = try killed.open().makeConnection().read {
      try $0.object(forKey: Self.key + "49", inCollection: Self.collection)
    }
    #expect(found == Self.value + "49")
    try expectNoCanary(killed, "after recovery")
    try proxy.close()
    try database.close()
    try expectNoCanary(store, "after closing")
  }

  @Test("no canary is ever written to any file, or to the shared memory")
  func everWritten() throws {
    let recorder = RecordingVFS()
    let vfs = EncryptingVFS(name: "coffer on \(recorder.name)", below: recorder.name)
    let store = try TemporaryStore()
    var database = try Database.create(at: store.path, key: store.key, options: .init(), vfs: vfs)
    var connection = try database.makeConnection()
    // Enough to spill, to checkpoint, to overflow pages, to split and merge them.
    for round in 0..<3 {
      try connection.readWrite { transaction in
        for number in 0..<600 {
          try transaction.setObject(
            Self.value + String(repeating: "\(round)", count: number * 7 % 900), forKey: Self.key + "\(number)",
            inCollection: Self.collection, withMetadata: Self.metadata + "\(round)")
        }
      }
      try connection.readWrite { try $0.removeObject(forKey: Self.key + "\(round)", inCollection: Self.collection) }
    }
    try connection.perform { session in
      try session.connection.execute("PRAGMA cache_size=5; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
    }
    try connection.readWrite { try $0.setObject(Self.value, forKey: "after", inCollection: Self.collection) }
    try connection.readWrite { try $0.removeAllObjects(inCollection: Self.collection) }
    try database.close()
    database = try Database.open(at: store.path, key: store.key, options: .init(), vfs: vfs)
    connection = try database.makeConnection()
    #expect(try connection.read { try $0.numberOfKeysInAllCollections() } == 0)
    try database.close()

    let written = recorder.writtenBytes
    #expect(written.count > 1 << 20)
    for (name, canary) in Self.forbidden {
      #expect(written.range(of: canary) == nil, "\(name) was written somewhere")
    }
    for text in ["SQLite format 3", "CREATE TABLE", "collections", "envelope_sequence"] {
      #expect(written.range(of: Data(text.utf8)) == nil, "\(text) was written somewhere")
    }
    var paths: Set<String> = []
    for event in recorder.events {
      if case .open(let path) = event { paths.insert(String(path.suffix(4))) }
    }
    // The store under its two names, and their logs: nothing else was ever opened.
    #expect(paths == ["ffer", ".tmp", "-wal"])
  }

  @Test("the search for canaries finds them in a plain file")
  func searchWorks() throws {
    for (name, canary) in Self.forbidden { #expect(canary.count >= 12, "\(name)") }
    let text = Data(("x" + Self.value + "y").utf8).base64EncodedString()
    #expect(Self.forbidden.contains { Data(text.utf8).range(of: $0.bytes) != nil })
  }

  @Test("two stores with the same contents under the same key have no page in common")
  func pagesDiffer() throws {
    let (one, other) = (try TemporaryStore(), try TemporaryStore())
    try FileManager.default.removeItem(atPath: other.keyFile)
    try FileManager.default.copyItem(atPath: one.keyFile, toPath: other.keyFile)
    for store in [one, other] {
      let database = try store.open()
      try database.makeConnection().readWrite { transaction in
        for number in 0..<200 { try transaction.setObject(Self.value, forKey: "\(number)") }
      }
      try database.close()
    }
    func blocks(_ store: TemporaryStore) throws -> Set<Data> {
      let bytes = try store.bytes()
      return Set(stride(from: 16_384, to: bytes.count, by: 16).map { bytes.subdata(in: $0..<$0 + 16) })
    }
    #expect(try blocks(one).isDisjoint(with: blocks(other)))
    #expect(try blocks(one).count == (try one.bytes().count - 16_384) / 16)
  }

  @Test("copies of one file show which pages changed, backups do not: a limit that SECURITY.md names")
  func copiesShowChangedPages() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let connection = try database.makeConnection()
    try connection.readWrite { transaction in
      for number in 0..<500 { try transaction.setObject(Self.value, forKey: "\(number)") }
    }
    func pages(_ suffix: String = "") throws -> Set<Data> {
      let bytes = try store.bytes(suffix)
      return Set(stride(from: 16_384, to: bytes.count, by: 4096).map { bytes.subdata(in: $0..<$0 + 4096) })
    }
    func copies() throws -> (file: Set<Data>, backup: Set<Data>) {
      _ = try connection.perform { try $0.connection.checkpointAndTruncate(onPage: {}) }
      defer { try? FileManager.default.removeItem(atPath: store.path + "-backup") }
      try database.backup(to: store.path + "-backup", key: store.key)
      return (try pages(), try pages("-backup"))
    }
    let earlier = try copies()
    try connection.readWrite { try $0.setObject("another", forKey: "250") }
    let later = try copies()
    #expect(earlier.file.intersection(later.file).count > earlier.file.count / 2)
    #expect(earlier.file != later.file)
    #expect(earlier.backup.isDisjoint(with: later.backup))
  }

  @Test("ID, times, labels, kinds and costs of the slots are readable without a key: a limit that SECURITY.md names")
  func readableWithoutKey() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let passphrase = SecretBytes(copying: "correct horse")
    try database.addSlot(
      .passphrase(passphrase), label: "laptop of accounting", stretching: .scrypt(log2N: 14, r: 8, p: 1))
    try database.close()
    let envelope = try Store.peekEnvelope(at: store.path)
    #expect(envelope.slots.map(\.label) == ["", "laptop of accounting"])
    #expect(envelope.slots.map(\.kind) == [.keyFile, .passphrase])
    #expect(try store.bytes().range(of: Data("laptop of accounting".utf8)) != nil)
  }
}
