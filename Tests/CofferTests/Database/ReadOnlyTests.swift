import CofferCompat
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Opening read-only") struct ReadOnlyTests {
  private let store: TemporaryStore

  init() throws {
    store = try TemporaryStore()
    let writer = try store.open().makeConnection()
    try set("first", for: "key", in: writer)
    try set(String(repeating: "large ", count: 20_000), for: "large", in: writer)
    try writer.database.close()
  }

  private func set(_ text: String, for key: String, in connection: Connection) throws {
    try connection.readWrite { try $0.setObject(text, forKey: key) }
  }

  private func openReadOnly() throws -> Database {
    try Database.open(at: store.path, key: store.key, options: .init(isReadOnly: true))
  }

  // MARK: In a folder that can be written

  @Test("1.17 reads everything, and refuses every write")
  func readsOnly() throws {
    let bytes = try store.bytes()
    let database = try openReadOnly()
    let connection = try database.makeConnection()
    #expect(try connection.read { try $0.allKeys() } == ["key", "large"])
    #expect(throws: CofferError.readOnly) { try connection.readWrite { try $0.setObject("other", forKey: "key") } }
    let proxy = try ConnectionProxy(database: database)
    #expect(try proxy.object(forKey: "key") == "first")
    #expect(throws: CofferError.readOnly) { try proxy.setObject("other", forKey: "key") }
    #expect(throws: CofferError.readOnly) { try proxy.removeObject(forKey: "key", durability: .synced) }
    #expect(proxy.pendingChangeCount == 0)
    try proxy.close()
    #expect(try database.status().slots.count == 1)
    #expect(try database.verify().problems.isEmpty)
    #expect(throws: CofferError.readOnly) { try connection.writeWithoutTransaction { _ in } }
    #expect(throws: CofferError.readOnly) { try connection.vacuum() }
    // SQLite would refuse it as well.
    #expect(throws: StorageError.self) { try connection.perform { try $0.connection.execute("DELETE FROM items") } }
    try database.close()
    #expect(try store.bytes() == bytes)
  }

  @Test("1.17 sees later commits, of the same process and of another")
  func laterCommits() throws {
    let connection = try openReadOnly().makeConnection()
    func value() throws -> String? { try connection.read { try $0.object(forKey: "key") } }
    #expect(try value() == "first")
    let writer = try store.open().makeConnection()
    try set("second", for: "key", in: writer)
    #expect(try value() == "second")
    #expect(try store.worker("insert", "n", "3").status == 0)
    #expect(try connection.read { try $0.numberOfKeys(inCollection: "numbers") } == 3)
    try connection.database.close()
    try set("third", for: "key", in: writer)
    try writer.database.close()
    #expect(try openReadOnly().makeConnection().read { try $0.object(forKey: "key") } == "third")
  }

  @Test("1.17 reads the log left by a crash, and keeps it")
  func crashed() throws {
    let crashed = try TemporaryStore()
    let writer = try store.open().makeConnection()
    try set("in the log", for: "key", in: writer)
    try store.copyAsAfterCrash(to: crashed)
    let log = try crashed.bytes("-wal")
    let database = try Database.open(at: crashed.path, key: crashed.key, options: .init(isReadOnly: true))
    #expect(try database.makeConnection().read { try $0.object(forKey: "key") } == "in the log")
    try database.close()
    #expect(try crashed.bytes("-wal") == log)
    #expect(try crashed.open().makeConnection().read { try $0.object(forKey: "key") } == "in the log")
  }

  @Test("creates no files")
  func creates() throws {
    let missing = "\(store.folder)/none"
    let options = Database.Options(isReadOnly: true)
    #expect(throws: CofferError.storeNotFound(path: missing)) {
      _ = try Database.openOrCreate(at: missing, key: store.key, options: options)
    }
    #expect {
      _ = try Database.create(at: missing, key: store.key, options: options)
    } throws: { error in
      if case CofferError.unsupported = error { true } else { false }
    }
    #expect(!FileManager.default.fileExists(atPath: missing))
    try Database.openOrCreate(at: store.path, key: store.key, options: options).close()
  }

  @Test("throws the same errors as opening")
  func errors() throws {
    let other = try TemporaryStore()
    #expect(throws: CofferError.wrongKey) {
      _ = try Database.open(at: store.path, key: other.key, options: .init(isReadOnly: true))
    }
    var bytes = try store.bytes()
    bytes[Layout.envelopeByteCount + 100] ^= 1
    try bytes.write(to: URL(fileURLWithPath: other.path))
    #expect {
      _ = try Database.open(at: other.path, key: store.key, options: .init(isReadOnly: true))
    } throws: { error in
      if case CofferError.damaged("page 1", _) = error { true } else { false }
    }
    try Data("text".utf8).write(to: URL(fileURLWithPath: other.path))
    #expect {
      _ = try Database.open(at: other.path, key: store.key, options: .init(isReadOnly: true))
    } throws: { error in
      if case CofferError.notAStore = error { true } else { false }
    }
  }
}

