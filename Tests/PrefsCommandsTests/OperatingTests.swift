import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("Operating a store")
struct OperatingTests {
  // MARK: Paths

  @Test("With --must-exist or PREFS_MUST_EXIST a missing store is 4 for every command, and nothing is created")
  func mustExist() throws {
    let tool = try Tool()
    for arguments in [
      ["set", "a", "1"], ["append", "a", "1"], ["increment", "a"], ["import", "-"], ["import", "-", "--dry-run"],
    ] {
      #expect(try tool.run(arguments + ["--must-exist"], input: "{}".utf8).code == 4, "\(arguments)")
      #expect(try tool.run(arguments, input: "{}".utf8, environment: ["PREFS_MUST_EXIST": "1"]).code == 4)
    }
    #expect(!tool.exists(tool.store) && !tool.exists(tool.keyFile))
    try tool.succeed("set", "a", "1", environment: ["PREFS_MUST_EXIST": "0"])
    try tool.succeed("set", "a", "2", "--must-exist")
  }

  #if os(Linux)
    @Test("A missing /proc, which has the arguments, is reported", .enabled(if: getuid() == 0, "it takes root"))
    func noArguments() throws {
      let script = #"mount -t tmpfs tmpfs /proc; exec "$0" get a"#
      let run = try Tool().run(
        ["-m", "sh", "-c", script, Tool.executable], input: "".utf8, environment: ["PATH": "/usr/bin:/bin"],
        program: "/usr/bin/unshare")
      #expect(run.code == 1 && run.text.isEmpty && run.message.hasPrefix("prefs: the arguments cannot be read"))
    }
  #endif

  // MARK: Keys

  @Test("A wrong or mistyped key is an error that names the slots of the store")
  func wrongKey() throws {
    let tool = try Tool()
    try tool.succeed("set", "a", "1")
    try tool.succeed("key", "recovery", "--label", "safe", "-o", tool.path("recovery"))
    try tool.succeed("init", "-d", tool.path("other"), "--key-file", tool.path("other-key"))
    for run in [
      try tool.run("get", "a", "--key-file", tool.path("other-key")),
      try tool.run("set", "a", "2", "--passphrase-fd", "3", descriptors: [3: "guess"]),
    ] {
      #expect(run.code == 5 && run.message.contains("a recovery key labelled \"safe\" (--recovery-key-fd)"))
      #expect(run.message.contains("a key file (--key-file)") && run.message.contains(tool.store))
    }
  }

  @Test("A missing key file is reported with the other ways to open the store, if any")
  func goneKeyFile() throws {
    let tool = try Tool()
    try tool.succeed("set", "a", "1")
    let alone = try tool.run("get", "a", "--key-file", tool.path("none"))
    #expect(alone.code == 6 && !alone.message.contains("What opens it"))
    try tool.succeed("key", "recovery", "--label", "safe", "-o", tool.path("paper"))
    for run in [
      try tool.run("get", "a", "--key-file", tool.path("none")),
      try tool.run("get", "a", environment: ["PREFS_KEY_FILE": tool.path("none")]),
    ] {
      #expect(run.code == 6 && run.message.contains("a recovery key labelled \"safe\" (--recovery-key-fd)"))
    }
  }

  @Test("Any command takes the key of the vault by file, descriptor or environment, and leaves it locked")
  func vaultKey() throws {
    let tool = try Tool()
    let key = tool.path("vault-key")
    try tool.succeed("set", "c/k", "1")
    try tool.succeed("seal", "c", "--vault-key-file", key)
    #expect(try tool.succeed("get", "c/k", "--vault-key-file", key) == "1\n")
    #expect(try tool.succeed("get", "c/k", environment: ["PREFS_VAULT_KEY_FILE": key]) == "1\n")
    let text = String(decoding: try tool.contents(key), as: UTF8.self)
    #expect(try tool.run("get", "c/k", "--vault-key-fd", "3", descriptors: [3: text]).text == "1\n")
    let passphrase = try tool.run("get", "c/k", "--vault-key-fd", "3", descriptors: [3: "hunter2"])
    #expect(passphrase.code == 6 && passphrase.message.contains("prefs unlock --vault-passphrase-fd"))
    try tool.succeed("set", "c/k", "-", "--vault-key-file", key, input: "2")
    #expect(try tool.succeed("--vault-key-file", key, "get", "c/k") == "2\n")
    try tool.succeed("unseal", "c", environment: ["PREFS_VAULT_KEY_FILE": key])
    try tool.succeed("seal", "c", environment: ["PREFS_VAULT_KEY_FILE": key])
    let locked = try tool.run("get", "c/k")
    #expect(locked.code == 6 && locked.message.contains("--vault-key-file"))
    #expect(try tool.run("get", "c/k", "--vault-key-file", tool.keyFile).code == 5)
    #expect(try tool.run("get", "c/k", "--vault-key-file", tool.path("none")).code == 6)
  }

