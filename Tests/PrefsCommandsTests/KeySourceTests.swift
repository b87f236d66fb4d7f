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

@Suite("Where the key comes from")
struct KeySourceTests {
  @Test("The first set creates a key file and a store that only their owner can read")
  func firstSet() throws {
    let tool = try Tool()
    let run = try tool.run("set", "x", "1")
    #expect(run.code == 0 && run.text == "")
    #expect(run.message.contains(tool.store) && run.message.contains(tool.keyFile))
    for path in [tool.store, tool.keyFile] { #expect(try tool.mode(path) == 0o600) }
    for path in [".local/share/prefs", ".config/prefs"] { #expect(try tool.mode(tool.path(path)) == 0o700) }
    #expect(try tool.run("set", "x", "2").message == "")
    #expect(try tool.run("-q", "set", "x", "2", "-d", tool.path("quiet")).message == "")
  }

  @Test("init creates the same, and reports it only on standard error")
  func initialize() throws {
    let tool = try Tool()
    let run = try tool.run("init")
    #expect(run.code == 0 && run.text == "" && run.message.contains(tool.store))
    try tool.succeed("set", "x", "1")
    #expect(try tool.succeed("get", "x") == "1\n")
  }

  @Test("A wrong key is 5, a missing one 6, and neither changes anything")
  func wrongKey() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    let bytes = try tool.contents(tool.store)
    try tool.succeed("init", "-d", tool.path("other"), "--key-file", tool.path("other-key"))
    #expect(try tool.run("get", "x", "--key-file", tool.path("other-key")).code == 5)
    #expect(try tool.run("set", "x", "2", "--key-file", tool.path("other-key")).code == 5)
    #expect(try tool.run("get", "x", "--passphrase-fd", "3", descriptors: [3: "guess"]).code == 5)
    #expect(try tool.run("get", "x", "--key-file", tool.path("none")).code == 6)
    #expect(try tool.run("get", "x", "--key-file", try tool.write("text", "no key".utf8)).code == 6)
    #expect(try tool.run("get", "x", "--key-fd", "3", descriptors: [3: ""]).code == 6)
    #expect(try tool.run("get", "x", "--key-fd", "9").code == 6)
    unlink(tool.keyFile)
    let run = try tool.run("get", "x")
    #expect(run.code == 6 && run.message.contains(tool.keyFile))
    #expect(try tool.run("set", "x", "2").code == 6)
    #expect(!tool.exists(tool.keyFile), "no new key is made for a store that has one")
    #expect(try tool.contents(tool.store) == bytes)
  }

  @Test("Options come before PREFS_KEY_FILE, PREFS_KEY_COMMAND, the credential and the default file")
  func order() throws {
    let tool = try Tool()
    let right = tool.path("right")
    let wrong = tool.path("wrong")
    let store = tool.path("store")
    try tool.succeed("set", "x", "1", "-d", store, "--key-file", right)
    try tool.succeed("init", "-d", tool.path("other"), "--key-file", wrong)
    try FileManager.default.createDirectory(atPath: tool.path("credentials"), withIntermediateDirectories: false)
    try tool.write("credentials/prefs-key", try tool.contents(right))
    try FileManager.default.createDirectory(atPath: tool.path("bad"), withIntermediateDirectories: false)
    try tool.write("bad/prefs-key", try tool.contents(wrong))

    let key = String(decoding: try tool.contents(right), as: UTF8.self)
    let get = ["get", "x", "-d", store]
    func code(_ options: [String], _ environment: [String: String]) throws -> Int32 {
      try tool.run(get + options, input: "".utf8, descriptors: [5: key], environment: environment).code
    }
    let bad = ["PREFS_KEY_FILE": wrong, "PREFS_KEY_COMMAND": "cat \(wrong)", "CREDENTIALS_DIRECTORY": tool.path("bad")]
    #expect(try code([], bad) == 5)
    #expect(try code(["--key-file", right], bad) == 0)
    #expect(try code(["--key-fd", "5"], bad) == 0)
    #expect(try code([], bad.merging(["PREFS_KEY_FILE": right]) { $1 }) == 0)
    #expect(try code([], bad.merging(["PREFS_KEY_FILE": "", "PREFS_KEY_COMMAND": "cat \(right)"]) { $1 }) == 0)
    #expect(try code([], ["CREDENTIALS_DIRECTORY": tool.path("credentials")]) == 0)
    #expect(try code([], [:]) == 6)
  }

  @Test(
    "A key command that fails is 6", arguments: ["exit 3", "true", "kill -9 $$", "no-such-command-anywhere", "yes"])
  func keyCommand(_ command: String) throws {
    let tool = try Tool()
    try tool.succeed("init")
    let run = try tool.run("list", environment: ["PREFS_KEY_COMMAND": command])
    #expect(run.code == 6)
    #expect(run.message.contains("the key command"))
  }

  @Test("A store that has the key from before another one replaced it says where that key is, and opens with it")
  func formerKey() throws {
    let tool = try Tool()
    let other = tool.path("other")
    try tool.succeed("init")
    try tool.succeed("set", "-d", other, "x", "1")
    try tool.succeed("key", "replace")
    let refusal = try tool.run("get", "-d", other, "x")
    let option = "--key-file \(tool.keyFile)-replaced-1"
    #expect(refusal.code == 5 && refusal.message.contains("A former key may open it: \(option)."), "\(refusal.message)")
    #expect(try tool.succeed("get", "-d", other, "--key-file", tool.keyFile + "-replaced-1", "x") == "1\n")
  }

  @Test("The command that closes a key file to others works as it is printed, whatever the file is called")
  func commandForKeyFile() throws {
    let tool = try Tool()
    let key = tool.path("our key; 'exit 3'")
    try tool.succeed("init", "--key-file", key)
    chmod(key, 0o644)
    let message = try tool.run("list", "--key-file", key).message
    let command = try #require(message.firstRange(of: "Run: ").map { String(message[$0.upperBound...]) })
    #expect(try Child.run("/bin/sh", ["-c", command]).status == 0)
    #expect(try tool.mode(key) == 0o600)
  }

  @Test("A key file that others can read causes one warning, unless --quiet")
  func openKeyFile() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    #expect(try tool.run("get", "x").message == "")
    chmod(tool.keyFile, 0o644)
    try #require(symlink(tool.keyFile, tool.path("link")) == 0)
    // The command to run names the file itself: behind a link, it may be another one than meant.
    for arguments in [[], ["--key-file", tool.path("link")]] {
      let run = try tool.run(["get", "x"] + arguments, input: "".utf8)
      #expect(run.code == 0 && run.text == "1\n")
      #expect(run.message.split(separator: "\n").count == 1 && run.message.contains("chmod 600 \(tool.keyFile)"))
      #expect(try tool.run(["get", "x", "-q"] + arguments, input: "".utf8).message == "")
    }
    try tool.succeed("seal", "c", "--vault-key-file", tool.path("vault-key"))
    chmod(tool.keyFile, 0o600)
    chmod(tool.path("vault-key"), 0o640)
    #expect(try tool.run("unlock", "--vault-key-file", tool.path("vault-key")).message.contains("mode 640"))
  }

