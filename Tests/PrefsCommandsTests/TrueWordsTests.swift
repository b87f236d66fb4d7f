import Coffer
import Foundation
import TestSupport
import Testing

@testable import PrefsCommands

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("What commands say is true") struct TrueWordsTests {
  private let tool: Tool

  init() throws { tool = try Tool() }

  // MARK: - Suggestions and hints

  @Test("A suggestion names what is there, and never the empty name")
  func suggestions() throws {
    try tool.succeed("set", "web/p", "1")
    #expect(try !tool.run("get", "t/new").message.contains("did you mean"))
    #expect(try tool.run("get", "wed/p").message.contains("did you mean \"web/p\"?"))
    // A letter alone is near every other.
    try tool.succeed("set", "a", "1")
    for key in ["b", "ab", "web/q"] { #expect(try !tool.run("get", key).message.contains("did you mean"), "\(key)") }
    try tool.succeed("import", "-", "-c", "", "--format", "json", input: #"{"":"1"}"#)
    #expect(try !tool.run("get", "x").message.contains("did you mean"))
    #expect(try !tool.run("list", "x").message.contains("did you mean \"\""))
  }

  @Test("A hint keeps the options that name the store")
  func hints() throws {
    let store = tool.path("a store")
    try tool.succeed("set", "-d", store, "two words/k", "1")
    let named = try tool.run("get", "-d", store, "two words").message
    #expect(named.contains("prefs list 'two words' -d '\(store)'\n"), "\(named)")
    #expect(
      try tool.run("--env", "x", "-d", store, "get", "web/k").message.contains("prefs env create web@x -d '\(store)'"))
    try tool.succeed("--app", "org.example.app", "set", "k", "1")
    let missing = try tool.run("--app", "org.example.app", "--env", "x", "get", "k").message
    #expect(missing.contains("prefs env create org.example.app@x --app org.example.app"), "\(missing)")
  }

  @Test("get says that a key has expired, before and after its removal")
  func expired() throws {
    try tool.succeed("set", "web/token", "t", "--expires-in", "1s")
    var run = try tool.run("get", "web/token")
    while run.code == 0 { run = try tool.run("get", "web/token") }
    #expect(run.code == 3 && run.message.contains("it has expired at 20"), "\(run.message)")
    // The next writer removes it.
    try tool.succeed("set", "web/other", "1")
    #expect(try tool.run("get", "web/token").message.contains("it has expired at 20"))
    #expect(try !tool.run("get", "web/none").message.contains("expired"))
  }

  @Test("A name that is longer than a file name is a name, and no message shows a temporary name")
  func names() throws {
    try tool.succeed("set", "k", "1")
    let long = String(repeating: "n", count: 300)
    #expect(try tool.succeed("set", "-c", long, "k", "1") == "")
    #expect(try tool.succeed("get", "-c", long, "k") == "1\n")
    for arguments in [["get", "k"], ["export"], ["export", "--format", "sqlite"], ["inject", tool.path("template")]] {
      try tool.write("template", "x".utf8)
      let path = tool.path("none/out")
      let run = try tool.run(arguments + ["-o", path], input: [])
      #expect(
        run.code == 14 && run.message.contains(path) && !run.message.contains(".tmp"), "\(arguments) \(run.message)")
      #expect(!tool.exists(tool.path("none")), "\(arguments)")
    }
    let folder = try tool.run("export", "--format", "sqlite", "-o", tool.home.path)
    #expect(folder.code == 14 && folder.message == "prefs: \(tool.home.path): Is a directory.\n", "\(folder.message)")
    #expect(try tool.run("backup", "/proc/x").message.contains("/proc/x: no file can be created there"))
  }

  // MARK: - Environments

  @Test("No command makes an environment of a misspelt name")
  func misspelt() throws {
    try tool.succeed("set", "web/port", "--int", "80")
    try tool.succeed("set", "web/list", "[]", "--array")
    try tool.succeed("env", "create", "web@staging")
    let file = try tool.write("in.json", #"{"port": 1}"#.utf8)
    let whole = try tool.write("whole.json", #"{"web": {"port": 1}, "web@stagin": {"port": 2}}"#.utf8)
    let other = tool.path("other.coffer")
    try tool.succeed("init", "-d", other)
    try tool.succeed("env", "create", "web@staging", "-d", other)
    for arguments in [
      ["set", "web@stagin/port", "81"], ["set", "-c", "web@stagin", "port", "81", "--if-absent"],
      ["increment", "web@stagin/port"], ["append", "web@stagin/list", "x"], ["rename", "web/port", "web@stagin/port"],
      ["copy", "web", "web@stagin"], ["import", file, "--format", "json", "-c", "web@stagin"],
      ["revert", "web@stagin/port@1"], ["history", "--keep", "web@stagin"], ["history", "--off", "web@stagin"],
      ["seal", "web@stagin"], ["import", whole], ["import", whole, "--dry-run"],
      ["copy", "web", "web@stagin", "--to", other],
    ] {
      let run = try tool.run(arguments, input: [])
      #expect(run.code == 3 && run.message.contains("did you mean \"staging\"?"), "\(arguments) \(run.message)")
    }
    #expect(try tool.succeed("env", "list", "--plain") == "web@staging\t0\n")
    #expect(try tool.succeed("env", "list", "--plain", "-d", other) == "web@staging\t0\n")
    #expect(try tool.succeed("get", "web/port") == "80\n")
    let absent = try tool.run("set", "shop@test/k", "1")
    #expect(absent.code == 3 && absent.message.contains("prefs env create shop@test"))
    // Of a store that is made of a file, the file says what there is; and what is there already may be imported.
    let new = tool.path("new.coffer")
    try tool.succeed("import", whole, "-d", new)
    try tool.succeed("import", whole, "-d", new)
    #expect(try tool.succeed("env", "list", "--plain", "-d", new) == "web@stagin\t1\n")
    #expect(try tool.succeed("set", "user@example.org/k", "1") == "", "no name of an environment has a dot")
  }

  // MARK: - Copies

  @Test("A folder that is not there is not made for a copy, or for its key")
  func missingFolder() throws {
    try tool.succeed("set", "a", "1")
    let stick = tool.path("media/stick")
    for arguments in [
      ["backup", stick + "/x"], ["salvage", "-o", stick + "/x"],
      ["backup", tool.path("x"), "--new-key-file", stick + "/key"],
      ["salvage", "-o", tool.path("x"), "--new-key-file", stick + "/key"],
      ["key", "add", "--new-key-file", stick + "/key"],
    ] {
      let run = try tool.run(arguments, input: [])
      #expect(run.code == 14 && run.message.contains("there is no folder \(stick)"), "\(arguments) \(run.message)")
      #expect(!tool.exists(tool.path("media")) && !tool.exists(tool.path("x")), "\(arguments)")
    }
  }

  @Test("backup - writes the copy to standard output, and leaves nothing behind")
  func stream() throws {
    try tool.succeed("set", "a", "1")
    try FileManager.default.createDirectory(atPath: tool.path("tmp"), withIntermediateDirectories: false)
    let run = try tool.run("backup", "-", environment: ["TMPDIR": tool.path("tmp")])
    #expect(run.code == 0 && run.message == "prefs: copied the store to standard output.\n")
    #expect(try FileManager.default.contentsOfDirectory(atPath: tool.path("tmp")) == [])
    #expect(!tool.exists("./-"))
    let copy = try tool.write("copy", run.output)
    #expect(try tool.succeed("get", "-d", copy, "a") == "1\n")
  }

  @Test("backup - that is killed leaves nothing once it sends, and what it left before goes with a later one")
  func streamKilled() throws {
    try tool.succeed("set", "a", "-", input: String(repeating: "x", count: 300_000))
    let folder = tool.path("tmp")
    func make(_ name: String, hours: Int) throws {
      try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
      for path in ["copy.coffer", "copy.coffer-wal", ".copy.coffer.0123456789abcdef.tmp"].map({
        "\(folder)/\(name)/\($0)"
      })
        + ["\(folder)/\(name)"]
      {
        if path != "\(folder)/\(name)" { try Data("x".utf8).write(to: URL(fileURLWithPath: path)) }
        var times = [timeval](repeating: timeval(tv_sec: time(nil) - hours * 3600, tv_usec: 0), count: 2)
        try #require(utimes(path, &times) == 0)
      }
    }
    try make("prefs-backup-old", hours: 2)
    try make("prefs-backup-new", hours: 0)
    try make("other", hours: 2)
    let pipe = tool.path("pipe")
    try #require(mkfifo(pipe, 0o600) == 0)
    let reader = open(pipe, O_RDONLY | O_NONBLOCK)
    defer { close(reader) }
    let child = try tool.spawn(
      ["backup", "-"], files: [(1, pipe, O_WRONLY), (2, tool.path("messages"), O_WRONLY | O_CREAT)],
      environment: ["TMPDIR": folder])
    try #require(fcntl(reader, F_SETFL, 0) == 0)
    var byte: UInt8 = 0
    #expect(read(reader, &byte, 1) == 1)
    #expect(Set(try FileManager.default.contentsOfDirectory(atPath: folder)) == ["prefs-backup-new", "other"])
    kill(child, SIGKILL)
    #expect(try Tool.exitCode(of: child) == 128 + SIGKILL)
    #expect(try FileManager.default.contentsOfDirectory(atPath: "\(folder)/other").count == 3)
  }

  @Test(
    "On a full disk the message names the way out, and it works",
    .enabled(if: geteuid() == 0 && access("/usr/bin/unshare", X_OK) == 0))
  func fullDisk() throws {
    let script = """
      mkdir full && mount -t tmpfs -o size=512k none full || exit 99
      "$0" init -q -d full/s --key-file key && "$0" set -q -d full/s --key-file key a 1 || exit 98
      dd if=/dev/zero of=full/rest bs=1k 2>/dev/null
      head -c 200000 /dev/zero | tr '\\0' x | "$0" set -d full/s --key-file key b - ; echo "code $?" >&2
      "$0" backup -d full/s --key-file key copy && "$0" get -d copy --key-file key a
      truncate -s -30k full/rest
      "$0" export -q --format sqlite -d full/s --key-file key -o full/x.sqlite; "$0" init -q -d full/y --key-file key
      "$0" salvage -d full/s --key-file key -o full/z
      """
    let run = try tool.run(
      ["--mount", "sh", "-c", "cd \(tool.home.path) && " + script, Tool.executable], input: [],
      program: "/usr/bin/unshare")
    #expect(run.message.contains("code 14"), "\(run.message)")
    #expect(run.message.contains("prefs backup OTHER-DISK/FILE -d full/s --key-file key"), "\(run.message)")
    #expect(run.text == "1\n", "\(run.message)")
    for name in ["x.sqlite", "y", "z"] { #expect(run.message.contains("full/\(name)."), "\(run.message)") }
    #expect(!run.message.contains(".tmp"), "\(run.message)")
  }

  @Test(
    "On a small disk that the log has filled, set goes on: the log is checkpointed, and starts over",
    .enabled(if: geteuid() == 0 && access("/usr/bin/unshare", X_OK) == 0))
  func smallDisk() throws {
    let script = """
      mkdir small && mount -t tmpfs -o size=256k,mode=700 none small || exit 99
      export PREFS_STORE=small/s PREFS_KEY_FILE=key
      "$0" init -q && "$0" set -q a 0 || exit 98
      mkfifo ready; "$0" watch --plain --since 0 > ready & exec 3< ready; "$0" set -q a 1; read -r line <&3
      for i in $(seq 2 40); do "$0" set -q a $i || exit 97; done
      "$0" get a; "$0" doctor >&2 || exit 96
      kill $!
      """
    let run = try tool.run(
      ["--mount", "bash", "-c", "cd \(tool.home.path) && " + script, Tool.executable], input: [],
      program: "/usr/bin/unshare")
    #expect(run.text == "40\n", "\(run.code) \(run.message)")
  }

  @Test("compact shrinks the file also while another program has the store open")
  func compact() throws {
    try tool.succeed("set", "a", "1")
    let watch = try Watch(tool)
    for name in ["x", "y"] { try tool.succeed("set", name, "-", input: String(repeating: "v", count: 400_000)) }
    try tool.succeed("unset", "x", "y")
    let run = try tool.run("compact")
    #expect(run.code == 0 && run.message.contains("with its log, and takes"), "\(run.message)")
    let size = try FileManager.default.attributesOfItem(atPath: tool.store)[.size] as? Int
    #expect(try #require(size) < 200_000)
    _ = try watch.end()
  }

  // MARK: - Keys

  @Test("init --group gives no advice that would lock the group out", .enabled(if: geteuid() == 0))
  func groupAdvice() throws {
    let (store, key) = (tool.path("shared/s.coffer"), tool.path("shared/key"))
    let made = try tool.run("init", "--store", store, "--key-file", key, "--group", "daemon")
    #expect(made.code == 0 && !made.message.contains("chmod"), "\(made.message)")
    #expect(try tool.mode(key) == 0o640)
    let added = try tool.run("key", "add", "-d", store, "--key-file", key, "--new-key-file", tool.path("shared/key2"))
    #expect(added.code == 0 && !added.message.contains("chmod"), "\(added.message)")
    chmod(key, 0o644)
    #expect(try tool.run("list", "-d", store, "--key-file", key).message.contains("Run: chmod o-rwx \(key)"))
    try tool.succeed("set", "a", "1")
    chmod(tool.keyFile, 0o640)
    #expect(try tool.run("get", "a").message.contains("Run: chmod 600 \(tool.keyFile)"))
  }

  @Test("The recovery key of the vault says that it opens the vault, and not the store")
  func vaultRecovery() throws {
    try tool.succeed("set", "s/k", "v")
    let key = tool.path("vk")
    try tool.succeed("seal", "s", "--vault-key-file", key)
    let refused = try tool.run("key", "recovery", "--vault", "--vault-key-file", key)
    #expect(refused.code == 2 && refused.message.contains("opens the vault"))
    let added = try tool.run("key", "recovery", "--vault", "--vault-key-file", key, "-o", tool.path("r"))
    #expect(added.message.contains("opens the vault") && added.message.contains("does not open the store"))
    let recovery = String(decoding: try tool.contents(tool.path("r")), as: UTF8.self)
    let unlocked = try tool.run("unlock", "--vault-recovery-key-fd", "3", descriptors: [3: recovery])
    #expect(unlocked.code == 0, "\(unlocked.message)")
    try tool.succeed("lock")
    let own = try tool.run("key", "recovery", "-o", tool.path("r2"))
    #expect(own.message.contains("opens the store") && own.message.contains("not its vault"))
  }

  // MARK: - Reports

  @Test("Commands that change something report on standard error, and print nothing else")
  func reports() throws {
    let file = try tool.write("in.json", #"{"web": {"port": 1}}"#.utf8)
    let commands: [([String], says: Bool)] = [
      (["init"], true), (["set", "a", "1"], false), (["import", file, "--format", "json"], true),
      (["copy", "web", "next"], true), (["rename", "a", "b"], false), (["history", "--keep", "web"], false),
      (["key", "add", "--new-key-file", tool.path("k2")], true), (["rotate"], true), (["compact"], true),
      (["backup", tool.path("copy")], true),
      (["restore-store", tool.path("copy"), "--accept-keys"], true), (["env", "create", "web@s"], false),
      (["unset", "b"], false),
      (["seal", "next", "--vault-key-file", tool.path("vk")], true),
      (["unlock", "--vault-key-file", tool.path("vk")], true),
      (["lock"], false), (["unseal", "next", "--vault-key-file", tool.path("vk")], true),
      (["destroy", "--confirm", "settings.coffer"], true),
    ]
    for (arguments, says) in commands {
      let run = try tool.run(arguments, input: [])
      #expect(run.code == 0 && run.text == "", "\(arguments) \(run.text) \(run.message)")
      if says { #expect(!run.message.isEmpty, "\(arguments)") }
    }
  }

  @Test("list -l names its columns, for people alone")
  func columns() throws {
    try tool.succeed("set", "web/port", "--int", "80")
    #expect(try tool.succeed("list", "web", "-l").hasPrefix("KEY   TYPE  BYTES  VERSION  CHANGED\nport  int "))
    #expect(try tool.succeed("list", "web", "-l", "--values").contains("CHANGED                   VALUE\n"))
    #expect(try tool.succeed("list", "web", "-l", "--plain").hasPrefix("port\tint"))
    #expect(try tool.succeed("list", "web", "--values") == "port  80\n")
  }

  @Test("status says whether the vault is unlocked, and until when", arguments: [false, true])
  func vault(_ isRefusedKeyrings: Bool) throws {
    let tool = try Tool(isRefusedKeyrings: isRefusedKeyrings)
    try tool.succeed("set", "s/k", "v")
    #expect(try !tool.succeed("status").contains("vault"))
    #expect(try tool.succeed("status", "--json").contains(#""vault":"none","unlockedUntil":null"#))
    try tool.succeed("seal", "s", "--vault-key-file", tool.path("vk"))
    #expect(try tool.succeed("status").contains("vault        locked\n"))
    try tool.succeed("unlock", "--vault-key-file", tool.path("vk"), "--ttl", "2h")
    #expect(try tool.succeed("status").contains("vault        unlocked until 20"))
    let json = Data(try tool.succeed("status", "--json").utf8)
    let object = try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
    let end = try #require(Timestamp.date(object["unlockedUntil"] as? String ?? ""))
    // Nothing here takes an hour.
    #expect(object["vault"] as? String == "unlocked" && (3600...7200).contains(end.timeIntervalSinceNow))
    #expect(try tool.succeed("get", "s/k") == "v\n")
    try tool.succeed("lock")
    #expect(try tool.succeed("status", "--json").contains(#""vault":"locked","unlockedUntil":null"#))
  }

  @Test("The exit codes that the help of the commands names are the real ones")
  func exitCodes() throws {
    try tool.succeed("set", "web/port", "--int", "80")
    try tool.succeed("set", "web/other", "x")
    let key = tool.path("vk")
    try tool.succeed("set", "vault/k", "v")
    try tool.succeed("seal", "vault", "--vault-key-file", key)
    try tool.succeed("set", "web/due", "x", "--due", "1d")
    let cases: [([String], Int32)] = [
      (["exec", "--only", "none", "--", "true"], 125), (["exec", "--", tool.home.path], 126),
      (["exec", "--", "no-such-program"], 127), (["set", "web/port", "x"], 8),
      (["increment", "web/port", "\(UInt64.max)"], 8), (["unset", "web/none"], 3), (["find", "nowhere"], 3),
      (["rename", "web/port", "web/other"], 9), (["rename", "vault/k", "web/k", "--vault-key-file", key], 11),
      (["copy", "web", "vault", "--only", "port", "--vault-key-file", key], 0),
      (["copy", "vault", "web", "--vault-key-file", key], 11), (["list", "--due", "30d"], 16),
      (["inject", "-"], 0), (["env", "remove", "web@none"], 3), (["diff", "web", "vault", "--vault-key-file", key], 1),
    ]
    for (arguments, code) in cases {
      let run = try tool.run(arguments, input: [])
      #expect(run.code == code, "\(arguments): \(run.code) \(run.message)")
    }
    #expect(try tool.run("inject", "-", input: "{{prefs:none}}").code == 3)
    #expect(try tool.run("inject", "-", input: "{{prefs:}}").code == 8)
  }
}

@Suite("The pages of the help") struct HelpPageTests {
  @Test("The first page has every command on a line, those of the first day first, in 60 lines")
  func top() throws {
    let tool = try Tool()
    let text = try tool.succeed("--help")
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count <= 60 && lines.allSatisfy { $0.count <= 80 }, "\(lines.count)")
    let names = lines.filter { $0.hasPrefix("  ") }.compactMap { $0.split(separator: " ").first.map(String.init) }
    #expect(names.prefix(6) == ["set", "get", "list", "unset", "exec", "backup"])
    let all = PrefsCommand.configuration.subcommands.filter { $0.configuration.shouldDisplay }
    for command in all {
      #expect(names.count { $0 == command.configuration.commandName } == 1, "\(command)")
    }
  }

  @Test(
    "The common options are on a page of their own, and on no other", arguments: ["get", "exec", "key add", "unlock"])
  func options(_ command: String) throws {
    let tool = try Tool()
    let options = try tool.succeed("help", "options")
    for name in CommandArguments.optionsWithValue { #expect(options.contains(name), "\(name)") }
    #expect(options.contains("PREFS_KEY_FILE") && options.contains("--no-input"))
    let words = command.split(separator: " ").map(String.init)
    let page = try tool.run(["help"] + words, input: []).text
    #expect(page.contains("\nCOMMON OPTIONS: `prefs help options`\n") && !page.contains("--recovery-key-fd <n>   Read"))
    #expect(page.contains("OPTIONS:\n") && page.contains("--help"))
  }

  @Test("In the public interface an environment is a collection's, and a lock says whose it is")
  func interface() throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../Documentation/PublicInterface")
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    let lines = try files.flatMap { file in
      try String(contentsOf: file, encoding: .utf8).replacing("ProcessInfo.processInfo.environment", with: "")
        .split(separator: "\n").map(String.init)
    }
    let environments = lines.filter { $0.lowercased().contains("environment") }
    let ofCollections = ["CofferError: case environmentNotFound(", "Preferences: ", "ReadWriteTransaction: "]
    #expect(!environments.isEmpty)
    for line in environments { #expect(ofCollections.contains(where: line.hasPrefix), "\(line)") }
    let locks = lines.filter { $0.contains(#/\b(un)?locked|Locked|\b(un)?lock\(/#) }
    #expect(!locks.isEmpty)
    for line in locks {
      #expect(
        line.contains("case lockedByAdministrator(") || line.contains("case vaultLocked")
          || line.hasPrefix("Vault: ") || line.hasPrefix("VaultEvent: "), "\(line)")
    }
  }

  @Test("The article lists every name that exec refuses, and every command that has a near-twin")
  func article() throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../Sources/Coffer/Coffer.docc")
    let tool = try String(contentsOf: folder.appendingPathComponent("CommandLineTool.md"), encoding: .utf8)
    for name in EnvironmentVariables.loadingNames { #expect(tool.contains("`\(name)`"), "\(name)") }
    for prefix in EnvironmentVariables.loadingPrefixes { #expect(tool.contains("`\(prefix)*`"), "\(prefix)") }
    let twins = try String(contentsOf: folder.appendingPathComponent("WhichCommand.md"), encoding: .utf8)
    for name in [
      "revert", "restore-store", "salvage", "unset", "destroy", "validate", "doctor", "status", "history", "log",
      "watch",
      "lock", "env", "edit", "backup", "copy", "export",
    ] {
      #expect(PrefsCommand.isBuiltIn(name) && twins.contains("`prefs \(name)"), "\(name)")
    }
  }
}