  // The store is open by the time the vault's key is wanted, as one of the lowest descriptors.
  @Test("A descriptor that was not passed is refused, and not a file of the tool's own")
  func unpassedDescriptor() throws {
    let tool = try Tool()
    try tool.succeed("set", "c/k", "1")
    try tool.succeed("seal", "c", "--vault-key-file", tool.path("vault-key"))
    for descriptor in 3...8 {
      for words in [["get", "c/k", "--vault-key-fd"], ["unlock", "--vault-passphrase-fd"]] {
        let run = try tool.run(words + ["\(descriptor)"], input: [])
        #expect(run.code == 6 && run.message.contains("file descriptor \(descriptor) is not open"), "\(run)")
      }
    }
    let sameWord = try tool.run(["get", "c/k", "--vault-key-fd=5"], input: [])
    #expect(sameWord.code == 6 && sameWord.message.contains("file descriptor 5 is not open"))
  }

  // MARK: Restoring

  @Test("restore-store replaces the store by a backup and keeps the old one; an open store needs --force")
  func restoring() throws {
    let tool = try Tool()
    try tool.succeed("set", "a", "old")
    try tool.succeed("backup", tool.path("monday.coffer"))
    try tool.succeed("set", "a", "new")
    let watch = try Watch(tool, "--json", "--values")
    let refused = try tool.run("restore-store", tool.path("monday.coffer"))
    #expect(refused.code == 10 && refused.message.contains("--force"))
    let run = try tool.run("restore-store", tool.path("monday.coffer"), "--force")
    #expect(run.code == 0 && run.message.contains(tool.store + "-replaced-1"))
    #expect(try tool.succeed("get", "a") == "old\n")
    try tool.succeed("set", "a", "later")
    while try !#require(try watch.output.next()).contains("\"later\"") {}
    #expect(try watch.messages.next()?.contains("the store was replaced") == true)
    _ = try watch.end()
    #expect(try tool.succeed("get", "a", "-d", tool.store + "-replaced-1") == "new\n")
    // Elsewhere, the key is not where commands look for it.
    let elsewhere = try Tool()
    let restored = try elsewhere.run("restore-store", tool.path("monday.coffer"), "--key-file", tool.keyFile)
    #expect(restored.code == 0 && restored.message.contains("commands look for the key at"), "\(restored)")
    try tool.succeed("restore-store", tool.path("monday.coffer"), "-q")
    #expect(try tool.run("restore-store", tool.path("none")).code == 4)
    let itself = try tool.run("restore-store", tool.store)
    #expect(itself.code == 2 && itself.message.contains("is the store itself"))
  }

  // MARK: No room

  @Test(
    "On a full disk doctor finds nothing lost, with the store open and a failed transaction",
    .enabled(if: getuid() == 0, "it takes root to mount a small disk"))
  func fullDisk() throws {
    let tool = try Tool()
    let script = """
      "$0" -q set small 1; "$0" set big - < value
      mkfifo words
      "$0" watch -v > /dev/null 2> words & watch=$!
      read -r line < words
      "$0" set x 1
      head -c 2000000 /dev/zero > disk/fill 2> /dev/null || true
      truncate -s -100k disk/fill
      set +e
      "$0" set more - < value; echo "set $?"
      "$0" doctor > doctor; echo "doctor $?"; cat doctor
      rm disk/fill; "$0" set more - < value; echo "set $?"
      kill $watch; wait $watch
      """
    let text = try tool.onSmallDisk(script)
    #expect(text.contains("set 14\ndoctor 0\n") && text.hasSuffix("set 0\n"), "\(text)")
    #expect(text.contains("No problems found"))
  }

