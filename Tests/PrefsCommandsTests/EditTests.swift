#if os(Linux)
  import Foundation
  import Testing

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  @Suite("Editing a collection")
  struct EditTests {
    private let tool: Tool
    private let runtime: String

    init() throws {
      tool = try Tool()
      runtime = tool.path("runtime")
      try FileManager.default.createDirectory(
        atPath: runtime, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
      try tool.succeed("set", "ui/theme", "dark")
      try tool.succeed("set", "ui/size", "--int", "14")
      try tool.succeed("set", "ui/nan", "--double", "nan")
      try tool.succeed("set", "ui/token", "--secret", "-", input: "hunter2")
    }

    /// An editor that is a shell script, whose first argument is the file.
    private func editor(_ script: String) throws -> [String: String] {
      let path = try tool.write("editor-\(UUID().uuidString)", "#!/bin/sh\nset -e\n\(script)\n".utf8)
      // By way of the shell: a script is busy while a process that another test starts still holds it open.
      return ["EDITOR": "sh '\(path)'", "XDG_RUNTIME_DIR": runtime, "PREFS": Tool.executable]
    }

    private func edit(_ script: String, _ arguments: String...) throws -> Tool.Run {
      try edit(arguments, editor(script))
    }

    /// Edits on a terminal.
    private func edit(_ arguments: [String], _ environment: [String: String]) throws -> Tool.Run {
      let terminal = try PseudoTerminal()
      let child = try tool.start(["edit"] + arguments, on: terminal, environment: environment)
      let code = try Tool.exitCode(of: child)
      try terminal.drain()
      return Tool.Run(code: code, output: [], message: terminal.shown)
    }

    private var isWiped: Bool {
      get throws { try FileManager.default.contentsOfDirectory(atPath: runtime).isEmpty }
    }

    @Test("A key that an administrator has locked is not changed, nor anything else with it")
    func locked() throws {
      let folder = tool.path("managed/ui.d")
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
      let file = try tool.write("managed/ui.d/10.json", #"{"locked": {"theme": "grey"}}"#.utf8)
      chmod(file, 0o644)
      let environment = try editor("sed -i -e 's/dark/light/' -e 's/14/15/' \"$1\"")
        .merging(["PREFS_MANAGED_DIR": tool.path("managed")]) { $1 }
      let terminal = try PseudoTerminal()
      let child = try tool.start(["edit", "ui", "--format", "json"], on: terminal, environment: environment)
      try terminal.expect("Edit again? [y/N] ")
      terminal.type("n\n")
      #expect(try Tool.exitCode(of: child) == 13)
      try terminal.drain()
      #expect(terminal.shown.contains("locked"))
      #expect(try tool.succeed("get", "ui/theme") == "dark\n" && tool.succeed("get", "ui/size") == "14\n")
    }

    @Test("A reader of its messages that ends leaves the text nowhere")
    func brokenPipe() throws {
      let (closed, code) = (tool.path("closed"), tool.path("code"))
      let environment = try editor("while [ ! -e '\(closed)' ]; do :; done; echo '{' >\"$1\"")
      let script = """
        { "$0" edit ui --format json 2>&1 >/dev/tty; echo $? >'\(code)'; } | { exec <&-; : >'\(closed)'; }
        """
      let terminal = try PseudoTerminal()
      let child = try tool.spawn(
        ["-c", script, Tool.executable],
        files: [(0, terminal.path, O_RDWR), (1, "/dev/null", O_WRONLY), (2, "/dev/null", O_WRONLY)],
        environment: environment, program: "/bin/sh")
      try terminal.expect("Edit again? [y/N] ")
      terminal.type("n\n")
      #expect(try Tool.exitCode(of: child) == 0)
      // Its last message ends it, when the file is gone.
      #expect(String(decoding: try tool.contents(code), as: UTF8.self) == "141\n")
      #expect(try isWiped)
    }

    @Test("Two values for the two names of one setting are refused, with both names")
    func twoNames() throws {
      for (version, name) in [("1", #""width""#), ("2", #""window.width", "formerly": [{"name": "width"}]"#)] {
        try tool.succeed(
          "schema", "load", "-", "--application", "shop", "--application-version", version,
          input: #"[{"collection": "shop", "type": "int", "name": \#(name)}]"#)
      }
      try tool.succeed("set", "shop/width", "7")
      let environment = try editor("sed -i -e 's/^width: 7/width: 1/' -e 's/window.width: 7/window.width: 2/' \"$1\"")
      let terminal = try PseudoTerminal()
      let child = try tool.start(["edit", "shop"], on: terminal, environment: environment)
      try terminal.expect("Edit again? [y/N] ")
      terminal.type("n\n")
      #expect(try Tool.exitCode(of: child) == 8)
      try terminal.drain()
      #expect(terminal.shown.contains("are names of one setting, with two values"), "\(terminal.shown)")
      #expect(try tool.succeed("get", "shop/width") == "7\n")
      #expect(try edit("sed -i -e 's/: 7/: 3/' \"$1\"", "shop").code == 0)
      #expect(try tool.succeed("get", "shop/window.width") == "3\n")
    }

    @Test("A lock that appears while the editor is open counts")
    func lockedMeanwhile() throws {
      let folder = tool.path("managed/ui.d")
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
      let lock = #"echo '{"locked": {"theme": "grey"}}' > \#(folder)/10.json; chmod 644 \#(folder)/10.json"#
      let environment = try editor("sed -i -e 's/dark/light/' \"$1\"\n\(lock)")
        .merging(["PREFS_MANAGED_DIR": tool.path("managed")]) { $1 }
      let terminal = try PseudoTerminal()
      let child = try tool.start(["edit", "ui", "--format", "json"], on: terminal, environment: environment)
      try terminal.expect("Edit again? [y/N] ")
      terminal.type("n\n")
      #expect(try Tool.exitCode(of: child) == 13)
      #expect(try tool.succeed("get", "ui/theme") == "dark\n")
    }

    @Test("What was changed, added and removed is applied, and nothing else", arguments: ["yaml", "json", "toml"])
    func changes(_ format: String) throws {
      let version = try tool.succeed("list", "ui", "--json")
      let run = try edit(
        "sed -i.bak -e 's/dark/light/' -e '/size/d' \"$1\"; cp \"$1\" \"$1~\"", "ui", "--format", format)
      #expect(run.code == 0 && run.message.contains("2 keys changed"), "\(run.message)")
      #expect(try tool.succeed("get", "ui/theme") == "light\n")
      #expect(try tool.run("get", "ui/size").code == 3)
      #expect(try tool.succeed("get", "ui/token") == "hunter2\n")
      let nan = #/"key":"nan".*?"version":\d+/#
      #expect(
        try version.firstMatch(of: nan)?.output == tool.succeed("list", "ui", "--json").firstMatch(of: nan)?.output)
      #expect(try isWiped)
    }

    @Test("What replaces a secret is one", arguments: ["yaml", "json", "toml"])
    func secret(_ format: String) throws {
      let run = try edit("sed -i.bak -e 's/<secret: 7 bytes>/hunter33/' \"$1\"", "ui", "--format", format)
      #expect(run.code == 0 && run.message.contains("1 key changed"), "\(run.message)")
      #expect(try tool.succeed("type", "ui/token") == "secret\n" && tool.succeed("get", "ui/token") == "hunter33\n")
    }

    @Test("Names that differ only in their normalization are edited one by one", arguments: ["yaml", "json", "toml"])
    func twins(_ format: String) throws {
      let names = ["caf\u{e9}", "cafe\u{301}"]
      for name in names { try tool.succeed("set", "twins/\(name)", "old-\(name.utf8.count)") }
      let run = try edit("sed -i.bak -e 's/old-6/new/' \"$1\"", "twins", "--format", format)
      #expect(run.code == 0 && run.message.contains("1 key changed"), "\(run.message)")
      #expect(try tool.succeed("get", "twins/\(names[0])") == "old-5\n")
      #expect(try tool.succeed("get", "twins/\(names[1])") == "new\n")
    }

    @Test("Expiries and due dates stay, for keys with new values and for others")
    func dates() throws {
      for key in ["ui/theme", "ui/size"] {
        try tool.succeed("set", key, "15", "--expires-at", "2199-01-01", "--due", "2198-01-01")
      }
      #expect(try edit("sed -i 's/theme.*/theme: light/' \"$1\"", "ui").code == 0)
      #expect(try tool.succeed("get", "ui/theme") == "light\n")
      for key in ["ui/theme", "ui/size"] {
        let item = try tool.succeed("get", key, "--json")
        #expect(item.contains(#""expires":"2199"#) && item.contains(#""due":"2198"#))
      }
    }

    @Test("The file is only for its owner, and hides secrets unless revealed")
    func privacy() throws {
      let script = "cp \"$1\" \"$HOME/seen\"; stat -c %a \"$1\" \"$(dirname \"$1\")\" > \"$HOME/modes\""
      #expect(try edit(script, "ui").code == 0)
      let seen = String(decoding: try tool.contents(tool.path("seen")), as: UTF8.self)
      #expect(seen.contains("<secret: 7 bytes>") && !seen.contains("hunter2"))
      #if os(Linux)
        #expect(String(decoding: try tool.contents(tool.path("modes")), as: UTF8.self) == "600\n700\n")
      #endif
      #expect(try edit(script + "; sed -i 's/hunter2/swordfish/' \"$1\"", "ui", "--reveal").code == 0)
      #expect(String(decoding: try tool.contents(tool.path("seen")), as: UTF8.self).contains("hunter2"))
      #expect(try tool.succeed("get", "ui/token") == "swordfish\n")
      #expect(try tool.succeed("type", "ui/token") == "secret\n")
      #expect(try isWiped)
    }

    @Test("A key changed concurrently by another program is 9, and nothing is set")
    func conflict() throws {
      let run = try edit("\"$PREFS\" set ui/theme blue; sed -i -e s/dark/light/ -e s/14/15/ \"$1\"", "ui")
      #expect(run.code == 9)
      #expect(try tool.succeed("get", "ui/theme") == "blue\n" && tool.succeed("get", "ui/size") == "14\n")
      // Another key does not matter.
      #expect(try edit("\"$PREFS\" set ui/other x; sed -i s/14/15/ \"$1\"", "ui").code == 0)
      #expect(try tool.succeed("get", "ui/size") == "15\n" && tool.succeed("get", "ui/other") == "x\n")
      #expect(try isWiped)
    }

    @Test("An editor that fails, or leaves no file, changes nothing")
    func failures() throws {
      let failed = try edit("sed -i s/dark/light/ \"$1\"; exit 3", "ui")
      #expect(failed.code == 1 && failed.message.contains("exit code 3"))
      #expect(try edit("rm \"$1\"", "ui").code == 14)
      #expect(try edit("true", "none").code == 3)
      #expect(try tool.succeed("get", "ui/theme") == "dark\n")
      #expect(try isWiped)
    }

    @Test("VISUAL comes first, and may have arguments")
    func words() throws {
      let environment = [
        "VISUAL": "sed -i -e 's/dark/very light/'", "EDITOR": "false", "XDG_RUNTIME_DIR": runtime,
      ]
      #expect(try edit(["ui"], environment).code == 0)
      #expect(try tool.succeed("get", "ui/theme") == "very light\n")
    }

    @Test("A signal wipes the file and ends the tool", arguments: [SIGTERM, SIGHUP])
    func signals(_ signal: Int32) throws {
      // The editor says that it is there, and waits to be ended.
      let ready = try LinePipe(tool.path("ready"))
      let environment = try editor("echo x > \"$HOME/ready\"; exec sleep 600")
      let terminal = try PseudoTerminal()
      let child = try tool.start("edit", "ui", on: terminal, environment: environment)
      #expect(try ready.next() == "x")
      #expect(try !isWiped)
      kill(child, signal)
      #expect(try Tool.exitCode(of: child) == 128 + signal)
      #expect(try isWiped)
    }

    @Test("Without a runtime folder, the file is beside the store")
    func fallback() throws {
      var environment = try editor("dirname \"$1\" > \"$HOME/where\"")
      environment["XDG_RUNTIME_DIR"] = "/nonexistent"
      #expect(try edit(["ui"], environment).code == 0)
      let folder = String(tool.store.dropLast("settings.coffer".count))
      #expect(String(decoding: try tool.contents(tool.path("where")), as: UTF8.self).hasPrefix(folder + ".prefs-edit-"))
      #expect(try !FileManager.default.contentsOfDirectory(atPath: folder).contains { $0.hasPrefix(".prefs-edit") })
    }

    @Test("A sealed collection needs --reveal, and its file is handled like any other")
    func sealed() throws {
      try tool.succeed("set", "tokens/a", "hunter2")
      try tool.seal("tokens")
      try tool.unlock()
      let refused = try edit("touch \"$HOME/started\"", "tokens")
      #expect(refused.code == 11 && refused.message.contains("--reveal") && !tool.exists(tool.path("started")))
      #expect(try edit("sed -i s/hunter2/swordfish/ \"$1\"", "tokens", "--reveal").code == 0)
      #expect(try tool.succeed("get", "tokens/a") == "swordfish\n")
      #expect(try isWiped)
    }

    @Test(
      "A file that does not parse, or has a placeholder for a new secret, changes nothing",
      arguments: [
        "theme: [hunter2", "other: <secret: 3 bytes>",
      ])
    func unparsable(_ text: String) throws {
      let terminal = try PseudoTerminal()
      let child = try tool.start("edit", "ui", on: terminal, environment: editor("echo '\(text)' > \"$1\""))
      try terminal.expect("Edit again? [y/N] ")
      #expect(!terminal.shown.contains("hunter2"))
      terminal.type("n\n")
      #expect(try Tool.exitCode(of: child) == 8)
      #expect(try tool.succeed("get", "ui/theme") == "dark\n")
      #expect(try isWiped)
    }

    @Test("Without a terminal, or with --no-input, it fails at once")
    func nobodyThere() throws {
      let environment = try editor("touch \"$HOME/started\"")
      let withoutTerminal = try tool.run("edit", "ui", environment: environment)
      #expect(withoutTerminal.code == 2 && withoutTerminal.message.contains("prefs export"))
      let withoutInput = try edit(["ui", "--no-input"], environment)
      #expect(withoutInput.code == 2 && withoutInput.message.contains("--no-input"))
      #expect(try isWiped && !tool.exists(tool.path("started")))
    }

    @Test("Everything the editor leaves in the folder is removed, including folders and links, and nothing else")
    func leavings() throws {
      let outside = try tool.write("outside", "theirs".utf8)
      let script = """
        folder=$(dirname "$1"); mkdir -p "$folder/a/b"; cp "$1" "$folder/a/b/copy"; ln -s "$HOME/outside" "$folder/a/link"
        ln -s "$HOME" "$folder/home"; mkfifo "$folder/a/pipe"; chmod 0 "$folder/a/b/copy" "$folder/a/b"
        cp "$1" "$folder/$(printf 'caf\\351')"
        """
      #expect(try edit(script, "ui").code == 0)
      #expect(try isWiped)
      #expect(try tool.contents(outside) == Array("theirs".utf8))
    }

    @Test("Files that cannot be removed are reported, and not as wiped")
    func rest() throws {
      let script = "cd \"$(dirname \"$1\")\"; for n in $(seq 80); do mkdir d; cd d; done"
      let run = try edit(script, "ui")
      #expect(run.code == 0 && run.message.contains("could not be removed completely"), "\(run.message)")
      let next = try edit("true", "ui")
      #expect(
        next.code == 0 && next.message.contains("could not be removed completely") && !next.message.contains("wiped"))
    }

    @Test("The file is overwritten even if the editor replaces it, or keeps it under another name")
    func overwritten() throws {
      // Names outside of the folder keep what lay in the two files.
      let script = """
        folder=$(dirname "$1"); ln "$1" "$folder.first"
        sed s/dark/light/ "$1" > "$folder/new"; ln "$folder/new" "$folder.second"; mv "$folder/new" "$1"
        """
      let run = try edit(script, "ui")
      #expect(run.code == 0 && run.message.contains("1 key changed"))
      let names = try FileManager.default.contentsOfDirectory(atPath: runtime)
      #expect(names.count == 2)
      for name in names {
        let bytes = try tool.contents(runtime + "/" + name)
        #expect(!bytes.isEmpty && bytes.allSatisfy { $0 == 0 }, "\(name)")
      }
    }

    @Test("Files of a killed edit are found by doctor and wiped by the next edit, but not those of a running one")
    func killed() throws {
      let terminals = [try PseudoTerminal(), try PseudoTerminal()]
      var editors: [pid_t] = []
      let children = try terminals.enumerated().map { number, terminal in
        let ready = try LinePipe(tool.path("ready-\(number)"))
        let environment = try editor("echo $$ > \"$HOME/ready-\(number)\"; exec sleep 600")
        let child = try tool.start("edit", "ui", on: terminal, environment: environment)
        editors.append(try #require(ready.next().flatMap { pid_t($0) }))
        return child
      }
      kill(children[0], SIGKILL)
      #expect(try Tool.exitCode(of: children[0]) == 128 + SIGKILL)
      func folders() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: runtime) }
      #expect(try folders().count == 2)
      let doctor = try tool.run("doctor", environment: ["XDG_RUNTIME_DIR": runtime])
      #expect(doctor.text.components(separatedBy: "was left by a killed").count == 2, "\(doctor.text)")
      let next = try edit("true", "ui")
      #expect(next.code == 0 && next.message.contains("left by a killed prefs edit"), "\(next.message)")
      #expect(try folders().count == 1)
      kill(children[1], SIGTERM)
      _ = try Tool.exitCode(of: children[1])
      #expect(try isWiped)
      for editor in editors { kill(editor, SIGKILL) }
    }

    @Test("Control-C at the question whether to edit again wipes the file")
    func interrupted() throws {
      let terminal = try PseudoTerminal()
      let child = try tool.start("edit", "ui", on: terminal, environment: editor("echo '[' > \"$1\""))
      try terminal.expect("Edit again? [y/N] ")
      terminal.type("\u{3}")
      #expect(try Tool.exitCode(of: child) == 128 + SIGINT)
      #expect(try tool.succeed("get", "ui/theme") == "dark\n")
      #expect(try isWiped)
    }

    @Test("A value that does not match its declaration changes nothing, and can be edited again; --force sets it")
    func notAsDeclared() throws {
      let declaration =
        #"[{"name": "size", "collection": "ui", "type": "int", "limits": [{"minimum": 6, "maximum": 72}]}]"#
      try tool.succeed("schema", "load", tool.write("declared.json", declaration.utf8), "--application", "ui")
      let editor = try editor("sed -i -e 's/14/400/' -e 's/dark/light/' \"$1\"")
      let terminal = try PseudoTerminal()
      let child = try tool.start("edit", "ui", on: terminal, environment: editor)
      try terminal.expect("ui/size must be 6 to 72, not 400")
      try terminal.expect("Edit again? [y/N] ")
      terminal.type("n\n")
      #expect(try Tool.exitCode(of: child) == 8)
      #expect(try tool.succeed("get", "ui/size") == "14\n" && tool.succeed("get", "ui/theme") == "dark\n")
      #expect(try edit(["ui", "--force"], editor).code == 0)
      #expect(try tool.succeed("get", "ui/size") == "400\n")
      #expect(try isWiped)
    }

    @Test("A new key that is not declared changes nothing, nor do others with it; --undeclared sets it")
    func undeclared() throws {
      let declaration =
        #"[{"name": "size", "collection": "ui", "type": "int"}, {"name": "width", "collection": "ui", "type": "int"}]"#
      try tool.succeed("schema", "load", tool.write("declared.json", declaration.utf8), "--application", "ui")
      let editor = try editor("sed -i -e 's/14/15/' \"$1\"; printf 'widht: 3\\nhight: 4\\n' >> \"$1\"")
      let terminal = try PseudoTerminal()
      let child = try tool.start("edit", "ui", on: terminal, environment: editor)
      try terminal.expect("ui/hight is not declared")
      try terminal.expect("Edit again? [y/N] ")
      terminal.type("n\n")
      #expect(try Tool.exitCode(of: child) == 8)
      #expect(terminal.shown.contains("ui/widht is not declared; did you mean \"ui/width\"?"))
      #expect(try tool.succeed("get", "ui/size") == "14\n" && tool.run("get", "ui/widht").code == 3)
      #expect(try edit(["ui", "--undeclared"], editor).code == 0)
      #expect(try tool.succeed("get", "ui/widht") == "3\n")
    }

    @Test("On a terminal a file that does not parse can be edited again")
    func again() throws {
      let terminal = try PseudoTerminal()
      let script =
        "if [ -e \"$HOME/once\" ]; then echo 'theme: blue' > \"$1\"; else touch \"$HOME/once\"; echo '[' > \"$1\"; fi"
      let child = try tool.start("edit", "ui", on: terminal, environment: editor(script))
      try terminal.expect("Edit again? [y/N] ")
      terminal.type("y\n")
      #expect(try Tool.exitCode(of: child) == 0)
      #expect(try tool.succeed("list", "ui", "--values") == "theme  blue\n")
      #expect(try isWiped)
    }
  }
#endif
