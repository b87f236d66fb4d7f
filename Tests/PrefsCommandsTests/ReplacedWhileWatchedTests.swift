import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("A store that is replaced while it is watched, by one with lower numbers") struct ReplacedWhileWatchedTests {
  private let tool: Tool
  private var backup: String { tool.path("backup.coffer") }

  /// With commit 2 in the backup, and many more in the store.
  init() throws {
    tool = try Tool()
    try tool.succeed("set", "web/port", "backup")
    try tool.succeed("backup", backup)
    for number in 0..<5 { try tool.succeed("set", "web/port", "old\(number)") }
  }

  enum Replacement: String, CaseIterable, CustomTestStringConvertible {
    case restored, recreated, linkedElsewhere, linkOfLinkElsewhere, linkOnRelativePathElsewhere
    case folderExchanged, folderOfLinkExchanged, folderRecreated

    var testDescription: String { rawValue }
  }

  private var folder: String { (tool.store as NSString).deletingLastPathComponent }
  private var name: String { (tool.store as NSString).lastPathComponent }

  /// The path to watch, which goes through the link `current`, if the replacement is to be noticed there or behind it.
  private func path(for replacement: Replacement) throws -> String {
    if [.folderExchanged, .folderRecreated].contains(replacement) { return tool.store }
    let link = tool.path("current")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder)
    switch replacement {
    case .linkOfLinkElsewhere:
      try FileManager.default.createSymbolicLink(atPath: tool.path("live"), withDestinationPath: "current")
      return tool.path("live") + "/" + name
    case .linkOnRelativePathElsewhere:
      let depth = FileManager.default.currentDirectoryPath.split(separator: "/").count
      return Array(repeating: "..", count: depth).joined(separator: "/") + link + "/" + name
    default: return link + "/" + name
    }
  }

  /// Another folder with the backup.
  private func other() throws -> String {
    let other = tool.path("other")
    try FileManager.default.createDirectory(
      atPath: other, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    try FileManager.default.copyItem(atPath: backup, toPath: other + "/" + name)
    return other
  }

  private func replace(_ replacement: Replacement) throws {
    switch replacement {
    case .restored: try tool.succeed("restore-store", "--force", backup)
    case .recreated:
      for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: tool.store + suffix) }
      try tool.succeed("set", "web/port", "backup")
    case .linkedElsewhere, .linkOfLinkElsewhere, .linkOnRelativePathElsewhere:
      // As Kubernetes does it: one rename of a link.
      try FileManager.default.createSymbolicLink(atPath: tool.path("next"), withDestinationPath: try other())
      try #require(rename(tool.path("next"), tool.path("current")) == 0)
    case .folderExchanged, .folderOfLinkExchanged:
      let other = try other()
      try #require(rename(folder, tool.path("former")) == 0 && rename(other, folder) == 0)
      // Another store in the place of the one that is remembered needs consent.
      try tool.succeed("doctor", "--accept-older")
    case .folderRecreated:
      try FileManager.default.removeItem(atPath: folder)
      try tool.succeed("set", "web/port", "backup")
    }
  }

  @Test("Is reported by watch as a change of everything, then commit by commit", arguments: Replacement.allCases)
  func watch(_ replacement: Replacement) throws {
    let path = try path(for: replacement)
    let watch = try Watch(tool, "--values", "-d", path)
    try tool.succeed("set", "web/port", "last")
    #expect(try watch.output.next()?.hasSuffix("updated  web/port  last") == true)
    try replace(replacement)
    #expect(try watch.output.next()?.hasSuffix("  everything") == true)
    for value in ["new1", "new2"] {
      try tool.succeed("set", "web/port", value, "-d", path)
      // What the replacement itself has committed may be in the change of everything, or come by itself.
      while try !#require(try watch.output.next()).hasSuffix("updated  web/port  \(value)") {}
    }
    watch.send(SIGKILL)
    _ = try Tool.exitCode(of: watch.child)
  }

  @Test("Restarts the program of exec --watch with its settings", arguments: Replacement.allCases)
  func exec(_ replacement: Replacement) throws {
    let path = try path(for: replacement)
    let (output, messages) = (try LinePipe(tool.path("out")), try LinePipe(tool.path("messages")))
    let child = try tool.spawn(
      [
        "exec", "--watch", "-d", path, "-c", "web", "--", "sh", "-c", "echo $PORT; while :; do sleep 0.05; done",
      ], files: [(0, "/dev/null", O_RDONLY), (1, output.path, O_WRONLY), (2, messages.path, O_WRONLY)])
    #expect(try output.next() == "old4")
    try replace(replacement)
    #expect(try output.next() == "backup")
    try tool.succeed("set", "web/port", "new", "-d", path)
    #expect(try output.next() == "new")
    kill(child, SIGTERM)
    _ = try Tool.exitCode(of: child)
  }
}
