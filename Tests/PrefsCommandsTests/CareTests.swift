import Foundation
import Testing

@Suite("Backup, compact and destroy") struct CareTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "a/b", "value")
  }

  @Test("A backup opens with the same key, or with one of its own")
  func backup() throws {
    let copy = tool.path("copy.coffer")
    #expect(try tool.succeed("backup", copy) == "")
    #expect(try tool.mode(copy) == 0o600)
    try tool.succeed("set", "a/b", "later")
    #expect(try tool.succeed("get", "a/b", "-d", copy) == "value\n")
    let (other, key) = (tool.path("other.coffer"), tool.path("other.key"))
    try tool.succeed("backup", other, "--new-key-file", key)
    #expect(try tool.mode(key) == 0o600)
    #expect(try tool.run("get", "a/b", "-d", other).code == 5)
    #expect(try tool.succeed("get", "a/b", "-d", other, "--key-file", key) == "later\n")
  }

  @Test("A backup and an export remove what killed ones left an hour after the last write; backup names the rest")
  func leftovers() throws {
    try tool.succeed("set", "a", "1")
    let folder = tool.path("copies")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    let bytes = try tool.contents(tool.store)
    let names = [
      ".day1.coffer.0123456789abcdef.tmp", ".day2.coffer.0123456789abcdef.tmp", ".prefs-1a.tmp", ".prefs-2b.tmp",
    ]
    for (index, name) in names.enumerated() {
      try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
      guard index % 2 == 0 else { continue }
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -7200)], ofItemAtPath: "\(folder)/\(name)")
    }
    let run = try tool.run("backup", "\(folder)/day3.coffer")
    #expect(run.code == 0 && run.message.contains(names[1]) && !run.message.contains(names[0]), "\(run.message)")
    try tool.succeed("export", "-o", "\(folder)/all.json")
    let left = try FileManager.default.contentsOfDirectory(atPath: folder)
    #expect(left.sorted() == [names[1], names[3], "all.json", "day3.coffer"])
  }

  @Test("A backup never replaces a file, and creates no key if it fails")
  func backupOverFile() throws {
    let path = try tool.write("file", "precious".utf8)
    #expect(try tool.run("backup", path, "--new-key-file", tool.path("new")).code == 9)
    #expect(try tool.contents(path) == Array("precious".utf8) && !tool.exists(tool.path("new")))
    #expect(try tool.run("backup", "").code == 2)
  }

  @Test("compact releases space")
  func compact() throws {
    try tool.succeed("set", "big", "-", input: String(repeating: "x", count: 1 << 20))
    try tool.succeed("unset", "big")
    let before = try tool.contents(tool.store).count
    try tool.succeed("compact")
    #expect(try tool.contents(tool.store).count < before / 2)
    #expect(try tool.succeed("get", "a/b") == "value\n")
  }

  @Test("destroy removes the named store, and keeps the key")
  func destroy() throws {
    for arguments in [["destroy"], ["destroy", "--confirm", ""], ["destroy", "--confirm", "other.coffer"]] {
      #expect(try tool.run(arguments, input: []).code == 2)
    }
    #expect(try tool.succeed("get", "a/b") == "value\n")
    let run = try tool.run("destroy", "--confirm", "settings.coffer")
    #expect(run.code == 0 && run.message.contains(tool.keyFile))
    let folder = (tool.store as NSString).deletingLastPathComponent
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    #expect(tool.exists(tool.keyFile))
    #expect(try tool.run("destroy", "--confirm", "settings.coffer").code == 4)
  }

  @Test("rotate, seal and destroy do not remove copies of damaged logs: a limit that SECURITY.md names")
  func copiesOfDamagedLogs() throws {
    let copy = tool.store + "-damaged-log-1"
    try Data("log".utf8).write(to: URL(fileURLWithPath: copy))
    try tool.succeed("rotate")
    try tool.succeed("seal", "a", "--vault-key-file", tool.path("vault.key"))
    try tool.succeed("destroy", "--confirm", "settings.coffer")
    #expect(try !tool.exists(tool.store) && tool.contents(copy) == Array("log".utf8))
  }

  @Test("destroy needs no key, and removes a damaged store, too")
  func destroyWithoutKey() throws {
    var bytes = try tool.contents(tool.store)
    for index in stride(from: 100, to: bytes.count, by: 64) { bytes[index] ^= 1 }
    let path = try tool.write("damaged.coffer", bytes)
    try FileManager.default.removeItem(atPath: tool.keyFile)
    #expect(try tool.run("get", "a/b").code == 6)
    try tool.succeed("destroy", "--confirm", "damaged.coffer", "-d", path)
    try tool.succeed("destroy", "--confirm", "settings.coffer")
    #expect(!tool.exists(path) && !tool.exists(tool.store))
  }

  @Test("destroy refuses a store that would stay under another name, but not one whose creation was killed")
  func destroyOneOfTwo() throws {
    let other = tool.path("other.coffer")
    try tool.succeed("set", "a", "1")
    try #require(link(tool.store, other) == 0)
    let run = try tool.run("destroy", "--confirm", "settings.coffer")
    #expect(run.code == 1 && run.message.contains("2 names") && run.message.contains("nothing was removed"))
    #expect(tool.exists(tool.store) && tool.exists(other))
    let temporary = URL(fileURLWithPath: tool.store).deletingLastPathComponent().path
    try #require(rename(other, temporary + "/.settings.coffer.0123456789abcdef.tmp") == 0)
    try tool.succeed("destroy", "--confirm", "settings.coffer")
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary) == [])
  }

  @Test("backup refuses a named pipe as the key file, as do all that make one")
  func namedPipe() throws {
    let pipe = tool.path("pipe")
    try tool.succeed("set", "a", "1")
    try #require(mkfifo(pipe, 0o600) == 0)
    for arguments in [["backup", tool.path("b")], ["key", "add"], ["key", "change", "0"], ["key", "replace"]] {
      let run = try tool.run(arguments + ["--new-key-file", pipe], input: "".utf8)
      #expect(run.code == 6 && run.message.contains("named pipe"), "\(arguments): \(run.message)")
    }
    #expect(!tool.exists(tool.path("b")))
  }

  @Test("backup to a pipe whose reader ends leaves no copy behind")
  func brokenPipe() throws {
    let temporary = tool.path("tmp")
    try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: false)
    try tool.succeed("set", "big", "-", input: String(repeating: "b", count: 300_000))
    let run = try tool.run(
      ["-c", "\"$0\" backup - | head -c 1 > /dev/null; exit ${PIPESTATUS[0]}", Tool.executable], input: "".utf8,
      environment: ["TMPDIR": temporary], program: "/bin/bash")
    #expect(run.code == 128 + SIGPIPE, "\(run.message)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary) == [])
  }

  @Test("destroy refuses a file that is not a store")
  func destroyOther() throws {
    for path in [try tool.write("letter.txt", "Dear reader".utf8), tool.keyFile, tool.home.path] {
      let name = (path as NSString).lastPathComponent
      #expect(try tool.run("destroy", "--confirm", name, "-d", path).code == 8)
      #expect(tool.exists(path))
    }
    try FileManager.default.createSymbolicLink(atPath: tool.path("link"), withDestinationPath: tool.store)
    #expect(try tool.run("destroy", "--confirm", "link", "-d", tool.path("link")).code == 8)
    #expect(try tool.succeed("get", "a/b") == "value\n")
  }
}
