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

@Suite("Key slots")
struct KeyCommandTests {
  /// A store that opens with the default key file, and with the passphrase `hunter2` of Ada.
  private func sample() throws -> Tool {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    #expect(try tool.addPassphrase("hunter2", label: "Ada").code == 0)
    return tool
  }

  private func get(_ tool: Tool, _ options: String..., descriptors: [Int32: String] = [:]) throws -> Int32 {
    try tool.run(["get", "x", "--no-input"] + options, input: "".utf8, descriptors: descriptors).code
  }

  // MARK: - list

  @Test("list shows number, kind, label, stretching and time, without a key")
  func list() throws {
    let tool = try sample()
    unlink(tool.keyFile)
    let lines = try tool.succeed("key", "list").split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines[0].split(separator: " ") == ["SLOT", "KIND", "LABEL", "STRETCHING", "CREATED"])
    #expect(
      lines[1].hasPrefix("   0  key file") && lines[2].hasPrefix("   1  passphrase  Ada    scrypt N=2^14 r=8 p=1"))
    let fields = try tool.succeed("key", "list", "--plain").split(separator: "\n")[1].split(separator: "\t")
    #expect(fields[..<4] == ["1", "passphrase", "Ada", "scrypt N=2^14 r=8 p=1"] && fields[4].hasSuffix("Z"))
    let json = try tool.slots()
    #expect(json.map { $0["kind"] as? String } == ["keyFile", "passphrase"])
    #expect(json.map { $0["id"] as? Int } == [0, 1])
    #expect(try tool.run("key", "list", "--json", "--plain").code == 2)
    #expect(try tool.run("key", "list", "-d", tool.path("none")).code == 4)
  }

  // MARK: - add

  @Test("An added secret opens the store, and so do earlier ones")
  func add() throws {
    let tool = try sample()
    #expect(try get(tool, "--passphrase-fd", "3", descriptors: [3: "hunter2\n"]) == 0)
    #expect(try get(tool, "--passphrase-fd", "3", descriptors: [3: "hunter3"]) == 5)

    try FileManager.default.createDirectory(atPath: tool.path("keys"), withIntermediateDirectories: false)
    try tool.succeed("key", "add", "--new-key-file", tool.path("keys/second"), "--label", "stick")
    #expect(try tool.mode(tool.path("keys/second")) == 0o600)
    #expect(try get(tool, "--key-file", tool.path("keys/second")) == 0)
    // One that is there is used, not replaced.
    try tool.succeed("init", "-d", tool.path("fourth store"), "--key-file", tool.path("keys/fourth"))
    let bytes = try tool.contents(tool.path("keys/fourth"))
    try tool.succeed("key", "add", "--new-key-file", tool.path("keys/fourth"))
    #expect(try tool.contents(tool.path("keys/fourth")) == bytes)

    try tool.succeed("init", "-d", tool.path("other"), "--key-file", tool.path("third"))
    try tool.succeed("key", "add", "--key-command", "cat \(tool.path("third"))")
    #expect(try get(tool, "--key-file", tool.path("third")) == 0)

    try FileManager.default.createDirectory(atPath: tool.path("credentials"), withIntermediateDirectories: false)
    try tool.write("credentials/mine", [UInt8](repeating: 7, count: 32))
    try tool.succeed(
      "key", "add", "--credential", "mine", environment: ["CREDENTIALS_DIRECTORY": tool.path("credentials")])
    #expect(try get(tool, "--key-file", tool.path("credentials/mine")) == 0)
    #expect(
      try tool.slots().map { $0["kind"] as? String } == [
        "keyFile", "passphrase", "keyFile", "keyFile", "keyCommand", "credential",
      ])
    #expect(try get(tool) == 0)
  }

  // Tests/TPM has a TPM.
  @Test("A slot for a TPM needs a recovery key or a passphrase beside it, and a TPM")
  func tpm() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    let refused = try tool.run("key", "add", "--tpm")
    #expect(refused.code == 11 && refused.message.contains("prefs key recovery"))
    #expect(try tool.addPassphrase("hunter2").code == 0)
    #expect(try tool.run("key", "add", "--tpm", "--passphrase").code == 2)
    let nowhere = ["TPM2TOOLS_TCTI": "swtpm:host=127.0.0.1,port=1"]
    #expect(try tool.run("key", "add", "--tpm", environment: nowhere).code == 6)
    #expect(try tool.slots().count == 2 && !tool.exists(tool.store + ".tpm"))
  }

  @Test("An unavailable key adds no slot, and a wrong key creates no key file")
  func addFails() throws {
    let tool = try sample()
    #expect(try tool.run("key", "add", "--key-command", "false").code == 6)
    #expect(try tool.run("key", "add", "--credential", "none").code == 6)
    #expect(try tool.run("key", "add", "--new-passphrase-fd", "3", descriptors: [3: ""]).code == 6)
    #expect(try tool.run("key", "add").code == 6, "there is no terminal to ask on")
    #expect(try tool.run("key", "add", "--no-input").code == 6)
    let wrong = ["key", "add", "--new-key-file", tool.path("new"), "--passphrase-fd", "3"]
    #expect(try tool.run(wrong, input: "".utf8, descriptors: [3: "guess"]).code == 5)
    #expect(!tool.exists(tool.path("new")))
    #expect(try tool.slots().count == 2)
  }

  @Test(
    "Contradictory options are 2",
    arguments: [
      ["--passphrase", "--new-key-file", "k"], ["--key-command", "a", "--credential", "b"],
      ["--new-key-file", "k", "--cost", "17"], ["--cost", "13"], ["--cost", "21"], ["--cost", "17", "--argon2id"],
      ["--pbkdf2", "99999"], ["--pbkdf2", "4194305"], ["--calibrate", "0"], ["--calibrate", "nan"],
      ["--new-key-file", ""],
      ["--new-passphrase-fd", "-1"], ["--label", String(repeating: "x", count: 65)],
    ])
  func usage(_ options: [String]) throws {
    let tool = try sample()
    #expect(try tool.run(["key", "add"] + options, input: "".utf8).code == 2)
  }

  @Test("A passphrase is stretched as requested")
  func stretching() throws {
    let tool = try sample()
    func cost(_ options: String...) throws -> String? {
      let run = try tool.run(
        ["key", "add", "--new-passphrase-fd", "3"] + options, input: "".utf8, descriptors: [3: "p \(options)"])
      return run.code == 0 ? try tool.slots().last?["cost"] as? String : nil
    }
    #expect(try cost() == "scrypt N=2^17 r=8 p=1")
    #expect(try cost("--cost", "15") == "scrypt N=2^15 r=8 p=1")
    #expect(try cost("--pbkdf2", "100000") == "PBKDF2-HMAC-SHA512, 100000 iterations")
    #expect(try #require(try cost("--calibrate", "0.001")) == "scrypt N=2^14 r=8 p=1")
    // Depends on the OpenSSL that is installed.
    if let argon2id = try cost("--argon2id") { #expect(argon2id == "Argon2id 65536 KiB, 3 iterations, 4 lanes") }

    let made = ["init", "-d", tool.path("slow"), "--passphrase-fd", "3", "--cost", "16"]
    #expect(try tool.run(made, input: "".utf8, descriptors: [3: "p"]).code == 0)
    #expect(try tool.slots("-d", tool.path("slow")).map { $0["cost"] as? String } == ["scrypt N=2^16 r=8 p=1"])
    #expect(try tool.run("init", "-d", tool.path("third"), "--cost", "16").code == 2)
  }

  @Test("The seventeenth slot is refused")
  func full() throws {
    let tool = try sample()
    for number in 2..<16 { try tool.succeed("key", "add", "--new-key-file", tool.path("key \(number)")) }
    let run = try tool.run("key", "add", "--new-key-file", tool.path("key 16"))
    #expect(run.code == 11 && run.message.contains("16"))
  }

  // MARK: - change, label, remove

  @Test("change replaces the secret of a slot, and keeps its label by default")
  func change() throws {
    let tool = try sample()
    let run = try tool.run(
      "key", "change", "Ada", "--new-passphrase-fd", "3", "--cost", "14", descriptors: [3: "better"])
    #expect(run.code == 0 && run.message.contains("prefs rotate --new-root-key"))
    #expect(try get(tool, "--passphrase-fd", "3", descriptors: [3: "hunter2"]) == 5)
    #expect(try get(tool, "--passphrase-fd", "3", descriptors: [3: "better"]) == 0)
    #expect(try tool.slots()[1]["label"] as? String == "Ada")

    #expect(try tool.run("key", "change", "0").code == 2, "a key file is not changed for a passphrase unasked")
    try tool.succeed("key", "change", "0", "--new-key-file", tool.path("new"), "--label", "new one")
    #expect(try get(tool) == 5)
    #expect(try get(tool, "--key-file", tool.path("new")) == 0)
    #expect(try tool.slots("--key-file", tool.path("new"))[0]["label"] as? String == "new one")
  }

  @Test("A slot is named by its number or its label, never ambiguously")
  func reference() throws {
    let tool = try sample()
    try tool.succeed("key", "label", "0", "laptop")
    try tool.succeed("key", "label", "laptop", "1")
    #expect(try tool.slots().map { $0["label"] as? String } == ["1", "Ada"])
    let run = try tool.run("key", "remove", "1", "-f")
    #expect(run.code == 2 && run.message.contains("slot 0") && run.message.contains("slot 1"))
    let missing = try tool.run("key", "remove", "Bob", "-f")
    #expect(missing.code == 3 && missing.message.contains("Ada"))
    #expect(try tool.run("key", "remove", "7", "-f").code == 3)
    try tool.succeed("key", "label", "0", "--", "-- a label")
    try tool.succeed("key", "label", "Ada", "-5")
    #expect(try tool.slots().map { $0["label"] as? String } == ["-- a label", "-5"])
    #expect(try tool.run("key", "label", "0", String(repeating: "é", count: 33)).code == 2)
    #expect(try tool.slots().count == 2)
  }

  @Test("remove needs a yes or --force, warns of its limits, and keeps the last slot")
  func remove() throws {
    let tool = try sample()
    let refused = try tool.run("key", "remove", "Ada")
    #expect(refused.code == 2 && refused.message.contains("--force"))
    let run = try tool.run("key", "remove", "Ada", "--force")
    #expect(run.code == 0 && run.text == "" && run.message.contains("prefs rotate --new-root-key"))
    #expect(try get(tool, "--passphrase-fd", "3", descriptors: [3: "hunter2"]) == 5)
    #expect(try tool.run("key", "remove", "0", "--force").code == 11)
    #expect(try get(tool) == 0)
  }

  // MARK: - recovery

  @Test("A recovery key is written to a new file, and opens the store however it is typed")
  func recovery() throws {
    let tool = try sample()
    let file = tool.path("paper")
    let run = try tool.run("key", "recovery", "--label", "safe", "-o", file)
    #expect(run.code == 0 && run.text == "")
    #expect(try tool.mode(file) == 0o600)
    let key = String(decoding: try tool.contents(file), as: UTF8.self)
    #expect(key.wholeMatch(of: /([0-9A-HJKMNP-TV-Z]{5}-){7}[0-9A-HJKMNP-TV-Z]{5}\n/) != nil)
    #expect(!run.message.contains(key.prefix(11)))
    unlink(tool.keyFile)
    for typed in [key, key.lowercased(), key.replacing("-", with: " ")] {
      #expect(try get(tool, "--recovery-key-fd", "3", descriptors: [3: typed]) == 0)
    }
    // The second group for the first is a slip that shows.
    let swapped = "\(key.dropFirst(6).prefix(6))\(key.prefix(6))\(key.dropFirst(12))"
    let slip = try tool.run("get", "x", "--recovery-key-fd", "3", descriptors: [3: swapped])
    #expect(slip.code == 6 && slip.message.contains("group 1"))
    #expect(try get(tool, "--passphrase-fd", "3", descriptors: [3: key]) == 5)
    #expect(try get(tool, "--recovery-key-fd", "3", descriptors: [3: "hunter2"]) == 6)

    #expect(try tool.run("key", "recovery", "-o", file, "--recovery-key-fd", "3", descriptors: [3: key]).code == 9)
    #expect(String(decoding: try tool.contents(file), as: UTF8.self) == key)
  }

  @Test("A recovery key is written to a pipe only on request; one that was not delivered leaves no slot")
  func recoveryPipe() throws {
    let tool = try sample()
    let refused = try tool.run("key", "recovery")
    #expect(refused.code == 2 && refused.message.contains("-o -"))
    let key = try tool.succeed("key", "recovery", "-o", "-")
    #expect(try get(tool, "--recovery-key-fd", "3", descriptors: [3: key]) == 0)
    #expect(try tool.slots().count == 3)
    #expect(try tool.run("key", "recovery", "-o", tool.path("no/such/folder")).code == 14)
    if FileManager.default.fileExists(atPath: "/dev/full") {
      let files = [(Int32(1), "/dev/full", O_WRONLY), (2, tool.path("messages"), O_WRONLY | O_CREAT)]
      #expect(try Tool.exitCode(of: tool.spawn(["key", "recovery", "-o", "-"], files: files)) == 14)
    }
    #expect(try tool.slots().count == 3)
  }

  @Test("Without its key file, a store points to its recovery key")
  func hint() throws {
    let tool = try sample()
    try tool.succeed("key", "recovery", "-o", tool.path("paper"))
    try tool.succeed("key", "remove", "Ada", "-f")
    unlink(tool.keyFile)
    let run = try tool.run("get", "x")
    #expect(run.code == 6 && run.message.contains(tool.keyFile) && run.message.contains("--recovery-key-fd"))
  }

  @Test("Secrets are in no message")
  func noSecrets() throws {
    let tool = try sample()
    let secret = "correct horse battery"
    let arguments = ["key", "add", "-v", "--new-passphrase-fd", "3", "--cost", "14"]
    let run = try tool.run(arguments, input: "".utf8, descriptors: [3: secret])
    let opened = try tool.run("get", "x", "-v", "--passphrase-fd", "3", descriptors: [3: secret + "!"])
    for message in [run.message, opened.message] { #expect(!message.contains(secret)) }
  }

  // MARK: - Two commands at once

  @Test(
    "change and rotate take no other slot that has taken the number of the one they were given",
    arguments: [
      ["key", "change", "Ada", "--key-command"], ["rotate", "--new-root-key", "--drop", "Ada", "--keep-key-command"],
      ["key", "replace", "0", "--new-key-file", "NEW", "--drop", "Ada", "--keep-key-command"],
    ])
  func numberOfAnother(_ arguments: [String]) throws {
    let tool = try sample()
    let (pipe, key, message) = (tool.path("pipe"), tool.path("laptop"), tool.path("message"))
    if arguments.last == "--keep-key-command" {
      try tool.succeed("key", "add", "--new-key-file", key, "--label", "laptop")
    } else {
      try tool.write("laptop", [UInt8](repeating: 7, count: 32))
    }
    try #require(mkfifo(pipe, 0o600) == 0)
    // Waits at its first run.
    let command = "[ -e '\(pipe)-done' ] || cat '\(pipe)'; cat '\(key)'"
    let child = try tool.spawn(
      arguments.map { $0 == "NEW" ? tool.path("new") : $0 } + [command],
      files: [(0, "/dev/null", O_RDONLY), (1, "/dev/null", O_WRONLY), (2, message, O_WRONLY | O_CREAT)])
    let writer = try pipeWriter(pipe)
    try tool.succeed("key", "remove", "Ada", "--force")
    #expect(try tool.addPassphrase("Bob", label: "Bob").code == 0)
    try tool.write("pipe-done", [])
    try writer.close()
    #expect(try Tool.exitCode(of: child) == 9)
    #expect(String(decoding: try tool.contents(message), as: UTF8.self).contains("by another command"))
    #expect(try tool.slots().contains { $0["label"] as? String == "Bob" && $0["kind"] as? String == "passphrase" })
    #expect(try get(tool) == 0)
  }
}