/// Read by another process under an ordinary user's rights, which root would not feel.
@Suite("Opening read-only on read-only media") final class UnwritableFolderTests {
  private let store: TemporaryStore

  init() throws {
    store = try TemporaryStore()
    let writer = try store.open().makeConnection()
    try set("first", for: "key", in: writer)
    try set(String(repeating: "large ", count: 20_000), for: "large", in: writer)
    try writer.database.close()
    try setMode(0o644, on: store.keyFile)
  }

  deinit {
    chmod(store.folder, 0o755)
  }

  private func set(_ text: String, for key: String, in connection: Connection) throws {
    try connection.readWrite { try $0.setObject(text, forKey: key) }
  }

  private func setMode(_ mode: mode_t, on path: String) throws {
    try #require(chmod(path, mode) == 0)
  }

  /// Leaves the store as a crash would, with a log of two commits.
  private func crash() throws {
    let crashed = try TemporaryStore()
    let writer = try store.open().makeConnection()
    try set("second", for: "key", in: writer)
    try set("third", for: "key", in: writer)
    try store.copyAsAfterCrash(to: crashed)
    try writer.database.close()
    for suffix in ["", "-wal"] { try crashed.bytes(suffix).write(to: URL(fileURLWithPath: store.path + suffix)) }
  }

  /// Takes the right to write to the store and its folder away from everybody but root.
  private func protect() throws {
    for suffix in ["", "-wal", "-shm"] { chmod(store.path + suffix, 0o444) }
    try setMode(0o555, on: store.folder)
  }

  private func contents() throws -> [String: Data] {
    let names = try FileManager.default.contentsOfDirectory(atPath: store.folder)
    return try Dictionary(
      uniqueKeysWithValues: names.map { ($0, try Child.run("/bin/cat", ["\(store.folder)/\($0)"]).output) })
  }

