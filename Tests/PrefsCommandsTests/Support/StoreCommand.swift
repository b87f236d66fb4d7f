/// A command that reads or writes a store, with the exit code that it has for the whole store of a `CraftingBench`.
struct StoreCommand: Sendable {
  let words: [String]
  let input: String
  let code: Int32
  /// Whether it belongs to the short version of the tests.
  let isQuick: Bool
  /// Whether it is run on every store in the short version, too.
  let isAlways: Bool

  var name: String { words.joined(separator: " ") }

  init(_ words: String..., input: String = "", code: Int32 = 0, isQuick: Bool = false, isAlways: Bool = false) {
    self.words = words
    self.input = input
    self.code = code
    self.isQuick = isQuick
    self.isAlways = isAlways
  }

  /// They run in the folder of the store.
  ///
  /// `FIRST` stands for the version of the first value of `k0`.
  ///
  /// Left out are those that do not end by themselves or talk to others (`watch`, `ui`, `exec --watch`, `fleet sync` and `run`),
  /// that need a terminal (`edit`), that keep a key outside of the store (`unlock`, `lock`), and that have nothing to do with
  /// one (`completion`).
  static let all: [StoreCommand] = reading + writing + keys + whole

  private static let reading = [
    StoreCommand("get", "c/k1", isQuick: true), StoreCommand("get", "c/k3", isQuick: true),
    StoreCommand("get", "c/k3", "--json"),
    StoreCommand("get", "n/noted"), StoreCommand("get", "c/k1", "--env", "dev"),
    StoreCommand("get", "c/k3", "--env", "dev"),
    StoreCommand("get", "tokens/k", isQuick: true), StoreCommand("get", "shop/port", "--show-origin"),
    StoreCommand("get", "shop/name", "--default", "x"), StoreCommand("type", "c/k3"),
    StoreCommand("list", "--all", "--values", isQuick: true), StoreCommand("list", "-l", "c"),
    StoreCommand("list", "c", "--json"),
    StoreCommand("list", "tokens", "--values", "--reveal"), StoreCommand("list", "--due", "30d"),
    StoreCommand("list", "c", "--env", "dev", "--values"), StoreCommand("collections"), StoreCommand("find", "k"),
    StoreCommand("find", "--values", "value"), StoreCommand("history", "c/k0", isQuick: true),
    StoreCommand("history", "-c", "c"),
    StoreCommand("history", "-c", "tokens"), StoreCommand("history"), StoreCommand("log", isQuick: true),
    StoreCommand("log", "c/k0", isAlways: true), StoreCommand("log", "--json"), StoreCommand("log", "--verify"),
    StoreCommand("describe", "shop/port"),
    StoreCommand("describe", "shop/name"), StoreCommand("validate", isQuick: true), StoreCommand("schema"),
    StoreCommand("schema", "infer"),
    StoreCommand("schema", "print", "--format", "json"), StoreCommand("schema", "--format", "json-schema"),
    StoreCommand("schema", "--format", "markdown"), StoreCommand("status", isQuick: true),
    StoreCommand("status", "--json"),
    StoreCommand("export", "--format", "json", isQuick: true), StoreCommand("export", "--format", "yaml"),
    StoreCommand("export", "--format", "toml"), StoreCommand("export", "--format", "plist"),
    StoreCommand("export", "c", "--format", "env"),
    StoreCommand("export", "--format", "sqlite", "--reveal", "-o", "out.sqlite"),
    StoreCommand("diff", "c", "c@dev", code: 1), StoreCommand("diff", "--with", "whole.coffer", isQuick: true),
    StoreCommand("env", "list"),
    StoreCommand("exec", "-c", "c", "--", "true"),
    StoreCommand("inject", "-", input: "{{prefs:c/k1}} {{prefs:c/k3}}\n"),
    StoreCommand("---completion", "get", "--", "positional@0", "2", "0", "prefs", "get", "c/"),
    StoreCommand("fleet", "status", isQuick: true), StoreCommand("fleet", "members"), StoreCommand("fleet", "log"),
    StoreCommand("fleet", "conflicts"),
  ]

  private static let writing = [
    StoreCommand("set", "c/new", "x", isAlways: true), StoreCommand("set", "c/k3", "x", isQuick: true),
    StoreCommand("set", "c/k0", "x"), StoreCommand("set", "shop/port", "--int", "5", isQuick: true),
    StoreCommand("set", "shop/name", "x"), StoreCommand("set", "tokens/k", "-", input: "x", isQuick: true),
    StoreCommand("set", "tokens/new", "-", input: "x"),
    StoreCommand("set", "other/new", "x", "--expires-in", "2h", isQuick: true),
    StoreCommand("set", "c/new", "x", "--env", "dev"),
    StoreCommand("unset", "c/k3", isQuick: true), StoreCommand("unset", "-c", "c", "--all", "-f"),
    StoreCommand("unset", "-c", "tokens", "--all", "-f"), StoreCommand("increment", "n/count", isQuick: true),
    StoreCommand("append", "n/list", "two"), StoreCommand("rename", "c/k3", "c/renamed"),
    StoreCommand("copy", "c", "d", isQuick: true), StoreCommand("copy", "tokens", "tokens2", "--force"),
    StoreCommand("copy", "c", "--to", "whole.coffer", "--merge"), StoreCommand("import", "in.json", isQuick: true),
    StoreCommand("env", "create", "c@prod", "--from", "c"),
    StoreCommand("env", "create", "tokens@prod", isQuick: true), StoreCommand("env", "remove", "c@dev", "--force"),
    StoreCommand("history", "--keep", "n"), StoreCommand("history", "--keep", "c", "--count", "1"),
    StoreCommand("history", "--off", "c"), StoreCommand("revert", "c/k0@FIRST", isQuick: true),
    StoreCommand("schema", "load", "schema.json"),
  ]

  private static let keys = [
    StoreCommand("key", "list", isQuick: true), StoreCommand("key", "list", "--vault"),
    StoreCommand("key", "add", "--new-key-file", "new-key", "--label", "new", isQuick: true),
    StoreCommand("key", "add", "--vault", "--new-key-file", "new-key"),
    StoreCommand("key", "label", "stick", "old stick"),
    StoreCommand("key", "remove", "stick", "--force"), StoreCommand("key", "change", "0", "--new-key-file", "new-key"),
    StoreCommand("key", "replace", "stick", "--new-key-file", "new-key"),
    StoreCommand("key", "recovery", "-o", "recovery.txt"), StoreCommand("seal", "n", isQuick: true),
    StoreCommand("seal", "new"),
    StoreCommand("unseal", "tokens", isQuick: true), StoreCommand("rotate", isQuick: true),
    StoreCommand("rotate", "--new-root-key", "--drop", "stick", "--drop", "words", isQuick: true),
    StoreCommand("rotate", "--vault", isQuick: true),
  ]

  private static let whole = [
    StoreCommand("compact", isQuick: true), StoreCommand("backup", "copy.coffer", isQuick: true),
    StoreCommand("restore-store", "whole.coffer", "--force", isQuick: true),
    StoreCommand("restore-store", "settings.coffer", "-d", "restored.coffer"),
    StoreCommand("salvage", "-o", "salvaged.coffer", isQuick: true), StoreCommand("doctor", "--deep", "--json"),
    StoreCommand("destroy", "--confirm", "settings.coffer"),
  ]
}
