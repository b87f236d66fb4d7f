import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

/// A store whose newest state is remembered by an anchor, and copies of its files to put back.
private struct WatchedStore {
  let store: TemporaryStore
  let anchor: RecordedAnchor

  init(interval: Duration = .zero) throws {
    store = try TemporaryStore()
    anchor = RecordedAnchor(interval: interval)
    let database = try Database.create(at: store.path, key: store.key, options: options)
    try database.close()
  }

  var options: Database.Options { .quiet.anchored(anchor) }

  func open(acceptsOlder: Bool = false, isReadOnly: Bool = false) throws -> Database {
    var options = options
    options.acceptsOlderStore = acceptsOlder
    options.isReadOnly = isReadOnly
    return try Database.open(at: store.path, key: store.key, options: options)
  }

  func set(_ value: Int) throws {
    let database = try open()
    try database.makeConnection().readWrite { try $0.setObject(value, forKey: "n") }
    try database.close()
  }

  func value(acceptsOlder: Bool = false) throws -> Int? {
    let database = try open(acceptsOlder: acceptsOlder)
    defer { try? database.close() }
    return try database.makeConnection().read { try $0.object(forKey: "n", as: Int.self) }
  }

  /// The file and its log, as they are now.
  func files() throws -> [String: Data] {
    var files: [String: Data] = [:]
    for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: store.path + suffix) {
      files[suffix] = try store.bytes(suffix)
    }
    return files
  }

  func put(_ files: [String: Data]) throws {
    for suffix in ["", "-wal", "-shm"] { unlink(store.path + suffix) }
    for (suffix, bytes) in files { try bytes.write(to: URL(fileURLWithPath: store.path + suffix)) }
    chmod(store.path, 0o600)
  }

  /// Expects the store to be refused as older than it was, and to open as usual without a record, and if that is
  /// accepted.
  func expectRollback(sourceLocation: SourceLocation = #_sourceLocation) throws {
    let before = try files()
    #expect(sourceLocation: sourceLocation) { try open() } throws: {
      if case CofferError.rolledBack = $0 { true } else { false }
    }
    #expect(try files() == before, sourceLocation: sourceLocation)
    let key = store.key
    try Database.open(at: store.path, key: key, options: .quiet).close()
    try put(before)
    try open(acceptsOlder: true).close()
    try open().close()
  }
}

@Suite("An older state of a store") struct FreshnessTests {
  private let watched: WatchedStore

  init() throws { watched = try WatchedStore() }