  /// What a reader says when it opens the protected store, and the value it reads; nothing may change by it.
  private func read() throws -> (opening: String, value: String) {
    try protect()
    let before = try contents()
    let reader = try store.startWorker("read-as-other-user")
    let opening = try #require(reader.readLine())
    let value = opening.hasPrefix("opened") ? try reader.value(for: "key") : ""
    if opening.hasPrefix("opened") { #expect(try reader.value(for: "large") == "large large large la") }
    #expect(try contents() == before)
    return (opening, value)
  }

  @Test(
    "1.17 reads a store without a log, or with an empty one, and creates no file",
    arguments: [[], ["-wal"], ["-shm"], ["-wal", "-shm"]])
  func noLog(_ leftovers: [String]) throws {
    for suffix in leftovers { try Data().write(to: URL(fileURLWithPath: store.path + suffix)) }
    #expect(try read() == ("opened", "first"))
  }

  @Test("1.17 reads a log left behind, without shared memory and with an old one")
  func log() throws {
    try crash()
    #expect(try read() == ("opened", "third"))
    try setMode(0o755, on: store.folder)
    try Data(count: 32_768).write(to: URL(fileURLWithPath: store.path + "-shm"))
    #expect(try read() == ("opened", "third"))
  }

  @Test("1.17 reads a damaged log up to the damage, and reports it")
  func damagedLog() throws {
    try crash()
    var log = try store.bytes("-wal")
    log[Layout.logHeaderByteCount + Layout.frameHeaderByteCount + 100] ^= 1
    try log.write(to: URL(fileURLWithPath: store.path + "-wal"))
    #expect(try read() == ("opened without the end of the log", "first"))
  }

  @Test("1.17 never ignores a log that it cannot read")
  func unreadableLog() throws {
    try crash()
    try protect()
    try setMode(0, on: store.path + "-wal")
    let reader = try store.startWorker("read-as-other-user")
    #expect(try #require(reader.readLine()).hasPrefix("\(store.path)-wal cannot be used: "))
  }

  @Test("leaves no files in another user's world-writable folder", .enabled(if: getuid() == 0))
  func sharedFolder() throws {
    try crash()
    try setMode(0o777, on: store.folder)
    for suffix in ["", "-wal"] { try setMode(0o644, on: store.path + suffix) }
    let before = try contents()
    let reader = try store.startWorker("read-as-other-user")
    #expect(reader.readLine() == "opened")
    #expect(try reader.value(for: "key") == "third")
    #expect(try contents() == before)
  }

  @Test("sees commits of another user meanwhile", .enabled(if: getuid() == 0))
  func writerAtWork() throws {
    try setMode(0o644, on: store.path)
    try setMode(0o755, on: store.folder)
    let writer = try store.open().makeConnection()
    try set("second", for: "key", in: writer)
    let reader = try store.startWorker("read-as-other-user")
    #expect(reader.readLine() == "opened")
    #expect(try reader.value(for: "key") == "second")
    try set("third", for: "key", in: writer)
    #expect(try reader.value(for: "key") == "third")
  }

  @Test("continues with the log when a writer opens one left behind", .enabled(if: getuid() == 0))
  func writerComesToLog() throws {
    try crash()
    try setMode(0o755, on: store.folder)
    for suffix in ["", "-wal"] { try setMode(0o644, on: store.path + suffix) }
    let reader = try store.startWorker("read-as-other-user")
    #expect(reader.readLine() == "opened")
    #expect(try reader.value(for: "key") == "third")
    let writer = try store.open().makeConnection()
    try set("fourth", for: "key", in: writer)
    #expect(try reader.value(for: "key") == "fourth")
    try set("fifth", for: "key", in: writer)
    try writer.database.close()
    #expect(try reader.value(for: "key") == "fifth")
  }

  @Test("ends a transaction that a writer interrupts where locking is impossible, and continues with the next")
  func writerComesIntoTransaction() throws {
    try crash()
    // Nothing is created beside a store that cannot be written.
    try setMode(0o400, on: store.path)
    let reader = try Database.open(at: store.path, key: store.key, options: .init(isReadOnly: true)).makeConnection()
    #expect(!FileManager.default.fileExists(atPath: store.path + "-shm"))
    try setMode(0o600, on: store.path)
    var writers: [Connection] = []
    func value(_ key: String) throws -> String? { try reader.read { try $0.object(forKey: key) } }
    #expect(throws: CofferError.busy) {
      try reader.read { transaction in
        #expect(try transaction.object(forKey: "key") == "third")
        let writer = try store.open(busyTimeout: .zero).makeConnection()
        writers.append(writer)
        try set(String(repeating: "changed", count: 20_000), for: "large", in: writer)
        try set("changed", for: "key", in: writer)
        try writer.perform { try $0.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
        _ = try transaction.object(forKey: "large", as: String.self)
      }
    }
    let writer = try #require(writers.first)
    #expect(try value("key") == "changed")
    #expect(try value("large")?.hasPrefix("changedchanged") == true)
    // From here on there is shared memory, and each transaction keeps its snapshot.
    try reader.read { transaction in
      #expect(try transaction.object(forKey: "key") == "changed")
      try set("changed again", for: "key", in: writer)
      #expect(try transaction.object(forKey: "key") == "changed")
    }
    #expect(try value("key") == "changed again")
    try reader.database.close()
    try writer.database.close()
    #expect(!FileManager.default.fileExists(atPath: store.path + "-wal"))
  }

  @Test("reads an image again that a writer has changed, in the next transaction", .enabled(if: getuid() == 0))
  func changedImage() throws {
    try setMode(0o644, on: store.path)
    try setMode(0o755, on: store.folder)
    let reader = try store.startWorker("read-as-other-user")
    #expect(reader.readLine() == "opened")
    #expect(try reader.value(for: "key") == "first")
    let writer = try store.open().makeConnection()
    try set(String(repeating: "small ", count: 20_000), for: "large", in: writer)
    try writer.database.close()
    #expect(try reader.value(for: "large").hasPrefix("small small"))
  }

  @Test("never mixes an image with later changes of a writer in a transaction", .enabled(if: getuid() == 0))
  func changedDuringTransaction() throws {
    guard let mount = try Mount(in: store) else {
      print("No file system could be mounted: an image that changes is not tested here.")
      return
    }
    let (path, image) = ("\(mount.folder)/settings.coffer", "\(store.folder)/image")
    try #require(try Child.run("/bin/cp", [store.path, path]).status == 0)
    let bind = "mkdir '\(image)' && mount --bind '\(mount.folder)' '\(image)' && mount -o remount,bind,ro '\(image)'"
    try #require(try Child.run("/usr/bin/env", ["sh", "-c", bind]).status == 0)
    defer { _ = try? Child.run("/usr/bin/env", ["umount", image]) }
    let reader = try Database.open(
      at: "\(image)/settings.coffer", key: store.key, options: .init(isReadOnly: true)
    ).makeConnection()
    #expect(throws: CofferError.imageChanged(path: "\(image)/settings.coffer")) {
      try reader.read { transaction in
        #expect(try transaction.object(forKey: "key") == "first")
        let writer = try Database.open(at: path, key: store.key).makeConnection()
        try set(String(repeating: "small ", count: 20_000), for: "large", in: writer)
        try writer.database.close()
        _ = try transaction.object(forKey: "large", as: String.self)
      }
    }
    #expect(try reader.read { try $0.object(forKey: "large", as: String.self) }?.hasPrefix("small ") ?? false)
    try reader.database.close()
  }

