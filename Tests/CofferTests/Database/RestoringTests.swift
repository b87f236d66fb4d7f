import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

@Suite("A store that is replaced while it is open") struct RestoringTests {
  private let store: TemporaryStore
  private var backup: String { store.folder + "/backup.coffer" }

  /// With "old" in the backup, and "new" in the store.
  init() throws {
    store = try TemporaryStore()
    let database = try store.open()
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setObject("old", forKey: "k") }
    try database.backup(to: backup, key: store.key)
    try connection.readWrite { try $0.setObject("new", forKey: "k") }
    try database.close()
  }

  private func value(at path: String, forKey key: String = "k", openedBy source: KeySource? = nil) throws -> String? {
    let database = try Database.open(at: path, key: source ?? store.key)
    defer { try? database.close() }
    return try database.makeConnection().read { try $0.object(forKey: key, as: String.self) }
  }

  private func restore() throws {
    let child = try store.worker("restore", backup, "force")
    #expect(child.text == store.path + "-replaced-1\n")
  }

  @Test("by one from before its first declaration has none, also where programs have it open")
  func declarations() throws {
    let database = try store.open()
    let connection = try database.makeConnection()
    let setting = Key("rate", default: 1).declaration(in: "shop")
    try connection.readWrite { try $0.declare([setting], by: "shop") }
    try database.close()
    let again = try store.open()
    let open = try again.makeConnection()
    #expect(try open.read { try $0.declaration(forKey: "rate", inCollection: "shop") } != nil)
    try restore()
    #expect(try open.read { try $0.declaration(forKey: "rate", inCollection: "shop") } == nil)
    #expect(try open.read { try $0.declaredSettings().isEmpty })
    try again.close()
  }

  private struct Refusal: Error {}

  /// A copy of the file with a slot that the store has lost since.
  private func copyWithDroppedSlot() throws -> String {
    let copy = store.folder + "/copy.coffer"
    let database = try store.open()
    try database.addSlot(.key(.random(count: 32)), label: "his")
    try database.close()
    try FileManager.default.copyItem(atPath: store.path, toPath: copy)
    let again = try store.open()
    try again.removeSlot(1)
    try again.close()
    return copy
  }

  @Test(
    "and is changed while its restore asks: it asks again, with what has changed, and changes nothing before",
    arguments: [false, true])
  func changedMeanwhile(isAccepted: Bool) throws {
    let copy = try copyWithDroppedSlot()
    var questions: [RestoredKeys] = []
    func restore() throws {
      try Database.restore(at: store.path, from: copy, key: store.key) { keys in
        questions.append(keys)
        if questions.count == 1 {
          let database = try store.open()
          try database.vault.create(key: .key(.random(count: 32)))
          try database.seal(collection: "tokens")
          try database.close()
        } else if !isAccepted {
          throw Refusal()
        }
      }
    }
    if isAccepted { try restore() } else { #expect(throws: Refusal.self) { try restore() } }
    #expect(questions.map(\.unsealed) == [[], ["tokens"]])
    #expect(questions.map { $0.vaultSlots.lost.count } == [0, 1])
    #expect(try value(at: store.path) == "new")
    #expect(FileManager.default.fileExists(atPath: store.path + "-replaced-1") == isAccepted)
    let present = try store.open()
    #expect(try present.vault.exists() == !isAccepted)
    try present.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: store.folder).filter { $0.hasPrefix(".") } == [])
  }

  @Test("and whose slots are changed while its restore asks, by a key that does not open it: it asks again")
  func changedUnreadable() throws {
    let holderKey = KeySource.key(try .random(count: 32))
    let copy = store.folder + "/copy.coffer"
    // An open database is in the way of a restore.
    do {
      let database = try store.open()
      try database.addSlot(holderKey, label: "his")
      try database.close()
      try FileManager.default.copyItem(atPath: store.path, toPath: copy)
    }
    do {
      let database = try store.open()
      try database.rotate(newRootKeyFor: [store.key], droppingSlots: [1])
      try database.close()
    }
    var questions: [RestoredKeys] = []
    #expect(throws: Refusal.self) {
      try Database.restore(at: store.path, from: copy, key: holderKey) { keys in
        questions.append(keys)
        guard questions.count == 1 else { throw Refusal() }
        let database = try store.open()
        try database.addSlot(.key(.random(count: 32)), label: "new")
        try database.close()
      }
    }
    #expect(questions.map { $0.slots.lost.map(\.label).contains("new") } == [false, true])
    #expect(try value(at: store.path) == "new")
  }

  @Test("leaves nothing of the copy behind if the disk is full")
  func fullDisk() throws {
    let recorder = RecordingVFS()
    recorder.failCalls { $0.kind == .mapIndex ? .error(errno: ENOSPC) : nil }
    let before = try FileManager.default.contentsOfDirectory(atPath: store.folder).sorted()
    #expect(throws: CofferError.self) {
      try Database.restore(at: store.path, from: backup, key: store.key, vfs: recorder.encrypting()) { _ in }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: store.folder).sorted() == before)
  }

  @Test("by a backup is followed by connections and proxies, and their later writes go to the new one")
  func following() throws {
    let database = try store.open()
    let connection = try database.makeConnection()
    let proxy = try ConnectionProxy(database: database)
    let pending = try ConnectionProxy(database: database, flushPolicy: .manually)
    #expect(try proxy.object(forKey: "k", as: String.self) == "new")
    #expect(try proxy.object(forKey: "k", as: String.self) == "new")
    #expect(try connection.read { try $0.object(forKey: "k", as: String.self) } == "new")
    try pending.setObject("pending", forKey: "p")

    try restore()
    #expect(try proxy.object(forKey: "k", as: String.self) == "old", "though it was in memory")
    #expect(try connection.read { try $0.object(forKey: "k", as: String.self) } == "old")
    try pending.flushAndWait()
    try connection.readWrite { try $0.setObject("later", forKey: "c") }
    try proxy.setObject("later", forKey: "f", durability: .synced)
    #expect(try store.worker("set", "w", "theirs").status == 0)
    #expect(try proxy.object(forKey: "w", as: String.self) == "theirs", "commits of others are noticed")
    try database.close()

    for (key, text) in ["k": "old", "p": "pending", "c": "later", "f": "later", "w": "theirs"] {
      #expect(try value(at: store.path, forKey: key) == text)
    }
    #expect(try value(at: store.path + "-replaced-1") == "new")
    #expect(try value(at: store.path + "-replaced-1", forKey: "c") == nil)
    #expect(try !FileManager.default.contentsOfDirectory(atPath: store.folder).contains { $0.contains("damaged") })
  }

  @Test("by a backup is reported to listeners once, and not read before")
  func notice() async throws {
    let proxy = try ConnectionProxy(database: try store.open())
    let preferences = Preferences(
      proxy: proxy, collection: "", overrides: Overrides([]), registered: RegisteredDefaults())
    var events = try proxy.changes(inCollections: [""]).makeAsyncIterator()
    var commits = try proxy.database.commits().makeAsyncIterator()
    #expect(preferences.string(forKey: "k") == "new")
    try restore()
    let event = try #require(await events.next())
    #expect(event.scope == .everything)
    #expect(preferences.string(forKey: "k") == "old")
    #expect(await commits.next() != nil)
    try preferences.set("mine", forKey: "k")
    let next = try #require(await events.next())
    #expect(next.scope == .keys && next.changes.map(\.key) == ["k"])
  }

  enum Replacement: String, CaseIterable, CustomTestStringConvertible {
    case restored, recreated, linkedElsewhere

    var testDescription: String { rawValue }
  }

  @Test(
    "by one with lower numbers is reported by streams as a change of everything, then commit by commit",
    arguments: Replacement.allCases)
  func lowerNumbers(_ replacement: Replacement) async throws {
    let (link, other) = (store.folder + "/current", store.folder + "/other")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: store.folder)
    let path = link + "/settings.coffer"
    let database = try await Database.open(at: path, key: store.key)
    let connection = try database.makeConnection()
    func set(_ text: String) throws { try connection.readWrite { try $0.setObject(text, forKey: "k") } }
    func read() throws -> String? { try connection.read { try $0.object(forKey: "k", as: String.self) } }
    for number in 0..<5 { try set("\(number)") }
    let proxy = try ConnectionProxy(database: database)
    #expect(try proxy.object(forKey: "k", as: String.self) == "4")
    var commits = try database.commits(inCollection: "").makeAsyncIterator()
    var events = try proxy.changes(inCollections: [""]).makeAsyncIterator()

    switch replacement {
    case .restored: try restore()
    case .recreated:
      for suffix in ["", "-wal", "-shm"] { unlink(store.path + suffix) }
      try FileManager.default.copyItem(atPath: backup, toPath: store.path)
    case .linkedElsewhere:
      try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: false)
      try FileManager.default.copyItem(atPath: backup, toPath: other + "/settings.coffer")
      try FileManager.default.createSymbolicLink(atPath: link + ".new", withDestinationPath: other)
      try #require(rename(link + ".new", link) == 0)
    }
    #expect(await commits.next()?.scope == .everything)
    #expect(await events.next()?.scope == .everything)
    #expect(try proxy.object(forKey: "k", as: String.self) == "old")
    #expect(try read() == "old")
    for value in ["first", "second"] {
      let written = try Child.run(TemporaryStore.worker, ["set", path, store.keyFile, "k", value])
      #expect(written.status == 0)
      let commit = try #require(await commits.next())
      #expect(commit.scope == .keys && commit.changedKeys() == ["k"])
      #expect(await events.next()?.changes.map(\.key) == ["k"])
    }
    try await database.close()
  }

  @Test("by a backup locks the vault")
  func vault() throws {
    let database = try store.open()
    try database.vault.create(key: store.key)
    try database.seal(collection: "tokens")
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setObject("s3cret", forKey: "k", inCollection: "tokens") }
    let sealed = store.folder + "/sealed.coffer"
    try database.backup(to: sealed, key: store.key)
    #expect(try store.worker("restore", sealed, "force").status == 0)
    #expect(try connection.read { try $0.object(forKey: "k", as: String.self) } == "new")
    #expect(!database.vault.isUnlocked)
    #expect(throws: CofferError.vaultLocked(collection: "tokens")) {
      try connection.read { try $0.object(forKey: "k", inCollection: "tokens", as: String.self) }
    }
    try database.vault.unlock(store.key)
    #expect(try connection.read { try $0.object(forKey: "k", inCollection: "tokens", as: String.self) } == "s3cret")
  }

  @Test("does not take a backup that is changed while it is read")
  func changedBackup() throws {
    let backup = backup
    let vfs = EncryptingVFS(
      name: "coffer, while the backup is changed", below: nil,
      fileCallObserver: { call in
        if case .write = call { _ = try? Child.run("/usr/bin/touch", ["-d", "2020-01-01", backup]) }
        return nil
      })
    let error = #expect(throws: StorageError.self) { try Store.Replacement(of: backup, at: store.path, vfs: vfs) }
    #expect("\(try #require(error))".contains("was changed while it was read"))
    #expect(FilePath.temporary(besides: store.path) { _ in true }.isEmpty)
  }

  @Test("by a backup keeps what the record remembers of the vault, unless the vault is an earlier one")
  func vaultMemory() throws {
    let anchor = FileAnchor(folder: store.folder + "/state")
    let options = Database.Options(freshness: .anchored(anchor))
    func remembered() throws -> UInt32? {
      let database = try Database.open(at: store.path, key: store.key, options: options)
      defer { try? database.close() }
      let record = try #require(anchor.record(ofStoreAt: database.path))
      guard case .whole(let witness, _) = try database.storeOnDisk().read(witness: record) else { return nil }
      return witness.vault?.generation
    }
    func restore(_ backup: String) throws {
      try Database.restore(at: store.path, from: backup, key: store.key, options: options)
    }
    let (earlier, later) = (store.folder + "/earlier.coffer", store.folder + "/later.coffer")
    do {
      let database = try Database.open(at: store.path, key: store.key, options: options)
      try database.vault.create(key: store.key)
      try database.backup(to: earlier, key: store.key)
      try database.vault.rotate(newKeyFor: [store.key])
      try database.backup(to: later, key: store.key)
      try database.close()
    }
    #expect(try remembered() == 2)
    try restore(later)
    #expect(try remembered() == 2)
    try restore(earlier)
    #expect(try remembered() == nil)
  }

  @Test("is not followed by programs that opened it with a passphrase or a recovery key, which are not kept")
  func typedSecrets() throws {
    let (original, copy) = (try store.open(), try Database.open(at: backup, key: store.key))
    let passphrase = KeySource.passphrase(SecretBytes(copying: "correct horse".utf8))
    let recoveryKey = KeySource.recoveryKey(try original.addRecoveryKey().text)
    try copy.addSlot(recoveryKey)
    for database in [original, copy] {
      try database.addSlot(passphrase, stretching: .scrypt(log2N: 14, r: 8, p: 1))
      try database.close()
    }
    let databases = try [passphrase, recoveryKey].map { try Database.open(at: store.path, key: $0) }
    let connections = try databases.map { try $0.makeConnection() }
    try restore()
    for connection in connections {
      #expect(throws: CofferError.storeReplaced(path: databases[0].path)) {
        try connection.read { try $0.object(forKey: "k", as: String.self) }
      }
    }
    for source in [passphrase, recoveryKey] { #expect(try value(at: store.path, openedBy: source) == "old") }
  }

  @Test("is settled before it is followed, also by programs that know an envelope with the same number")
  func sameSequence() throws {
    let copy = store.path + "-copy"
    try store.open().close()
    try #require(Child.run("/bin/cp", [store.path, copy]).status == 0)
    let database = try store.open()
    try database.addSlot(.key(.random(count: 32)))
    let known = try database.storeOnDisk()
    let placed = try Store.open(at: copy, key: store.key)
    try placed.markPlaced()
    try #require(placed.envelopeSequence == known.envelopeSequence)
    try #require(rename(copy, store.path) == 0)
    #expect(try Store.reopen(known) == nil)
    #expect(try database.makeConnection().read { try $0.object(forKey: "k", as: String.self) } == "new")
    #expect(try !Store.peekEnvelope(at: store.path).isPlaced)
    try database.close()
  }

  @Test("is not restored while it is open elsewhere, unless forced; otherwise nothing changes")
  func busy() throws {
    let database = try store.open()
    #expect(throws: CofferError.busy) { try Database.restore(at: store.path, from: backup, key: store.key) }
    let child = try store.worker("restore", backup)
    #expect(child.status == 1 && child.text.hasPrefix("The store is busy"))
    #expect(try database.makeConnection().read { try $0.object(forKey: "k", as: String.self) } == "new")
    try database.close()
    #expect(
      try Set(FileManager.default.contentsOfDirectory(atPath: store.folder))
        == ["key", "settings.coffer", "backup.coffer"])
  }

  @Test("is restored repeatedly, also if missing, and every earlier one is kept")
  func again() throws {
    func restore() throws -> String? { try Database.restore(at: store.path, from: backup, key: store.key) }
    #expect(try restore() == store.path + "-replaced-1")
    #expect(try restore() == store.path + "-replaced-2")
    #expect(try value(at: store.path + "-replaced-1") == "new" && value(at: store.path + "-replaced-2") == "old")
    try Database.remove(at: store.path)
    #expect(try restore() == nil)
    #expect(try value(at: store.path) == "old")
    #expect(throws: CofferError.wrongKey) {
      try Database.restore(at: store.path, from: backup, key: .key(.random(count: 32)))
    }
    #expect(throws: CofferError.storeNotFound(path: backup + "x")) {
      try Database.restore(at: store.path, from: backup + "x", key: store.key)
    }
  }

  @Test("keeps its log, and the new one starts without one")
  func log() throws {
    let crashed = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { try $0.setObject("in the log", forKey: "k") }
    try store.copyAsAfterCrash(to: crashed)
    let earlier = try #require(try Database.restore(at: crashed.path, from: backup, key: store.key))
    let restored = try Database.open(at: crashed.path, key: store.key)
    #expect(try restored.status().logProblem == nil)
    try restored.close()
    #expect(try value(at: crashed.path) == "old" && value(at: earlier) == "in the log")
    #expect(!FileManager.default.fileExists(atPath: earlier + "-wal"))
  }

  @Test("leaves no second name of its file, whose log would be another one")
  func secondName() throws {
    let database = try store.open()
    let connection = try database.makeConnection()
    try connection.beginLongLivedReadTransaction()
    let earlier = store.path + "-replaced-1"
    try restore()
    var status = stat()
    #expect(lstat(earlier, &status) == 0 && status.st_nlink == 1)
    #expect(try value(at: earlier) == "new")
    #expect(try connection.read { try $0.object(forKey: "k", as: String.self) } == "new")
    try connection.endLongLivedReadTransaction()
    #expect(try connection.read { try $0.object(forKey: "k", as: String.self) } == "old")
  }

  @Test(
    "by one that a killed restore has put there keeps nothing of the old one's log, and is whole for a reader alone")
  func unsettled() throws {
    let place = try TemporaryStore()
    let database = try store.open()
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setObject("in the log", forKey: "k") }
    try store.copyAsAfterCrash(to: place)
    try connection.close()
    // What is there between the rename and the next step: another file, with the log of the former one.
    let copy = try Database.open(at: backup, key: store.key)
    let file = try copy.storeOnDisk()
    try copy.close()
    try file.markPlaced()
    try #require(Child.run("/bin/cp", [backup, place.path]).status == 0)
    #expect(FileManager.default.fileExists(atPath: place.path + "-wal"))
    #expect(throws: CofferError.self) {
      try Database.open(at: place.path, key: place.key, options: .init(isReadOnly: true))
    }
    #expect(try value(at: place.path, openedBy: place.key) == "old")
    let settled = try Database.open(at: place.path, key: place.key)
    #expect(try settled.status().logProblem == nil && settled.verify().problems.isEmpty)
  }

  @Test("by a rename is noticed before anything is written, and the log of the other one stays")
  func moved() throws {
    let mine = try Database.open(at: store.path, key: store.key)
    let connection = try mine.makeConnection()
    // As for a store that a passphrase has opened: no key is kept.
    let other = try TemporaryStore()
    try FileManager.default.copyItem(atPath: backup, toPath: other.path)
    try FileManager.default.removeItem(atPath: store.keyFile)
    try #require(rename(other.path, store.path) == 0)
    for suffix in ["-wal", "-shm"] { unlink(store.path + suffix) }
    #expect(throws: CofferError.storeReplaced(path: mine.path)) {
      try connection.readWrite { try $0.setObject("lost", forKey: "k") }
    }
    let log = Data("somebody's log".utf8)
    try log.write(to: URL(fileURLWithPath: store.path + "-wal"))
    try mine.close()
    #expect(try store.bytes("-wal") == log)
  }

  @Test("in its own file by another store is reported as replaced, not as damaged")
  func overwritten() throws {
    let database = try store.open()
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setObject(String(repeating: "x", count: 100_000), forKey: "long") }
    #expect(try Child.run("/bin/cp", [backup, store.path]).status == 0)
    #expect(throws: CofferError.storeReplaced(path: database.path)) {
      _ = try database.makeConnection().readWrite { try $0.removeAllObjects() }
    }
  }
}