  @Test("7.1 that replaces it completely is refused, with the known and the found state")
  func wholeFile() throws {
    try watched.set(1)
    let older = try watched.files()
    try watched.set(2)
    try watched.put(older)
    #expect(
      throws: CofferError.rolledBack(
        known: StoreAge(commit: 3, envelope: 1), found: StoreAge(commit: 2, envelope: 1))
    ) { try watched.open() }
    try watched.expectRollback()
  }

  @Test("7.1 that replaces it with its log, a log alone, or without the end of its log, is refused")
  func logs() throws {
    let database = try watched.open()
    let connection = try database.makeConnection()
    func set(_ value: Int) throws { try connection.readWrite { try $0.setObject(value, forKey: "n") } }
    try set(1)
    let older = try watched.files()
    try set(2)
    let newer = try watched.files()
    let record = watched.anchor.record
    try database.close()
    let log = try #require(newer["-wal"])
    var whole = newer
    whole["-wal"] = upToLastFrame(log).dropLast(Layout.frameByteCount)
    for files in [older, ["": try #require(newer[""])], ["": newer[""]!, "-wal": older["-wal"]!], whole] {
      watched.anchor.keep(record, ofStoreAt: watched.store.path)
      try watched.put(files)
      try watched.expectRollback()
    }
    watched.anchor.keep(record, ofStoreAt: watched.store.path)
    try watched.put(newer)
    #expect(try watched.value() == 2)
  }

  @Test("7.1 in which a removed slot still opens is refused, also under another root key")
  func slots() throws {
    let revoked = KeySource.key(try SecretBytes.random(count: 32))
    let database = try watched.open()
    try database.addSlot(revoked)
    try database.close()
    let older = try watched.files()
    let reopened = try watched.open()
    try reopened.removeSlot(1)
    try reopened.close()
    try watched.put(older)
    try watched.expectRollback()
    // Under the new root key the record cannot be read with the old one; the number of the envelope can.
    try watched.put(older)
    let rotating = try watched.open()
    try rotating.rotate(newRootKeyFor: [watched.store.key], droppingSlots: [1])
    try rotating.close()
    try watched.put(older)
    #expect { try watched.open() } throws: {
      guard case CofferError.rolledBack(let known, let found) = $0 else { return false }
      // Who has put a store under another root key can give it any number.
      return known.commit == nil && known.envelope > found.envelope && !"\($0)".contains("older")
    }
    try watched.expectRollback()
  }

  @Test("7.1 that diverged, with as many commits, is refused")
  func fork() throws {
    let older = try watched.files()
    try watched.set(1)
    let (record, path) = (watched.anchor.record, watched.store.path)
    try watched.put(older)
    watched.anchor.keep(nil, ofStoreAt: path)
    try watched.set(2)
    try watched.set(3)
    watched.anchor.keep(record, ofStoreAt: path)
    try watched.expectRollback()
  }

  @Test("7.2 is accepted on request, and by a restore; later states are remembered again")
  func accepted() throws {
    try watched.set(1)
    let copy = watched.store.folder + "/copy.coffer"
    try #require(try Child.run("/bin/cp", [watched.store.path, copy]).status == 0)
    try watched.set(2)
    try Database.restore(at: watched.store.path, from: copy, key: watched.store.key, options: watched.options)
    #expect(try watched.value() == 1)
    let older = try watched.files()
    try watched.set(3)
    try watched.put(older)
    try watched.expectRollback()
    try watched.set(4)
    try watched.put(older)
    try watched.expectRollback()
  }

  @Test("7.2 is not noticed without a record, or with one that is torn or damaged")
  func unknown() throws {
    try watched.set(1)
    let older = try watched.files()
    try watched.set(2)
    let record = try #require(watched.anchor.record)
    #expect(record.count == Witness.byteCount)
    try watched.put(older)
    let path = watched.store.path
    var damaged: [[UInt8]?] = [nil, [], Array(record.dropLast()), record + [0]]
    for index in record.indices {
      var bytes = record
      bytes[index] ^= 1
      damaged.append(bytes)
    }
    for bytes in damaged {
      watched.anchor.keep(bytes, ofStoreAt: path)
      #expect(try watched.value() == 1)
    }
  }

  @Test("7.2 does not concern a copy elsewhere, a backup, or a new store under the old name")
  func others() throws {
    let folder = watched.store.folder + "/state"
    let options = Database.Options.quiet.anchored(FileAnchor(folder: folder))
    let store = watched.store
    func set(_ value: Int, _ path: String) throws {
      let database = try Database.openOrCreate(at: path, key: store.key, options: options)
      try database.makeConnection().readWrite { try $0.setObject(value, forKey: "n") }
      try database.close()
    }
    try set(1, store.path)
    let copy = store.folder + "/copy.coffer"
    try #require(try Child.run("/bin/cp", [store.path, copy]).status == 0)
    try set(2, store.path)
    try set(3, copy)
    try Database.remove(at: store.path)
    try set(4, store.path)
    // A backup, like a new store, takes the place of what was remembered under its name.
    let backup = store.folder + "/backup.coffer"
    try set(5, backup)
    try #require(unlink(backup) == 0)
    let database = try Database.open(at: store.path, key: store.key, options: options)
    try database.backup(to: backup, key: store.key)
    try database.close()
    try set(6, backup)
  }

  @Test("7.1 is refused, like any other store, once another store was created in its place, or copied there")
  func anotherStore() throws {
    try watched.set(1)
    let path = watched.store.path
    let (older, aside) = (try watched.files(), watched.store.folder + "/aside")
    func expectRefusal(sourceLocation: SourceLocation = #_sourceLocation) throws {
      let before = (try watched.files(), watched.anchor.record)
      #expect(throws: CofferError.anotherStore(path: path), sourceLocation: sourceLocation) { try watched.open() }
      #expect(try watched.files() == before.0 && watched.anchor.record == before.1, sourceLocation: sourceLocation)
    }
    try #require(rename(path, aside) == 0)
    // A program of the owner makes a new one: what was remembered of the other is not of this.
    let new = try Database.openOrCreate(at: path, key: watched.store.key, options: watched.options)
    try new.backup(to: watched.store.folder + "/backup", key: watched.store.key)
    try new.close()
    try watched.open().close()
    try watched.put(older)
    try expectRefusal()
    try #require(Child.run("/bin/cp", [watched.store.folder + "/backup", path]).status == 0)
    try expectRefusal()
    // One of another ID that opens with the same key: anyone with that key can make it.
    try watched.open(acceptsOlder: true).close()
    try watched.set(2)
    #expect(try watched.value() == 2)
    try watched.put(older)
    try expectRefusal()
    #expect(try watched.value(acceptsOlder: true) == 1)
  }

  @Test("7.1 that gets the name of a store while that is created is refused, and the record stays")
  func duringCreation() throws {
    try watched.set(1)
    let (older, store, anchor) = (try watched.files(), watched.store, watched.anchor)
    try watched.set(2)
    let record = anchor.record
    try #require(unlink(store.path) == 0)
    let kept = Lock<[UInt8]?>(nil)
    let vfs = EncryptingVFS(
      name: "coffer, while another file gets the name", below: nil,
      fileCallObserver: { call in
        guard case .link(_, store.path) = call else { return nil }
        kept.withLock { $0 = anchor.record }
        try? older[""]!.write(to: URL(fileURLWithPath: store.path))
        chmod(store.path, 0o600)
        return nil
      })
    #expect(throws: CofferError.storeExists(path: store.path)) {
      try Database.create(at: store.path, key: store.key, options: watched.options, vfs: vfs)
    }
    // What was put there would not have passed for the new store either.
    #expect(kept.withLock { $0 } != record && anchor.record == record)
    try watched.expectRollback()
  }

  @Test("7.2 does not concern a store that is created, by several programs at once, also in place of an open one")
  func created() throws {
    let store = watched.store
    for _ in 0..<10 {
      let old = try watched.open()
      for suffix in ["", "-wal", "-shm"] { unlink(store.path + suffix) }
      let options = watched.options
      DispatchQueue.concurrentPerform(iterations: 4) { _ in
        _ = try? Database.create(at: store.path, key: store.key, options: options).close()
      }
      try watched.set(1)
      // The program that has the earlier one open follows.
      #expect(try old.makeConnection().read { try $0.object(forKey: "n", as: Int.self) } == 1)
      try old.close()
      #expect(try watched.value() == 1)
    }
  }

  @Test(
    "7.2 is noticed by a program that has the store open, which does not switch to it, also if it was told to accept an older one before",
    arguments: [false, true])
  func whileOpen(acceptsOlder: Bool) throws {
    try watched.set(1)
    let older = try watched.files()
    let database = try watched.open(acceptsOlder: acceptsOlder)
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setObject(2, forKey: "n") }
    let aside = watched.store.path + ".aside"
    try #require(rename(watched.store.path, aside) == 0)
    for suffix in ["-wal", "-shm"] { unlink(watched.store.path + suffix) }
    try older[""]!.write(to: URL(fileURLWithPath: watched.store.path))
    chmod(watched.store.path, 0o600)
    #expect(throws: CofferError.storeReplaced(path: database.path)) {
      try connection.readWrite { try $0.setObject(3, forKey: "n") }
    }
    try? database.close()
    #expect { try watched.open() } throws: { if case CofferError.rolledBack = $0 { true } else { false } }
  }
}

