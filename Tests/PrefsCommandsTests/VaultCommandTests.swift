import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("The vault")
struct VaultCommandTests {
  private let tool: Tool

  /// A store with a sealed collection, whose vault opens with the passphrase `vault`.
  init() throws {
    tool = try Tool()
    try tool.succeed("set", "tokens/old", "clear text")
    try tool.succeed("set", "x", "1")
    try tool.seal("tokens")
  }

  // MARK: - seal, unseal

  @Test("seal keeps existing values, and the rest of the store stays open")
  func seal() throws {
    #expect(try tool.run("get", "tokens/old").code == 6)
    #expect(try tool.succeed("get", "x") == "1\n")
    #expect(try tool.succeed("list", "tokens") == "old\n")
    try tool.unlock()
    #expect(try tool.succeed("get", "tokens/old") == "clear text\n")
    // A second one needs no key: the vault is unlocked.
    try tool.succeed("seal", "more")
    try tool.succeed("lock")
    #expect(try tool.run("get", "more/none").code == 3, "that a key is not there is no secret")
    #expect(try tool.run("seal", "third").code == 6)
    #expect(try tool.run("seal", "third", "--vault-passphrase-fd", "3", descriptors: [3: "guess"]).code == 5)
    #expect(try tool.run("seal", "third", "--vault-passphrase-fd", "3", descriptors: [3: "vault"]).code == 0)
    #expect(try tool.run("seal", "more", "--cost", "17").code == 2)
    #expect(try tool.run("seal", "x", "-d", tool.path("none")).code == 4)
  }

  @Test("A wrong key for the vault is reported for the vault, not for the store")
  func wrongKey() throws {
    var runs = [try tool.unlock("guess")]
    runs.append(try tool.run("seal", "more", "--vault-passphrase-fd", "3", descriptors: [3: "guess"]))
    try tool.unlock()
    runs.append(try tool.run("rotate", "--vault", "--keep-passphrase-fd", "3", descriptors: [3: "guess"]))
    for run in runs {
      #expect(run.code == 5)
      #expect(run.message.contains("no slot of the vault") && !run.message.contains("this store"), "\(run.message)")
    }
  }

  @Test("A vault may open with a key file, which seal creates")
  func keyFile() throws {
    let store = ["-d", tool.path("second")]
    func code(_ arguments: String...) throws -> Int32 { try tool.run(arguments + store, input: "x".utf8).code }
    #expect(try code("set", "a", "1") == 0)
    #expect(try code("seal", "c", "--vault-key-file", tool.path("vault-key")) == 0)
    #expect(try tool.mode(tool.path("vault-key")) == 0o600)
    #expect(try code("set", "c/k", "-") == 6)
    #expect(try code("unlock") == 6)
    #expect(try tool.run(["unlock"] + store, input: "".utf8).message.contains("--vault-key-file"))
    #expect(try code("unlock", "--vault-key-file", tool.keyFile) == 5)
    #expect(try code("unlock", "--vault-key-file", tool.path("none")) == 6)
    #expect(try code("unlock", "--vault-key-file", tool.path("vault-key")) == 0)
    #expect(try code("set", "c/k", "-") == 0)
    #expect(try code("lock") == 0)
  }

