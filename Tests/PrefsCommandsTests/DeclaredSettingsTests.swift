import Foundation
import Testing

@Suite("Declared settings in the shell")
struct DeclaredSettingsTests {
  private let tool: Tool

  private static let declarations = """
    [
      {"name": "http.port", "collection": "shop", "type": "int", "default": 8080, "effect": "restart", "since": "2.0",
       "limits": [{"minimum": 1, "maximum": 65535}], "summary": "Where the service listens"},
      {"name": "maintenance", "collection": "shop", "type": "bool", "default": false},
      {"name": "theme", "collection": "shop", "type": "string", "default": "light",
       "limits": [{"choices": ["light", "dark"]}]},
      {"name": "code", "collection": "shop", "type": "string", "limits": [{"pattern": "[A-Z]{3}"}]},
      {"name": "ratio", "collection": "shop", "type": "double"},
      {"name": "launch", "collection": "shop", "type": "date"},
      {"name": "home", "collection": "shop", "type": "url"},
      {"name": "id", "collection": "shop", "type": "uuid"},
      {"name": "sizes", "collection": "shop", "type": "array<int>", "limits": [{"minimumCount": 0, "maximumCount": 3}]},
      {"name": "weights", "collection": "shop", "type": "dict<double>"},
      {"name": "layout", "collection": "shop", "type": "json"},
      {"name": "token", "collection": "shop", "type": "secret"},
      {"name": "old", "collection": "shop", "type": "int", "deprecated": "use http.port"},
      {"name": "pin", "collection": "vault", "type": "int", "limits": [{"minimum": 1, "maximum": 9999}]}
    ]
    """

  init() throws {
    tool = try Tool()
    let file = try tool.write("declared.json", Self.declarations.utf8)
    try tool.succeed("schema", "load", file, "--application", "org.example.shop", "--application-version", "2.1")
  }

