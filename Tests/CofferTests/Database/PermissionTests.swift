import Foundation
import TestSupport
import Testing

@testable import Coffer

/// Opened by another process under an ordinary user's rights, which root would not feel.
@Suite("Opening without permission") struct PermissionTests {
  private let store: TemporaryStore

  init() throws {
    store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "k") }
    try database.close()
    guard getuid() == 0 else { return }
    for path in [store.folder, store.path, store.keyFile] { try #require(chown(path, 65534, 65534) == 0) }
  }

  /// What opening says while `path` has `mode`; nothing may change by it.
  private func open(with mode: mode_t, on path: String) throws -> String {
    var status = stat()
    try #require(stat(path, &status) == 0)
    let bytes = try store.bytes()
    try #require(chmod(path, mode) == 0)
    let child = try store.worker("open-as-other-user")
    try #require(chmod(path, status.st_mode & 0o7777) == 0)
    #expect(try store.bytes() == bytes)
    #expect(try Set(FileManager.default.contentsOfDirectory(atPath: store.folder)) == ["settings.coffer", "key"])
    return child.text.trimmingCharacters(in: .newlines)
  }

  @Test("works if all is permitted")
  func control() throws {
    #expect(try open(with: 0o700, on: store.folder) == "opened")
  }

  @Test("to the store is an error that names it")
  func store000() throws {
    #expect(try open(with: 0o000, on: store.path).hasPrefix("\(store.path) cannot be used: "))
    #expect(try open(with: 0o400, on: store.path).hasPrefix("\(store.path) cannot be used: "))
  }

  @Test("to the folder is an error, whether to enter it or to write to it")
  func folder() throws {
    #expect(try open(with: 0o500, on: store.folder).hasPrefix("\(store.path) cannot be used: "))
    // The key is behind it, too, and is checked first or second.
    #expect(try open(with: 0o000, on: store.folder).contains("ermission"))
  }

  @Test("to the key file is an error: the key is not available")
  func key() throws {
    let text = try open(with: 0o000, on: store.keyFile)
    #expect(text.hasPrefix("The key is not available: ") && text.contains(store.keyFile))
  }

  /// The name of user 1, as the system has it.
  private static let name = getpwuid(1).map { String(cString: $0.pointee.pw_name) } ?? "1"

  @Test("distinguishes another user's file from one's own store", .enabled(if: getuid() == 0))
  func owner() throws {
    try #require(chown(store.path, 1, 65534) == 0 && chmod(store.path, 0o666) == 0)
    let text = try open(with: 0o666, on: store.path)
    #expect(
      text.hasPrefix("\(store.path) belongs to another user (\(Self.name)), and this user may not use it like this."))
  }

  @Test("names the folder of another user that blocks the path to the store", .enabled(if: getuid() == 0))
  func foreignFolder() throws {
    try #require(chown(store.folder, 1, 1) == 0)
    let text = try open(with: 0o700, on: store.folder)
    #expect(
      text.hasPrefix("\(store.folder) belongs to another user (\(Self.name)), and this user may not use it like this."))
  }

  @Test(
    "refuses a log or shared memory that another user made, or that others can write", .enabled(if: getuid() == 0),
    arguments: ["-wal", "-shm"])
  func companion(_ suffix: String) throws {
    let path = store.path + suffix
    func open(owner: uid_t, mode: mode_t) throws -> String {
      try Data().write(to: URL(fileURLWithPath: path))
      try #require(chown(path, owner, 65534) == 0 && chmod(path, mode) == 0)
      return try store.worker("open-as-other-user").text.trimmingCharacters(in: .newlines)
    }
    let foreign = try open(owner: 1, mode: 0o666)
    #expect(foreign.hasPrefix("\(path) cannot be used: ") && foreign.contains("belongs to another user (\(Self.name))"))
    #expect(try open(owner: 65534, mode: 0o660).contains("others can write to it (mode 660)"))
    #expect(try open(owner: 65534, mode: 0o600) == "opened")
  }

  @Test(
    "opens its own log again if others could have made it", arguments: [0o700, 0o1777] as [mode_t])
  func madeLog(_ mode: mode_t) throws {
    let own = try TemporaryStore()
    try own.open().close()
    try #require(chmod(own.folder, mode) == 0)
    let recorder = RecordingVFS()
    _ = try Database.open(at: own.path, key: own.key, options: .init(), vfs: recorder.encrypting())
    let openings = recorder.events.filter { event in
      if case .open(let path) = event { path.hasSuffix("-wal") } else { false }
    }
    #if os(Linux)
      #expect(openings.count == (mode == 0o700 ? 1 : 2))
    #else
      #expect(openings.count == 2)
    #endif
  }
}
