#if os(Linux)
  import Foundation
  import TestSupport
  import Testing

  @testable import Coffer

  /// A folder of user 1001, and what users do there.
  private final class ForeignFolder: Sendable {
    let store: TemporaryStore

    init(group: gid_t = 1001, mode: mode_t = 0o700) throws {
      store = try TemporaryStore()
      try #require(chown(store.folder, 1001, group) == 0 && chmod(store.folder, mode) == 0)
      try #require(chown(store.keyFile, 1001, group) == 0)
    }

    /// Runs the worker as a user, whose own group has his number, and who is in `group`, too.
    func run(as user: uid_t, in group: gid_t = 1001, _ command: String, _ arguments: String...) throws -> Child {
      let worker = [TemporaryStore.worker, command, store.path, store.keyFile] + arguments
      return try Child.run("/usr/bin/env", ["COFFER_WORKER_USER=\(user):\(user):\(group)"] + worker)
    }

    /// Owner, group and mode of each file in the folder but the key file.
    func files() throws -> [String: String] {
      var files: [String: String] = [:]
      for name in try FileManager.default.contentsOfDirectory(atPath: store.folder) where name != "key" {
        files[name] = try owner("\(store.folder)/\(name)")
      }
      return files
    }

    func owner(_ path: String) throws -> String {
      var status = stat()
      try #require(lstat(path, &status) == 0, "\(path)")
      return "\(status.st_uid):\(status.st_gid) \(String(status.st_mode & 0o7777, radix: 8))"
    }
  }

  @Suite("Root in another user's folder", .enabled(if: getuid() == 0, "it takes root to be root"))
  struct RootTests {
    @Test("keeps owner, group and mode, and creates no files of its own")
    func files() throws {
      let folder = try ForeignFolder()
      #expect(try folder.run(as: 1001, "create").status == 0)
      let database = try folder.store.open()
      let connection = try database.makeConnection()
      try connection.readWrite { try $0.setObject(1, forKey: "k") }
      let own = "1001:1001 600"
      #expect(
        try folder.files() == ["settings.coffer": own, "settings.coffer-wal": own, "settings.coffer-shm": own])
      #expect(try folder.run(as: 1001, "set", "theirs", "2").status == 0)
      try database.rotate()
      try connection.vacuum()
      try database.backup(to: folder.store.folder + "/copy.coffer", key: folder.store.key)
      try connection.readWrite { try $0.setObject(3, forKey: "k") }
      try database.close()
      #expect(try folder.files() == ["settings.coffer": own, "copy.coffer": own])
      #expect(try folder.run(as: 1001, "set", "theirs", "4").status == 0)
      let status = try String(contentsOfFile: "/proc/thread-self/status", encoding: .utf8)
      #expect(status.contains("\nUid:\t0\t0\t0\t0\n"), "the rights of this thread are root's again")
    }

    @Test("is refused without the capability to take on the owner's rights")
    func withoutTheRight() throws {
      let folder = try ForeignFolder()
      #expect(try folder.run(as: 1001, "create").status == 0)
      let before = try folder.files()
      let words = ["--bounding-set=-setuid", "--inh-caps=-setuid", TemporaryStore.worker, "set", folder.store.path]
      let child = try Child.run("/usr/bin/setpriv", words + [folder.store.keyFile, "k", "1"])
      #expect(child.status != 0)
      #expect(try folder.files() == before)
      #expect(try folder.run(as: 1001, "set", "k", "1").status == 0)
    }

    @Test("restores its own backup as the owner's store, while the owner has it open")
    func restoring() throws {
      let folder = try ForeignFolder()
      #expect(try folder.run(as: 1001, "create").status == 0)
      let backups = try TemporaryStore()
      let database = try folder.store.open()
      try database.backup(to: backups.path, key: folder.store.key)
      #expect(try folder.owner(backups.path) == "0:0 600")
      try Database.restore(at: folder.store.path, from: backups.path, key: folder.store.key, force: true)
      try database.makeConnection().readWrite { try $0.setObject(1, forKey: "k") }
      try database.close()
      let own = "1001:1001 600"
      #expect(
        try folder.files().filter { !$0.key.hasSuffix("-wal") } == [
          "settings.coffer": own, "settings.coffer-replaced-1": own,
        ])
      #expect(try folder.run(as: 1001, "set", "theirs", "2").status == 0)
    }

    @Test("creates a store, a key file and folders that the owner of the folder can use")
    func creation() throws {
      let folder = try ForeignFolder()
      let inner = folder.store.folder + "/a/b"
      try KeyFile.create(at: inner + "/key")
      try Database.create(at: inner + "/new.coffer", key: .keyFile(inner + "/key")).close()
      #expect(try folder.owner(inner) == "1001:1001 700" && folder.owner(folder.store.folder + "/a") == "1001:1001 700")
      #expect(try folder.owner(inner + "/new.coffer") == "1001:1001 600")
      #expect(try folder.owner(inner + "/key") == "1001:1001 600")
      try Database.remove(at: inner + "/new.coffer")
      #expect(try FileManager.default.contentsOfDirectory(atPath: inner) == ["key"])
    }

    @Test("keeps a copy of a damaged log for the owner")
    func damagedLog() throws {
      let folder = try ForeignFolder()
      #expect(try folder.run(as: 1001, "create").status == 0)
      let crashed = try ForeignFolder()
      do {
        let connection = try folder.store.open().makeConnection()
        for number in 0..<3 { try connection.readWrite { try $0.setObject(number, forKey: "\(number)") } }
        try folder.store.copyAsAfterCrash(to: crashed.store)
      }
      let log = URL(fileURLWithPath: crashed.store.path + "-wal")
      var bytes = try Data(contentsOf: log)
      bytes[32 + 24 + 100] ^= 1
      try bytes.write(to: log)
      for path in [crashed.store.path, log.path] {
        try #require(chown(path, 1001, 1001) == 0 && chmod(path, 0o600) == 0)
      }
      let database = try crashed.store.open()
      try database.makeConnection().readWrite { try $0.setObject(1, forKey: "k") }
      try database.close()
      #expect(try crashed.files()["settings.coffer-damaged-log-1"] == "1001:1001 600")
    }

    @Test(
      "is not tricked into changing its own file by a hard link beside the store", arguments: ["-wal", "-shm"])
    func hardLink(_ suffix: String) throws {
      let folder = try ForeignFolder()
      #expect(try folder.run(as: 1001, "create").status == 0)
      let victim = folder.store.folder + "-victim"
      defer { unlink(victim) }
      try Data("root's own".utf8).write(to: URL(fileURLWithPath: victim))
      try #require(chmod(victim, 0o600) == 0 && link(victim, folder.store.path + suffix) == 0)
      #expect(throws: CofferError.self) {
        try folder.store.open().makeConnection().readWrite { try $0.removeAllObjects() }
      }
      #expect(try folder.owner(victim) == "0:0 600")
      #expect(try Data(contentsOf: URL(fileURLWithPath: victim)) == Data("root's own".utf8))
    }

    @Test("follows no link and waits for no pipe", arguments: ["-wal", "-shm"])
    func linksAndPipes(_ suffix: String) throws {
      let folder = try ForeignFolder()
      #expect(try folder.run(as: 1001, "create").status == 0)
      let path = folder.store.path + suffix
      for make in [{ symlink("/etc/passwd", path) }, { mkfifo(path, 0o600) }] {
        try #require(make() == 0)
        #expect {
          _ = try folder.store.open()
        } throws: { error in
          "\(error)".contains("is not a regular file")
        }
        unlink(path)
      }
    }

    @Test("reads a store that the owner could not reach, and leaves nothing beside it")
    func unreachable() throws {
      let folder = try ForeignFolder()
      #expect(try folder.run(as: 1001, "create").status == 0)
      try #require(chown(folder.store.folder, 0, 0) == 0)
      #expect(throws: CofferError.self) { try folder.store.open() }
      let database = try Database.open(
        at: folder.store.path, key: folder.store.key, options: .init(isReadOnly: true))
      #expect(try database.makeConnection().read { try $0.numberOfKeys() } == 1)
      try database.close()
    }
  }

  @Suite("A store that a group shares", .enabled(if: getuid() == 0, "it takes root to become other users"))
  struct GroupTests {
    /// Made by user 1001 for group 3000.
    private func shared() throws -> ForeignFolder {
      let folder = try ForeignFolder(group: 3000, mode: 0o770)
      try #require(chmod(folder.store.keyFile, 0o640) == 0)
      #expect(try folder.run(as: 1001, in: 3000, "create-for-group", "3000").status == 0)
      return folder
    }

    private func isMembers(_ description: String) -> Bool { description.hasSuffix(":3000 660") }

    @Test("is used by its members in turn and concurrently, and every file stays the group's")
    func members() throws {
      let folder = try shared()
      #expect(try folder.files() == ["settings.coffer": "1001:3000 660"])
      #expect(try folder.run(as: 1002, in: 3000, "set", "a", "1").status == 0)
      let database = try folder.store.open()
      let connection = try database.makeConnection()
      try connection.readWrite { try $0.setObject("root", forKey: "b") }
      for user: uid_t in [1001, 1002] {
        #expect(try folder.run(as: user, in: 3000, "set", "by \(user)", "1").status == 0)
      }
      try database.backup(to: folder.store.folder + "/copy.coffer", key: folder.store.key)
      #expect(try folder.files().count == 4 && folder.files().values.allSatisfy(isMembers))
      #expect(try connection.read { try $0.allKeys().sorted() } == ["a", "b", "by 1001", "by 1002"])
      try database.close()
    }

    @Test("has a log that one member creates and the others use, in any order")
    func log() throws {
      let folder = try shared()
      let worker = [TemporaryStore.worker, "follow", folder.store.path, folder.store.keyFile]
      let process = try Child.start("/usr/bin/env", ["COFFER_WORKER_USER=1002:1002:3000"] + worker)
      try process.write("go")
      #expect(process.readLine() == "ready" && process.readLine() == "wrote")
      #expect(try folder.files()["settings.coffer-wal"] == "1002:3000 660")
      #expect(try folder.files()["settings.coffer-shm"] == "1002:3000 660")
      #expect(try folder.run(as: 1001, in: 3000, "set", "a", "1").status == 0)
      try process.write("go")
      #expect(process.readLine() == "wrote")
      try process.input.close()
      process.end()
    }

    @Test("admits only the group, and uses no log of others")
    func outsiders() throws {
      let folder = try shared()
      let text = try folder.run(as: 1003, in: 3001, "open-as-is").text
      #expect(text.contains("belongs to another user (\(name(of: 1001))), and this user may not use it like this."))
      let path = folder.store.path + "-wal"
      try Data().write(to: URL(fileURLWithPath: path))
      try #require(chown(path, 1003, 3001) == 0 && chmod(path, 0o666) == 0)
      #expect(
        try folder.run(as: 1001, in: 3000, "open-as-is").text.contains("belongs to another user (\(name(of: 1003)))"))
    }

    /// A user of the machine may have the number.
    private func name(of user: uid_t) -> String {
      getpwuid(user).map { String(cString: $0.pointee.pw_name) } ?? "\(user)"
    }

    @Test("is not created for a group that could not create a log in its folder, or without the user")
    func refusals() throws {
      let folder = try ForeignFolder(group: 3000, mode: 0o750)
      #expect(try folder.run(as: 1001, in: 3000, "create-for-group", "3000").text.contains("chmod 2770"))
      try #require(chmod(folder.store.folder, 0o770) == 0)
      #expect(try folder.run(as: 1001, in: 3001, "create-for-group", "3000").text.contains("not a member"))
      #expect(
        try folder.run(as: 1001, in: 3000, "create-for-group", "no such group").text.contains("there is no group"))
      #expect(try folder.files().isEmpty)
    }

    @Test("gets a missing folder created for the group")
    func folder() throws {
      let folder = try ForeignFolder()
      let path = folder.store.folder + "/new/settings.coffer"
      try Database.create(at: path, key: folder.store.key, options: .init(group: "3000")).close()
      #expect(try folder.owner(folder.store.folder + "/new") == "1001:3000 2770")
      #expect(try folder.owner(path) == "1001:3000 660")
    }
  }
#endif
