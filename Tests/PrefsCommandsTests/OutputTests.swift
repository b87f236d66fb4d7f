import Foundation
import Testing

@Suite("Output")
struct OutputTests {
  private func sample() throws -> Tool {
    let tool = try Tool()
    try tool.succeed("set", "app/theme", "dark")
    try tool.succeed("set", "app/size", "--int", "14")
    try tool.succeed("set", "app/icon", "--data", "aWNvbg==")
    try tool.succeed("set", "top", "--bool", "on")
    return tool
  }

  @Test("get --json is one object with its members in order")
  func getJSON() throws {
    let tool = try sample()
    try tool.succeed("set", "app/theme", "light \"x\"\n")
    let text = try tool.succeed("get", "app/theme", "--json")
    let start = #"{"collection":"app","key":"theme","type":"string","value":"light \"x\"\n","version":6,"modified":""#
    #expect(text.hasPrefix(start))
    #expect(text.hasSuffix("Z\",\"origin\":\"store\"}\n"))
    let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    #expect(object.count == 7)
  }

  @Test(
    "Values in JSON",
    arguments: [
      (["--data", "aWNvbg=="], #""type":"data","value":"aWNvbg==","encoding":"base64","#),
      (["--int", "9007199254740992"], #""type":"int","value":9007199254740992,"#),
      (["--int", "9007199254740993"], #""type":"int","value":"9007199254740993","#),
      (["--int", "-9007199254740993"], #""type":"int","value":"-9007199254740993","#),
      (["--int", "18446744073709551615"], #""type":"int","value":"18446744073709551615","#),
      (["--int", "1"], #""type":"int","value":1,"#),
      (["--bool", "1"], #""type":"bool","value":true,"#),
      (["--double", "1"], #""type":"double","value":1.0,"#),
      (["--double", "nan"], #""type":"double","value":"nan","#),
      (["--double", "inf"], #""type":"double","value":"inf","#),
      (["--date", "2026-01-31"], #""type":"date","value":"2026-01-31T00:00:00.000Z","#),
      (["--url", "https://example.org/"], #""type":"url","value":"https://example.org/","#),
      ([#"{"b":[9007199254740993],"a":{}}"#], #""type":"dict","value":{"a":{},"b":["9007199254740993"]},"#),
      (["--type", "json", #"{"b":1.0}"#], #""type":"json","value":{"b":1.0},"#),
      (["\u{1}\u{7f}\u{2028}\\/"], #""type":"string","value":"\u0001\u007f\u2028\\/","#),
    ])
  func jsonValues(_ arguments: [String], _ expected: String) throws {
    let tool = try Tool()
    #expect(try tool.run(["set", "x"] + arguments, input: "".utf8).code == 0)
    let text = try tool.succeed("get", "x", "--json")
    #expect(text.contains(expected), "\(text)")
    #expect((try? JSONSerialization.jsonObject(with: Data(text.utf8))) != nil)
  }

  @Test("get prints a default for a missing key, and a stored value before it")
  func defaults() throws {
    let tool = try sample()
    #expect(try tool.succeed("get", "app/none", "--default", "fallback") == "fallback\n")
    #expect(try tool.succeed("get", "app/none", "--default", "-1") == "-1\n")
    #expect(try tool.succeed("get", "app/none", "--default", "") == "\n")
    #expect(try tool.succeed("get", "app/theme", "--default", "fallback") == "dark\n")
    let json = #"{"collection":"app","key":"none","type":"string","value":"x","version":null,"modified":null,"#
    #expect(try tool.succeed("get", "app/none", "--default", "x", "--json") == json + "\"origin\":\"default\"}\n")
  }

  #if os(Linux)
    @Test("A report that cannot be written says that what it is about is done", arguments: [false, true])
    func unwrittenReport(isClosed: Bool) throws {
      let tool = try sample()
      let file = try tool.write("in.json", #"{"web": {"port": 80}}"#.utf8)
      // The second has a writer and no reader.
      let script =
        isClosed
        ? #"mkfifo "$HOME/pipe"; exec 3<>"$HOME/pipe" 4>"$HOME/pipe" 3<&-; rm "$HOME/pipe"; exec "$0" "$@" >&4"#
        : #"exec "$0" "$@" > /dev/full"#
      func run(_ arguments: String..., done: String) throws {
        let run = try tool.run(["-c", script, Tool.executable] + arguments, input: [], program: "/bin/bash")
        #expect(run.code == (isClosed ? 141 : 14), "\(arguments) \(run)")
        let cause = isClosed ? "the reader has closed it." : "No space left on device."
        let expected = "prefs: \(done); only the report of that could not be written: standard output: \(cause)\n"
        #expect(run.message.hasSuffix(expected), "\(arguments) \(run.message)")
      }
      try run("increment", "n", done: "the sum is saved")
      #expect(try tool.succeed("get", "n") == "1\n")
      try run("import", "--json", file, done: "the settings are saved")
      #expect(try tool.succeed("get", "web/port") == "80\n")
      try run("copy", "--json", "web", "other", done: "the settings are saved")
      #expect(try tool.succeed("get", "other/port") == "80\n")
      let (database, salvaged) = (tool.path("all.sqlite"), tool.path("salvaged.coffer"))
      try run("export", "--json", "-o", database, "web", done: "1 item written to \(database)")
      #expect(tool.exists(database))
      try run("salvage", "-o", salvaged, done: "what is readable is written to \(salvaged)")
      #expect(try tool.succeed("get", "web/port", "-d", salvaged) == "80\n")
      try run("rotate", "--json", done: "the store has its new key")
      try run("doctor", "--accept-older", done: "the store is accepted, whatever was known before")
      // Nothing is done where there is only an answer.
      let get = try tool.run(["-c", script, Tool.executable, "get", "n"], input: [], program: "/bin/bash")
      #expect(get.code == (isClosed ? 141 : 14) && !get.message.contains("only the report"), "\(get)")
    }
  #endif

  @Test("get --base64 and --hex show the bytes of text, too")
  func encodings() throws {
    let tool = try sample()
    #expect(try tool.succeed("get", "app/icon", "--base64") == "aWNvbg==\n")
    #expect(try tool.succeed("get", "app/icon", "--hex", "-n") == "69636f6e")
    #expect(try tool.succeed("get", "app/theme", "--hex") == "6461726b\n")
  }

  @Test("list prints one name per line, sorted")
  func list() throws {
    let tool = try sample()
    #expect(try tool.succeed("list", "app") == "icon\nsize\ntheme\n")
    #expect(try tool.succeed("list", "-c", "app") == "icon\nsize\ntheme\n")
    #expect(try tool.succeed("-c", "app", "list") == "icon\nsize\ntheme\n")
    #expect(try tool.succeed("list") == "top\n")
    #expect(try tool.succeed("list", "app", "-0") == "icon\0size\0theme\0")
  }

  @Test("-0 refuses a name that contains U+0000, which would make two records of it")
  func nulInNames() throws {
    let tool = try sample()
    try tool.succeed("import", "-", "--format", "json", input: #"{"app":{"a\u0000b":1},"c\u0000d":{"k":1}}"#)
    for arguments in [["list", "app"], ["list", "app", "-l"], ["collections"], ["find", "a"], ["log"]] {
      let run = try tool.run(arguments + ["-0"], input: "".utf8)
      #expect(run.code == 8 && run.message.contains("--plain"), "\(arguments): \(run)")
    }
    #expect(try tool.succeed("list", "app", "--plain").hasPrefix("a\\"))
  }

  @Test("list -l and --values add columns")
  func longList() throws {
    let tool = try sample()
    // Below the names of the columns.
    let lines = try tool.succeed("list", "app", "-l", "--values").split(separator: "\n").dropFirst().map {
      $0.split(separator: " ")
    }
    #expect(lines.map(\.first) == ["icon", "size", "theme"])
    #expect(lines.map { $0[1] } == ["data", "int", "string"])
    #expect(lines.map { $0[3] } == ["4", "3", "2"])
    #expect(lines[1].last == "14")
    #expect(try tool.succeed("list", "app", "--values", "--plain") == "icon\taWNvbg==\nsize\t14\ntheme\tdark\n")
    let fields = try tool.succeed("list", "app", "-l", "--plain").split(separator: "\n")[0].split(separator: "\t")
    #expect(fields.count == 5)
    #expect(fields[0] == "icon" && fields[1] == "data" && fields[3] == "4" && fields[4].hasSuffix("Z"))
  }

  @Test("list --json is one array, with values where they are asked for")
  func listJSON() throws {
    let tool = try sample()
    let plain = try tool.succeed("list", "app", "--json")
    let entries = try #require(try JSONSerialization.jsonObject(with: Data(plain.utf8)) as? [[String: Any]])
    #expect(entries.map { $0["key"] as? String } == ["icon", "size", "theme"])
    #expect(entries.allSatisfy { $0["value"] == nil && $0["size"] != nil && $0["collection"] as? String == "app" })
    let full = try tool.succeed("list", "app", "--json", "--values")
    #expect(full.contains(#""value":"aWNvbg==","encoding":"base64""#))
    #expect(full.contains(#""value":14,"#))
  }

  @Test("An empty default collection lists as nothing, with a hint")
  func emptyList() throws {
    let tool = try Tool()
    try tool.succeed("init")
    #expect(try tool.succeed("list") == "")
    #expect(try tool.succeed("list", "--json") == "[]\n")
    #expect(try tool.succeed("collections", "--json") == "[]\n")
    try tool.succeed("set", "app/theme", "dark")
    let run = try tool.run("list")
    #expect(run.code == 0 && run.text == "")
    #expect(run.message.contains("\"app\""))
    #expect(try tool.run("list", "-q").message == "")
  }

  @Test("collections lists names; the default one is visible")
  func collections() throws {
    let tool = try sample()
    #expect(try tool.succeed("collections") == "\"\"\napp\n")
    #expect(try tool.succeed("collections", "--plain") == "\napp\n")
    #expect(try tool.succeed("collections", "-0") == "\0app\0")
    #expect(try tool.succeed("domains", "--json") == "[\"\",\"app\"]\n")
  }

  @Test("Control characters of a name are never written to a terminal")
  func escapes() throws {
    let tool = try Tool()
    try tool.succeed("set", "-c", "", "a\u{1b}]0;x\u{7}\nb\\n", "x\ty")
    #expect(try tool.succeed("list") == "a\\u{1b}]0;x\\u{7}\\nb\\n\n")
    #expect(try tool.succeed("list", "--plain", "--values") == "a\\u{1b}]0;x\\u{7}\\nb\\\\n\tx\\ty\n")
    let run = try tool.run("get", "-c", "", "none\u{1b}[31m")
    #expect(run.code == 3)
    #expect(!run.message.contains("\u{1b}"))
  }

  @Test("type prints the kind")
  func type() throws {
    let tool = try sample()
    #expect(try tool.succeed("type", "app/icon") == "data\n")
    #expect(try tool.succeed("type", "app/size", "--json") == #"{"collection":"app","key":"size","type":"int"}"# + "\n")
  }

  @Test("A mistyped name suggests the right one")
  func suggestions() throws {
    let tool = try sample()
    #expect(try tool.run("get", "app/teme").message.contains("did you mean \"theme\"?"))
    #expect(try tool.run("get", "ap/theme").message.contains("did you mean \"app/theme\"?"))
    #expect(try tool.run("list", "apq").message.contains("did you mean \"app\"?"))
    #expect(try !tool.run("get", "app/something-else").message.contains("did you mean"))
  }

  @Test("The names that users of defaults know work")
  func aliases() throws {
    let tool = try Tool()
    try tool.succeed("write", "a/b", "x")
    #expect(try tool.succeed("read", "a/b") == "x\n")
    #expect(try tool.succeed("domains") == "a\n")
    try tool.succeed("delete", "a/b")
    #expect(try tool.run("read", "a/b").code == 3)
  }

  @Test("Common options work before and after the command")
  func optionPlaces() throws {
    let tool = try Tool()
    let store = tool.path("other.coffer")
    try tool.succeed("-d", store, "set", "x", "1")
    #expect(try tool.succeed("get", "x", "--store", store) == "1\n")
    #expect(try tool.succeed("get", "x", environment: ["PREFS_STORE": store]) == "1\n")
    #expect(!tool.exists(tool.store))
    #expect(try tool.run("-v", "get", "x", "-d", store).message.contains(store))
  }

  @Test("XDG folders are honoured when they are absolute")
  func folders() throws {
    let tool = try Tool()
    let environment = ["XDG_DATA_HOME": tool.path("data"), "XDG_CONFIG_HOME": tool.path("config")]
    try tool.succeed("set", "x", "1", environment: environment)
    #expect(tool.exists(tool.path("data/prefs/settings.coffer")) && tool.exists(tool.path("config/prefs/key")))
    try tool.succeed("set", "x", "1", environment: ["XDG_DATA_HOME": "relative", "XDG_CONFIG_HOME": "relative"])
    #expect(tool.exists(tool.store) && tool.exists(tool.keyFile))
  }

  #if os(Linux)
    @Test("Where no folder can be made, it says so, and not that a store is missing")
    func noFolder() throws {
      let run = try Tool().run("set", "x", "1", environment: ["HOME": "/proc"])
      #expect(run.code == 14 && run.message.contains("/proc/.config: no folder can be created there"), "\(run.message)")
    }
  #endif

  // MARK: Files

  @Test("in a file never replaces a store, a part of one, or a key file, whatever its name")
  func keyFilesAndStores() throws {
    let tool = try Tool()
    try tool.succeed("set", "w/v", "0")
    try tool.succeed("backup", tool.path("backup.coffer"))
    let (vault, raw) = (tool.path("vault-key"), tool.path("raw"))
    try tool.succeed("seal", "t", "--vault-key-file", vault)
    try tool.succeed("set", "t/x", "-", "--vault-key-file", vault, input: "s")
    try tool.write("raw", (0..<32).map { UInt8($0) })
    try tool.succeed("key", "add", "--new-key-file", raw)
    try tool.write("template", "{{prefs:w/v}}".utf8)
    try Data([1]).write(to: URL(fileURLWithPath: tool.path("backup.coffer-wal")))
    symlink(tool.keyFile, tool.path("link"))
    let files = [
      tool.keyFile, tool.path("link"), vault, raw, tool.store, tool.path("backup.coffer"),
      tool.path("backup.coffer-wal"),
    ]
    let before = try files.map(tool.contents)
    for file in files {
      for command in [["get", "w/v"], ["export", "--format", "json"], ["inject", tool.path("template")]] {
        let run = try tool.run(
          command + ["-o", file, "--vault-key-file", vault], input: "".utf8,
          environment: file == raw ? ["PREFS_KEY_FILE": raw] : [:])
        #expect(run.code == 2 && run.message.contains("nothing was written"), "\(command) \(file): \(run.message)")
      }
    }
    #expect(try files.map(tool.contents) == before)
    try tool.succeed("get", "w/v", "-o", tool.path("else"))
    #expect(try tool.contents(tool.path("else")) == Array("0\n".utf8))
  }

  @Test("in /dev/stdout goes where the shell has redirected that, after what is there")
  func standardOutputByName() throws {
    let tool = try sample()
    let script = "echo before; \"$0\" get app/theme -o /dev/stdout; \"$0\" get app/size -o /dev/fd/1; echo after"
    let run = try tool.run(
      ["-c", "{ \(script); } > \"$HOME/all\"", Tool.executable], input: "".utf8, program: "/bin/sh")
    #expect(run.code == 0, "\(run.message)")
    #expect(try tool.contents(tool.path("all")) == Array("before\ndark\n14\nafter\n".utf8))
  }
}
