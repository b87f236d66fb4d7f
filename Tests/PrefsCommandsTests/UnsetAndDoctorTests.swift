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

@Suite("Removing")
struct UnsetTests {
  private func sample() throws -> Tool {
    let tool = try Tool()
    for key in ["a", "ab", "b", "x[1]", "é"] { try tool.succeed("set", "c/\(key)", "1") }
    try tool.succeed("set", "other/a", "1")
    return tool
  }

  @Test("Several keys are removed together")
  func several() throws {
    let tool = try sample()
    try tool.succeed("unset", "c/a", "c/b", "other/a")
    #expect(try tool.succeed("list", "c") == "ab\nx[1]\né\n")
    #expect(try tool.succeed("collections") == "c\n")
  }

  @Test("A missing key is 3, and the others are still removed; --force ignores it")
  func missing() throws {
    let tool = try sample()
    let run = try tool.run("unset", "c/a", "c/none", "c/nil", "c/b")
    #expect(run.code == 3)
    #expect(run.message.contains("\"none\"") && run.message.contains("\"nil\""))
    #expect(try tool.succeed("list", "c") == "ab\nx[1]\né\n")
    try tool.succeed("unset", "-f", "c/none")
  }

  @Test(
    "--match removes what matches",
    arguments: [
      ("c/a*", "b\nx[1]\né\n"), ("c/?", "ab\nx[1]\n"), ("c/[!a]", "a\nab\nx[1]\n"), ("c/x\\[*", "a\nab\nb\né\n"),
      ("c/*", nil as String?),
    ])
  func match(_ glob: String, _ left: String?) throws {
    let tool = try sample()
    try tool.succeed("unset", "--match", glob)
    let run = try tool.run("list", "c")
    #expect(run.code == (left == nil ? 3 : 0))
    #expect(run.text == left ?? "")
    #expect(try tool.succeed("list", "other") == "a\n")
  }

  @Test("A pattern that matches nothing is 3")
  func noMatch() throws {
    let tool = try sample()
    #expect(try tool.run("unset", "-c", "c", "--match", "z*").code == 3)
    #expect(try tool.run("unset", "-c", "c", "--match", "z*", "-f").code == 0)
  }

  @Test(
    "--purge leaves nothing in the log, not even beside a program that has the store open",
    arguments: [
      ["unset", "-c", "web", "--all"], ["history", "-c", "web"], ["history", "--off", "web"],
      ["env", "remove", "web@dev"],
    ])
  func purge(_ command: [String]) throws {
    let tool = try Tool()
    try tool.succeed("set", "web/token", "first")
    try tool.succeed("env", "create", "web@dev")
    for collection in ["web", "web@dev"] { try tool.succeed("history", "--keep", collection) }
    let watch = try Watch(tool)
    for value in ["second", "third"] {
      for collection in ["web", "web@dev"] { try tool.succeed("set", "\(collection)/token", value) }
    }
    let run = try tool.run(command + ["--purge", "--force"], input: [])
    #expect(run.code == 0 && run.message == "")
    // Not read: closing another descriptor is the affair of its programs.
    #expect(try FileManager.default.attributesOfItem(atPath: tool.store + "-wal")[.size] as? Int == 0)
    #expect(try tool.run("doctor").code == 0)
    _ = try watch.end()
  }

  @Test("--all needs a yes or --force")
  func all() throws {
    let tool = try sample()
    let run = try tool.run("unset", "-c", "c", "--all")
    #expect(run.code == 2 && run.message.contains("--force"))
    #expect(try tool.run("unset", "-c", "none", "--all").code == 3)
    try tool.succeed("history", "--keep", "c")
    try tool.succeed("unset", "-c", "c", "--all", "-f", "--actor", "mallory")
    // Like removing them one by one.
    let keys = try tool.succeed("history", "-c", "c").split(separator: "\n")
    #expect(!keys.isEmpty)
    let log = try tool.succeed("log", "c")
    #expect(log.contains("cleared") && log.contains("mallory") && keys.allSatisfy { log.contains("c/\($0)") })
    #expect(try tool.run("unset", "-c", "c", "--all", "--purge").code == 2)
    #expect(try tool.run("unset", "c/a", "--purge").code == 2)
    try tool.succeed("unset", "-c", "c", "--all", "--purge", "-f", "--actor", "mallory")
    let erased = try tool.succeed("log", "c")
    #expect(erased.contains("erased c") && erased.contains("cleared") && erased.contains("mallory"))
    #expect(keys.allSatisfy { !erased.contains("c/\($0)") })
    #expect(try tool.run("history", "-c", "c").text == "")
    #expect(try tool.run("unset", "-c", "c", "--all", "--purge", "-f").code == 0)
    try tool.succeed("set", "c/again", "1")
    try tool.succeed("unset", "-c", "c", "--all", "-f")
    #expect(try tool.succeed("collections") == "other\n")
  }
}