  private func expectRefused(
    _ arguments: String..., input: String = "", saying message: String, location: SourceLocation = #_sourceLocation
  ) throws {
    let run = try tool.run(arguments, input: input.utf8)
    #expect(
      run.code == 8 && run.message.contains(message), "\(run.code) \(run.message)", sourceLocation: location)
  }

  // MARK: - set

  @Test("set reads text as the declared type")
  func typedSet() throws {
    for (key, text, type, shown) in [
      ("maintenance", "true", "bool", "true"), ("http.port", "9090", "int", "9090"),
      ("theme", "dark", "string", "dark"),
      ("ratio", "2", "double", "2.0"), ("launch", "2026-01-31", "date", "2026-01-31T00:00:00.000Z"),
      ("home", "https://example.org/", "url", "https://example.org/"),
      ("id", "6F9619FF-8B86-D011-B42D-00C04FC964FF", "uuid", "6F9619FF-8B86-D011-B42D-00C04FC964FF"),
      ("sizes", "[1,2]", "array", "[1,2]"), ("weights", #"{"a":1}"#, "dict", #"{"a":1.0}"#),
      ("layout", #"{"b":[1]}"#, "json", #"{"b":[1]}"#),
    ] {
      try tool.succeed("set", "shop/\(key)", text)
      #expect(try tool.succeed("type", "shop/\(key)") == type + "\n")
      #expect(try tool.succeed("get", "shop/\(key)") == shown + "\n")
    }
    try tool.succeed("set", "maintenance", "--collection", "tenant/shop", "true")
  }

  @Test("A value that does not match its declaration is refused with what it must be, and --force sets it anyway")
  func refusedSet() throws {
    try expectRefused("set", "shop/http.port", "99999", saying: "shop/http.port must be 1 to 65535, not 99999")
    try expectRefused("set", "shop/http.port", "99999", saying: "--force")
    try expectRefused("set", "shop/http.port", "many", saying: "It is declared as int")
    try expectRefused("set", "shop/http.port", "--string", "80", saying: "of type int, not string")
    try expectRefused("set", "shop/theme", "blue", saying: "one of light, dark, not blue")
    #expect(try !tool.run("list", "shop").text.contains("http.port"))
    try tool.succeed("set", "shop/http.port", "99999", "--force")
    // Programs skip it.
    let skipped = try tool.run("get", "shop/http.port")
    #expect(skipped.text == "8080\n" && skipped.message.contains("must be 1 to 65535, not 99999"), "\(skipped)")
    try tool.succeed("set", "shop/http.port", "many", "-f")
    #expect(try tool.run("validate", "shop").text.contains("of type int, not string"))
  }

  @Test("A declared secret cannot be an argument or a plain value")
  func declaredSecret() throws {
    for arguments in [["hunter2"], ["--string", "hunter2"], ["-"]] {
      let run = try tool.run(["set", "shop/token"] + arguments, input: "hunter2".utf8)
      #expect(run.code == 2 && run.message.contains("--secret") && !run.message.contains("hunter2"), "\(run.message)")
    }
    try tool.succeed("set", "shop/token", "--secret", "-", input: "hunter2")
    #expect(try tool.succeed("describe", "shop/token").contains("<secret: 7 bytes>"))
    #expect(try !tool.succeed("list", "shop", "--all", "--values").contains("hunter2"))
  }

  @Test("Without a declaration the existing type is kept, or the text refused with how to change it")
  func keptType() throws {
    try tool.succeed("set", "colour", "blue")
    try tool.succeed("set", "colour", "[1]")
    #expect(try tool.succeed("type", "colour") == "string\n")
    try tool.succeed("set", "count", "--int", "1")
    try tool.succeed("set", "count", "2")
    #expect(try tool.succeed("type", "count") == "int\n")
    try expectRefused("set", "count", "two", saying: "another type needs --type")
    #expect(try tool.succeed("get", "count") == "2\n")
    try tool.succeed("set", "count", "two", "--type", "string")
    try tool.succeed("set", "new", #"["a"]"#)
    #expect(try tool.succeed("type", "new") == "array\n")
  }

  // MARK: - Other doors

  @Test("append reads text as the declared type of elements, and creates what is declared")
  func typedAppend() throws {
    try tool.succeed("append", "shop/sizes", "4", "5")
    #expect(try tool.succeed("get", "shop/sizes") == "[4,5]\n")
    try expectRefused("append", "shop/sizes", "many", saying: "sizes")
    try expectRefused("append", "shop/sizes", "--string", "6", saying: "of type array<int>")
    try tool.succeed("append", "shop/weights", "a", "1", "b", "2.5")
    #expect(try tool.succeed("get", "shop/weights") == #"{"a":1.0,"b":2.5}"# + "\n")
    try tool.succeed("append", "shop/weights", #"{"c": 3}"#)
    #expect(try tool.succeed("get", "shop/weights") == #"{"a":1.0,"b":2.5,"c":3.0}"# + "\n")
    try expectRefused("append", "shop/weights", "d", "heavy", saying: "weights")
    try tool.succeed("append", "shop/sizes", "-", input: "6")
    #expect(try tool.succeed("get", "shop/sizes") == "[4,5,6]\n")
    // Undeclared, text stays text.
    try tool.succeed("append", "other/sizes", "4")
    #expect(try tool.succeed("get", "other/sizes") == #"["4"]"# + "\n")
  }

  @Test("With a locked vault, commands that need no sealed value work, and the rest have their own error")
  func sealed() throws {
    try tool.succeed("set", "vault/pin", "1234")
    try tool.succeed("set", "clear/pin", "1234", "--int")
    try tool.seal("vault")
    for arguments in [
      ["validate", "vault"], ["validate"], ["diff", "vault", "clear"], ["copy", "vault", "other", "--force"],
      ["copy", "clear", "vault", "--merge"], ["diff", "--with", tool.store], ["get", "vault/pin"],
    ] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 6 && run.text == "" && run.message.contains("locked"), "\(arguments) \(run)")
    }
    let described = try tool.succeed("describe", "vault/pin")
    #expect(described.contains("<sealed>") && described.contains("1 to 9999") && !described.contains("1234"))
    #expect(try tool.succeed("list", "vault", "--all") == "pin\n")
    try tool.succeed("unset", "vault/pin")
    #expect(try tool.run("unset", "vault/pin").code == 3)
    #expect(try tool.run("list", "other").code == 3)
    try tool.unlock()
    #expect(try tool.run("set", "vault/pin", "-", input: "99999").message.contains("1 to 9999"))
    try tool.succeed("set", "vault/pin", "-", "--force", input: "99999")
    let check = try tool.run("validate", "vault")
    #expect(check.code == 8 && check.text == "vault/pin must be 1 to 9999, and the value is not.\n", "\(check)")
    try tool.succeed("lock")
  }

  @Test("A salvaged store has the declarations, and they apply there")
  func salvaged() throws {
    try tool.succeed("set", "shop/http.port", "81")
    let saved = tool.path("saved.coffer")
    #expect(try tool.run("salvage", "-o", saved).code == 0)
    #expect(try tool.succeed("schema", "--format", "json", "-d", saved) == tool.succeed("schema", "--format", "json"))
    #expect(try tool.run("set", "shop/http.port", "99999", "-d", saved).code == 8)
    #expect(try tool.run("doctor", "-d", saved).code == 0)
  }

  @Test("import, append, increment, restore, rename and copy are refused completely, and permitted by --force")
  func otherDoors() throws {
    let port = "shop/http.port must be 1 to 65535"
    let file = try tool.write("in.json", #"{"shop": {"http.port": 0, "maintenance": true}}"#.utf8)
    try expectRefused("import", file, saying: port)
    try expectRefused("import", file, "--dry-run", saying: port)
    #expect(try !tool.run("list", "shop").text.contains("maintenance"))
    // All problems, in all collections, are reported together.
    let many = #"{"shop": {"http.port": 0, "theme": "dark", "ratio": "half"}, "vault": {"pin": 0}, "x": {"y": 1}}"#
    let run = try tool.run("import", "-", "--format", "json", input: many)
    let lines = run.message.split(separator: "\n")
    #expect(run.code == 8 && lines.count == 4, "\(run)")
    #expect(lines[0].hasSuffix("shop/http.port must be 1 to 65535, not 0."))
    #expect(lines[1] == "shop/ratio must be of type double, not string.")
    #expect(lines[2] == "vault/pin must be 1 to 9999, not 0.")
    #expect(lines[3].contains("--force"))
    #expect(try tool.run("list", "x").code == 3 && !tool.run("list", "shop").text.contains("theme"))
    try tool.succeed("set", "shop/http.port", "65535")
    try expectRefused("increment", "shop/http.port", saying: port)
    try tool.succeed("set", "shop/sizes", "[1,2,3]")
    try expectRefused("append", "shop/sizes", "--int", "4", saying: "at most 3 long, not 4")
    try tool.succeed("set", "other/http.port", "--int", "0")
    try tool.succeed("unset", "shop/http.port")
    try expectRefused("rename", "other/http.port", "shop/http.port", saying: port)
    try expectRefused("copy", "other", "shop", "--merge", saying: port)
    try tool.succeed("set", "shop/http.port", "65535")
    try tool.succeed("history", "--keep", "shop")
    try tool.succeed("increment", "shop/http.port", "--force")
    try tool.succeed("set", "shop/http.port", "1")
    // The newest of the earlier ones; get skips it.
    let versions = try tool.succeed("history", "shop/http.port", "--json")
    let version = try #require(versions.firstMatch(of: #/"version":(\d+)/#)?.output.1)
    try expectRefused("revert", "shop/http.port@\(version)", saying: port)
    try tool.succeed("revert", "shop/http.port@\(version)", "--force")
    try tool.succeed("append", "shop/sizes", "--int", "4", "--force")
    try tool.succeed("import", file, "--force")
    #expect(try tool.run("get", "shop/http.port").message.contains("not 0"))
    try tool.succeed("copy", "other", "shop", "--merge", "--force")
  }

  @Test("The format sqlite includes declarations, for applications that declare nothing in the target")
  func declarationsInPlainFile() throws {
    try tool.succeed("set", "shop/http.port", "9090")
    let (file, part) = (tool.path("all.sqlite"), tool.path("part.sqlite"))
    let other = ["-d", tool.path("other.coffer")]
    try tool.succeed("export", "-o", file)
    let run = try tool.run(["import", file] + other, input: "".utf8)
    #expect(run.code == 0 && run.message.contains("14 settings declared"), "\(run)")
    let schema = ["schema", "--format", "json"]
    #expect(try tool.run(schema + other, input: "".utf8).text == tool.run(schema, input: "".utf8).text)
    #expect(try tool.run(["set", "shop/http.port", "0"] + other, input: "".utf8).code == 8)
    let again = try tool.run(["import", file, "--json"] + other, input: "".utf8)
    #expect(again.text.contains(#""declared":0"#), "\(again)")
    // Of one collection, what is declared for it.
    try tool.succeed("set", "vault/pin", "7")
    try tool.succeed("export", "vault", "-o", part)
    try tool.succeed("import", part, "-d", tool.path("part.coffer"))
    #expect(try tool.succeed("list", "vault", "--values", "--plain", "-d", tool.path("part.coffer")) == "pin\t7\n")
    #expect(try tool.run("describe", "shop/theme", "-d", tool.path("part.coffer")).code == 3)
    // Another application's, which disagree with those that are here.
    let conflict = tool.path("conflict.coffer")
    let declaration = #"[{"name": "theme", "collection": "shop", "type": "int"}]"#
    try tool.succeed(
      "schema", "load", tool.write("int.json", declaration.utf8), "--application", "org.example.other", "-d", conflict)
    let refused = try tool.run("import", file, "-d", conflict)
    #expect(refused.code == 9 && refused.message.contains("org.example.other"), "\(refused)")
    #expect(try tool.run("get", "shop/http.port", "-d", conflict).code == 3)
  }

  // MARK: - Names

  @Test("Every command that sets refuses a key that is not declared, with the nearest one; --undeclared sets it")
  func undeclared() throws {
    try tool.succeed("set", "other/maintenence", "true")
    let file = try tool.write("one.json", #"{"maintenence": true, "theme": "dark"}"#.utf8)
    let commands = [
      ["set", "shop/maintenence", "true"], ["set", "-c", "shop", "maintenence", "--string", "true", "--force"],
      ["increment", "shop/maintenence"], ["append", "shop/maintenence", "x"], ["copy", "other", "shop", "--merge"],
      ["import", file, "-c", "shop"], ["rename", "other/maintenence", "shop/maintenence"],
    ]
    for arguments in commands {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 8 && run.message.contains("did you mean \"shop/maintenance\"?"), "\(arguments) \(run)")
      #expect(run.message.contains("Nothing was changed; --undeclared"), "\(arguments) \(run)")
      #expect(try !tool.succeed("list", "--all", "shop", "--plain").contains("maintenence"))
      #expect(try tool.succeed("get", "shop/theme") == "light\n")
    }
    try tool.succeed("history", "--keep", "shop")
    for arguments in commands {
      let run = try tool.run(arguments + ["--undeclared"], input: "".utf8)
      #expect(run.code == 0, "\(arguments) \(run)")
      try tool.succeed("unset", "shop/maintenence")
    }
    // What was there before is not there now.
    let versions = try tool.succeed("history", "shop/maintenence", "--json")
    let version = try #require(versions.firstMatch(of: #/"version":(\d+)/#)?.output.1)
    #expect(try tool.run("revert", "shop/maintenence@\(version)").code == 8)
    try tool.succeed("revert", "shop/maintenence@\(version)", "--undeclared")
    // It is there.
    try tool.succeed("set", "shop/maintenence", "--int", "5")
    try tool.succeed("increment", "shop/maintenence")
    // A value and a name, each with its option.
    let two = #"{"maintenanse": true, "http.port": 0, "teme": "dark"}"#
    let refused = try tool.run("import", "-", "-c", "shop", "--format", "json", input: two)
    for words in [
      "shop/maintenanse is not declared; did you mean \"shop/maintenance\"?",
      "shop/http.port must be 1 to 65535, not 0.",
      "shop/teme is not declared; did you mean \"shop/theme\"?", "--force", "--undeclared",
    ] { #expect(refused.code == 8 && refused.message.contains(words), "\(refused)") }
    #expect(try tool.run("set", "shop/http.prt", "1", "--force").code == 8)
    try tool.succeed("set", "undeclared/anything", "1")
  }

  // MARK: - Looking

  @Test("describe shows everything about a setting")
  func describe() throws {
    let text = try tool.succeed("describe", "shop/http.port")
    for part in [
      "Where the service listens", "int", "1 to 65535", "8080", "from", "default", "next starts", "2.0",
      "org.example.shop 2.1",
    ] {
      #expect(text.contains(part), "\(part)")
    }
    try tool.succeed("set", "shop/http.port", "99999", "--force")
    let json = try tool.succeed("describe", "shop/http.port", "--json")
    let problem = #"shop/http.port must be 1 to 65535, not 99999 (in collection \"shop\")"#
    #expect(json.contains(#""value":8080,"origin":"default","problem":"\#(problem)""#), "\(json)")
    let run = try tool.run("describe", "shop/http.prt")
    #expect(run.code == 3 && run.message.contains("did you mean \"shop/http.port\"?"))
  }

  @Test("list --all includes declared settings that are not set, with defaults marked")
  func listAll() throws {
    try tool.succeed("set", "shop/maintenance", "true")
    let lines = try tool.succeed("list", "shop", "--all", "--plain", "--values").split(separator: "\n").map(String.init)
    #expect(lines.contains("http.port\tdefault\t8080") && lines.contains("maintenance\t\ttrue"), "\(lines)")
    #expect(lines.contains("code\tdefault"))
    #expect(try tool.succeed("list", "shop", "--all", "-l").contains("(default)"))
    let json = try tool.succeed("list", "shop", "--all", "--json")
    #expect(json.contains(#""key":"http.port","type":"int","size":null,"value":8080,"version":null"#), "\(json)")
    #expect(try tool.succeed("list", "shop") == "maintenance\n")
  }

  @Test("check finds unknown keys with the nearest one, wrong types, values out of limits, and deprecated settings")
  func check() throws {
    try tool.succeed("set", "shop/http.port", "80")
    try tool.succeed("set", "free/anything", "x")
    #expect(try tool.succeed("validate").isEmpty)
    try tool.succeed("set", "shop/old", "1")
    #expect(try tool.succeed("validate") == "shop/old is deprecated: use http.port\n")
    try tool.succeed("set", "shop/http.prt", "1", "--undeclared")
    try tool.succeed("set", "shop/http.port", "--int", "0", "--force")
    try tool.succeed("set", "shop/maintenance", "--string", "true", "--force")
    let run = try tool.run("validate")
    #expect(
      run.code == 8
        && run.text == """
          shop/http.port must be 1 to 65535, not 0.
          shop/http.prt is not declared; did you mean "shop/http.port"?
          shop/maintenance must be of type bool, not string.
          shop/old is deprecated: use http.port

          """,
      "\(run.text)")
    let json = try tool.run("validate", "shop", "--json")
    #expect(try tool.run("validate", "Shop").code == 3)
    #expect(json.code == 8 && json.text.contains(#""key":"http.prt","kind":"unknown""#))
    #expect(json.text.contains(#""near":"shop/http.port""#))
  }

  // MARK: - Schema

  @Test("schema prints a table, and JSON that it loads again as the same")
  func schema() throws {
    #expect(
      try tool.succeed("schema", "--format", "markdown").contains(
        "| shop/http.port | int | 1 to 65535 | 8080 | Where the service listens (since 2.0) | restart |\n"))
    let json = try tool.succeed("schema", "--format", "json")
    let other = try Tool()
    let file = try other.write("schema.json", json.utf8)
    try other.succeed("schema", "load", file)
    #expect(try other.succeed("schema", "print", "--format", "json") == json)
  }

  @Test("schema infer prints declarations for what is set, which accept it once they are loaded, and no values")
  func schemaInference() throws {
    let other = try Tool()
    let values: [(key: String, option: String, text: String, type: String)] = [
      ("flag", "--bool", "true", "bool"), ("port", "--int", "8080", "int"),
      ("big", "--int", "18446744073709551615", "int"),
      ("ratio", "--double", "0.5", "double"), ("name", "--string", "hidden", "string"),
      ("key", "--hex", "00ff", "data"),
      ("since", "--date", "2026-01-31", "date"), ("home", "--url", "https://example.org/", "url"),
      ("id", "--uuid", "6F9619FF-8B86-D011-B42D-00C04FC964FF", "uuid"), ("sizes", "--array", "[1,2]", "array<int>"),
      ("mixed", "--array", "[1,2.5]", "array<double>"), ("exact", "--array", "[9007199254740993,0.5]", "array"),
      ("odd", "--array", #"[1,"a",null]"#, "array"), ("none", "--array", "[]", "array"),
      ("rows", "--array", #"[{"a":1},{"b":2}]"#, "array<dict<int>>"),
      ("deep", "--array", "[[[[[[[[[[1]]]]]]]]]]", "array"),
    ]
    for value in values { try other.succeed("set", value.option, "shop/\(value.key)", value.text) }
    try other.succeed("set", "--secret", "shop/token", "-", input: "hidden")
    try other.succeed("env", "create", "shop@dev")
    try other.succeed("set", "--double", "shop@dev/port", "1.5")
    try other.succeed("set", "--int", "--collection", "", "top", "1")

    let text = try other.succeed("schema", "infer")
    let entries = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]])
    var types = Dictionary(uniqueKeysWithValues: values.map { ("shop/\($0.key)", $0.type) })
    types.merge(["shop/token": "secret", "shop/port": "double", "/top": "int"]) { $1 }
    let found = entries.map { entry in
      ("\(entry["collection"] as? String ?? "")/\(entry["name"] as? String ?? "")", entry["type"] as? String ?? "")
    }
    #expect(Dictionary(uniqueKeysWithValues: found) == types)
    #expect(!text.contains("hidden"))
    #expect(try other.succeed("schema", "infer", "-c", "shop").contains("port"))
    #expect(try !other.succeed("schema", "infer", "-c", "shop").contains("top"))
    #expect(try other.run("schema", "infer", "-c", "shpo").code == 3)

    try other.succeed("schema", "load", other.write("inferred.json", text.utf8), "--application", "org.example.shop")
    try other.succeed("validate")
    let again = try other.run("schema", "infer")
    #expect(again.text == "[]\n")
    #expect(again.message == "prefs: every value that is set is declared.\n")
  }

  @Test("A file with invalid declarations, or in conflict with another application, changes nothing")
  func refusedSchema() throws {
    let before = try tool.succeed("schema", "--format", "json")
    for text in [
      "{}", "[1]", "[", #"[{"name": "a", "type": "int"}]"#,
      #"[{"application": "x", "declaration": {"name": "a", "type": "number"}}]"#,
      #"[{"application": "x", "declaration": {"name": "a", "type": "int"}},"#
        + #" {"application": "x", "declaration": {"name": "a", "type": "int"}}]"#,
    ] {
      #expect(try tool.run("schema", "load", tool.write("bad.json", text.utf8)).code == 8, "\(text)")
    }
    let conflict = #"[{"name": "maintenance", "collection": "shop", "type": "int"}]"#
    let run = try tool.run("schema", "load", tool.write("bad.json", conflict.utf8), "--application", "other")
    #expect(run.code == 9 && run.message.contains("org.example.shop") && run.message.contains("other"))
    #expect(try tool.succeed("schema", "--format", "json") == before)
  }

  @Test("A file of declarations is refused with all mistakes, each with its line, and unknown names are mistakes")
  func mistakes() throws {
    let text = """
      [
        {"name": "mode", "collection": "z", "type": "strng", "dflt": "a",
         "limit": [{"minimum": 1}]},
        {"name": "port", "type": "int",
         "limits": [
           {"minimumm": 1},
           {"pattern": "[0-9]+"}
         ]},
        {"name": "port", "type": "int"},
        {"name": "port", "type": "int"},
        {"name": "a", "type": "string", "limits": [{"pattern": "(a"}], "shared": 1}
      ]
      """
    let run = try tool.run("schema", "load", tool.write("bad.json", text.utf8), "--application", "z")
    #expect(run.code == 8)
    let lines = run.message.split(separator: "\n").dropFirst().map { $0.drop { $0 == " " } }
    for (line, words) in [
      (2, #"z/mode: "dflt" is unknown"#), (3, #"z/mode: "limit" is unknown"#),
      (2, #"z/mode: its type "strng" is unknown"#),
      (6, #"port: in a limit, "minimumm" is unknown"#),
      (7, "port: a limit with pattern does not apply to the type int"),
      (10, "port: it is declared twice, first in line 9"), (11, "a: the pattern (a is not supported"),
      (11, #"a: "shared" is neither"#),
    ] {
      #expect(lines.contains { $0.hasPrefix("line \(line): \(words)") }, "\(words) \(run.message)")
    }
    #expect(lines.count == 8)
    let entries = #"[{"application": "x", "verison": "1", "declaration": {"name": "a", "type": "int"}}]"#
    let entry = try tool.run("schema", "load", tool.write("bad.json", entries.utf8))
    #expect(entry.code == 8 && entry.message.contains(#"line 1: "verison" is unknown"#))
  }

  @Test("A pattern that would backtrack for ever stops nobody")
  func backtracking() throws {
    let text = #"[{"name": "p", "collection": "z", "type": "string", "limits": [{"pattern": "(a+)+$"}]}]"#
    try tool.succeed("schema", "load", tool.write("p.json", text.utf8), "--application", "z")
    let long = String(repeating: "a", count: 100_000)
    #expect(try tool.run("set", "z/p", long + "b").code == 8)
    try tool.succeed("set", "z/p", long)
  }

  // MARK: - Applications and completion

  @Test("--app selects the store, the key file and the collection of an application")
  func app() throws {
    try tool.succeed("--app", "org.example.editor", "set", "theme", "dark")
    #expect(try tool.succeed("get", "--app", "org.example.editor", "theme") == "dark\n")
    let store = tool.home.path + "/.local/share/org.example.editor/settings.coffer"
    let key = tool.home.path + "/.config/org.example.editor/key"
    #expect(
      try tool.succeed("get", "-d", store, "--key-file", key, "org.example.editor/theme") == "dark\n")
    #expect(try tool.succeed("list", "--app", "org.example.editor") == "theme\n")
    #expect(try tool.succeed("exec", "--app", "org.example.editor", "--", "printenv", "THEME") == "dark\n")
    #expect(try tool.succeed("export", "--app", "org.example.editor").contains("\"theme\": \"dark\""))
    #expect(try tool.run("get", "--app", "a/b", "x").code != 0)
  }

  @Test("Completion offers declared keys and choices")
  func completion() throws {
    func offers(_ argument: String, _ words: String...) throws -> String {
      try tool.run(
        ["---completion", "set", "--", argument, "\(words.count)", "\(words.last?.count ?? 0)", "prefs"] + words,
        input: "".utf8,
        environment: ["SAP_SHELL": "fish", "SAP_SHELL_VERSION": "3"]
      ).text
    }
    #expect(try offers("positional@0", "set", "shop/th") == "shop/theme\n")
    #expect(try offers("positional@1", "set", "shop/theme", "") == "light\ndark\n")
    #expect(try offers("positional@1", "set", "shop/maintenance", "t") == "true\n")
  }
}
