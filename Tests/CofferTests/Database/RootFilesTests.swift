#if os(Linux)
  import CofferStorage
  import Foundation
  import TestSupport
  import Testing

  @testable import Coffer
  @testable import CofferMaintenance

  @Suite("Root and files of other users", .enabled(if: getuid() == 0, "it takes root to be root"))
  struct RootFilesTests {
    private let folder: ScratchFolder
    /// A folder of user 1001, which is a link to one of root's by the time a file in it is opened.
    private let link: String
    /// A file that only root may read, as the user calls it.
    private let stolen: String

    init() throws {
      folder = try ScratchFolder()
      let (own, roots) = (folder.file("own"), folder.file("roots"))
      link = own + "/link"
      stolen = link + "/file"
      for place in [own, roots] {
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
      }
      try #require(chmod(folder.path, 0o755) == 0 && chmod(roots, 0o700) == 0)
      try "root's".write(toFile: roots + "/file", atomically: false, encoding: .utf8)
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: roots)
      try #require(chown(own, 1001, 1001) == 0 && lchown(link, 1001, 1001) == 0)
    }

    private func contents(_ path: String) throws -> String? {
      let descriptor = try FileHand(path).acting { open(path, O_RDONLY | O_CLOEXEC) }
      guard descriptor >= 0 else { return nil }
      return String(decoding: FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).availableData, as: UTF8.self)
    }

    @Test("reads nothing that the user could not by whose hand it is given")
    func hand() throws {
      #expect(try contents(stolen) == nil)
      // The same from a working folder, by a link of root, and through "..".
      #expect(try contents(link + "/../link/file") == nil)
      let ours = folder.file("ours")
      try FileManager.default.createSymbolicLink(atPath: ours, withDestinationPath: "own/link")
      #expect(try contents(ours + "/file") == nil)
      #expect(try contents(folder.file("roots") + "/file") == "root's")
      #expect(throws: (any Error).self) { try KeyFile.read(at: stolen) }

      let store = try TemporaryStore()
      try store.open().close()
      try FileManager.default.copyItem(atPath: store.path, toPath: folder.file("roots") + "/copy.coffer")
      #expect(throws: (any Error).self) {
        try Database.restore(at: store.path, from: link + "/copy.coffer", key: store.key)
      }
      #expect(try Database.restore(at: store.path, from: folder.file("roots") + "/copy.coffer", key: store.key) != nil)
    }

    @Test(
      "writes no file where the user could not by whose hand it is given the path: stores, backups, salvaged ones, key files"
    )
    func newFiles() throws {
      let store = try TemporaryStore()
      let database = try store.open()
      defer { try? database.close() }
      let backup = store.path + "-backup"
      try database.backup(to: backup, key: store.key)
      #expect(throws: CofferError.self) { try Database.create(at: link + "/new.coffer", key: store.key) }
      #expect(throws: CofferError.self) { try Database.create(at: link + "/deeper/new.coffer", key: store.key) }
      #expect(throws: CofferError.self) { try database.backup(to: link + "/backup.coffer", key: store.key) }
      #expect(throws: CofferError.self) {
        try Database.salvage(at: store.path, key: store.key, to: link + "/salvaged.coffer", newKey: store.key)
      }
      #expect(throws: CofferError.self) { try KeyFile.create(at: link + "/key") }
      #expect(throws: CofferError.self) {
        try Database.restore(at: link + "/restored.coffer", from: backup, key: store.key)
      }
      // The same through a link of root to the user's.
      let ours = folder.file("ours")
      try FileManager.default.createSymbolicLink(atPath: ours, withDestinationPath: "own/link")
      #expect(throws: CofferError.self) { try database.backup(to: ours + "/backup.coffer", key: store.key) }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("roots")) == ["file"])

      // Where the user may write, they are the user's; in root's own folders, root's.
      try FileManager.default.createDirectory(atPath: folder.file("own/roots"), withIntermediateDirectories: false)
      let places: [(String, uid_t)] = [
        (folder.file("own"), 1001), (folder.file("roots"), 0), (folder.file("own/roots"), 0),
      ]
      for (place, user) in places {
        try database.backup(to: place + "/backup.coffer", key: store.key)
        try KeyFile.create(at: place + "/keys/key")
        for name in ["/backup.coffer", "/keys", "/keys/key"] {
          var status = stat()
          try #require(lstat(place + name, &status) == 0, "\(place)\(name)")
          #expect(status.st_uid == user, "\(place)\(name)")
        }
      }
    }

    @Test("has none of its groups while it acts for a user")
    func groups() throws {
      // Readable for root's group, which root may be in by a further group alone.
      let shared = folder.file("own") + "/shared"
      try "group's".write(toFile: shared, atomically: false, encoding: .utf8)
      try #require(chown(shared, 0, 0) == 0 && chmod(shared, 0o640) == 0)
      var before = [gid_t](repeating: 0, count: 64)
      let count = getgroups(64, &before)
      #expect(try contents(shared) == nil)
      var after = [gid_t](repeating: 0, count: 64)
      #expect(getgroups(64, &after) == count && before == after)
      let groups = try FileHand(shared).acting {
        try String(contentsOfFile: "/proc/thread-self/status", encoding: .utf8)
      }
      #expect(groups.contains(/Groups:\s*\n/))
    }
  }
#endif
