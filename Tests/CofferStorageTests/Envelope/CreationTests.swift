import CSQLite
import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import CofferStorage

@Suite("Creating a store") struct CreationTests {
  @Test("shows nothing under its name before it is complete, and leaves nothing if it fails")
  func failure() throws {
    struct Mine: Error {}
    let folder = try ScratchFolder()
    let path = folder.file("new.coffer")
    #expect(throws: Mine.self) {
      try Store.create(at: path, key: .key(.random(count: 32))) { connection, _ in
        try connection.execute("CREATE TABLE t(x)")
        #expect(!FileManager.default.fileExists(atPath: path))
        throw Mine()
      }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }

  @Test("publishes nothing if the disk fills during the checkpoint")
  func diskFull() throws {
    let recorder = RecordingVFS()
    let vfs = EncryptingVFS(name: "coffer on \(recorder.name)", below: recorder.name)
    let folder = try ScratchFolder()
    let path = folder.file("new.coffer")
    recorder.failWrites { path, offset in
      path.hasSuffix(".tmp") && offset > Layout.envelopeByteCount ? SQLITE_FULL : nil
    }
    #expect(throws: StorageError.self) {
      try Store.create(at: path, key: .key(.random(count: 32)), vfs: vfs) { connection, _ in
        try connection.execute("CREATE TABLE kv(k, v); INSERT INTO kv VALUES (1, randomblob(9000))")
      }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }

  @Test("lets exactly one of many creators win, and keeps its store")
  func race() async throws {
    let folder = try ScratchFolder()
    let path = folder.file("new.coffer")
    let key = KeySource.key(try SecretBytes.random(count: 32))
    let winners = await withTaskGroup(of: Int?.self) { group in
      for number in 0..<8 {
        group.addTask {
          do {
            try Store.create(at: path, key: key) { connection, _ in
              try connection.execute("CREATE TABLE kv(k TEXT, v BLOB); INSERT INTO kv VALUES ('creator', '\(number)')")
            }
            return number
          } catch {
            #expect(error as? StorageError == .exists(path: path))
            return nil
          }
        }
      }
      return await group.reduce(into: [Int]()) { if let number = $1 { $0.append(number) } }
    }
    #expect(winners.count == 1)
    let connection = try SQLiteConnection(store: Store.open(at: path, key: key), busyTimeout: .zero)
    #expect(try connection.contents() == ["creator=\(winners[0])"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".tmp") }.isEmpty)
  }

  @Test("is opened once and shared by everyone who has it open")
  func shared() throws {
    let store = try SmallStore(rows: 1)
    let first = try Store.open(at: store.path, key: store.key)
    let link = store.folder.file("../" + URL(fileURLWithPath: store.folder.path).lastPathComponent + "/test.coffer")
    #expect(try Store.open(at: link, key: store.key) === first)
    #expect(throws: StorageError.wrongKey) { try Store.open(at: store.path, key: .key(.random(count: 32))) }
  }

  @Test("accepts paths with all characters that are special in a URI")
  func paths() throws {
    let folder = try ScratchFolder()
    for name in ["a b", "a?b", "a#b", "a%41b", "é🗝", "a&b=c"] {
      let path = folder.file(name)
      let key = KeySource.key(try SecretBytes.random(count: 32))
      try Store.create(at: path, key: key) { connection, _ in try connection.execute("CREATE TABLE kv(k, v)") }
      #expect(FileManager.default.fileExists(atPath: path), "\(name)")
      #expect(try SQLiteConnection(store: Store.open(at: path, key: key), busyTimeout: .zero).contents().isEmpty)
    }
  }
}

@Suite("A key file") struct KeyFileTests {
  @Test("reads back as the key it was created with, and is never replaced")
  func roundTrip() throws {
    let folder = try ScratchFolder()
    let path = folder.file("deep/er/key")
    try KeyFile.make(at: path)
    let key = try KeyFile.read(at: path)
    #expect(key.count == 32)
    try KeyFile.make(at: path)
    #expect(try KeyFile.read(at: path).isEqual(to: key))
    let text = try String(contentsOfFile: path, encoding: .utf8)
    #expect(text.hasPrefix("coffer-key-1:"))
    #expect(text.utf8.count == 78)
  }

  @Test("may hold 32 raw bytes, upper-case digits, or Windows line ends, and nothing else")
  func forms() throws {
    let folder = try ScratchFolder()
    let path = folder.file("key")
    func read(_ bytes: some Collection<UInt8>) throws -> [UInt8] {
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      return try KeyFile.read(at: path).withUnsafeBytes(Array.init)
    }
    let key = (0..<32).map { UInt8($0 * 7) }
    let digits = key.map { String(format: "%02X", $0) }.joined()
    #expect(try read(key) == key)
    #expect(try read("coffer-key-1:\(digits)".utf8) == key)
    #expect(try read("coffer-key-1:\(digits.lowercased())\r\n".utf8) == key)
    for text in [
      "", "coffer-key-1:", "coffer-key-1:\(digits)0", "coffer-key-2:\(digits)", "coffer-key-1:\(digits.dropLast())g",
      String(repeating: "x", count: 5000), "coffer-key-1:\(digits)" + String(repeating: "\n", count: 2000) + "x",
    ] {
      #expect(throws: StorageError.keyUnavailable(reason: "\(path) is not a key file"), "\(text)") {
        try read(text.utf8)
      }
    }
  }
}
