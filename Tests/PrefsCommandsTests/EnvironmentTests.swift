import Foundation
import TestSupport
import Testing

@Suite("Environments in the shell") struct EnvironmentTests {
  private let tool: Tool
  private static let staging = ["PREFS_ENV": "staging"]

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "web/port", "80", "--int")
    try tool.succeed("set", "web/host", "example.org")
    try tool.succeed("env", "create", "web@staging", "--from", "web")
  }

  // MARK: - env

  @Test("env creates, lists and removes environments, and says which exist")
  func create() throws {
    #expect(try tool.succeed("env", "list", "--plain") == "web@staging\t0\n")
    #expect(try tool.succeed("env", "list") == "web@staging  0 keys\n")
    try tool.succeed("env", "create", "test", "--from", "web")
    try tool.succeed("set", "web/port", "1", "--env", "test")
    #expect(try tool.succeed("env", "list", "web", "-0") == "web@staging\t0\0web@test\t1\0")
    #expect(try tool.succeed("env", "list", "other", "--plain") == "")
    let json = Data(try tool.succeed("env", "list", "--json").utf8)
    let listed = try #require(try JSONSerialization.jsonObject(with: json) as? [[String: Any]])
    #expect(listed.map { $0["parent"] as? String } == ["web", "web"] && listed[1]["keys"] as? Int == 1)
    #expect(try tool.run("env", "create", "web@staging").code == 9)
    #expect(try tool.run("env", "create", "staging", "--from", "web@test").code == 2)
    #expect(try tool.run("env", "create", "web@staging", "--from", "shop").code == 2)
    for name in ["staging", "web@", "web@a.b", "web@ä", "a@b@c"] {
      #expect(try tool.run("env", "create", name).code == 2, "\(name)")
    }
    let asked = try tool.run("env", "remove", "web@test")
    #expect(asked.code == 2 && asked.message.contains("--force"))
    try tool.succeed("env", "remove", "web@test", "-f")
    try tool.succeed("env", "remove", "web@staging")
    #expect(try tool.run("env", "remove", "web@staging").code == 3)
    #expect(try tool.succeed("env", "list", "--plain") == "")
    #expect(try tool.succeed("get", "web/port") == "80\n")
  }

  @Test("env list names an environment that cannot be read, and lists the others")
  func unreadable() throws {
    let bench = try CraftingBench(in: tool.path("crafted"))
    // As if a program with the store's key had planted it: its parent is sealed, and it is not.
    try bench.execute("INSERT INTO collections (name, flags) VALUES ('tokens@bad', 0), ('c@new', 64)")
    let store = ["-d", bench.path, "--key-file", bench.keyFile]
    for (form, text) in [("--plain", "c@dev\t1\n"), ("-0", "c@dev\t1\0")] {
      let run = try tool.run(["env", "list", form] + store, input: "".utf8)
      #expect(run.text == text && [7, 12].contains(run.code), "\(run)")
      #expect(run.message.contains("tokens@bad") && run.message.contains("c@new"), "\(run.message)")
    }
    let one = try tool.run(["env", "list", "tokens", "--plain"] + store, input: "".utf8)
    #expect(one.code == 7 && one.text == "" && !one.message.contains("c@new"), "\(one)")
  }

  @Test("An empty or emptied environment exists; a misspelt one is an error everywhere")
  func misspelt() throws {
    #expect(try tool.succeed("get", "web/port", "--env", "staging") == "80\n")
    try tool.succeed("set", "web/port", "81", "--env", "staging")
    try tool.succeed("unset", "-c", "web", "--all", "--force", "--env", "staging")
    #expect(try tool.succeed("get", "web/port", "--env", "staging") == "80\n")
    let template = try tool.write("template", "{{prefs:web/port|1}}".utf8)
    let file = try tool.write("file.json", #"{"port": 1}"#.utf8)
    for arguments in [
      ["get", "web/port", "--default", "1"], ["set", "web/port", "1"], ["unset", "web/port"], ["list", "web"],
      ["type", "web/port"], ["append", "web/list", "x"], ["increment", "web/port"], ["rename", "web/port", "web/p"],
      ["find", "-c", "web", "x"], ["history", "web/port"], ["history", "--keep", "web"], ["revert", "web/port@1"],
      ["watch", "web"], ["describe", "web/port"], ["validate", "web"], ["schema", "-c", "web"], ["export", "web"],
      ["import", file, "-c", "web"], ["exec", "-c", "web", "--", "/usr/bin/env"], ["inject", template],
      ["seal", "web"], ["unseal", "web"],
    ] {
      var words = arguments
      words.insert(contentsOf: ["--env", "stagin"], at: 1)
      let run = try tool.run(words, input: "".utf8)
      let code: Int32 = arguments[0] == "exec" ? 125 : 3
      #expect(
        run.code == code && run.text == "" && run.message.contains("did you mean \"staging\"?"), "\(words) \(run)")
      // And by the variable, which plain commands look at, too.
      let byVariable = try tool.run(arguments, input: "".utf8, environment: ["PREFS_ENV": "stagin"])
      #expect(byVariable.code == code && byVariable.text == "", "\(arguments) \(byVariable)")
    }
    #expect(try tool.succeed("get", "web/port") == "80\n")
    let other = try tool.run("get", "shop/port", "--env", "staging")
    #expect(other.code == 3 && other.message.contains("prefs env create shop@staging"))
    #expect(try tool.run("get", "web/port", "--env", "a/b").code == 2)
    #expect(try tool.run("get", "web@staging/port", "--env", "test").code == 2)
    let absent = try tool.run("set", "web/port", "1", "--env", "staging", "-d", tool.path("new"))
    #expect(absent.code == 4 && !tool.exists(tool.path("new")))
  }

  // MARK: - Reading

  @Test("Values not set in an environment come from its parent, with their origin")
  func reading() throws {
    try tool.succeed("set", "web/port", "81", "--env", "staging")
    #expect(try tool.succeed("get", "web/port", "--env", "staging", "--show-origin") == "store\t81\n")
    #expect(try tool.succeed("get", "web/host", "--env", "staging", "--show-origin") == "parent:web\texample.org\n")
    #expect(
      try tool.succeed("get", "web/host", "--json", environment: Self.staging).contains(#""origin":"parent:web""#))
    #expect(try tool.succeed("get", "-c", "web", "port", environment: Self.staging) == "81\n")
    #expect(try tool.succeed("type", "web/host", environment: Self.staging) == "string\n")
    #expect(try tool.run("get", "web/none", "--env", "staging").code == 3)
    let list = try tool.succeed("list", "web", "--env", "staging", "--values")
    #expect(list == "host  (from web)  example.org\nport              81\n")
    #expect(try tool.succeed("list", "web", environment: Self.staging) == "host\nport\n")
    let plain = try tool.succeed("list", "web", "--env", "staging", "--plain", "--values")
    #expect(plain == "host\tparent:web\texample.org\nport\t\t81\n")
    let json = try tool.succeed("list", "web", "--env", "staging", "--json")
    #expect(json.contains(#""origin":"parent:web""#) && json.contains(#""origin":"store""#))
    #expect(try tool.succeed("find", "-c", "web", "example", "--plain", "--env", "staging").contains("host"))
  }

  private static let declared = #"[{"name": "hits", "collection": "web", "type": "int", "default": 1}]"#

  @Test("A name with the environment has the values in force there, and lists what is set there")
  func named() throws {
    let names = [["web@staging/host"], ["-c", "web@staging", "host"], ["web/host", "--env", "staging"]]
    for name in names {
      #expect(try tool.run(["get"] + name, input: []).text == "example.org\n")
      #expect(try tool.run(["get", "--show-origin"] + name, input: []).text == "parent:web\texample.org\n")
      #expect(try tool.run(["type"] + name, input: []).text == "string\n")
    }
    #expect(try tool.run("inject", "-", input: "{{prefs:web@staging/host}}").text == "example.org")
    let exec = try tool.run("exec", "-c", "web@staging", "--only", "host", "--pristine", "--", "/usr/bin/env")
    #expect(exec.text == "HOST=example.org\n", "\(exec)")
    try tool.succeed("schema", "load", "-", "--application", "web", input: Self.declared)
    try tool.succeed("set", "web/hits", "5", "--undeclared")
    for words in [["describe", "web@staging/hits"], ["describe", "web/hits", "--env", "staging"]] {
      #expect(try tool.run(words, input: []).text.contains("parent:web"), "\(words)")
    }
    for words in [["list", "web@staging"], ["list", "web", "--env", "staging"]] {
      let run = try tool.run(words + ["--all", "--plain"], input: [])
      #expect(run.text.contains("hits\tparent:web"), "\(run)")
    }
    #expect(try tool.succeed("increment", "web@staging/hits") == "6\n")
    try tool.succeed("unset", "web@staging/hits")
    try tool.succeed("schema", "load", "-", "--application", "web", input: "[]")
    #expect(try tool.succeed("list", "web@staging") == "")
    try tool.succeed("set", "web@staging/port", "81", "--int")
    #expect(try tool.succeed("get", "web/port", environment: Self.staging) == "81\n")
    // The variable does not change a name that has an environment.
    try tool.succeed("env", "create", "web@test")
    try tool.succeed("set", "web@test/port", "82", "--int", environment: Self.staging)
    #expect(try tool.succeed("get", "web@test/port", environment: Self.staging) == "82\n")
    // What only looks like one has no parent.
    try tool.succeed("set", "-c", "ann@example.org", "host", "h")
    #expect(try tool.succeed("env", "list", "--plain") == "web@staging\t1\nweb@test\t1\n")
  }

  @Test("diff compares the effective values of an environment, whichever way it is named")
  func differences() throws {
    #expect(try tool.succeed("diff", "web", "web@staging") == "")
    try tool.succeed("set", "web/port", "81", environment: Self.staging)
    try tool.succeed("set", "web/new", "x", environment: Self.staging)
    let expected = "+ new: \"x\"\n~ port: 80 -> 81\n"
    for arguments in [["web", "web@staging"], ["web", "--env", "staging"], ["-c", "web", "--env", "staging"]] {
      let diff = try tool.run(["diff"] + arguments, input: "".utf8)
      #expect(diff.code == 1 && diff.text == expected, "\(arguments) \(diff)")
    }
    #expect(try tool.run("diff", "web@staging", "web").text == "- new: \"x\"\n~ port: 81 -> 80\n")
    // The variable does not turn one side into the other.
    #expect(try tool.run("diff", "web", "web@staging", environment: Self.staging).text == expected)
    try tool.succeed("env", "create", "web@test")
    try tool.succeed("set", "web/port", "82", "--env", "test")
    #expect(try tool.run("diff", "web@test", "web@staging").text == "+ new: \"x\"\n~ port: 82 -> 81\n")
    // Two collections in one environment.
    try tool.succeed("set", "shop/port", "81", "--int")
    try tool.succeed("env", "create", "shop@staging")
    #expect(
      try tool.run("diff", "shop", "web", "--env", "staging").text == "+ host: \"example.org\"\n+ new: \"x\"\n")
    // With a file, and another store that has no such environment.
    let file = try tool.write("web.json", #"{"host": "example.org", "port": 81}"#.utf8)
    #expect(try tool.run("diff", "web", "--env", "staging", "--with", file).text == "- web@staging/new: \"x\"\n")
    try tool.succeed("backup", tool.path("saved.coffer"))
    try tool.succeed("set", "web/host", "elsewhere")
    let saved = try tool.run("diff", "web", "--env", "staging", "--with", tool.path("saved.coffer"))
    #expect(saved.text == "~ web@staging/host: \"elsewhere\" -> \"example.org\"\n", "\(saved)")
    for (arguments, code) in [
      (["web", "web@staging", "--env", "staging"], 2), (["web", "--env", "stagin"], 3), (["--env", "staging"], 2),
      (["web", "web@stagin"], 3), (["web", "--env", "a/b"], 2), (["web"], 2),
    ] as [([String], Int32)] {
      let run = try tool.run(["diff"] + arguments, input: "".utf8)
      #expect(run.code == code && run.text == "", "\(arguments) \(run)")
    }
  }

  @Test("copy copies the values set in a named environment, and the effective ones with --env")
  func copying() throws {
    try tool.succeed("set", "web/port", "81", environment: Self.staging)
    try tool.succeed("copy", "web@staging", "own")
    #expect(try tool.succeed("list", "own", "--values", "--plain") == "port\t81\n")
    try tool.succeed("copy", "web", "whole", "--env", "staging")
    #expect(try tool.succeed("list", "whole", "--values", "--plain") == "host\texample.org\nport\t81\n")
    // The variable does not count.
    try tool.succeed("copy", "web", "plain", environment: Self.staging)
    #expect(try tool.succeed("get", "plain/port") == "80\n")
    try tool.succeed("copy", "web", "some", "--only", "host", "--env", "staging")
    #expect(try tool.succeed("list", "some") == "host\n")
    #expect(try tool.run("copy", "web", "some", "--only", "hosts", "--env", "staging").code == 3)
    // From an environment to its parent, and back into it.
    try tool.succeed("copy", "web", "web", "--env", "staging", "--merge")
    #expect(try tool.succeed("get", "web/port") == "81\n")
    try tool.succeed("copy", "web", "web@staging", "--merge")
    #expect(try tool.succeed("list", "web@staging") == "host\nport\n")
    // Into another store, of the name that was given.
    let other = tool.path("other.coffer")
    try tool.succeed("set", "-d", other, "x", "y")
    try tool.succeed("copy", "web", "--env", "staging", "--to", other)
    #expect(try tool.succeed("list", "-d", other, "web", "--values", "--plain") == "host\texample.org\nport\t81\n")
    for (arguments, code) in [
      (["web@staging", "x", "--env", "staging"], 2), (["web", "x", "--env", "stagin"], 3),
      (["--env", "staging", "--to", other], 2), (["web", "web@staging", "--env", "staging"], 2),
    ] as [([String], Int32)] {
      #expect(try tool.run(["copy"] + arguments, input: "".utf8).code == code, "\(arguments)")
    }
    #expect(try tool.run("get", "x/host").code == 3)
  }

  @Test("Programs, templates and exports get all effective values of an environment")
  func wholes() throws {
    try tool.succeed("set", "web/port", "81", environment: Self.staging)
    let exec = try tool.succeed("exec", "-c", "web", "--pristine", "--env", "staging", "--", "/usr/bin/env")
    #expect(exec.split(separator: "\n").sorted() == ["HOST=example.org", "PORT=81"])
    #expect(
      try tool.succeed(
        "exec", "-c", "web", "--only", "host", "--pristine", "--", "/usr/bin/env", environment: Self.staging)
        == "HOST=example.org\n")
    let template = try tool.write("template", "{{prefs:web/host}}:{{prefs:web/port}} {{prefs:web/no/ne|-}}".utf8)
    #expect(try tool.succeed("inject", template, "--env", "staging") == "example.org:81 -")
    let export = Data(try tool.succeed("export", "web", "--env", "staging").utf8)
    let object = try JSONSerialization.jsonObject(with: export) as? [String: Any]
    #expect(object?["port"] as? Int == 81 && object?["host"] as? String == "example.org")
    #expect(try tool.succeed("export", "web@staging", "--format", "env") == "PORT='81'\n")
    #expect(try tool.run("export", "--env", "staging").code == 2)
    // This format holds collections by name: both, of which the same shows elsewhere.
    let (file, other) = (tool.path("s.sqlite"), tool.path("other.coffer"))
    try tool.succeed("set", "shop/x", "y")
    try tool.succeed("export", "web", "-o", file, "--env", "staging")
    try tool.succeed("import", file, "-d", other)
    #expect(try tool.succeed("collections", "-d", other, "--plain") == "web\nweb@staging\n")
    let shown = try tool.succeed("list", "-d", other, "web", "--values", "--plain", "--env", "staging")
    #expect(shown == "host\tparent:web\texample.org\nport\t\t81\n")
  }

  @Test("A file of several collections is imported to their environments, which must all exist")
  func importedWhole() throws {
    let json = #"{"web": {"port": 81}, "shop": {"x": 1}, "web@test": {"port": 82}}"#
    let refused = try tool.run("import", "-", "--format", "json", "--env", "staging", input: json)
    #expect(refused.code == 3 && refused.message.contains("shop@staging"), "\(refused)")
    #expect(try tool.succeed("list", "web@staging") == "")
    try tool.succeed("env", "create", "shop@staging")
    try tool.succeed("env", "create", "web@test")
    for environment in [["PREFS_ENV": "staging"], [:]] {
      let option = environment.isEmpty ? ["--env", "staging"] : []
      let run = try tool.run(["import", "-", "--format", "json"] + option, input: json.utf8, environment: environment)
      #expect(run.code == 0, "\(run)")
      #expect(try tool.succeed("get", "web/port", "--env", "staging") == "81\n")
      #expect(try tool.succeed("get", "web@test/port") == "82\n" && tool.succeed("list", "shop@staging") == "x\n")
      #expect(try tool.run("get", "shop/x").code == 3)
      #expect(try tool.succeed("get", "web/port") == "80\n")
      try tool.succeed("unset", "web@staging/port")
    }
    let both = #"{"web": {"port": 1}, "web@staging": {"port": 2}}"#
    #expect(try tool.run("import", "-", "--format", "json", "--env", "staging", input: both).code == 8)
    try tool.succeed("export", "-o", tool.path("all.sqlite"))
    #expect(try tool.run("import", tool.path("all.sqlite"), "--env", "staging").code == 2)
  }

  // MARK: - Writing

  @Test("Writes go to the environment, starting from the parent's values")
  func writing() throws {
    try tool.succeed("set", "web/port", "81", "--env", "staging")
    #expect(try tool.succeed("type", "web@staging/port") == "int\n")
    #expect(try tool.run("set", "web/port", "many", "--env", "staging").code == 8)
    // By the environment's own name, too: it is to hide the parent's.
    try tool.succeed("unset", "web@staging/port")
    #expect(try tool.run("set", "web@staging/port", "many").code == 8)
    try tool.succeed("set", "web@staging/port", "81")
    #expect(try tool.succeed("type", "web@staging/port") == "int\n")
    try tool.succeed("set", "web/visits", "5", "--int")
    #expect(try tool.succeed("increment", "web/visits", "--env", "staging") == "6\n")
    #expect(try tool.succeed("increment", "web/visits", "--env", "staging") == "7\n")
    try tool.succeed("append", "web/names", "a")
    try tool.succeed("append", "web/names", "b", "--env", "staging")
    #expect(try tool.succeed("get", "web/names", "--env", "staging") == "[\"a\",\"b\"]\n")
    try tool.succeed("rename", "web/visits", "web/hits", "--env", "staging")
    try tool.succeed("import", "-", "-c", "web", "--format", "json", input: #"{"x": 1}"#, environment: Self.staging)
    #expect(try tool.succeed("list", "web@staging") == "hits\nnames\nport\nx\n")
    #expect(try tool.succeed("list", "web") == "host\nnames\nport\nvisits\n")
    #expect(try tool.succeed("get", "web/visits") == "5\n" && tool.succeed("get", "web/names") == "[\"a\"]\n")
    try tool.succeed("unset", "web/x", "--env", "staging")
    #expect(try tool.run("unset", "web/host", "--env", "staging").code == 3)
  }

  @Test("An environment keeps history as its parent does")
  func history() throws {
    try tool.succeed("history", "--keep", "web")
    try tool.succeed("env", "create", "web@test")
    for port in ["1", "2"] { try tool.succeed("set", "web/port", port, "--env", "test") }
    let history = try tool.succeed("history", "web/port", "--env", "test", "--plain")
    #expect(history.split(separator: "\n").count == 1)
    #expect(try tool.succeed("history", "web/port", "--plain") == "")
  }

  @Test("The store, key and collection of an application have environments, too, and so has the default collection")
  func application() throws {
    try tool.succeed("--app", "org.example.web", "set", "theme", "light")
    try tool.succeed("--app", "org.example.web", "env", "create", "org.example.web@staging")
    try tool.succeed("--app", "org.example.web", "--env", "staging", "set", "theme", "dark")
    #expect(try tool.succeed("--app", "org.example.web", "get", "theme", environment: Self.staging) == "dark\n")
    #expect(try tool.succeed("--app", "org.example.web", "get", "theme") == "light\n")
    try tool.succeed("set", "theme", "light")
    try tool.succeed("env", "create", "@staging")
    #expect(try tool.succeed("get", "theme", "--show-origin", environment: Self.staging) == "parent:\tlight\n")
  }

  // MARK: - With the rest

  @Test("Declarations of a collection apply to its environments, and to those of suites")
  func declared() throws {
    let file = try tool.write(
      "declared.json",
      #"[{"name": "port", "collection": "web", "type": "int", "default": 80, "limits": [{"minimum": 1, "maximum": 99}]}]"#
        .utf8)
    try tool.succeed("schema", "load", file, "--application", "org.example.web")
    for arguments in [["web/port", "100", "--env", "staging"], ["web@staging/port", "100"]] {
      let run = try tool.run(["set"] + arguments, input: "".utf8)
      #expect(run.code == 8 && run.message.contains("web@staging/port must be 1 to 99"), "\(run.message)")
    }
    try tool.succeed("env", "create", "acme/web@staging")
    #expect(try tool.run("set", "-c", "acme/web", "port", "100", "--env", "staging").code == 8)
    let described = try tool.succeed("describe", "web/port", "--env", "staging")
    #expect(described.contains("1 to 99") && described.contains("parent:web"), "\(described)")
    try tool.succeed("set", "web/port", "100", "--env", "staging", "--force")
    try tool.succeed("unset", "web/host")
    let check = try tool.run("validate")
    #expect(check.code == 8 && check.text == "web@staging/port must be 1 to 99, not 100.\n", "\(check)")
    #expect(try tool.run("validate", "web").code == 0)
    #expect(try tool.run("validate", "web", "--env", "staging").code == 8)
    #expect(try tool.succeed("schema", "-c", "web", "--env", "staging").contains("1 to 99"))
  }

  @Test("Defaults and locks of an administrator apply in every environment")
  func managed() throws {
    let folder = tool.path("managed/web.d")
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    let file = try tool.write("managed/web.d/10.json", #"{"size": 12, "locked": {"port": 79}}"#.utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
    let managed = ["PREFS_MANAGED_DIR": tool.path("managed"), "PREFS_ENV": "staging"]
    #expect(try tool.succeed("get", "web/port", environment: managed) == "79\n")
    #expect(try tool.succeed("get", "web/size", environment: managed) == "12\n")
    #expect(try tool.run("set", "web/port", "1", environment: managed).code == 13)
    #expect(
      try tool.run("import", "-", "-c", "web", "--format", "json", input: #"{"port":1}"#, environment: managed).code
        == 13)
    let list = try tool.succeed("list", "web", "--plain", "--values", environment: managed)
    #expect(
      list == "host\tparent:web\texample.org\nport\tlocked:\(file):1\t79\nsize\tmanaged:\(file):1\t12\n", "\(list)")
  }

  @Test("An environment of a sealed collection is sealed, and created and erased only with the vault unlocked")
  func sealed() throws {
    let vault = ["--vault-passphrase-fd", "3"]
    let key = [Int32(3): "vault"]
    let cost = ["--cost", "14"]
    #expect(try tool.run(["seal", "web"] + vault + cost, input: "".utf8, descriptors: key).code == 0)
    #expect(try tool.run("unlock", "--vault-passphrase-fd", "3", descriptors: key).code == 0)
    try tool.succeed("env", "create", "web@test")
    #expect(try tool.run("set", "web/token", "in the clear", "--env", "test").code == 2)
    try tool.succeed("set", "web/token", "-", "--env", "test", input: "dark")
    try tool.succeed("lock")
    #expect(try tool.run("get", "web/token", "--env", "test").code == 6)
    #expect(try tool.run("get", "web/host", "--env", "test").code == 6)
    #expect(try tool.run("env", "create", "web@more").code == 6)
    #expect(try tool.run("env", "remove", "web@test", "--force", "--purge").code == 6)
    #expect(try tool.succeed("list", "web", "--env", "test") == "host\nport\ntoken\n")
    #expect(try tool.run("unlock", "--vault-passphrase-fd", "3", descriptors: key).code == 0)
    #expect(try tool.succeed("get", "web/token", "--env", "test") == "dark\n")
    try tool.succeed("lock")
    // What stays of it is sealed.
    try tool.succeed("env", "remove", "web@test", "--force")
    #expect(try !tool.succeed("env", "list").contains("web@test"))
    #expect(try tool.run("doctor").code == 0)
    #expect(try tool.run("unlock", "--vault-passphrase-fd", "3", descriptors: key).code == 0)
    try tool.succeed("env", "remove", "web@test", "--force", "--purge")
    #expect(try tool.run("env", "remove", "web@test", "--force", "--purge").code == 3)
    #expect(try tool.run("doctor").code == 0)
    try tool.succeed("lock")
  }

  @Test("Sealing and unsealing a collection reaches its environments, existing, removed and new")
  func sealedTogether() throws {
    let vault = ["--vault-passphrase-fd", "3"]
    let key = [Int32(3): "vault"]
    try tool.succeed("env", "create", "web@gone")
    try tool.succeed("history", "--keep", "web@gone")
    for value in ["1", "2"] { try tool.succeed("set", "web@gone/pin", value) }
    try tool.succeed("set", "web@staging/pin", "7")
    try tool.succeed("env", "remove", "web@gone", "--force")
    let sealing = try tool.run(["seal", "web"] + vault + ["--cost", "14"], input: "".utf8, descriptors: key)
    #expect(sealing.code == 0)
    #expect(sealing.message.contains(", 2 keys, with web@staging."), "\(sealing.message)")
    #expect(try tool.run("get", "web@staging/pin").code == 6)
    let secrets = try tool.succeed("log", "--plain").split(separator: "\n").filter { $0.contains("sealed web") }
    #expect(secrets.count == 3)
    #expect(try tool.succeed("log").contains("sealed web@staging"))
    #expect(try tool.run("doctor").code == 0)
    #expect(try tool.run("unlock", "--vault-passphrase-fd", "3", descriptors: key).code == 0)
    // Its history was plaintext, and is gone.
    #expect(try tool.run("history", "web@gone/pin").code == 3)
    let unsealing = try tool.run(["unseal", "web"] + vault, input: "".utf8, descriptors: key)
    #expect(unsealing.code == 0)
    #expect(unsealing.message.contains(", with web@staging."), "\(unsealing.message)")
    try tool.succeed("lock")
    #expect(try tool.succeed("get", "web@staging/pin") == "7\n")
    try tool.succeed("env", "create", "web@gone")
    try tool.succeed("set", "web@gone/pin", "3")
    #expect(try tool.succeed("get", "web@gone/pin") == "3\n")
    #expect(try tool.run("doctor").code == 0)
  }

  @Test("A removed environment leaves its history, which an environment of the same name has again; --purge erases it")
  func removedWithHistory() throws {
    try tool.succeed("env", "create", "web@dev")
    try tool.succeed("history", "--keep", "web@dev")
    for value in ["1", "2"] { try tool.succeed("set", "web@dev/pin", value) }
    try tool.succeed("env", "remove", "web@dev", "--force", "--actor", "mallory")
    #expect(try !tool.succeed("env", "list").contains("web@dev"))
    #expect(try tool.run("get", "pin", "-c", "web", "--env", "dev").code == 3)
    let log = try tool.succeed("log", "web@dev")
    #expect(log.contains("removed environment web@dev") && log.contains("mallory") && log.contains("web@dev/pin"))
    let versions = try tool.succeed("history", "web@dev/pin", "--plain").split(separator: "\n")
    #expect(versions.count == 2)
    try tool.succeed("env", "create", "web@dev")
    try tool.succeed("revert", "web@dev/pin@\(versions[0].split(separator: "\t")[0])")
    #expect(try tool.succeed("get", "web@dev/pin") == "2\n")
    try tool.succeed("set", "web@dev/pin", "3")
    #expect(try tool.succeed("history", "web@dev/pin", "--plain").split(separator: "\n").count == 3)
    let refusal = try tool.run("env", "remove", "web@dev", "--purge")
    #expect(refusal.code == 2 && refusal.message.contains("Confirm with --force"))
    try tool.succeed("env", "remove", "web@dev", "--purge", "--force")
    #expect(try tool.run("history", "web@dev/pin").code == 3)
    #expect(try tool.succeed("log").contains("erased web@dev") && !tool.succeed("log").contains("web@dev/pin"))
    #expect(try tool.succeed("log", "--verify").hasPrefix("The log is whole, without what was erased (keys of "))
  }

  @Test("An empty environment is in a backup, and survives maintenance of a store")
  func kept() throws {
    try tool.succeed("backup", tool.path("backup.coffer"))
    try tool.succeed("compact")
    try tool.succeed("rotate")
    #expect(try tool.run("doctor").code == 0)
    #expect(try tool.succeed("get", "web/port", "--env", "staging") == "80\n")
    #expect(try tool.succeed("get", "web/port", "--env", "staging", "-d", tool.path("backup.coffer")) == "80\n")
    #expect(try tool.run("salvage", "-o", tool.path("salvaged.coffer")).code == 0)
    #expect(try tool.succeed("env", "list", "--plain", "-d", tool.path("salvaged.coffer")) == "web@staging\t0\n")
  }
}
