import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
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
    try tool.run(["edit"] + arguments, input: "".utf8, environment: editor(script))
  }

  private var isWiped: Bool {
    get throws { try FileManager.default.contentsOfDirectory(atPath: runtime).isEmpty }
  }

  @Test("What was changed, added and taken out is set, and nothing else", arguments: ["yaml", "json", "toml"])
  func changes(_ format: String) throws {
    let version = try tool.succeed("list", "ui", "--json")
    let run = try edit(
      "sed -i.bak -e 's/dark/light/' -e '/size/d' \"$1\"; cp \"$1\" \"$1~\"", "ui", "--format", format)
    #expect(run.code == 0 && run.message.contains("2 keys changed"), "\(run.message)")
    #expect(try tool.succeed("get", "ui/theme") == "light\n")
    #expect(try tool.run("get", "ui/size").code == 3)
    #expect(try tool.succeed("get", "ui/token") == "hunter2\n")
    let nan = #/"key":"nan".*?"version":\d+/#
    #expect(try version.firstMatch(of: nan)?.output == tool.succeed("list", "ui", "--json").firstMatch(of: nan)?.output)
    #expect(try isWiped)
  }

  @Test("The file is for its owner alone, and hides secrets unless they are to be shown")
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

  @Test("A key that somebody else changes meanwhile is 9, and nothing is set")
  func conflict() throws {
    let run = try edit("\"$PREFS\" set ui/theme blue; sed -i -e s/dark/light/ -e s/14/15/ \"$1\"", "ui")
    #expect(run.code == 9)
    #expect(try tool.succeed("get", "ui/theme") == "blue\n" && tool.succeed("get", "ui/size") == "14\n")
    // Another key is nobody's business.
    #expect(try edit("\"$PREFS\" set ui/other x; sed -i s/14/15/ \"$1\"", "ui").code == 0)
    #expect(try tool.succeed("get", "ui/size") == "15\n" && tool.succeed("get", "ui/other") == "x\n")
    #expect(try isWiped)
  }

  @Test("A file that does not parse, and an editor that fails, change nothing")
  func failures() throws {
    let broken = try edit("echo 'theme: [hunter2' > \"$1\"", "ui")
    #expect(broken.code == 8 && !broken.message.contains("hunter2"))
    let failed = try edit("sed -i s/dark/light/ \"$1\"; exit 3", "ui")
    #expect(failed.code == 1 && failed.message.contains("exit code 3"))
    #expect(try edit("echo 'other: <secret: 3 bytes>' >> \"$1\"", "ui").code == 8)
    #expect(try edit("rm \"$1\"", "ui").code == 14)
    #expect(try edit("true", "none").code == 3)
    #expect(try tool.succeed("get", "ui/theme") == "dark\n")
    #expect(try isWiped)
  }

  @Test("VISUAL comes first, and may have words")
  func words() throws {
    let environment = [
      "VISUAL": "sed -i -e 's/dark/very light/'", "EDITOR": "false", "XDG_RUNTIME_DIR": runtime,
    ]
    try tool.succeed("edit", "ui", environment: environment)
    #expect(try tool.succeed("get", "ui/theme") == "very light\n")
  }

  @Test("A signal wipes the file and ends the tool", arguments: [SIGTERM, SIGHUP])
  func signals(_ signal: Int32) throws {
    // The editor says that it is there, and waits to be ended.
    let ready = try LinePipe(tool.path("ready"))
    let environment = try editor("echo x > \"$HOME/ready\"; exec sleep 600")
    let child = try tool.spawn(
      ["edit", "ui"], files: [(1, "/dev/null", O_WRONLY), (2, "/dev/null", O_WRONLY)], environment: environment)
    #expect(try ready.next() == "x")
    #expect(try !isWiped)
    kill(child, signal)
    #expect(try Tool.exitCode(of: child) == 128 + signal)
    #expect(try isWiped)
  }

  @Test("Where the runtime folder is missing, the file lies beside the store")
  func fallback() throws {
    var environment = try editor("dirname \"$1\" > \"$HOME/where\"")
    environment["XDG_RUNTIME_DIR"] = "/nonexistent"
    try tool.succeed("edit", "ui", environment: environment)
    let folder = String(tool.store.dropLast("settings.coffer".count))
    #expect(String(decoding: try tool.contents(tool.path("where")), as: UTF8.self).hasPrefix(folder + ".prefs-edit-"))
    #expect(try !FileManager.default.contentsOfDirectory(atPath: folder).contains { $0.hasPrefix(".prefs-edit") })
  }

  @Test("A sealed collection needs --reveal, and its file comes and goes like another")
  func sealed() throws {
    try tool.succeed("set", "tokens/a", "hunter2")
    try tool.seal("tokens")
    try tool.succeed("lock")
    #expect(try edit("true", "tokens", "--reveal").code == 6)
    try tool.unlock()
    let refused = try edit("touch \"$HOME/started\"", "tokens")
    #expect(refused.code == 11 && refused.message.contains("--reveal") && !tool.exists(tool.path("started")))
    #expect(try edit("sed -i s/hunter2/swordfish/ \"$1\"", "tokens", "--reveal").code == 0)
    #expect(try tool.succeed("get", "tokens/a") == "swordfish\n")
    #expect(try isWiped)
  }

  #if os(Linux)
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
  #endif
}
