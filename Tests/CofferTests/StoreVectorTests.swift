import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("The test vector of FORMAT.md") struct StoreVectorTests {
  private let store: TemporaryStore
  private let expected: StoreVector.Contents
  private let digests: [String]

  init() throws {
    let vectors = Self.tests.appendingPathComponent("Interop/vectors")
    func bytes(_ name: String) throws -> Data {
      let text = try String(contentsOf: vectors.appendingPathComponent(name), encoding: .utf8)
      return try #require(StoreVector.bytes(ofDump: text))
    }
    store = try TemporaryStore()
    let (file, log) = try (bytes("store-1.hex"), bytes("store-1-wal.hex"))
    for (suffix, bytes) in ["": file, "-wal": log] {
      try bytes.write(to: URL(fileURLWithPath: store.path + suffix))
      chmod(store.path + suffix, 0o600)
    }
    digests = try [file, log].map(StoreVector.digest)
    expected = try JSONDecoder().decode(
      StoreVector.Contents.self, from: Data(contentsOf: vectors.appendingPathComponent("store-1.json")))
  }

  private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

  private func open(_ key: KeySource, vaultKey: SecretBytes) throws -> Database {
    let database = try Database.open(at: store.path, key: key, options: .quiet)
    try database.vault.unlock(.key(vaultKey))
    return database
  }

  private func secret(_ digits: String) throws -> SecretBytes { Secret(digits).bytes }

  private func secret(ofHex digits: String) throws -> SecretBytes {
    let bytes = try #require(HexText.bytes(digits))
    return SecretBytes(count: bytes.count) { $0.copyBytes(from: bytes) }
  }

  @Test("has the digests given there")
  func digest() throws {
    let document = try String(
      contentsOf: Self.tests.deletingLastPathComponent().appendingPathComponent("FORMAT.md"), encoding: .utf8)
    #expect(digests.filter { !document.contains($0) }.isEmpty)
  }

  @Test("opens with each of its secrets, and has the documented contents, including its log")
  func contents() throws {
    let vaultKey = try secret(ofHex: expected.vaultKey)
    let keys: [KeySource] = [
      .key(try secret(ofHex: expected.key)), .passphrase(try secret(expected.passphrase)),
      .recoveryKey(try secret(expected.recoveryKey)),
    ]
    for key in keys {
      let database = try open(key, vaultKey: vaultKey)
      #expect(try StoreVector.contents(of: database, recoveryKey: expected.recoveryKey) == expected)
      // The first to open it folds the log in when it closes.
      try database.close()
    }
    let database = try open(keys[0], vaultKey: vaultKey)
    #expect(try database.verify().problems.isEmpty)
  }

  @Test("has the values it was made from")
  func values() throws {
    let database = try open(.key(secret(ofHex: expected.key)), vaultKey: secret(ofHex: expected.vaultKey))
    try database.makeConnection().read { transaction in
      for setting in StoreVector.settings {
        let item = try #require(try transaction.item(forKey: setting.key, inCollection: setting.collection))
        #expect(item.value == setting.value && item.metadata == setting.metadata)
      }
      #expect(try transaction.value(forKey: "newest") == "in the log")
      #expect(try transaction.value(forKey: "removed", inCollection: "past") == nil)
      #expect(try transaction.value(forKey: "changed", inCollection: "sealed") == .secret(Secret("value 4")))
      #expect(try transaction.history(forKey: "removed", inCollection: "past").map(\.value) == ["value 4", "value 3"])
    }
  }
}
