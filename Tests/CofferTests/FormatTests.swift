import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

/// Every later version opens, reads, writes and salvages stores of version 1; FORMAT.md says what may be added.
@Suite("A store of version 1") struct FormatTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Formats/1")

  /// A copy of a golden store, in a place of its own.
  private struct Copy {
    let store: TemporaryStore
    let expected: StoreVector.Contents
    let key: KeySource

    init(_ kind: GoldenStore) throws {
      store = try TemporaryStore()
      for suffix in ["", "-wal"] {
        let file = FormatTests.folder.appendingPathComponent("\(kind.rawValue)\(suffix).hex")
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { continue }
        try #require(StoreVector.bytes(ofDump: text)).write(to: URL(fileURLWithPath: store.path + suffix))
        chmod(store.path + suffix, 0o600)
      }
      let json = FormatTests.folder.appendingPathComponent("\(kind.rawValue).json")
      expected = try JSONDecoder().decode(StoreVector.Contents.self, from: Data(contentsOf: json))
      key = .key(StoreVector.key)
    }

    func open(_ key: KeySource? = nil, at path: String? = nil) throws -> Database {
      let database = try Database.open(at: path ?? store.path, key: key ?? self.key, options: .quiet)
      if try database.vault.exists() { try database.vault.unlock(.key(StoreVector.vaultKey)) }
      return database
    }

    /// Whether all is there that was when the store was made.
    func isWhole(_ database: Database) throws -> Bool {
      try StoreVector.contents(of: database, recoveryKey: expected.recoveryKey) == expected
    }

    func keys(_ kind: GoldenStore) throws -> [KeySource] {
      func passphrase(_ text: String) -> KeySource { .passphrase(Secret(text).bytes) }
      guard kind != .rotating else { return [key] }
      var keys = [
        key, passphrase(StoreVector.passphrase), .recoveryKey(Secret(expected.recoveryKey).bytes),
      ]
      guard kind == .closed else { return keys }
      let command = GoldenStore.commandKey.withUnsafeBytes { HexText.text($0) }
      let file = store.folder + "/credential"
      let credential = GoldenStore.credentialKey.withUnsafeBytes { HexText.text($0) }
      try Data("coffer-key-1:\(credential)\n".utf8).write(to: URL(fileURLWithPath: file))
      keys += [
        passphrase(GoldenStore.otherPassphrase), .keyCommand("echo coffer-key-1:\(command)"), .keyFile(file),
      ]
      return keys
    }
  }

  @Test("is unchanged since it was made, byte for byte")
  func digests() throws {
    let list = try String(contentsOf: Self.folder.appendingPathComponent("SHA256SUMS"), encoding: .utf8)
    let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter { $0 != "SHA256SUMS" }
    let found = try names.sorted().map { name in
      try StoreVector.digest(Data(contentsOf: Self.folder.appendingPathComponent(name))) + "  \(name)\n"
    }
    #expect(found.joined() == list)
  }

  @Test("opens with each of its secrets, has its original contents, and verifies", arguments: GoldenStore.allCases)
  func opens(_ kind: GoldenStore) throws {
    let original = try Copy(kind)
    for index in try original.keys(kind).indices {
      let copy = try Copy(kind)
      let database = try copy.open(copy.keys(kind)[index])
      #expect(try copy.isWhole(database))
      #expect(try database.verify().problems.isEmpty)
      #expect(try database.verifyChangeLog().problems.isEmpty)
      try database.close()
    }
    let copy = try Copy(kind)
    let before = try copy.store.bytes()
    let reader = try Database.open(
      at: copy.store.path, key: copy.key, options: .init(isReadOnly: true))
    #expect(try reader.makeConnection().read { try $0.commitNumber() } == copy.expected.lastCommit)
    try reader.close()
    #expect(try copy.store.bytes() == before)
  }

  @Test("can be written, rekeyed, backed up and restored", arguments: GoldenStore.allCases)
  func writes(_ kind: GoldenStore) throws {
    let copy = try Copy(kind)
    let backup = copy.store.folder + "/backup.coffer"
    // A store to be restored must not be open in any program.
    try change(copy, backup)
    try Database.restore(at: copy.store.path, from: backup, key: copy.key, options: .quiet)
    let restored = try copy.open()
    #expect(try restored.makeConnection().read { try $0.value(forKey: "new", inCollection: "new") } == "new")
    #expect(try restored.verify().problems.isEmpty)
    for item in copy.expected.items {
      #expect(
        try restored.makeConnection().read { try $0.hasObject(forKey: item.key, inCollection: item.collection) })
    }
  }

  private func change(_ copy: Copy, _ backup: String) throws {
    let database = try copy.open()
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setObject("new", forKey: "new", inCollection: "new") }
    #expect(try database.verifyChangeLog().problems.isEmpty)
    try database.rotate()
    try database.backup(to: backup, key: copy.key)
    try connection.readWrite { try $0.removeAllObjects(inCollection: "new") }
    try connection.vacuum()
    #expect(try database.verify().problems.isEmpty)
    try database.close()
  }

  @Test("can be salvaged completely", arguments: GoldenStore.allCases)
  func salvages(_ kind: GoldenStore) throws {
    let copy = try Copy(kind)
    let saved = copy.store.folder + "/saved.coffer"
    let report = try Database.salvage(at: copy.store.path, key: copy.key, to: saved, newKey: copy.key)
    #expect(report.lostItems.isEmpty && report.damagedPages.isEmpty)
    let database = try copy.open(at: saved)
    let found = try StoreVector.contents(of: database, recoveryKey: "")
    #expect(found.items == copy.expected.items && found.history == copy.expected.history)
    #expect(try database.verify().problems.isEmpty)
  }

  @Test("keeps its declarations, environments, and fleet state")
  func tables() throws {
    let copy = try Copy(.closed)
    let database = try copy.open()
    let connection = try database.makeConnection()
    #expect(try connection.read { try $0.declaredSettings().map(\.declaration.name) } == ["size", "theme"])
    #expect(try connection.read { try $0.environments().map(\.collection) } == ["editor@staging"])
    #expect(try connection.read { try !$0.allCollections().contains("removed") })
    try connection.readFleets { transaction in
      let fleet = try #require(try transaction.fleets().first)
      let id = try #require(fleet.id)
      #expect(fleet.number == 7 && fleet.sum.count == 2048)
      #expect(try transaction.records(of: id).map(\.key) == ["theme"])
      #expect(try transaction.conflicts(of: id).map(\.loser) == ["other"])
      #expect(try transaction.rules(of: id) == ["editor": 1])
    }
  }

  @Test("continues an interrupted re-encryption")
  func rotating() throws {
    let copy = try Copy(.rotating)
    #expect(try Store.peekEnvelope(at: copy.store.path).epochs.count == 2)
    let database = try copy.open()
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "n") }
    try database.close()
    #expect(try Store.peekEnvelope(at: copy.store.path).epochs.map(\.number) == [2])
  }

  // MARK: Bytes

  @Test(
    "has an envelope and a vault that this version encodes to the same bytes", arguments: GoldenStore.allCases)
  func envelope(_ kind: GoldenStore) throws {
    let copy = try Copy(kind)
    var bytes = try Array(copy.store.bytes().prefix(Layout.envelopeCopyByteCount))
    bytes.replaceSubrange(LogNotice.range, with: [UInt8](repeating: 0, count: LogNotice.range.count))
    let envelope = try Envelope(copy: bytes[...])
    let rootKey = try envelope.open(copy.key).key
    #expect(try envelope.encoded(rootKey: rootKey) == bytes)
    let database = try copy.open()
    try database.makeConnection().perform { session in
      guard let record = try session.vaultTable.record() else { return }
      let again = try VaultRecord(
        id: record.id, generation: Int64(record.generation), mac: record.mac,
        sealedCollections: record.encodedSealedCollections, slots: record.encodedSlots,
        succession: record.succession)
      #expect(again == record)
      try session.connection.statement("SELECT sealed, slots FROM vault").query { row in
        #expect(row.bytes(0) == record.encodedSealedCollections && row.bytes(1) == record.encodedSlots)
      }
      _ = try session.core.vault.key(authenticating: record)
    }
  }

  @Test(
    "has values, lists of changes, links and declarations that this version encodes to the same bytes",
    arguments: GoldenStore.allCases)
  func rows(_ kind: GoldenStore) throws {
    let copy = try Copy(kind)
    let database = try copy.open()
    let connection = try database.makeConnection()
    var count = 0
    try connection.read { transaction in
      for item in copy.expected.items {
        let value = try #require(try transaction.value(forKey: item.key, inCollection: item.collection))
        let stored = try value.stored
        #expect(stored.kind.rawValue == item.kind && stored.bytes.withUnsafeBytes { HexText.text($0) } == item.data)
        count += 1
      }
    }
    #expect(count > 2)
    try connection.perform { session in
      try session.connection.beginRead()
      defer { try? session.connection.rollback() }
      try session.connection.statement("SELECT keys FROM changes").query { row in
        // Keys are in any order.
        let changes = try #require(ChangeSet(packed: row.bytes(0)))
        #expect(changes.packed.count == row.bytes(0).count && ChangeSet(packed: changes.packed) == changes)
      }
      #expect(try session.changeLog.checkChain().problems.isEmpty)
      guard try Schema.version(session.connection).hasDeclarations else { return }
      try session.connection.statement("SELECT declaration FROM declarations").query { row in
        let declaration = try Declaration(json: row.text(0))
        #expect(declaration.json == row.text(0))
      }
    }
  }

  @Test("has a witness that this version reads and checks: 164 bytes, 48 of them plaintext")
  func witness() throws {
    let copy = try Copy(.closed)
    let store = try Store.open(at: copy.store.path, key: copy.key)
    let text = try String(contentsOf: Self.folder.appendingPathComponent("closed-witness.hex"), encoding: .utf8)
    let record = try #require(HexText.bytes(text))
    #expect(record.count == 164 && Witness.byteCount == 164)
    guard case .whole(let witness, isFormer: false) = try store.read(witness: record) else {
      Issue.record("it does not open")
      return
    }
    #expect(witness.commit == copy.expected.lastCommit && witness.envelope == store.envelopeSequence)
    let options = Database.Options.quiet.anchored(RecordedAnchor(record))
    try Database.open(at: copy.store.path, key: copy.key, options: options).close()
    #expect(record.starts(with: try store.seal(witness).prefix(40)))
  }
}
