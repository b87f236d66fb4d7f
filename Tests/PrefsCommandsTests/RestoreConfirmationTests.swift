import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("What restore-store asks before it changes what opens a store") struct RestoreConfirmationTests {
  private let tool: Tool

  init() throws { tool = try Tool() }

  private var vaultKey: String { tool.path("vault-key") }
  private var former: String { tool.path("former-key") }

  private func copyStore(_ name: String) throws -> String {
    let path = tool.path(name)
    try FileManager.default.copyItem(atPath: tool.store, toPath: path)
    return path
  }

  /// Expects that the restore is refused with 2 without --accept-keys, that it names all of `parts`, and that nothing is
  /// changed.
  private func expectQuestion(
    _ backup: String, _ parts: String..., options: [String] = [], location: SourceLocation = #_sourceLocation
  ) throws {
    let before = try tool.contents(tool.store)
    let run = try tool.run(["restore-store", backup, "--no-input"] + options, input: "".utf8)
    #expect(run.code == 2, "\(run.message)", sourceLocation: location)
    for part in parts + ["--accept-keys", "Nothing was changed"] {
      #expect(run.message.contains(part), "\(part): \(run.message)", sourceLocation: location)
    }
    #expect(try tool.contents(tool.store) == before, sourceLocation: location)
    #expect(!tool.exists(tool.store + "-replaced-1"), sourceLocation: location)
  }

  /// A sealed value, and two slots of the vault.
  private func makeVault() throws {
    try tool.succeed("set", "a", "1")
    try tool.succeed("seal", "web", "--vault-key-file", vaultKey)
    try tool.succeed(
      "key", "add", "--vault", "--vault-key-file", vaultKey, "--new-key-file", former, "--label", "Mallory")
  }

  @Test("A slot of the vault that was dropped, and its former key, are named, in a copy of the file and in a backup")
  func vault() throws {
    try makeVault()
    let copy = try copyStore("copy.coffer")
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    try tool.succeed("key", "remove", "Mallory", "--vault", "--vault-key-file", vaultKey, "--force")
    for earlier in [copy, backup] { try expectQuestion(earlier, "\"Mallory\") of the vault opens it again") }
    let dropped = try copyStore("dropped.coffer")
    try tool.succeed("rotate", "--vault", "--vault-key-file", vaultKey)
    try expectQuestion(dropped, "The vault is under another key")
    try tool.succeed("restore-store", dropped, "--accept-keys")
    try tool.succeed("set", "--secret", "web/x", "-", "--vault-key-file", vaultKey, input: "s")
  }

  @Test("A key that the vault has lost since is named, too; one that is the same is not")
  func vaultLost() throws {
    try tool.succeed("set", "a", "1")
    try tool.succeed("seal", "web", "--vault-key-file", vaultKey)
    let copy = try copyStore("copy.coffer")
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    #expect(try tool.run("restore-store", copy, "--no-input").code == 0)
    #expect(try tool.run("restore-store", backup, "--no-input").code == 0)
    for name in ["-replaced-1", "-replaced-2"] { unlink(tool.store + name) }
    try tool.succeed("key", "add", "--vault", "--vault-key-file", vaultKey, "--new-key-file", former, "--label", "Ada")
    try expectQuestion(backup, "\"Ada\") of the vault does not open it any more")
  }

  @Test("A key that opens the backup and not the present store compares nothing, which is said")
  func otherKey() throws {
    try tool.succeed("set", "a", "1")
    let copy = try copyStore("copy.coffer")
    try tool.succeed("key", "replace")
    let leaked = tool.keyFile + "-replaced-1"
    for options in [[], ["--force"]] {
      try expectQuestion(
        copy, "does not open the store that is replaced", "slot 0 (key file) opens the store again",
        "slot 1 (key file) does not open it any more", options: options + ["--key-file", leaked])
    }
    try tool.succeed("restore-store", copy, "--key-file", leaked, "--accept-keys")
  }

  /// Expects that nothing is restored where no store is without --accept-keys, and that the question has all of `parts`.
  private func expectQuestionOfRecord(
    _ backup: String, _ parts: String..., location: SourceLocation = #_sourceLocation
  ) throws {
    let run = try tool.run("restore-store", backup, "--no-input")
    #expect(run.code == 2, "\(run.message)", sourceLocation: location)
    for part in parts + ["There is no store any more", "--accept-keys", "Nothing was changed"] {
      #expect(run.message.contains(part), "\(part): \(run.message)", sourceLocation: location)
    }
    #expect(!tool.exists(tool.store), sourceLocation: location)
  }

  @Test(
    "A store that is missing is compared by its record: keys replaced since, an older state, and another store are named"
  )
  func missingStore() throws {
    try makeVault()
    let first = try copyStore("first.coffer")
    try tool.succeed("set", "a", "2")
    let second = try copyStore("second.coffer")
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    unlink(tool.store)
    try expectQuestionOfRecord(first, "cannot be compared")
    try expectQuestionOfRecord(backup, "is no copy of the one last used here")
    // What is remembered brings nothing back.
    #expect(try tool.run("restore-store", second, "--no-input").code == 0)
    try tool.succeed("rotate", "--vault", "--vault-key-file", vaultKey, "--drop", "Mallory")
    let third = try copyStore("third.coffer")
    unlink(tool.store)
    try expectQuestionOfRecord(second, "The vault is under another key than the one last used")
    #expect(try tool.run("restore-store", third, "--no-input").code == 0)
    try tool.succeed("key", "add", "--new-key-file", tool.path("bob"), "--label", "Bob")
    let fourth = try copyStore("fourth.coffer")
    try tool.succeed("rotate", "--new-root-key", "--drop", "Bob")
    unlink(tool.store)
    try expectQuestionOfRecord(
      fourth, "under another root key", "\"Bob\") opens the store again", "anyone who had a slot then")
    // The refusals have changed nothing of what is remembered.
    try FileManager.default.copyItem(atPath: fourth, toPath: tool.store)
    #expect(try tool.run("get", "a").code == 17)
    unlink(tool.store)
    try tool.succeed("restore-store", fourth, "--accept-keys")
    #expect(try tool.succeed("get", "a") == "2\n")
  }

  @Test("A store that is older than its record vouches for no backup")
  func olderStore() throws {
    try tool.succeed("set", "a", "1")
    try tool.succeed("key", "add", "--new-key-file", tool.path("bob"), "--label", "Bob")
    let copy = try copyStore("copy.coffer")
    try tool.succeed("rotate", "--new-root-key", "--drop", "Bob")
    unlink(tool.store)
    try FileManager.default.copyItem(atPath: copy, toPath: tool.store)
    try expectQuestion(copy, "is not the one last used here")
  }

  @Test("A store that is damaged compares nothing, which is said")
  func damagedStore() throws {
    try tool.succeed("set", "a", "1")
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    var bytes = try tool.contents(tool.store)
    bytes[16_384 + 100] ^= 1
    try Data(bytes).write(to: URL(fileURLWithPath: tool.store))
    try expectQuestion(backup, "The store that is replaced does not open", "page 1")
    try tool.succeed("restore-store", backup, "--accept-keys")
    #expect(try tool.succeed("get", "a") == "1\n")
  }

  @Test("Slots that do not open the restored store are named: a recovery key, and the other members of a group")
  func lost() throws {
    let bob = tool.path("bob")
    try tool.succeed("set", "a", "1")
    try tool.succeed("key", "add", "--new-key-file", bob, "--label", "Bob")
    try tool.succeed("key", "recovery", "--label", "in the safe", "-o", tool.path("recovery"))
    let backup = tool.path("backup.coffer")
    let made = try tool.run("backup", backup, "--key-file", bob)
    #expect(made.message.contains("the copy opens with slot 1 (key file \"Bob\") only; not with slot 0 (key file)"))
    try expectQuestion(
      backup, "slot 0 (key file) does not open it any more", "\"in the safe\") does not open it any more",
      options: ["--key-file", bob])
    // A copy of the file has all that the store has.
    #expect(try tool.run("restore-store", copyStore("copy.coffer"), "--no-input").code == 0)
  }

  @Test("A store that the restored one is no copy of may have had slots that were removed: all of them are named")
  func otherStore() throws {
    try tool.succeed("set", "a", "1")
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    try tool.succeed("key", "add", "--new-key-file", tool.path("bob"), "--label", "Bob")
    try tool.succeed("restore-store", backup, "--accept-keys")
    try FileManager.default.moveItem(atPath: tool.store + "-replaced-1", toPath: tool.path("before.coffer"))
    try expectQuestion(tool.path("before.coffer"), "\"Bob\") opens the store again")
  }

  @Test("A backup with a page that does not authenticate replaces nothing, forced or not")
  func damagedBackup() throws {
    try tool.succeed("set", "a", "1")
    try tool.succeed("set", "big", "-", input: String(repeating: "b", count: 30_000))
    let (backup, damaged) = (tool.path("backup.coffer"), tool.path("damaged.coffer"))
    try tool.succeed("backup", backup)
    try tool.succeed("set", "a", "2")
    let whole = try tool.contents(backup)
    let before = try tool.contents(tool.store)
    let pages = (whole.count - 16_384) / 4096
    #expect(pages > 10)
    for page in stride(from: 0, to: pages, by: 3) {
      var bytes = whole
      bytes[16_384 + page * 4096 + 200] ^= 1
      try Data(bytes).write(to: URL(fileURLWithPath: damaged))
      for options in [[], ["--force", "--accept-keys"]] {
        let run = try tool.run(["restore-store", damaged] + options, input: "".utf8)
        #expect(run.code == 7, "page \(page + 1): \(run.message)")
        #expect(run.message.contains("the backup \(damaged) is damaged") && run.message.contains("prefs salvage"))
      }
    }
    for count in [whole.count - 4096, whole.count - 1000] {
      try Data(whole.prefix(count)).write(to: URL(fileURLWithPath: damaged))
      #expect(try tool.run("restore-store", damaged).code == 7)
    }
    #expect(try tool.contents(tool.store) == before && !tool.exists(tool.store + "-replaced-1"))
    try tool.succeed("restore-store", backup)
  }

  @Test("A folder in the place of a file of the store is refused before anything is made", arguments: ["-shm", "-wal"])
  func folder(_ suffix: String) throws {
    try tool.succeed("set", "a", "1")
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    try FileManager.default.createDirectory(atPath: tool.store + suffix, withIntermediateDirectories: false)
    let run = try tool.run("restore-store", backup, "--accept-keys")
    #expect(run.code == 14 && run.message.contains("it is a folder") && run.message.contains("Nothing was changed"))
    #expect(!tool.exists(tool.store + "-replaced-1"))
    rmdir(tool.store + suffix)
    try tool.succeed("restore-store", backup)
  }

  @Test(
    "Root, who restores another user's store, reads what that user does about the record", .enabled(if: getuid() == 0))
  func otherUser() throws {
    try tool.succeed("set", "a", "1")
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    let copy = try copyStore("copy.coffer")
    try #require(chown(tool.store, 12_345, 12_345) == 0)
    try #require(chown(URL(fileURLWithPath: tool.store).deletingLastPathComponent().path, 12_345, 12_345) == 0)
    for folder in ["", "/.local", "/.local/share"] { chmod(tool.home.path + folder, 0o755) }
    let run = try tool.run("restore-store", copy, "--accept-keys")
    #expect(run.code == 0 && run.message.contains("user 12345") && run.message.contains("prefs doctor --accept-older"))
    let other = try tool.run("restore-store", backup, "--accept-keys")
    #expect(other.code == 0 && !other.message.contains("accept-older"), "a backup is another store: \(other.message)")
  }
}