  @Test(
    "On a full disk a copy elsewhere is compacted and restored, with only the commands in Durability",
    .enabled(if: getuid() == 0, "it takes root to mount a small disk"))
  func smallerCopy() throws {
    let tool = try Tool()
    let script = """
      "$0" -q set small 1; "$0" set cache/a - < value; "$0" set cache/b - < value
      head -c 2000000 /dev/zero > disk/fill 2> /dev/null || true
      set +e
      "$0" unset cache/a; echo "unset $?"
      set -e
      "$0" -q backup copy.coffer
      "$0" -d copy.coffer unset cache/a
      "$0" -q -d copy.coffer compact
      rm disk/s.coffer
      "$0" -q restore-store copy.coffer
      "$0" set more 1
      "$0" list; "$0" doctor > /dev/null; echo "doctor $?"
      """
    let text = try tool.onSmallDisk(script)
    #expect(text == "unset 14\nmore\nsmall\ndoctor 0\n", "\(text)")
  }

  // MARK: For programs

  @Test(
    "A command that fails with --json prints one object",
    arguments: [
      (["get", "x", "--json"], 3, "notFound"), (["list", "none", "--json"], 3, "notFound"),
      (["get", "x", "--json", "--key-file", "none"], 6, "keyUnavailable"),
      (["doctor", "--json", "-d", "none"], 4, "storeNotFound"),
      (["diff", "--json", "-d", "none", "a", "b"], 4, "storeNotFound"),
      (["key", "list", "--json", "-d", "none"], 4, "storeNotFound"),
      (["find", "--json", "--nonsense"], 2, "usage"),
    ])
  func json(_ arguments: [String], _ code: Int32, _ error: String) throws {
    let tool = try Tool()
    try tool.succeed("set", "a", "1")
    let run = try tool.run(arguments, input: "".utf8)
    #expect(run.code == code)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(run.output)) as? [String: Any])
    #expect(object["error"] as? String == error && object["code"] as? Int32 == code)
    #expect(run.message == "prefs: \(try #require(object["message"] as? String))\n" || error == "usage")
    if error == "notFound" { #expect(object["store"] as? String == tool.store) }
  }

  // MARK: Users

  @Test("A store that belongs to another user is 15", .enabled(if: ReadOnlyStoreTests.canRun && getuid() == 0))
  func otherUser() throws {
    let tool = try Tool()
    try tool.succeed("set", "a", "1")
    try #require(chown(tool.home.path, 65534, 65534) == 0 && chown(tool.keyFile, 65534, 65534) == 0)
    for path in [tool.store, tool.keyFile] {
      for folder in [(path as NSString).deletingLastPathComponent] { try #require(chmod(folder, 0o755) == 0) }
    }
    try #require(chown(tool.store, 1001, 1001) == 0)
    for command in [["get", "a"], ["set", "a", "2"], ["doctor"]] {
      let run = ReadOnlyStoreTests.run(
        [Tool.executable] + command + ["-d", tool.store, "--key-file", tool.keyFile])
      #expect(run.code == 15, "\(command)")
    }
  }

  @Test("init --group creates store and key file for a group", .enabled(if: getuid() == 0))
  func group() throws {
    let tool = try Tool()
    try tool.succeed(
      "init", "--group", "3000", "-d", tool.path("shared/settings.coffer"), "--key-file", tool.path("shared/key"))
    #expect(try tool.mode(tool.path("shared")) == 0o2770)
    #expect(try tool.mode(tool.path("shared/settings.coffer")) == 0o660 && tool.mode(tool.path("shared/key")) == 0o640)
    let run = try tool.run("doctor", "-d", tool.path("shared/settings.coffer"), "--key-file", tool.path("shared/key"))
    #expect(
      run.code == 0 && run.text.contains("Group 3000 shares the store") && !run.message.contains("open to others"))
    let unknown = try tool.run(
      "init", "--group", "no such group", "-d", tool.path("other"), "--key-file", tool.path("k"))
    #expect(unknown.code == 2 && unknown.message.contains("there is no group \"no such group\""))
    #expect(!FileManager.default.fileExists(atPath: tool.path("k")))
  }
}

extension Tool {
  /// Runs a script of bash, whose `$0` is the tool, with its store on a small disk and a file `value` that fills much of it.
  ///
  /// - Returns: What it prints.
  fileprivate func onSmallDisk(_ script: String) throws -> String {
    let beginning = """
      set -e
      cd
      mkdir disk && mount -t tmpfs -o size=900k,mode=700 tmpfs disk
      export PREFS_STORE=$PWD/disk/s.coffer PREFS_KEY_FILE=$PWD/key
      head -c 100000 /dev/urandom | base64 -w0 > value

      """
    // The mount ends with the script.
    return try run(
      ["-m", "bash", "-c", beginning + script, Tool.executable], input: "".utf8,
      environment: ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin"], program: "/usr/bin/unshare"
    ).text
  }
}