  /// A separate file system in memory; nil if this process may not mount one.
  private final class Mount {
    let folder: String

    init?(in parent: TemporaryStore, size: String = "50%") throws {
      folder = "\(parent.folder)/mount"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
      let child = try Child.run(
        "/usr/bin/env", ["sh", "-c", "mount -t tmpfs -o size=\(size) tmpfs '\(folder)' 2>/dev/null"])
      guard child.status == 0 else { return nil }
    }

    /// Leaves no room.
    func fill() throws {
      _ = try Child.run("/usr/bin/env", ["sh", "-c", "cat /dev/zero > '\(folder)/filler' 2>/dev/null"])
    }

    func makeReadOnly() throws {
      try #require(try Child.run("/usr/bin/env", ["mount", "-o", "remount,ro", folder]).status == 0)
    }

    deinit {
      _ = try? Child.run("/usr/bin/env", ["umount", folder])
    }
  }

  /// - Parameter hasLog: Whether a log is left beside the copy.
  /// - Returns: The path of the copy.
  private func copy(to mount: Mount, hasLog: Bool) throws -> String {
    if hasLog { try crash() }
    let path = "\(mount.folder)/settings.coffer"
    for suffix in hasLog ? ["", "-wal"] : [""] {
      try #require(try Child.run("/bin/cp", [store.path + suffix, path + suffix]).status == 0)
    }
    return path
  }