  @Test("If two create a store concurrently, one reports it")
  func race() throws {
    let tool = try Tool()
    try tool.succeed("init", "-d", tool.path("other"))
    let (ready, gate) = (tool.path("ready"), tool.path("gate"))
    try FileManager.default.createDirectory(atPath: ready, withIntermediateDirectories: false)
    // Both have seen that there is no store when they are asked for its key, and go on when both are.
    let command = "touch \(ready)/$$; while [ ! -e \(gate) ]; do sleep 0.02; done; cat \(tool.keyFile)"
    let children = try ["a", "b"].map { key in
      try tool.spawn(
        ["set", key, "1"],
        files: [(0, "/dev/null", O_RDONLY), (2, tool.path("message-\(key)"), O_WRONLY | O_CREAT | O_EXCL)],
        environment: ["PREFS_KEY_COMMAND": command])
    }
    while try FileManager.default.contentsOfDirectory(atPath: ready).count < 2 { usleep(10_000) }
    try tool.write("gate", "".utf8)
    for child in children { #expect(try Tool.exitCode(of: child) == 0) }
    let messages = try ["a", "b"].map { String(decoding: try tool.contents(tool.path("message-\($0)")), as: UTF8.self) }
    #expect(messages.filter { $0.contains("created the store") }.count == 1)
    #expect(messages.filter(\.isEmpty).count == 1)
    #expect(try tool.succeed("list") == "a\nb\n")
  }

  @Test("A dangling key file is reported as such, and no key file as created")
  func danglingKeyFile() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1", "--key-file", tool.path("key"))
    for path in [tool.keyFile, tool.path("named")] {
      try FileManager.default.createDirectory(
        atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
      try #require(symlink(tool.path("nothing"), path) == 0)
    }
    for arguments in [
      ["get", "x"], ["get", "x", "--key-file", tool.path("named")], ["init", "-d", tool.path("new")],
      ["init", "-d", tool.path("new"), "--key-file", tool.path("named")],
    ] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 6 && run.message.contains("dangling") && !run.message.contains("created"), "\(run)")
    }
    #expect(!tool.exists(tool.path("new")))
  }

  @Test("A store is created with what the environment names")
  func creation() throws {
    let tool = try Tool()
    let environment = ["PREFS_KEY_FILE": tool.path("keys/mine")]
    try tool.succeed("set", "x", "1", environment: environment)
    #expect(try tool.mode(tool.path("keys/mine")) == 0o600)
    #expect(try tool.succeed("get", "x", environment: environment) == "1\n")
    #expect(!tool.exists(tool.keyFile))
    let command = ["PREFS_KEY_COMMAND": "cat \(tool.path("keys/mine"))"]
    #expect(try tool.succeed("get", "x", environment: command) == "1\n")
  }

  @Test("A passphrase opens its store, with or without a newline; another one is 5; none is 6")
  func passphrase() throws {
    let tool = try Tool()
    let phrase = "correct horse 🐎"
    #expect(
      try tool.run("set", "x", "1", "--passphrase-fd", "3", descriptors: [3: phrase + "\n"]).code == 0)
    #expect(!tool.exists(tool.keyFile))
    #expect(try tool.run("get", "x", "--passphrase-fd", "3", descriptors: [3: phrase]).text == "1\n")
    #expect(try tool.run("get", "x", "--passphrase-fd", "3", descriptors: [3: phrase + " "]).code == 5)
    #expect(try tool.run("get", "x", "--passphrase-fd", "3", descriptors: [3: "\n"]).code == 6)
    for arguments in [["get", "x"], ["get", "x", "--no-input"]] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 6 && run.message.contains("--passphrase-fd"))
    }
    #expect(try tool.run("init", "--passphrase", "--no-input", "-d", tool.path("other")).code == 6)
  }

  @Test("A secret is never taken from the arguments")
  func secretArgument() throws {
    let tool = try Tool()
    let run = try tool.run("set", "mail/password", "hunter2", "--secret")
    #expect(run.code == 2)
    #expect(run.message.contains("--value-file") && !run.message.contains("hunter2"))
    #expect(!tool.exists(tool.store))
    #expect(try tool.run("set", "mail/password", "--secret").code == 6)
    try tool.succeed("set", "mail/password", "--secret", "-", "--strip-newline", input: "hunter2\n")
    #expect(try tool.succeed("get", "mail/password") == "hunter2\n")
    try tool.succeed("set", "mail/password", "--secret", "--value-file", try tool.write("f", "pass".utf8))
    #expect(try tool.succeed("get", "mail/password") == "pass\n")
  }

  @Test("No stored value is readable in any file")
  func nothingInClear() throws {
    let tool = try Tool()
    try tool.succeed("set", "collection-name/key-name", "value-text")
    try tool.succeed("set", "collection-name/other", "-", input: String(repeating: "value-text ", count: 5000))
    try tool.succeed("unset", "collection-name/other")
    let files = try #require(FileManager.default.enumerator(atPath: tool.home.path))
    for case let name as String in files where !tool.path(name).hasSuffix("/prefs") {
      guard let data = FileManager.default.contents(atPath: tool.path(name)) else { continue }
      for word in ["collection-name", "key-name", "value-text", "SQLite format"] {
        #expect(data.range(of: Data(word.utf8)) == nil, "\(word) in \(name)")
      }
    }
  }
}