  @Test("seal says that the history is gone and no longer kept, and how to keep it")
  func history() throws {
    try tool.succeed("history", "--keep", "h")
    for value in ["1", "2"] { try tool.succeed("set", "h/a", value) }
    let run = try tool.run("seal", "h", "--vault-passphrase-fd", "3", descriptors: [3: "vault"])
    #expect(
      run.code == 0 && run.message.contains("not kept any more. To keep it from now on, run: prefs history --keep h"))
    #expect(
      try !tool.run("seal", "none", "--vault-passphrase-fd", "3", descriptors: [3: "vault"]).message.contains("history")
    )
  }

  @Test("A restored store from before the vault locks the vault: its key is gone when that store is put back")
  func restored() throws {
    let tool = try Tool()
    try tool.succeed("set", "t/a", "1")
    try tool.succeed("backup", tool.path("before"))
    try tool.seal("t")
    try tool.unlock()
    #expect(try tool.succeed("get", "t/a") == "1\n")
    try tool.succeed("restore-store", "--accept-keys", tool.path("before"))
    try tool.succeed("restore-store", "--accept-keys", tool.store + "-replaced-1")
    #expect(try tool.run("get", "t/a").code == 6)
  }

  @Test("A store that is replaced or destroyed while its vault cannot be locked is gone, and the error says both")
  func notLocked() throws {
    for command in ["restore-store", "destroy"] {
      let tool = try Tool()
      try tool.succeed("set", "t/a", "1")
      try tool.succeed("backup", tool.path("before"))
      try tool.seal("t")
      // It leaves a mark for a program that keeps the vault open.
      let script = #"chmod 755 "$XDG_RUNTIME_DIR/prefs""#
      try tool.unlock()
      #expect(try tool.run("exec", "-c", "t", "--", "sh", "-c", script).code == 0)
      let isRestore = command == "restore-store"
      let run = try tool.run(
        [command] + (isRestore ? ["--accept-keys", tool.path("before")] : ["--confirm", "settings.coffer"]),
        input: "".utf8)
      #expect(run.code == 11 && run.message.contains("vault may stay"), "\(run)")
      #expect(
        run.message.contains(isRestore ? "the store that was here is replaced, but" : "the store is removed, but"))
      #expect(isRestore ? try tool.run("get", "t/a").code == 0 : !tool.exists(tool.store))
    }
  }

  @Test("unseal needs the vault, and returns the values to the store")
  func unseal() throws {
    #expect(try tool.run("unseal", "tokens").code == 6)
    #expect(try tool.run("unseal", "none").code == 3)
    #expect(try tool.run("unseal", "tokens", "--vault-passphrase-fd", "3", descriptors: [3: "vault"]).code == 0)
    #expect(try tool.succeed("get", "tokens/old") == "clear text\n")
    #expect(try tool.run("unseal", "tokens").code == 3)
  }

  @Test("A store without a vault says how to create one")
  func noVault() throws {
    try tool.succeed("init", "-d", tool.path("second"))
    for command in [["unlock"], ["key", "list", "--vault"], ["key", "add", "--vault"], ["rotate", "--vault"]] {
      let run = try tool.run(command + ["-d", tool.path("second")], input: "".utf8)
      #expect(run.code == 3 && run.message.contains("prefs seal"), "\(command)")
    }
    try tool.succeed("lock", "-d", tool.path("second"))
    #expect(try tool.run("lock", "-d", tool.path("none")).code == 4)
  }

  // MARK: - Reading and writing

  @Test("A locked value is 6 and says what to do; it is never empty or its default")
  func locked() throws {
    for arguments in [
      ["get", "tokens/old"], ["get", "tokens/old", "--default", "none"], ["get", "tokens/old", "--no-input"],
      ["type", "tokens/old"], ["list", "tokens", "--values", "--reveal"],
    ] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 6 && run.text == "" && run.message.contains("run `prefs unlock`"), "\(arguments)")
    }
    #expect(try tool.run("set", "tokens/new", "-", input: "value").code == 6)
    #expect(try tool.run("set", "tokens/new", "--secret", "-", input: "value").code == 6)
    #expect(try tool.run("set", "tokens/old", "-", "--if-version", "1", input: "value").code == 6)
    #expect(try tool.succeed("list", "tokens") == "old\n")
    try tool.succeed("unset", "tokens/old")
  }

  @Test("A sealed collection accepts no value as an argument, locked or not")
  func argument() throws {
    for _ in 0..<2 {
      let run = try tool.run("set", "tokens/new", "hunter2")
      #expect(run.code == 2 && run.message.contains("--value-file") && !run.message.contains("hunter2"))
      try tool.unlock()
    }
    #expect(try tool.succeed("list", "tokens") == "old\n")
    try tool.succeed("set", "tokens/new", "-", input: "hunter2")
    #expect(try tool.succeed("get", "tokens/new") == "hunter2\n")
  }

  @Test("Lists show sealed values and secrets by their size, unless revealed")
  func lists() throws {
    try tool.succeed("set", "plain", "--secret", "-", input: "hunter2")
    #expect(try tool.succeed("list", "", "--values", "--plain") == "plain\t<secret: 7 bytes>\nx\t1\n")
    #expect(try tool.succeed("list", "", "--values", "--json").contains("\"value\":\"<secret: 7 bytes>\""))
    #expect(try tool.succeed("list", "", "--values", "--reveal", "--plain") == "plain\thunter2\nx\t1\n")
    #expect(try tool.run("list", "--reveal").code == 2)

    for _ in 0..<2 {
      #expect(try tool.succeed("list", "tokens", "-l").contains("\nold  sealed  "))
      for form in ["--plain", "--json", "-0"] {
        let text = try tool.succeed("list", "tokens", "--values", form)
        #expect(text.contains("<sealed: ") && !text.contains("clear text"), "\(form)")
      }
      try tool.unlock()
    }
    #expect(try tool.succeed("list", "tokens", "-l", "--values", "--reveal").contains("\nold  string  "))
    let json = try tool.succeed("list", "tokens", "--values", "--reveal", "--json")
    #expect(json.contains("\"type\":\"string\"") && json.contains("\"value\":\"clear text\""))
  }

  @Test("export and import handle sealed values if the vault is unlocked, and are 6 otherwise")
  func exportAndImport() throws {
    let file = tool.path("plain.sqlite")
    let export = ["export", "--format", "sqlite", "-o", file, "--reveal"]
    #expect(try tool.run(Array(export.dropLast()), input: "".utf8).code == 11)
    #expect(try tool.run(export, input: "".utf8).code == 6)
    #expect(!tool.exists(file))
    try tool.unlock()
    #expect(try tool.run(export, input: "".utf8).code == 0)
    try tool.succeed("unset", "tokens/old")
    let take = ["import", file, "--format", "sqlite"]
    #expect(try tool.run(take, input: "".utf8).code == 0)
    #expect(try tool.succeed("get", "tokens/old") == "clear text\n")
    try tool.succeed("unset", "tokens/old")
    try tool.succeed("lock")
    #expect(try tool.run(take, input: "".utf8).code == 6)
    #expect(try tool.run("get", "tokens/old").code == 3)
  }

  // MARK: - Slots

  @Test("The vault has its own slots, for which it must be unlocked")
  func slots() throws {
    #expect(try tool.slots("--vault").map { $0["kind"] as? String } == ["passphrase"])
    #expect(try tool.run("key", "add", "--vault", "--new-passphrase-fd", "3", descriptors: [3: "two"]).code == 6)
    #expect(try tool.run("key", "add", "--vault-passphrase-fd", "3").code == 2)
    let add = ["key", "add", "--vault", "--label", "two", "--cost", "14"]
    let descriptors = ["--vault-passphrase-fd", "3", "--new-passphrase-fd", "4"]
    #expect(try tool.run(add + descriptors, input: "".utf8, descriptors: [3: "vault", 4: "two"]).code == 0)
    #expect(try tool.unlock("two").code == 0)

    try tool.succeed("key", "label", "--vault", "two", "second")
    try tool.succeed("key", "recovery", "--vault", "-o", tool.path("paper"))
    #expect(
      try tool.run("key", "change", "--vault", "0", "--new-passphrase-fd", "3", descriptors: [3: "new"]).code == 0)
    let removal = try tool.run("key", "remove", "--vault", "second", "-f")
    #expect(removal.code == 0 && removal.message.contains("prefs rotate --vault"))
    #expect(try tool.slots("--vault").map { $0["kind"] as? String } == ["passphrase", "recoveryKey"])
    #expect(try tool.slots().count == 1)
    for (passphrase, code) in [("vault", Int32(5)), ("two", 5), ("new", 0)] {
      #expect(try tool.unlock(passphrase).code == code)
    }
    let paper = String(decoding: try tool.contents(tool.path("paper")), as: UTF8.self)
    #expect(try tool.run("unlock", "--vault-recovery-key-fd", "3", descriptors: [3: paper]).code == 0)
    #expect(try tool.succeed("get", "tokens/old") == "clear text\n")
  }

  @Test("rotate --vault reseals everything, for the slots that stay, and locks")
  func rotate() throws {
    let add = ["key", "add", "--vault", "--label", "two", "--cost", "14", "--new-passphrase-fd", "3"]
    try tool.unlock()
    #expect(try tool.run(add, input: "".utf8, descriptors: [3: "two"]).code == 0)
    let refused = try tool.run("rotate", "--vault")
    #expect(refused.code == 11 && refused.message.contains("\"two\""))
    #expect(try tool.run("rotate", "--vault", "--new-root-key").code == 2)
    let rotate = ["rotate", "--vault", "--json", "--keep-passphrase-fd", "3", "--drop", "0"]
    let run = try tool.run(rotate, input: "".utf8, descriptors: [3: "two"])
    #expect(run.code == 0, "\(run.message)")
    #expect(run.text.contains("\"vault\":true"))
    #expect(try tool.run("get", "tokens/old").code == 6)
    #expect(try tool.unlock("vault").code == 5)
    #expect(try tool.unlock("two").code == 0)
    #expect(try tool.succeed("get", "tokens/old") == "clear text\n")
  }

  @Test("A kept key that is no longer the vault's is forgotten")
  func outdatedKey() throws {
    try tool.unlock()
    // That one cannot reach the keyring to take the key out.
    let other = Tool(withoutKeyrings: tool)
    let rotate = ["rotate", "--vault", "--vault-passphrase-fd", "3"]
    #expect(try other.run(rotate, input: "".utf8, descriptors: [3: "vault"]).code == 0)
    let run = try tool.run("get", "tokens/old")
    #expect(run.code == 6 && run.message.contains("prefs unlock"))
    try tool.unlock()
    #expect(try tool.succeed("get", "tokens/old") == "clear text\n")
  }
}

extension Tool {
  /// Seals a collection; the vault opens with `vault`.
  func seal(_ collection: String, _ options: String...) throws {
    let arguments = ["seal", collection, "--vault-passphrase-fd", "3", "--cost", "14"] + options
    let run = try run(arguments, input: "".utf8, descriptors: [3: "vault"])
    try #require(run.code == 0, "\(run.message)")
  }

  /// Unlocks the vault.
  @discardableResult
  func unlock(_ passphrase: String = "vault", _ options: String...) throws -> Run {
    try run(
      ["unlock", "--vault-passphrase-fd", "3"] + options, input: "".utf8, descriptors: [3: passphrase])
  }
}
