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

@Suite("Export and import of text")
struct TextFormatTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "ui/theme", "it's dark")
    try tool.succeed("set", "ui/size", "--int", "14")
    try tool.succeed("set", "ui/big", "--int", "18446744073709551615")
    try tool.succeed("set", "ui/nan", "--double", "nan")
    try tool.succeed("set", "ui/shape", #"{"a":[1,2.5,null],"$b":{}}"#)
    try tool.succeed("set", "ui/when", "--date", "2026-01-31T08:30:00.25Z")
    try tool.succeed("set", "ui/link", "--url", "https://example.org/a")
    try tool.succeed("set", "ui/id", "--uuid", "6F9619FF-8B86-D011-B42D-00C04FC964FF")
    try tool.succeed("set", "ui/bytes", "--hex", "00ff")
    try tool.succeed("set", "top", "--bool", "true")
    try tool.succeed("set", "api/token", "--secret", "-", input: "hunter2")
  }

  /// All that the tool says of its items.
  private func listing(_ tool: Tool) throws -> String {
    try ["ui", "api", ""].map { collection in
      try tool.succeed("list", collection, "--values", "--json").replacing(
        #/"version":\d+,"modified":"[^"]*"/#, with: "")
    }.joined()
  }

  @Test(
    "Each format transfers all collections to another store unchanged", arguments: ["json", "yaml", "toml", "plist"])
  func roundTrip(_ format: String) throws {
    let file = tool.path("all.\(format)")
    let export = try tool.run("export", "-o", file, "--reveal")
    #expect(
      export.code == 0 && export.message.contains("unencrypted") && export.text.isEmpty
        && export.message.contains("11 items written to \(file)."))
    #expect(try tool.mode(file) == 0o600)
    let other = try Tool()
    #expect(try other.run("import", file).message.contains("11 items in 3 collections: 11 new"))
    #expect(try listing(other) == listing(tool))
    #expect(try other.succeed("get", "api/token") == "hunter2\n")
    #expect(try other.run("import", file, "--replace").message.contains("11 unchanged"))
    #expect(try other.succeed("import", file, "--quiet").isEmpty)
    // What the file does not have stays by itself, and goes with --replace.
    try other.succeed("set", "api/extra", "x")
    try other.succeed("import", file, "--merge")
    #expect(try other.succeed("get", "api/extra") == "x\n")
    try other.succeed("import", file, "--replace")
    #expect(try other.run("get", "api/extra").code == 3)
  }

  @Test(
    "Secrets are not shown without --reveal, and an import keeps existing ones", arguments: ["json", "yaml", "toml"])
  func secrets(_ format: String) throws {
    let export = try tool.run("export", "--format", format)
    #expect(export.code == 0 && !export.text.contains("hunter2") && export.text.contains("<secret: 7 bytes>"))
    #expect(export.message.contains("1 secret is not shown"))
    let again = try tool.run("import", "-", "--format", format, "--replace", input: export.text).message
    #expect(again.contains("1 secret hidden in the file, left unchanged"))
    #expect(try tool.succeed("get", "api/token") == "hunter2\n")
    let refused = try tool.run("export", "api", "--format", "env")
    #expect(refused.code == 11 && refused.text.isEmpty && refused.message.contains("--reveal"))
    #expect(try tool.succeed("export", "api", "--format", "env", "--reveal") == "TOKEN='hunter2'\n")
  }

  @Test("One collection is exported by name and imported with -c")
  func oneCollection() throws {
    let text = try tool.succeed("export", "ui", "--format", "yaml")
    #expect(text.hasPrefix("big: 18446744073709551615\n"))
    try tool.succeed("import", "-", "-c", "copy", "--format", "yaml", input: text)
    #expect(try tool.succeed("get", "copy/when") == "2026-01-31T08:30:00.250Z\n")
    let run = try tool.run("import", "-", "--format", "yaml", input: text)
    #expect(run.code == 8 && run.message.contains("-c"))
    #expect(try tool.run("export", "none").code == 3)
    #expect(try tool.run("export", "--format", "env").code == 2)
    #expect(try tool.run("export", "--format", "sqlite").code == 2)
  }

  @Test("A shell reads from the format env what get prints")
  func environment() throws {
    try tool.succeed("set", "vars/a.b", "its $x `y` \\ \"q\"\nnext")
    try tool.succeed("set", "vars/n", "--int", "7")
    try tool.succeed("export", "vars", "-o", tool.path("vars.env"))
    let script = ". \"$1\"; printf '%s|%s' \"$A_B\" \"$N\""
    let shown = try shell("sh", ["-c", script, "sh", tool.path("vars.env")])
    #expect(shown.text == "its $x `y` \\ \"q\"\nnext|7")
    try tool.succeed("import", tool.path("vars.env"), "-c", "back")
    #expect(try tool.succeed("get", "back/A_B") == "its $x `y` \\ \"q\"\nnext\n")
    #expect(try tool.succeed("type", "back/N") == "string\n")
  }

  @Test("Variables are read as their declared or present type, as set reads them, in an import and a comparison")
  func typedEnvironment() throws {
    try tool.succeed("set", "svc/PORT", "--int", "1")
    try tool.succeed("set", "svc/DEBUG", "--bool", "yes")
    try tool.succeed("set", "svc/TOKEN", "--secret", "-", input: "old")
    let file = try tool.write("e.env", "PORT=8080\nDEBUG=false\nTOKEN=new\nNAME=x\nSINCE=2026-01-31\n".utf8)
    #expect(try tool.run("diff", "svc", "--with", file).text.contains("PORT: 1 -> 8080"))
    try tool.succeed("import", file, "-c", "svc")
    for (key, type) in [
      ("PORT", "int"), ("DEBUG", "bool"), ("TOKEN", "secret"), ("NAME", "string"), ("SINCE", "string"),
    ] {
      #expect(try tool.succeed("type", "svc/\(key)") == type + "\n")
    }
    #expect(try tool.run("diff", "svc", "--with", file).code == 0)
    let wrong = try tool.run("import", "-", "-c", "svc", "--format", "env", input: "PORT=a\nDEBUG=b\nNAME=c\n")
    #expect(
      wrong.code == 8 && wrong.message.contains("\"PORT\"") && wrong.message.contains("\"DEBUG\""), "\(wrong.message)")
    #expect(wrong.message.contains("type int") && wrong.message.contains("Nothing was changed"))
    #expect(!wrong.message.contains("\\n"), "\(wrong.message)")
    // What stands for a hidden secret elsewhere is no secret here, and no double is this integer.
    try tool.succeed("set", "svc/RATE", "--double", "1")
    for line in ["TOKEN='<secret: 5 bytes>'", "RATE=9007199254740993"] {
      #expect(try tool.run("import", "-", "-c", "svc", "--format", "env", input: line + "\n").code == 8, "\(line)")
    }
    #expect(try tool.succeed("get", "svc/NAME") == "x\n")
    let schema =
      #"[{"name":"SINCE","collection":"new","type":"date"},{"name":"N","collection":"new","type":"array<int>"}]"#
    try tool.succeed("schema", "load", "-", "--application", "new", input: schema)
    let variables = "SINCE=2026-01-31\nN=[1,2]\nOTHER=5\n"
    let undeclared = try tool.run("import", "-", "-c", "new", "--format", "env", input: variables)
    #expect(undeclared.code == 8 && undeclared.message.contains("new/OTHER is not declared"), "\(undeclared.message)")
    try tool.succeed("import", "-", "-c", "new", "--format", "env", "--undeclared", input: variables)
    #expect(try tool.succeed("type", "new/SINCE") == "date\n")
    #expect(try tool.succeed("type", "new/N") == "array\n")
    #expect(try tool.succeed("type", "new/OTHER") == "string\n")
    let refused = try tool.run("import", "-", "-c", "new", "--format", "env", input: "SINCE=soon\n")
    #expect(refused.code == 8 && refused.message.contains("declared as date"), "\(refused.message)")
    // All that is wrong is said at once.
    let several = try tool.run("import", "-", "-c", "new", "--format", "env", input: "SINCE=soon\nSINK=1\n")
    #expect(
      several.code == 8 && ["declared as date", "new/SINK is not declared"].allSatisfy(several.message.contains),
      "\(several.message)")
    // A file with types says the others as text.
    try tool.succeed("import", "-", "-c", "new", "--format", "yaml", input: "SINCE: '2026-02-01'\n")
    #expect(try tool.succeed("type", "new/SINCE") == "date\n")
  }

  @Test("A variable stands for the key that is exported under its name, set or declared; its type stays")
  func keysOfVariables() throws {
    try tool.succeed("set", "db/password", "--secret", "-", input: "pw")
    try tool.succeed("set", "db/port", "--int", "5")
    try tool.succeed("set", "db/host.name", "a")
    let before = try tool.succeed("list", "db", "--values", "--reveal", "--plain")
    let file = tool.path("db.env")
    try tool.succeed("export", "db", "--reveal", "-o", file)
    try tool.succeed("import", file, "-c", "db")
    #expect(try tool.succeed("list", "db", "--values", "--reveal", "--plain") == before)
    #expect(try tool.run("diff", "db", "--with", file).code == 0)
    try tool.succeed("import", "-", "-c", "db", "--format", "env", "--replace", input: "PORT=6\nNEW=1\n")
    #expect(try tool.succeed("list", "db") == "NEW\nport\n")
    #expect(try tool.succeed("type", "db/port") == "int\n")
    let schema = #"[{"name":"max.size","collection":"new","type":"int","limits":[{"minimum":1,"maximum":9}]}]"#
    try tool.succeed("schema", "load", "-", "--application", "new", input: schema)
    let refused = try tool.run("import", "-", "-c", "new", "--format", "env", input: "MAX_SIZE=99\n")
    #expect(refused.code == 8 && refused.message.contains("new/max.size must be 1 to 9"), "\(refused.message)")
    try tool.succeed("import", "-", "-c", "new", "--format", "env", input: "MAX_SIZE=7\n")
    #expect(try tool.succeed("get", "new/max.size") == "7\n")
    try tool.succeed("set", "two/a-b", "1")
    try tool.succeed("set", "two/a.b", "1")
    let ambiguous = try tool.run("import", "-", "-c", "two", "--format", "env", input: "A_B=2\n")
    #expect(ambiguous.code == 8 && ambiguous.message.contains("\"a-b\" and \"a.b\""), "\(ambiguous.message)")
    let twice = try tool.run("import", "-", "-c", "new", "--format", "env", input: "MAX_SIZE=1\nmax.size=2\n")
    #expect(twice.code == 8 && twice.message.contains("MAX_SIZE and max.size are both"), "\(twice.message)")
    #expect(try tool.succeed("get", "new/max.size") == "7\n")
  }

  @Test(
    "Both names of a renamed setting are imported with one value, and refused with two", arguments: ["json", "sqlite"])
  func namesOfOneSetting(_ format: String) throws {
    let former = #"{"name":"w","collection":"net","type":"int","default":1}"#
    let current = #"{"name":"ww","collection":"net","type":"int","default":1,"formerly":[{"name":"w"}]}"#
    for (version, declaration) in [("1", former), ("2", current)] {
      try tool.succeed(
        "schema", "load", "-", "--application", "a", "--application-version", version, input: "[\(declaration)]")
    }
    try tool.succeed("set", "net/w", "5")
    let file = tool.path("net.\(format)")
    try tool.succeed("export", "-o", file, "net")
    try tool.succeed("set", "net/ww", "6")
    let place = format == "sqlite" ? [] : ["-c", "net"]
    for options in [["--dry-run"], []] {
      #expect(try tool.run(["import", file] + place + options, input: "".utf8).code == 0)
    }
    #expect(try tool.succeed("list", "net", "--values", "--plain") == "w\t5\nww\t5\n")
    let two = try tool.run("import", "-", "-c", "net", "--format", "json", input: #"{"w":1,"ww":2}"#)
    #expect(two.code == 8 && two.message.contains("are names of one setting"), "\(two.message)")
    #expect(try tool.succeed("list", "net", "--values", "--plain") == "w\t5\nww\t5\n")
  }

  @Test(
    "Names that differ only in their normalization are exported and imported",
    arguments: ["json", "yaml", "toml", "plist", "sqlite"])
  func twins(_ format: String) throws {
    for name in ["caf\u{e9}", "cafe\u{301}"] {
      try tool.succeed("set", "n/\(name)", name)
      try tool.succeed("set", "\(name)/k", name)
    }
    let file = tool.path("twins.\(format)")
    try tool.succeed("export", "-o", file, "--reveal")
    let other = try Tool()
    try other.succeed("import", file)
    for name in ["caf\u{e9}", "cafe\u{301}"] {
      for key in ["n/\(name)", "\(name)/k"] {
        #expect(try other.succeed("get", key).utf8.elementsEqual("\(name)\n".utf8))
      }
    }
  }

  @Test(
    "Texts, zeros, marks and URLs come back with their bytes from every format",
    arguments: ["json", "yaml", "toml", "plist"])
  func exact(_ format: String) throws {
    let text = """
      {"names": ["r\\u00e9sum\\u00e9", "re\\u0301sume\\u0301"], "zeros": [0.0, -0.0], "csv": "\\ufeffid;name",
       "links": [{"$url": "https://example.org/"}]}
      """
    try tool.succeed("import", "-", "-c", "x", "--format", "json", input: text)
    let file = tool.path("exact.\(format)")
    try tool.succeed("export", "x", "-o", file)
    try tool.succeed("import", file, "-c", "y")
    let (before, after) = (try tool.run("export", "x"), try tool.run("export", "y"))
    #expect(before.output == after.output && before.text.contains("$url") && before.text.contains("-0.0"))
  }

  @Test("A file that cannot be held exactly is 8, and an import that would drop the rest removes nothing")
  func inexact() throws {
    try tool.succeed("set", "t/d", "9")
    let null = try tool.run(
      ["import", "-", "--format", "toml", "-c", "t", "--replace"], input: Array("a = 1 # note\0 more\nb = 2\n".utf8))
    #expect(null.code == 8 && null.message.contains("line 1"), "\(null.message)")
    #expect(try tool.succeed("get", "t/d") == "9\n")
    for arguments in [["set", "t/n", "{\"n\":18446744073709551616}"], ["append", "t/l", "[18446744073709551616]"]] {
      let run = try tool.run(arguments, input: [UInt8]())
      #expect(run.code == 8 && run.message.contains("64 bits"), "\(arguments): \(run.message)")
    }
    let json = try tool.run("import", "-", "-c", "t", input: "{\"n\":18446744073709551616}")
    #expect(json.code == 8 && json.message.contains("line 1, column 6"), "\(json.message)")
    let empty = try tool.run("import", "-", "--format", "yaml", input: "t:\n")
    #expect(empty.code == 8 && empty.message.contains("t: {}"), "\(empty.message)")
    let none = try tool.run("import", "-", "--format", "yaml", input: "t:\n  k:\n")
    #expect(none.code == 8 && none.message.contains("key \"k\"") && none.message.contains("leave"), "\(none.message)")
  }

  @Test("A file of variables is read as declared, also where any text would be accepted: JSON is parsed")
  func declaredVariables() throws {
    let declarations = #"[{"name":"cfg","type":"json"},{"name":"when","type":"date"}]"#
    try tool.succeed("schema", "load", "-", "--application", "shop", "-c", "shop", input: declarations)
    try tool.succeed(
      "import", "-", "--format", "env", "-c", "shop", "--quiet",
      input: "CFG='{\"a\":1}'\nWHEN=2026-01-31T08:30:00.1234Z\n")
    #expect(try tool.succeed("list", "shop", "--values", "--json").contains(#""type":"json""#))
    let bad = try tool.run("import", "-", "--format", "env", "-c", "shop", input: "CFG='{\"a\":}'\n")
    #expect(bad.code == 8 && bad.message.contains("\"cfg\""), "\(bad.message)")
    // A date is printed, passed on and exported whole.
    #expect(try tool.succeed("get", "shop/when") == "2026-01-31T08:30:00.1234Z\n")
    #expect(
      try tool.succeed("export", "shop", "--format", "env")
        == "CFG='{\"a\":1}'\nWHEN='2026-01-31T08:30:00.1234Z'\n")
  }

  @Test("An import refuses what it would change: URLs that need escapes, leap seconds, hidden secrets for other values")
  func changedValues() throws {
    for text in ["http://h/a b", "not a url", "http://h/%zz", "http://ex\u{e4}mple.org/", "a[b]"] {
      let run = try tool.run("import", "-", "-c", "t", "--format", "json", input: #"{"u":{"$url":"\#(text)"}}"#)
      #expect(run.code == 8, "\(text): \(run.message)")
    }
    #expect(try tool.run("set", "t/d", "--date", "2026-01-31T08:30:60Z", input: "").code == 8)
    let nanoseconds = "2026-01-31T08:30:00.123456789Z"
    for (format, text) in [
      ("json", #"{"d":{"$date":"\#(nanoseconds)"}}"#), ("yaml", "d: !!timestamp \(nanoseconds)\n"),
      ("toml", "d = \(nanoseconds)\n"),
    ] {
      #expect(try tool.run("import", "-", "-c", "t", "--format", format, input: text).code == 8, "\(format)")
    }
    #expect(try tool.run("set", "t/d", "--date", nanoseconds).message.contains("more digits than a date holds"))
    // All that a date holds is written as one.
    try tool.succeed("set", "t/d", "--date", "2026-01-31T08:30:00.123456Z")
    #expect(try tool.succeed("export", "t", "--format", "json").contains(#""2026-01-31T08:30:00.123456Z""#))
    let hidden = try tool.run("import", "-", "-c", "ui", "--format", "json", input: #"{"theme":"<secret: 2 bytes>"}"#)
    #expect(hidden.code == 8 && hidden.message.contains("no secret"), "\(hidden.message)")
    // Files of variables have no placeholders.
    try tool.succeed("import", "-", "-c", "ui", "--format", "env", input: "theme='<secret: 2 bytes>'\n")
    #expect(try tool.succeed("get", "ui/theme") == "<secret: 2 bytes>\n")
    #expect(try tool.succeed("export", "api", "--format", "json").contains("<secret: 7 bytes>"))
  }

  @Test(
    "An import with --replace of a file that has no settings removes nothing",
    arguments: [("{}", "json"), ("# none\n", "env")])
  func replacingByNothing(_ text: String, _ format: String) throws {
    let run = try tool.run("import", "-", "-c", "ui", "--format", format, "--replace", input: text)
    #expect(run.code == 8 && run.message.contains("no settings"), "\(run.message)")
    #expect(try tool.succeed("get", "ui/size") == "14\n")
  }

  @Test("An import names the hidden secrets that are missing, and a secret that ends with a newline gets a hint")
  func missingSecrets() throws {
    let export = try tool.succeed("export", "api")
    let fresh = try Tool()
    let report = try fresh.run("import", "-", "-c", "api", input: export).message
    #expect(report.contains("missing here: api/token") && !report.contains("left unchanged"), "\(report)")
    #expect(try fresh.run("import", "-", "-c", "api", "-q", input: export).message.contains("missing here: api/token"))
    let file = try fresh.write("api.json", export.utf8)
    let compared = try fresh.run("diff", "api", "--with", file)
    #expect(compared.code == 1 && compared.text == "+ api/token: \"<hidden>\"\n", "\(compared)")
    #expect(
      try fresh.succeed("import", "-", "-c", "api", "--json", input: export).contains(#""missing":["api/token"]"#))
    #expect(
      try tool.run("import", "-", "-c", "api", input: export).message
        .contains("1 secret hidden in the file, left unchanged"))
    #expect(try tool.run("set", "api/new", "--secret", "-", input: "x\n").message.contains("--strip-newline"))
    #expect(try tool.run("set", "api/new", "--secret", "-", "--strip-newline", input: "x\n").message.isEmpty)
  }

  @Test("A value that a format cannot represent is 8 and named, before anything is written")
  func unexportable() throws {
    let file = tool.path("out")
    for (collection, format, key) in [("ui", "env", "bytes"), ("ui", "plist", "when")] {
      let run = try tool.run(
        ["export", collection, "--format", format] + (format == "env" ? ["-o", file] : []), input: "".utf8)
      #expect(run.code == 8 && run.text.isEmpty && run.message.contains("\"\(key)\" in collection \"\(collection)\""))
    }
    try tool.succeed("set", "e/a.b", "1")
    try tool.succeed("set", "e/a-b", "2")
    let run = try tool.run("export", "e", "--format", "env", "-o", file)
    #expect(run.code == 8 && run.message.contains("A_B") && !tool.exists(file))
    try tool.succeed("set", "nul/k", "-", input: "a\0b")
    #expect(try tool.run("export", "nul", "--format", "toml").code == 8)
    try tool.succeed("export", "nul", "--format", "json")
  }

  @Test(
    "An existing file is replaced atomically, made private, links followed, and nothing left beside it")
  func output() throws {
    let file = try tool.write("ui.json", "old".utf8)
    chmod(file, 0o644)
    let folder = try emptyFolder()
    let link = folder + "/link.json"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file)
    try tool.succeed("export", "api", "-o", link)
    #expect(String(decoding: try tool.contents(file), as: UTF8.self).contains("token"))
    #expect(try tool.mode(file) == 0o600)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == file)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["link.json"])
    #expect(try tool.run("export", "ui", "-o", tool.store).code == 2)
    #expect(try tool.run("export", "ui", "-o", tool.path("none/x.json")).code == 14)
    #expect(try tool.run("export", "ui", "-o", folder, "--format", "json").code == 14)
    #expect(try tool.run("export", "ui", "-o", "/dev/null", "--format", "yaml").message.contains("items written"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["link.json"])
  }

  @Test("A signal during an export leaves no file, or a complete one", arguments: ["sqlite", "yaml"])
  func endedExport(_ format: String) throws {
    let lines = (0..<3_000).map { "key\($0): value \($0)\n" }.joined()
    try tool.succeed("import", "-", "-c", "bulk", "--format", "yaml", input: lines)
    for signal in [SIGTERM, SIGINT, SIGHUP] {
      let folder = try emptyFolder()
      let child = try tool.spawn(
        ["export", "bulk", "--format", format, "-o", folder + "/out"],
        files: [(1, "/dev/null", O_WRONLY), (2, "/dev/null", O_WRONLY)])
      // Until there is something that could stay.
      while try isRunning(child), try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty { sched_yield() }
      kill(child, signal)
      let code = try Tool.exitCode(of: child)
      let left = try FileManager.default.contentsOfDirectory(atPath: folder)
      #expect(
        left.isEmpty && code == 128 + signal || left == ["out"] && [0, 128 + signal].contains(code), "\(left) \(code)")
    }
  }

  private func emptyFolder() throws -> String {
    let folder = tool.path("folder-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    return folder
  }

  @Test("--dry-run shows what would change, without secrets, and changes nothing")
  func dryRun() throws {
    let text = #"{"ui": {"theme": "light", "new": [1]}, "api": {"token": {"$secret": "other"}}}"#
    let before = try listing(tool)
    let run = try tool.run("import", "-", "--replace", "--dry-run", input: text)
    #expect(run.code == 0 && run.text.contains("+ ui/new: [1]\n") && run.text.contains("- ui/size: 14\n"))
    #expect(run.text.contains("~ ui/theme: \"it's dark\" -> \"light\"\n") && run.text.contains("Nothing was changed."))
    #expect(run.text.contains("~ api/token: \"<secret: 7 bytes>\" -> \"<secret: 5 bytes>\"\n"))
    let json = try tool.succeed("import", "-", "--format", "json", "--dry-run", "--json", input: text)
    #expect(json.contains(#"{"change":"added","collection":"ui","key":"new","before":null,"after":[1]}"#))
    #expect(try listing(tool) == before)
  }

  @Test("The output of `defaults export` is read, including archived URLs")
  func propertyList() throws {
    let list = """
      <?xml version="1.0" encoding="UTF-8"?>
      <plist version="1.0"><dict><key>Size</key><real>1</real><key>On</key><true/><key>Names</key>
      <array><string>a</string></array></dict></plist>
      """
    try tool.succeed("import", "-", "-c", "app", input: list)
    #expect(try tool.succeed("get", "app/Size") == "1.0\n")
    #expect(try tool.succeed("get", "app/Names") == "[\"a\"]\n")
    try tool.succeed("export", "app", "-o", tool.path("app.plist"))
    #expect(try tool.contents(tool.path("app.plist")).starts(with: "bplist00".utf8))
  }

  @Test("Metadata stays if an import has none, and an export reports omitting it")
  func metadata() throws {
    let database = tool.path("metadata.sqlite")
    let sql = """
      CREATE TABLE settings(collection, key, type, value, metadata_type, metadata);
      INSERT INTO settings VALUES ('m', 'k', 'string', 'old', 'string', 'kept')
      """
    #expect(try shell("sqlite3", [database, sql]).status == 0)
    try tool.succeed("import", database)
    let export = try tool.run("export", "m")
    #expect(export.code == 0 && export.message.contains("1 item has metadata"))
    try tool.succeed("import", "-", "-c", "m", input: export.text.replacing("old", with: "new"))
    try tool.succeed("export", "m", "-o", database)
    #expect(try shell("sqlite3", [database, "SELECT value, metadata FROM settings"]).text == "new|kept\n")
  }

  private func shell(_ program: String, _ arguments: [String]) throws -> Child {
    try Child.run("/usr/bin/env", [program] + arguments)
  }

  @Test("A file of unknown format needs --format")
  func unguessed() throws {
    #expect(try tool.run("import", "-", input: "a: 1").code == 2)
    #expect(try tool.run("import", try tool.write("x.unknown", "a: 1".utf8)).code == 2)
    #expect(try tool.run("import", "-", "--format", "sqlite").code == 2)
    #expect(try tool.run("import", tool.path("x.json")).code == 14)
  }

  @Test(
    "A malformed or hostile file is 8, and neither changes a store nor makes one",
    arguments: [
      ("json", "{\"c\": {\"a\": 1, \"a\": 2}}"), ("json", "{\"a\": null}"), ("json", "[1]"),
      ("json", "{\"c\": {\"a\": " + String(repeating: "[", count: 100_000)),
      ("yaml", "c: {a: " + String(repeating: "[", count: 100_000)), ("yaml", String(repeating: "- ", count: 100_000)),
      ("yaml", String(repeating: "? ", count: 100_000)), ("yaml", "c:\n  a: {$date: yesterday}"),
      ("toml", "[c]\na = " + String(repeating: "[", count: 100_000)),
      ("toml", "[c]\n" + String(repeating: "a.", count: 100_000) + "a = 1"),
      ("toml", "[" + String(repeating: "a.", count: 100_000) + "a]"),
      ("toml", "[c]\na = " + String(repeating: "{a=", count: 100_000)),
      ("plist", "<plist><dict><key>c</key>" + String(repeating: "<array>", count: 100_000)),
      ("env", "1=2"),
    ])
  func hostile(_ format: String, _ text: String) throws {
    let empty = try Tool()
    let run = try empty.run("import", "-", "--format", format, "-c", "c", input: text)
    #expect(run.code == 8, "\(run.message)")
    #expect(!empty.exists(empty.store))
  }

  @Test("A killed import has set all keys or none")
  func killed() throws {
    let count = ProcessInfo.processInfo.environment["COFFER_SOAK"] == "1" ? 100_000 : 5_000
    let lines = (0..<count).map { "  key\($0): value \($0)\n" }.joined()
    let file = try tool.write("large.yaml", "bulk:\n\(lines)".utf8)
    for attempt in 0..<8 {
      let code = try importing(file, killedBy: attempt % 2 == 0 ? SIGKILL : SIGINT, atWrite: attempt)
      let listing = try tool.run("list", "bulk")
      let found = listing.code == 3 ? 0 : listing.text.count { $0 == "\n" }
      #expect(found == 0 || found == count)
      #expect(code != 0 || found == count)
      if found > 0 { try tool.succeed("unset", "-c", "bulk", "--all", "-f") }
    }
    #expect(try tool.run("import", file).message.contains("\(count) new"))
    #expect(try tool.succeed("get", "bulk/key\(count - 1)") == "value \(count - 1)\n")
  }

  /// Starts an import, and sends a signal when its log has been seen to change so many times, or sooner if it ends.
  private func importing(_ file: String, killedBy signal: Int32, atWrite number: Int) throws -> Int32 {
    var last = logState()
    var changes = 0
    let child = try tool.spawn(
      ["import", file, "-q"], files: [(1, "/dev/null", O_WRONLY), (2, "/dev/null", O_WRONLY)])
    while try isRunning(child) {
      let state = logState()
      if state != last { (last, changes) = (state, changes + 1) }
      if changes > number { break }
      sched_yield()
    }
    kill(child, signal)
    return try Tool.exitCode(of: child)
  }

  /// Looks whether the child has ended, and leaves its exit code for later.
  private func isRunning(_ child: pid_t) throws -> Bool {
    var information = siginfo_t()
    try #require(waitid(P_PID, id_t(child), &information, WEXITED | WNOHANG | WNOWAIT) == 0)
    return information.si_signo == 0
  }

  /// Size and time of the log, which every write changes.
  private func logState() -> [Int] {
    var status = stat()
    guard stat(tool.store + "-wal", &status) == 0 else { return [] }
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    return [Int(status.st_size), Int(time.tv_sec), Int(time.tv_nsec)]
  }
}