@Suite("Doctor")
struct DoctorTests {
  @Test("An intact store has no problems")
  func sound() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    let text = try tool.succeed("doctor")
    #expect(text.contains(tool.store) && text.contains("No problems found.") && text.contains("key file"))
    #expect(!text.contains("\u{1b}"))
    #expect(try tool.succeed("doctor", "--color", "always").contains("\u{1b}[32m"))
    let json = try tool.succeed("doctor", "--deep", "--json")
    let object = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
    #expect(object["ok"] as? Bool == true && object["checkedValues"] as? Int == 1)
    #expect(try #require(object["entropyBitsPerByte"] as? Double) > 7.5)
    #expect((object["problems"] as? [String])?.isEmpty == true)
  }

  @Test("A store readable by others is a problem")
  func wideMode() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    chmod(tool.store, 0o644)
    let run = try tool.run("doctor")
    #expect(run.code == 7)
    #expect(run.text.contains("mode 644"))
  }

  @Test("Every flipped byte after the envelope is found")
  func flippedBytes() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    let bytes = try tool.contents(tool.store)
    for place in stride(from: 16384 + 100, to: bytes.count, by: 4096) {
      var damaged = bytes
      damaged[place] ^= 0x80
      try tool.write("damaged", damaged)
      chmod(tool.path("damaged"), 0o600)
      #expect(try tool.run("doctor", "-d", tool.path("damaged")).code == 7, "byte \(place)")
    }
  }
}

@Suite("Help")
struct HelpTests {
  static let commands = [
    "init", "get", "set", "unset", "list", "collections", "type", "export", "import", "key", "rotate", "seal", "unseal",
    "unlock", "lock", "doctor", "salvage", "completion",
  ]

  @Test("Each command explains itself, with an example", arguments: commands)
  func help(_ command: String) throws {
    let tool = try Tool()
    let text = try tool.succeed(command, "--help")
    #expect(text.contains("Example") && text.contains("prefs \(command)"))
    #expect(try tool.succeed("help", command) == text)
  }

  @Test(
    "So does each command of key", arguments: ["list", "add", "remove", "change", "label", "recovery"])
  func keyHelp(_ command: String) throws {
    let text = try Tool().succeed("key", command, "--help")
    #expect(text.contains("Example") && text.contains("prefs key \(command)"))
  }

  @Test("The tool names its commands and its version")
  func overview() throws {
    let tool = try Tool()
    #expect(try tool.succeed("--version") == "prefs 0.1.0\n")
    let versions = try tool.succeed("--version", "--verbose").split(separator: "\n")
    #expect(versions.map { $0.prefix { $0 != " " } } == ["prefs", "OpenSSL", "SQLite", "They"])
    #expect(try tool.succeed("-v", "--version").split(separator: "\n") == versions)
    let text = try tool.succeed("--help")
    for command in Self.commands { #expect(text.contains("\n  \(command)"), "\(command)") }
    #expect(try tool.succeed() == text)
    #expect(try tool.succeed("help") == text)
  }

  @Test("Completion scripts exist, and bash accepts its own", arguments: ["bash", "zsh", "fish"])
  func completion(_ shell: String) throws {
    let tool = try Tool()
    let script = try tool.succeed("completion", shell)
    #expect(script.contains("doctor") && script.contains("passphrase-fd"))
    guard shell == "bash" else { return }
    #expect(try Child.run("/bin/bash", ["-n", tool.write("script", script.utf8)]).status == 0)
  }
}
