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

@Suite("What is watched and cannot be read any more") struct LostWhileWatchedTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
  }

  /// `prefs exec --watch`, running a program that prints a variable and waits.
  private final class Watched {
    let output: LinePipe
    let messages: LinePipe
    let child: pid_t

    init(
      _ tool: Tool, printing name: String, _ options: String..., environment: [String: String] = [:]
    ) throws {
      (output, messages) = (try LinePipe(tool.path("out")), try LinePipe(tool.path("messages")))
      child = try tool.spawn(
        ["exec", "--watch", "-c", "w"] + options + ["--", "sh", "-c", "echo $\(name); while :; do sleep 0.05; done"],
        files: [(0, "/dev/null", O_RDONLY), (1, output.path, O_WRONLY), (2, messages.path, O_WRONLY)],
        environment: environment)
    }

    /// Ends it, and gives the messages that were not read yet.
    func end() throws -> [String] {
      kill(child, SIGTERM)
      #expect(try Tool.exitCode(of: child) == 128 + SIGTERM)
      var lines: [String] = []
      while let line = try messages.next() { lines.append(line) }
      return lines
    }
  }

  // MARK: - The environment

  @Test(
    "exec --watch keeps the values of an environment that is removed, says so once, and goes on when it is there again")
  func environmentOfProgram() throws {
    try tool.succeed("set", "w/db", "production")
    try tool.succeed("env", "create", "w@st")
    try tool.succeed("set", "w/db", "staging", "--env", "st")
    let exec = try Watched(tool, printing: "DB", "--env", "st")
    #expect(try exec.output.next() == "staging")
    try tool.succeed("env", "remove", "w@st", "--force")
    let message = try #require(try exec.messages.next())
    #expect(message.contains("keeps the settings it has: there is no environment \"st\""))
    try tool.succeed("set", "w/db", "parent")
    try tool.succeed("env", "create", "w@st")
    try tool.succeed("set", "w/db", "again", "--env", "st")
    // As soon as there is the environment again, it shows what is set in its parent.
    var line = try exec.output.next()
    if line == "parent" { line = try exec.output.next() }
    #expect(line == "again")
    #expect(try exec.end() == [])
  }

  @Test("watch says that its environment was removed, and that it is there again")
  func environmentOfWatch() throws {
    try tool.succeed("set", "w/db", "production")
    try tool.succeed("env", "create", "w@st")
    let watch = try Watch(tool, "w", "--env", "st")
    try tool.succeed("env", "remove", "w@st", "--force")
    #expect(try watch.messages.next()?.contains("environment \"st\" of collection \"w\" was removed") == true)
    try tool.succeed("set", "w/db", "parent")
    try tool.succeed("env", "create", "w@st")
    #expect(try watch.messages.next()?.contains("environment \"st\" of collection \"w\" is there again") == true)
    #expect(try watch.end().map(Watch.numbered).contains { $0.hasSuffix("updated  w/db") })
  }

  // MARK: - The store

  /// An environment with a key command that adds a line to a file each time.
  private func countedKey() throws -> (environment: [String: String], count: () throws -> Int) {
    let calls = tool.path("calls")
    return (
      ["PREFS_KEY_COMMAND": "echo >> '\(calls)'; cat '\(tool.keyFile)'"],
      { [tool] in try tool.contents(calls).count { $0 == UInt8(ascii: "\n") } }
    )
  }

  /// Replaces the store by one that another key opens.
  ///
  /// - Returns: The key.
  private func replaceUnderAnotherKey() throws -> String {
    let (backup, key) = (tool.path("backup.coffer"), tool.path("other-key"))
    try tool.succeed("backup", backup, "--new-key-file", key)
    try tool.succeed("restore-store", backup, "--force", "--accept-keys", "--key-file", key)
    return key
  }

  private func putInPlace(_ key: String) throws {
    try FileManager.default.copyItem(atPath: key, toPath: tool.path("next-key"))
    try #require(rename(tool.path("next-key"), tool.keyFile) == 0)
  }

  @Test(
    "watch says once that it cannot open the store that replaces another, asks again when that changes, and follows it then"
  )
  func unopenable() throws {
    try tool.succeed("set", "w/v", "one")
    let key = try countedKey()
    let watch = try Watch(tool, "--values", environment: key.environment)
    let other = try replaceUnderAnotherKey()
    let message = try #require(try watch.messages.next())
    #expect(message.contains("the new one cannot be opened: Wrong key"))
    for number in 0..<5 { try tool.succeed("set", "w/v", "\(number)", "--key-file", other) }
    // Each commit changes the file or its log a few times; opening it, and closing it again, must not count.
    #expect(try key.count() < 100)
    try putInPlace(other)
    #expect(try watch.output.next()?.hasSuffix("  everything") == true)
    try tool.succeed("set", "w/v", "back")
    while try !#require(try watch.output.next()).hasSuffix("updated  w/v  back") {}
    #expect(try watch.messages.next()?.contains("the store was replaced. Everything is read again.") == true)
    _ = try watch.end()
  }

  @Test(
    "exec --watch says once that it cannot open the store that replaces another, and follows it when the key is there")
  func unopenableForProgram() throws {
    try tool.succeed("set", "w/v", "one")
    let key = try countedKey()
    let exec = try Watched(tool, printing: "V", environment: key.environment)
    #expect(try exec.output.next() == "one")
    let other = try replaceUnderAnotherKey()
    func isRefusal(_ message: String) -> Bool { message.contains("the new one cannot be opened: Wrong key") }
    // That the program keeps its settings is said, too, if they were to be read meanwhile.
    func keeps(_ message: String) -> Bool { message.contains("the program keeps the settings it has: ") }
    var messages: [String] = []
    repeat { messages.append(try #require(try exec.messages.next())) } while !isRefusal(try #require(messages.last))
    for number in 0..<5 { try tool.succeed("set", "w/v", "\(number)", "--key-file", other) }
    #expect(try key.count() < 100)
    try putInPlace(other)
    #expect(try exec.output.next() == "4")
    messages += try exec.end()
    #expect(messages.count(where: isRefusal) == 1 && messages.count(where: keeps) <= 1, "\(messages)")
    #expect(messages.count { $0.contains("Everything is read again") } == 1, "\(messages)")
  }

  // MARK: - The key

  @Test("watch ends with the code of a wrong key when its passphrase is locked out")
  func passphrase() throws {
    let (old, new) = ("old words\n", "new words\n")
    let initialized = try tool.run(
      "init", "--passphrase", "--cost", "14", "--passphrase-fd", "3", descriptors: [3: old])
    #expect(initialized.code == 0, "\(initialized.message)")
    let file = try tool.write("passphrase", old.utf8)
    let watch = try Watch(tool, "--passphrase-fd", "3", files: [3: file])
    let replaced = try tool.run(
      "key", "replace", "--passphrase-fd", "3", "--new-passphrase-fd", "4", "--cost", "14",
      descriptors: [3: old, 4: new])
    #expect(replaced.code == 0, "\(replaced.message)")
    #expect(try tool.run("set", "w/v", "two", "--passphrase-fd", "3", descriptors: [3: new]).code == 0)
    #expect(try watch.messages.next()?.contains("opens the store no longer") == true)
    #expect(try watch.exitCode() == 5)
  }

  @Test("watch ends with the code of a wrong key when its key file is dropped with a new root key")
  func droppedKey() throws {
    let key = tool.path("one")
    try tool.succeed("set", "w/v", "one")
    try tool.succeed("key", "add", "--new-key-file", key, "--label", "one")
    let watch = try Watch(tool, "--key-file", key)
    try tool.succeed("rotate", "--new-root-key", "--drop", "one")
    try tool.succeed("set", "w/v", "two")
    #expect(try watch.messages.next()?.contains("opens the store no longer") == true)
    #expect(try watch.exitCode() == 5)
  }

  @Test(
    "exec --watch keeps its program running when its key is locked out, says so once, and follows again with a new key there"
  )
  func lockedOutProgram() throws {
    try tool.succeed("set", "w/v", "one")
    let exec = try Watched(tool, printing: "V")
    #expect(try exec.output.next() == "one")
    let key = tool.path("new-key")
    try tool.succeed("key", "replace", "--new-key-file", key)
    try tool.succeed("set", "w/v", "two", "--key-file", key)
    let message = try #require(try exec.messages.next())
    #expect(message.contains("keeps the settings it has: the key in use opens the store no longer"))
    try tool.succeed("set", "w/v", "three", "--key-file", key)
    try putInPlace(key)
    #expect(try exec.output.next() == "three")
    #expect(try exec.end() == [])
  }

  @Test("watch of a passphrase ends when another store replaces its own, since it cannot open that")
  func replacedUnderPassphrase() throws {
    let words = "some words\n"
    let initialized = try tool.run(
      "init", "--passphrase", "--cost", "14", "--passphrase-fd", "3", descriptors: [3: words])
    #expect(initialized.code == 0, "\(initialized.message)")
    let (backup, key) = (tool.path("backup.coffer"), tool.path("other-key"))
    let backedUp = try tool.run(
      "backup", backup, "--new-key-file", key, "--passphrase-fd", "3", descriptors: [3: words])
    #expect(backedUp.code == 0, "\(backedUp.message)")
    let file = try tool.write("passphrase", words.utf8)
    let watch = try Watch(tool, "--passphrase-fd", "3", files: [3: file])
    try tool.succeed("restore-store", backup, "--force", "--accept-keys", "--key-file", key)
    #expect(try watch.messages.next()?.contains("the new one cannot be opened") == true)
    let message = try #require(try watch.messages.next())
    #expect(message.contains("was replaced by another file, or written over, while it was open. Open it again"))
    #expect(try watch.exitCode() == 9)
  }

  @Test("watch and exec --watch say that an older copy was written over the store, which cp does without a new file")
  func writtenOver() throws {
    try tool.succeed("set", "w/a", "1")
    let older = tool.path("older")
    try FileManager.default.copyItem(atPath: tool.store, toPath: older)
    try tool.succeed("set", "w/a", "2")
    let (watch, exec) = (try Watch(tool), try Watched(tool, printing: "A"))
    #expect(try exec.output.next() == "2")
    try #require(Child.run("/bin/cp", [older, tool.store]).status == 0)
    for messages in [watch.messages, exec.messages] {
      #expect(try messages.next()?.contains("cannot be opened: The store is older") == true)
    }
    #expect(try tool.run("get", "w/a").code == 17)
    _ = try watch.end()
    _ = try exec.end()
  }
}