  @Test("1.17 reads a store on a read-only file system, and a log left there", arguments: [false, true])
  func readOnlyFileSystem(hasLog: Bool) throws {
    guard let mount = try Mount(in: store) else {
      print("No file system could be mounted: reading a store on a read-only one is not tested here.")
      return
    }
    let path = try copy(to: mount, hasLog: hasLog)
    try mount.makeReadOnly()
    let database = try Database.open(at: path, key: store.key, options: .init(isReadOnly: true))
    let connection = try database.makeConnection()
    #expect(try connection.read { try $0.object(forKey: "key") } == (hasLog ? "third" : "first"))
    #expect(throws: CofferError.readOnly) { try connection.readWrite { try $0.setObject("x", forKey: "key") } }
    #expect(try database.verify().problems.isEmpty)
    try database.close()
    #expect {
      _ = try Database.open(at: path, key: store.key)
    } throws: { error in
      if case CofferError.permissionDenied = error { true } else { false }
    }
  }

  @Test("reads a store on a full disk, and a log left there", arguments: [false, true])
  func fullDisk(hasLog: Bool) throws {
    guard let mount = try Mount(in: store, size: "2m") else {
      print("No file system could be mounted: reading a store on a full one is not tested here.")
      return
    }
    let path = try copy(to: mount, hasLog: hasLog)
    try mount.fill()
    #expect(throws: CofferError.diskFull(path: path)) { _ = try Database.open(at: path, key: store.key) }
    let value = hasLog ? "third" : "first"
    let database = try Database.open(at: path, key: store.key, options: .init(isReadOnly: true))
    #expect(try database.makeConnection().read { try $0.object(forKey: "key") } == value)
    #expect(try ConnectionProxy(database: database).object(forKey: "key") == value)
    try database.close()
    // The real tool, which would rather open it for writing.
    let tool = Child.products.appendingPathComponent("prefs").path
    #expect(try Child.run(tool, ["get", "key", "-d", path, "--key-file", store.keyFile]).text == "\(value)\n")
    #expect(try Child.run(tool, ["set", "key", "x", "-d", path, "--key-file", store.keyFile]).status != 0)
    try FileManager.default.removeItem(atPath: "\(mount.folder)/filler")
    let writer = try Database.open(at: path, key: store.key).makeConnection()
    try set("written", for: "key", in: writer)
    try writer.database.close()
    #expect(try Child.run(tool, ["get", "key", "-d", path, "--key-file", store.keyFile]).text == "written\n")
  }

  @Test(
    "follows the commits of others once a full disk has room again, when it was opened on the full one",
    arguments: [false, true])
  func roomAgain(hasLog: Bool) throws {
    guard let mount = try Mount(in: store, size: "2m") else {
      print("No file system could be mounted: following a store on a full disk is not tested here.")
      return
    }
    let path = try copy(to: mount, hasLog: hasLog)
    try mount.fill()
    let database = try Database.open(at: path, key: store.key, options: .init(isReadOnly: true))
    let (connection, proxy) = (try database.makeConnection(), try ConnectionProxy(database: database))
    let heard = DispatchSemaphore(value: 0)
    let registration = try database.onCommit { if $0.concerns(collection: "") { heard.signal() } }
    #expect(try proxy.object(forKey: "key") == (hasLog ? "third" : "first"))
    try FileManager.default.removeItem(atPath: "\(mount.folder)/filler")
    let writer = try Database.open(at: path, key: store.key).makeConnection()
    // The first one while the log is beside the file, whose pages are as they were.
    for value in ["fourth", "fifth"] {
      try set(value, for: "key", in: writer)
      #expect(heard.wait(timeout: .now() + 60) == .success)
      #expect(try connection.read { try $0.object(forKey: "key") } == value)
      #expect(try proxy.object(forKey: "key") == value)
    }
    registration.cancel()
    try writer.database.close()
    try database.close()
  }
}

extension RunningChild {
  fileprivate func value(for key: String) throws -> String {
    try write(key)
    return try #require(readLine())
  }
}
