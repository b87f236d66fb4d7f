import Coffer
import Foundation
import Testing

@Suite("Renamed settings in the tool") struct RenamedSettingsTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try load(#"[{"name": "width", "type": "int", "default": 800}]"#, "1")
    try tool.succeed("set", "shop/width", "900")
    try load(
      #"""
      [{"name": "window.width", "type": "int", "default": 800, "limits": [{"minimum": 1, "maximum": 5000}],
        "formerly": [{"name": "width"}]}]
      """#, "2")
  }

  private func load(_ declarations: String, _ version: String) throws {
    let inShop = declarations.replacing(#"{"name": "#, with: #"{"collection": "shop", "name": "#)
    try tool.succeed(
      "schema", "load", tool.write("\(version).json", inShop.utf8), "--application", "shop", "--application-version",
      version)
  }

  @Test("have both names, and each follows the other, by set, unset and import")
  func following() throws {
    #expect(try tool.succeed("get", "shop/window.width") == "900\n")
    try tool.succeed("set", "shop/window.width", "1000")
    #expect(try tool.succeed("get", "shop/width") == "1000\n")
    try tool.succeed("set", "shop/width", "1100")
    #expect(try tool.succeed("get", "shop/window.width") == "1100\n")
    try tool.succeed("unset", "shop/width")
    #expect(try tool.run("list", "shop").code == 3)
    try tool.succeed("import", tool.write("in.json", #"{"shop": {"window.width": 1200}}"#.utf8))
    #expect(try tool.succeed("get", "shop/width") == "1200\n")
    #expect(try tool.succeed("validate").isEmpty)
    // What the new name does not allow stays with the former one, which `describe` says.
    try tool.succeed("set", "shop/width", "9000")
    #expect(try tool.succeed("get", "shop/window.width") == "1200\n")
    let described = try tool.succeed("describe", "shop/window.width")
    #expect(described.contains("shop/width has a value that this setting cannot have"), "\(described)")
  }

  @Test("are not renamed while the other name has another value, which would go, too")
  func renamed() throws {
    try tool.succeed("set", "shop/width", "9000")
    let run = try tool.run("rename", "shop/width", "shop/w", "--undeclared")
    #expect(run.code == 9 && run.message.contains("shop/window.width has another value"), "\(run)")
    #expect(try tool.succeed("get", "shop/window.width") == "900\n")
    #expect(try tool.run("rename", "shop/width", "shop/window.width").message.contains("has not followed"))
    try tool.succeed("rename", "shop/width", "shop/w", "--undeclared", "--force")
    #expect(try tool.succeed("list", "shop", "--values", "--plain") == "w\t9000\n")
  }

  @Test("are shown with their other names, and until when both are kept")
  func shown() throws {
    let current = try tool.succeed("describe", "shop/window.width")
    #expect(current.contains("formerly"))
    #expect(current.contains("shop/width, kept beside each other until 2"), "\(current)")
    let former = try tool.succeed("describe", "shop/width")
    #expect(former.contains("renamed to") && former.contains("shop/window.width, kept beside"), "\(former)")
    let table = try tool.succeed("schema")
    #expect(table.contains("| Formerly shop/width, kept beside each other until 2"), "\(table)")
    // What is loaded elsewhere are the names that version 2 declares.
    let json = try tool.succeed("schema", "--format", "json")
    #expect(json.contains(#""formerly":[{"collection":"shop","name":"width"}]"#), "\(json)")
    #expect(!json.contains("renamed"))
  }

  @Test("keep their former names while version 1 may run: contracting is refused with exit code 11")
  func contracting() throws {
    let run = try tool.run("schema", "contract")
    #expect(run.code == 11 && run.message.contains("shop/width is kept for shop 1, which may run until"), "\(run)")
    #expect(try tool.succeed("get", "shop/width") == "900\n")
    #expect(try tool.run("schema", "contract", "shop/nothing").code == 3)
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile))
    try database.makeConnection().perform {
      try $0.connection.execute("UPDATE renames SET until = 0")
      try $0.connection.execute("UPDATE versions SET until = 0")
    }
    try database.close()
    try tool.succeed("schema", "contract", "shop/window.width")
    #expect(try tool.run("get", "shop/width").code == 3)
    #expect(try tool.succeed("get", "shop/window.width") == "900\n")
    #expect(try tool.succeed("history", "shop/width").contains("900"))
    #expect(try tool.run("describe", "shop/width").code == 3)
  }

  private func expect(_ value: String, location: SourceLocation = #_sourceLocation) throws {
    for key in ["width", "window.width"] {
      #expect(try tool.run("get", "shop/\(key)").text == "\(value)\n", "\(key)", sourceLocation: location)
    }
  }

  @Test("are kept by an import and a copy that replace everything else, and by an import of what was exported")
  func replacing() throws {
    let imported = try tool.run(
      "import", tool.write("in.json", #"{"width": 900}"#.utf8), "-c", "shop", "--replace")
    #expect(imported.code == 0 && !imported.message.contains("removed"), "\(imported)")
    try expect("900")
    try tool.succeed(
      "import", tool.write("in.json", #"{"window.width": 901}"#.utf8), "-c", "shop", "--replace")
    try expect("901")
    try tool.succeed("set", "tmp/width", "902", "--int")
    try tool.succeed("copy", "tmp", "shop", "--replace")
    try expect("902")
    // What was changed in the file counts, and not what stayed equal.
    try tool.succeed(
      "import", tool.write("in.json", #"{"width": 8, "window.width": 902}"#.utf8), "-c", "shop")
    try expect("8")
  }

  @Test("are not lost when the one is to be moved to the other")
  func moving() throws {
    for arguments in [["--force"], []] {
      let run = try tool.run(["rename", "shop/width", "shop/window.width"] + arguments, input: [])
      #expect(run.code == 0 && run.message.contains("names of one setting"), "\(run)")
    }
    try expect("900")
  }

  @Test("are edited and removed together")
  func together() throws {
    #if os(Linux)
      func edit(_ script: String) throws {
        let terminal = try PseudoTerminal()
        let environment = ["EDITOR": "sed -i -e '\(script)'", "XDG_RUNTIME_DIR": tool.runtime]
        let child = try tool.start(["edit", "shop"], on: terminal, environment: environment)
        let code = try Tool.exitCode(of: child)
        try terminal.drain()
        #expect(code == 0, "\(script): \(terminal.shown)")
      }
      try edit("s/900/55/")
      try expect("55")
      try edit("/window/d;s/55/56/")
      try expect("56")
    #endif
    try tool.succeed("unset", "shop/width", "shop/window.width")
    #expect(try tool.run("list", "shop").code == 3)
  }

  @Test("are ended in one collection alone")
  func oneCollection() throws {
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile))
    try database.makeConnection().perform {
      try $0.connection.execute("UPDATE renames SET until = 0")
      try $0.connection.execute("UPDATE versions SET until = 0")
    }
    try database.close()
    #expect(try tool.run("schema", "contract", "-c", "other").code == 0)
    try expect("900")
    try tool.succeed("schema", "contract", "-c", "shop")
    #expect(try tool.run("get", "shop/width").code == 3)
  }

  @Test("come whole from an export to SQLite into a new store, with the former name kept")
  func exported() throws {
    let file = tool.path("out.sqlite")
    try tool.succeed("export", "--format", "sqlite", "-o", file)
    let other = try Tool()
    try other.succeed("import", file)
    #expect(try other.succeed("get", "shop/width") == "900\n")
    try other.succeed("set", "shop/window.width", "7")
    #expect(try other.succeed("get", "shop/width") == "7\n")
  }

  @Test("move when they are loaded and no version used the former one; unknown members and older versions are named")
  func loading() throws {
    try tool.succeed("set", "web/w", "5", "--int")
    let rename = #"[{"name": "ww", "collection": "web", "type": "int", "formerly": [{"name": "w"}]}]"#
    let file = try tool.write("web.json", rename.utf8)
    try tool.succeed("schema", "load", file, "--application", "web", "--application-version", "2")
    #expect(try tool.succeed("get", "web/ww") == "5\n")
    #expect(try tool.run("get", "web/w").code == 3)
    for version in ["1", "99999999999999999999999"] {
      let run = try tool.run("schema", "load", file, "--application", "web", "--application-version", version)
      #expect(run.message.contains("a newer version has declared") == (version == "1"), "\(run.message)")
    }
    let slip = rename.replacing(#"{"name": "w"}"#, with: #"{"name": "w", "colection": "x"}"#)
    let run = try tool.run("schema", "load", tool.write("web.json", slip.utf8), "--application", "web")
    #expect(run.code == 8 && run.message.contains("\"colection\" is unknown"), "\(run)")
    let both = #"[{"name": "a", "collection": "web", "type": "int", "formerly": [{"name": "a"}]}]"#
    let itself = try tool.run("schema", "load", tool.write("web.json", both.utf8), "--application", "web")
    #expect(itself.code == 8 && itself.message.contains("its own name"), "\(itself)")
  }

  @Test("have one lock: an administrator's lock of one name refuses both, and validate and doctor ask for the other")
  func locked() throws {
    let managed = tool.path("managed")
    try FileManager.default.createDirectory(
      atPath: managed + "/shop.d", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    for (locked, other) in [("width", "window.width"), ("window.width", "width")] {
      let file = try tool.write("managed/shop.d/10.json", #"{"locked": {"\#(locked)": 50}}"#.utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
      let environment = ["PREFS_MANAGED_DIR": managed]
      for key in [locked, other] {
        let run = try tool.run(["set", "shop/\(key)", "60"], input: [], environment: environment)
        #expect(run.code == 13 && run.message.contains(file), "\(run)")
      }
      let validated = try tool.run(["validate", "shop"], input: [], environment: environment)
      #expect(validated.code == 8 && validated.text.contains("shop/\(other), another name of the setting, is not"))
      let examined = try tool.run(["doctor"], input: [], environment: environment)
      #expect(examined.code != 0 && (examined.text + examined.message).contains("another name of the setting"))
    }
    try expect("900")
  }

  /// Lets the versions end that are not in force.
  private func endVersions() throws {
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile))
    try database.makeConnection().perform {
      try $0.connection.execute("UPDATE renames SET until = 0")
      try $0.connection.execute("UPDATE versions SET until = 0")
    }
    try database.close()
  }

  /// Writes an administrator's file of the application.
  @discardableResult
  private func manage(_ text: String) throws -> String {
    try FileManager.default.createDirectory(
      atPath: tool.path("managed/shop.d"), withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o755])
    let file = try tool.write("managed/shop.d/10.json", text.utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
    return file
  }

  private func managed(_ words: String...) throws -> Tool.Run {
    try tool.run(words, input: [], environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
  }

  @Test("end only where no lock goes with them, and a lock of a name that has ended binds and is reported")
  func lockedAtTheEnd() throws {
    try endVersions()
    for part in [#""locked": {"width": 50}"#, #""width": 50"#] {
      let file = try manage("{\(part)}")
      let run = try managed("schema", "contract")
      #expect(run.code == 11 && run.message.contains("administrator names it in \(file):1"), "\(run)")
    }
    try expect("900")
    try manage(#"{"locked": {"width": 50, "window.width": 50}}"#)
    #expect(try managed("schema", "contract").code == 0)
    try manage(#"{"locked": {"width": 50}}"#)
    let set = try managed("set", "shop/window.width", "60")
    #expect(set.code == 13, "\(set)")
    // Nor may its value go by itself.
    #expect(try managed("set", "shop/window.width", "900", "--expires-in", "2h").code == 13)
    let words = "not declared any more; it is called \"shop/window.width\" now."
    let validated = try managed("validate")
    #expect(validated.code == 8 && validated.text.contains(words), "\(validated)")
    let examined = try managed("doctor")
    #expect((examined.text + examined.message).contains(words), "\(examined)")
  }

  @Test("do the same where the new name is in another collection")
  func lockedElsewhere() throws {
    let moved =
      #"[{"name": "tok", "collection": "safe", "type": "string", "formerly": [{"name": "tok", "collection": "old"}]}]"#
    for (version, text) in [("1", #"[{"name": "tok", "collection": "old", "type": "string"}]"#), ("2", moved)] {
      try tool.succeed(
        "schema", "load", tool.write("v.json", text.utf8), "--application", "shop", "--application-version",
        "4.\(version)")
      if version == "1" { try tool.succeed("set", "old/tok", "x") }
    }
    try endVersions()
    for name in ["old/tok", "acme/old/tok"] {
      try manage(#"{"locked": {"\#(name)": "y"}}"#)
      #expect(try managed("schema", "contract", "-c", "safe").code == 11)
    }
    try manage("{}")
    #expect(try managed("schema", "contract", "-c", "safe").code == 0)
    // The collection of the former name declares nothing any more.
    let former = try managed("set", "old/tok", "z")
    #expect(former.code == 8 && former.message.contains("it is called \"safe/tok\" now"), "\(former)")
    #expect(try managed("set", "old/other", "z").code == 0)
    let file = try manage(#"{"locked": {"old/tok": "y"}}"#)
    #expect(try managed("set", "safe/tok", "z").code == 13)
    let validated = try managed("validate")
    let words = "old/tok in \(file):1 is not declared any more; it is called \"safe/tok\" now."
    #expect(validated.code == 8 && validated.text.contains(words), "\(validated)")
    #expect(try managed("doctor").text.contains(words))
  }

  @Test("are named by an administrator with one value")
  func twoValues() throws {
    try manage(#"{"locked": {"width": 50, "window.width": 60}}"#)
    let run = try managed("validate")
    let words = ["shop/width in ", "has another value than shop/window.width"]
    #expect(run.code == 8 && words.allSatisfy(run.text.contains), "\(run)")
    try manage(#"{"locked": {"width": 50, "window.width": 50}}"#)
    #expect(try managed("validate").text.isEmpty)
  }

  @Test("that have ended are named with the new one in environments, too, and end by the name of one")
  func environments() throws {
    try tool.succeed("env", "create", "shop@staging")
    #expect(try tool.run("schema", "contract", "-c", "shop@staging").code == 11)
    #expect(try tool.run("schema", "contract", "shop@staging/width").code == 11)
    try endVersions()
    try tool.succeed("schema", "contract", "-c", "shop@staging")
    for (name, now) in [
      ("shop@staging/width", "shop@staging/window.width"), ("shop/width", "shop/window.width"),
    ] {
      let run = try tool.run("set", name, "1")
      #expect(run.code == 8 && run.message.contains("it is called \"\(now)\" now"), "\(run)")
    }
  }

  @Test("are one variable where both become the same one")
  func variables() throws {
    try load(#"[{"name": "http-port", "type": "int", "default": 80}]"#, "3")
    try tool.succeed("set", "shop/http-port", "81")
    try load(#"[{"name": "http.port", "type": "int", "default": 80, "formerly": [{"name": "http-port"}]}]"#, "4")
    let exec = try tool.run("exec", "-c", "shop", "--pristine", "--", "/usr/bin/env")
    #expect(exec.code == 0 && exec.text.contains("HTTP_PORT=81\n"), "\(exec)")
    let only = try tool.run("exec", "-c", "shop", "--only", "http-port,http.port", "--pristine", "--", "/usr/bin/env")
    #expect(only.code == 0 && only.text == "HTTP_PORT=81\n", "\(only)")
    let export = try tool.succeed("export", "shop", "--format", "env")
    #expect(export.contains("HTTP_PORT='81'\n"), "\(export)")
    try tool.succeed("import", tool.write("in.env", "HTTP_PORT=82\n".utf8), "-c", "shop")
    #expect(try tool.succeed("get", "shop/http-port") == "82\n" && tool.succeed("get", "shop/http.port") == "82\n")
  }

  @Test("are named when only one of them is sealed")
  func sealing() throws {
    try load(#"[{"name": "pin", "type": "string"}]"#, "3")
    try tool.succeed("set", "shop/pin", "1234")
    try tool.succeed(
      "schema", "load",
      tool.write(
        "4.json",
        #"[{"name": "pin", "collection": "safe", "type": "string", "formerly": [{"name": "pin", "collection": "shop"}]}]"#
          .utf8), "--application", "shop", "--application-version", "4")
    let run = try tool.run(
      ["seal", "safe", "--vault-key-file", tool.path("vault.key")], input: [])
    #expect(run.code == 0 && run.message.contains("shop/pin has the value of safe/pin in plaintext"), "\(run)")
  }
}
