import Foundation
import TestSupport
import Testing

@Suite("A key of the vault at hand")
struct VaultAtHandTests {
  private let tool: Tool
  private let bench: CraftingBench
  private let store: [String]

  init() throws {
    tool = try Tool()
    bench = try CraftingBench(in: tool.path("crafted"))
    store = ["-d", bench.path, "--key-file", bench.keyFile]
  }

  /// How the key is at hand.
  enum Hand: CaseIterable { case option, descriptor, variable, kept }

  @Test(
    "Is used before anything is read or set: a seal that someone with the store's key has removed stores no plaintext",
    arguments: Hand.allCases)
  func removedSeal(_ hand: Hand) throws {
    try bench.execute("UPDATE collections SET flags = 0, history_count = NULL WHERE name = 'tokens'")
    func run(_ arguments: [String], input: String = "") throws -> Tool.Run {
      let rest = arguments.dropFirst()
      let (words, key) = ([arguments[0]] + store, bench.vaultKeyFile)
      switch hand {
      case .option: return try tool.run(words + ["--vault-key-file", key] + rest, input: input.utf8)
      case .descriptor:
        let text = try String(contentsOfFile: key, encoding: .utf8)
        return try tool.run(words + ["--vault-key-fd", "3"] + rest, input: input.utf8, descriptors: [3: text])
      case .variable: return try tool.run(words + rest, input: input.utf8, environment: ["PREFS_VAULT_KEY_FILE": key])
      case .kept: return try tool.run(words + rest, input: input.utf8)
      }
    }
    if hand == .kept {
      try #require(
        tool.run(["unlock", "--vault-key-file", bench.vaultKeyFile] + store, input: "".utf8).code == 0)
    }
    for arguments in [
      ["set", "tokens/new", "--secret", "-"], ["get", "tokens/k"], ["exec", "-c", "tokens", "--", "true"],
      ["copy", "n", "tokens"], ["export", "-c", "tokens"], ["append", "tokens/more", "-"],
      ["import", "-", "--format", "json"],
    ] {
      let run = try run(arguments, input: arguments[0] == "import" ? #"{"tokens":{"new":"x"}}"# : "s3cret")
      #expect(run.code == (arguments[0] == "exec" ? 125 : 7), "\(arguments): \(run.code) \(run.message)")
      #expect(run.message.contains("declaration of \"tokens\""), "\(arguments): \(run.message)")
    }
    if hand == .kept { _ = try tool.run(["lock"] + store, input: "".utf8) }
    let keys = try tool.run(["list", "tokens"] + store, input: "".utf8)
    #expect(!keys.text.contains("new") && !keys.text.contains("more"))
  }

  @Test("That does not open the vault is an error where an option names it, and a note where the variable does")
  func wrongKey() throws {
    for key in [bench.keyFile, tool.path("none")] {
      let named = try tool.run(["get", "n/count", "--vault-key-file", key] + store, input: "".utf8)
      #expect(named.code == (key == bench.keyFile ? 5 : 6), "\(named.message)")
      let variable = try tool.run(
        ["get", "n/count"] + store, input: "".utf8, environment: ["PREFS_VAULT_KEY_FILE": key])
      #expect(variable.code == 0 && variable.text == "1\n")
      #expect(variable.message.contains("was not checked"))
    }
    // A store without a vault has nothing to check.
    try tool.succeed("set", "a", "1")
    let plain = try tool.run("get", "a", environment: ["PREFS_VAULT_KEY_FILE": tool.path("none")])
    #expect(plain.code == 0 && plain.message.isEmpty)
  }
}