@Suite("The record of a store") struct StoreWitnessTests {
  @Test(
    "7.3 covers what is on the disk: synced commits, not merely committed ones, and everything at the end"
  )
  func synced() throws {
    let watched = try WatchedStore()
    let database = try watched.open()
    let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    func commit() throws -> Int64? {
      guard let record = watched.anchor.record else { return nil }
      guard case .whole(let witness, isFormer: false) = try database.storeOnDisk().read(witness: record) else {
        return nil
      }
      return witness.commit
    }
    let created = try commit()
    #expect(created.map { $0 < 2 } ?? false)
    try proxy.setObject(1, forKey: "n")
    try proxy.flushAndWait()
    #expect(try commit() == created)
    try proxy.performBatch(durability: .synced) { try $0.setObject(2, forKey: "n") }
    #expect(try commit() == 3)
    try proxy.performBatch(durability: .committed) { try $0.setObject(3, forKey: "n") }
    #expect(try commit() == 3)
    let store = try database.storeOnDisk()
    try database.close()
    guard case .whole(let witness, isFormer: false) = try store.read(witness: #require(watched.anchor.record)) else {
      Issue.record("not a record of this store")
      return
    }
    #expect(witness.commit == 4)
  }

  @Test("7.3 is written no more often than its anchor allows, and at the end, and never goes back")
  func interval() throws {
    let count = Lock(0)
    let anchor = RecordedAnchor(interval: .seconds(3600)) { _ in count.withLock { $0 += 1 } }
    let store = try TemporaryStore()
    let database = try Database.openOrCreate(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    let other = try Database.open(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    for number in 0..<5 { try other.makeConnection().readWrite { try $0.setObject(number, forKey: "n") } }
    for number in 5..<10 { try database.makeConnection().readWrite { try $0.setObject(number, forKey: "n") } }
    // One of them is that of the new store.
    #expect(count.withLock { $0 } == 3)
    try database.close()
    #expect(count.withLock { $0 } == 4)
    // Its record is older than the one kept by the other.
    try other.close()
    #expect(count.withLock { $0 } == 4)
    let files = try store.bytes()
    #expect(!files.isEmpty)
    try Database.open(at: store.path, key: store.key, options: .quiet.anchored(anchor)).close()
  }

  @Test(
    "7.4 is that of the last of several commits once the interval is over, without another one", .timeLimit(.minutes(1))
  )
  func endOfInterval() throws {
    let isKept = DispatchSemaphore(value: 0)
    let anchor = RecordedAnchor(interval: .milliseconds(100)) { _ in isKept.signal() }
    let store = try TemporaryStore()
    let database = try Database.openOrCreate(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    for number in 0..<20 { try database.makeConnection().readWrite { try $0.setObject(number, forKey: "n") } }
    let last = try database.makeConnection().perform { try $0.commitNumber() }
    let disk = try database.storeOnDisk()
    while true {
      isKept.wait()
      if case .whole(let witness, _)? = try anchor.record.map(disk.read), witness.commit == last { break }
    }
    try database.close()
  }

  @Test("is in a file named by the first 16 bytes, in hexadecimal, of the SHA-256 of the store's resolved path")
  func fileName() throws {
    let store = try TemporaryStore()
    let (link, folder) = (store.folder + "/link", store.folder + "/state")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: store.folder)
    let database = try Database.create(
      at: link + "/settings.coffer", key: store.key, options: .quiet.anchored(FileAnchor(folder: folder)))
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "n") }
    try database.close()
    let resolved = URL(fileURLWithPath: store.path).resolvingSymlinksInPath().path
    let digest = try Array(resolved.utf8).withUnsafeBytes(SHA256.digest)
    let name = digest.prefix(16).map { String(format: "%02x", $0) }.joined()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [name])
  }

  @Test("7.3 is in a file only for its owner, never a link or another file")
  func file() throws {
    let store = try TemporaryStore()
    let anchor = FileAnchor(folder: store.folder + "/a/b")
    let path = store.path
    anchor.keep(nil, ofStoreAt: path)
    #expect(anchor.record(ofStoreAt: path) == nil)
    anchor.keep([1, 2, 3], ofStoreAt: path)
    #expect(anchor.record(ofStoreAt: path) == [1, 2, 3])
    let folder = store.folder + "/a/b"
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder).first)
    var status = stat()
    #expect(stat(folder, &status) == 0 && status.st_mode & 0o777 == 0o700)
    #expect(stat("\(folder)/\(name)", &status) == 0 && status.st_mode & 0o777 == 0o600)
    try FileManager.default.removeItem(atPath: "\(folder)/\(name)")
    let target = store.folder + "/target"
    try Data([9]).write(to: URL(fileURLWithPath: target))
    try FileManager.default.createSymbolicLink(atPath: "\(folder)/\(name)", withDestinationPath: target)
    anchor.keep([4], ofStoreAt: path)
    #expect(anchor.record(ofStoreAt: path) == nil)
    #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == Data([9]))
  }

  @Test("7.3 is changed by one program at a time")
  func oneAtATime() throws {
    let store = try TemporaryStore()
    let folder = store.folder + "/state"
    let anchor = FileAnchor(folder: folder)
    anchor.keep([1], ofStoreAt: store.path)
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder).first)
    let problem = anchor.update(ofStoreAt: store.path) { _ in
      let descriptor = open("\(folder)/\(name)", O_RDONLY)
      defer { close(descriptor) }
      #expect(flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return [2]
    }
    #expect(problem == nil && anchor.record(ofStoreAt: store.path) == [2])
  }

  @Test("7.3 is not put back by a program that was suspended while it changed it")
  func suspended() throws {
    let store = try TemporaryStore()
    let anchor = FileAnchor(folder: store.folder + "/state")
    anchor.keep([1], ofStoreAt: store.path)
    let problem = anchor.update(ofStoreAt: store.path) { present in
      // As by another program, which does not wait for this one.
      anchor.keep([3], ofStoreAt: store.path)
      return present
    }
    #expect(problem == nil && anchor.record(ofStoreAt: store.path) == [3])
    #expect(try FileManager.default.contentsOfDirectory(atPath: store.folder + "/state").count == 1)
  }

  @Test("7.3 is kept of no store while one gets the name of another, and with the next commit after that")
  func whileReplacing() throws {
    let store = try TemporaryStore()
    let anchor = FileAnchor(folder: store.folder + "/state")
    let database = try Database.create(at: store.path, key: store.key, options: .quiet.anchored(anchor))
    let connection = try database.makeConnection()
    let path = database.path
    let created = anchor.record(ofStoreAt: path)
    try anchor.replacing(storeAt: path) {
      try connection.readWrite { try $0.setObject(1, forKey: "n") }
      #expect(anchor.record(ofStoreAt: path) == created)
    }
    try database.close()
    #expect(anchor.record(ofStoreAt: path) != created)
  }

  /// Notes whether a store gets its name while no program keeps a record.
  private final class ExcludingAnchor: SynchronizedAnchor {
    private let anchor: FileAnchor
    let calls = Lock<[String]>([])

    init(folder: String) { anchor = FileAnchor(folder: folder) }

    func record(ofStoreAt path: String) -> [UInt8]? { anchor.record(ofStoreAt: path) }
    func keep(_ record: [UInt8]?, ofStoreAt path: String) {
      calls.withLock { $0.append(record == nil ? "remove" : "keep") }
      anchor.keep(record, ofStoreAt: path)
    }
    func synchronizeRecord(ofStoreAt path: String) { anchor.synchronizeRecord(ofStoreAt: path) }
    func replacing<Result>(storeAt path: String, _ body: () throws -> Result) rethrows -> Result {
      func inode() -> ino_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_ino : nil
      }
      return try anchor.replacing(storeAt: path) {
        let before = inode()
        calls.withLock { $0.append("lock") }
        defer { calls.withLock { $0.append(inode() == before ? "unlock" : "named, unlock") } }
        return try body()
      }
    }
  }

  @Test("7.3 is removed by a restore, and made by a creation, while no program keeps one")
  func excluding() throws {
    let store = try TemporaryStore()
    let copy = store.folder + "/copy.coffer"
    let anchor = ExcludingAnchor(folder: store.folder + "/state")
    let options = Database.Options.quiet.anchored(anchor)
    try Database.create(at: store.path, key: store.key, options: options).close()
    #expect(anchor.calls.withLock { $0.prefix(3) } == ["lock", "keep", "named, unlock"])
    try #require(try Child.run("/bin/cp", [store.path, copy]).status == 0)
    let database = try Database.open(at: store.path, key: store.key, options: options)
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "n") }
    try database.close()
    anchor.calls.withLock { $0 = [] }
    try Database.restore(at: store.path, from: copy, key: store.key, options: options)
    #expect(anchor.calls.withLock { $0.prefix(3) } == ["lock", "remove", "named, unlock"])
  }

  @Test("7.3 is never an empty file; one that is, or has no folder, is a problem with a reason")
  func obstacles() throws {
    let store = try TemporaryStore()
    let (folder, path) = (store.folder + "/a/b", store.path)
    let anchor = FileAnchor(folder: folder)
    func isProblem(_ part: String) -> Bool { anchor.problem(ofStoreAt: path)?.contains(part) ?? false }
    #expect(anchor.problem(ofStoreAt: path) == nil)
    try Data().write(to: URL(fileURLWithPath: store.folder + "/a"))
    #expect(isProblem("is not a folder") && anchor.tryToKeep([1], ofStoreAt: path) != nil)
    #expect(!anchor.removeObstacle(ofStoreAt: path))
    try #require(unlink(store.folder + "/a") == 0)
    try FileManager.default.createSymbolicLink(
      atPath: store.folder + "/a", withDestinationPath: store.folder + "/none")
    #expect(isProblem("leads nowhere") && anchor.tryToKeep([1], ofStoreAt: path) != nil)
    try #require(unlink(store.folder + "/a") == 0)
    #expect(anchor.tryToKeep([1], ofStoreAt: path) == nil && anchor.problem(ofStoreAt: path) == nil)
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder).first)
    try #require(truncate("\(folder)/\(name)", 0) == 0)
    #expect(isProblem("is empty"))
    #expect(anchor.tryToKeep([1, 2], ofStoreAt: path) == nil && anchor.record(ofStoreAt: path) == [1, 2])
    // No folder of a new file: whatever the rights of this process.
    let nowhere = FileAnchor(folder: "/proc/nowhere")
    #expect(nowhere.tryToKeep([1], ofStoreAt: path)?.contains("would not be noticed") ?? false)
  }
}
