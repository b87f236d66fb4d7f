import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("A read-only store")
struct ReadOnlyStoreTests {
  /// What runs a program as another user, for root, who would not feel a missing right.
  private static let ordinaryUser =
    getuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []

  static func run(_ words: [String]) -> (code: Int32, text: String) {
    guard let run = try? Child.run("/usr/bin/env", ordinaryUser + words, capturesMessages: true) else {
      return (-1, "")
    }
    return (run.status, run.text)
  }

  /// Whether an ordinary user may run the tool: not where it was built in root's own folder.
  static var canRun: Bool { run([Tool.executable, "--version"]).code == 0 }

  @Test("Commands that read work and create no file, the others are 14", .enabled(if: canRun))
  func commands() throws {
    let tool = try Tool()
    let (folder, key) = (tool.path("bundle"), tool.path("key"))
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    let store = folder + "/settings.coffer"
    try tool.succeed("set", "a/b", "x", "-d", store, "--key-file", key)
    if getuid() == 0 {
      for path in [folder, store, key, tool.home.path] { try #require(chown(path, 65534, 65534) == 0) }
    }
    try #require(chmod(store, 0o400) == 0 && chmod(folder, 0o500) == 0)
    defer { chmod(folder, 0o700) }
    func run(_ arguments: String...) -> (code: Int32, text: String) {
      Self.run([Tool.executable] + arguments + ["-d", store, "--key-file", key])
    }
    #expect(run("get", "a/b") == (0, "x\n"))
    #expect(run("list", "a") == (0, "b\n"))
    #expect(run("collections") == (0, "a\n"))
    #expect(run("type", "a/b") == (0, "string\n"))
    #expect(run("doctor").code == 0)
    #expect(run("set", "a/b", "y").code == 14)
    #expect(run("unset", "a/b").code == 14)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["settings.coffer"])
  }
}
