import Coffer
import Foundation
import Testing

@testable import PrefsCommands

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("Settings for other programs") struct ExecAndInjectTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "web/port", "--int", "8080")
    try tool.succeed("set", "web/db.url-ä", "x y")
    try tool.succeed("set", "web/2nd", "--data", "aWNvbg==")
    try tool.succeed("set", "web/token", "--secret", "-", input: "hunter2\nline")
    try tool.succeed("set", "other/port", "--int", "1")
    try tool.succeed("set", "top", "on")
  }

  // MARK: - exec

  @Test("exec names variables in upper case, and passes the environment or omits it")
  func environment() throws {
    let settings = "DB_URL__=x y\nPORT=8080\nTOKEN=hunter2\nline\n_2ND=aWNvbg==\n"
    #expect(try tool.succeed("exec", "-c", "web", "--pristine", "--", "/usr/bin/env") == settings)
    let all = try tool.succeed("exec", "-c", "web", "--", "env", environment: ["PORT": "9", "KEPT": "k"])
    let lines = all.split(separator: "\n")
    #expect(lines.contains("PORT=8080") && !lines.contains("PORT=9") && lines.contains("KEPT=k"))
    #expect(try tool.succeed("exec", "--pristine", "--", "env") == "TOP=on\n")
    let prefixed = try tool.succeed(
      "exec", "-c", "web", "--prefix", "my_", "--only", "port,2nd", "--pristine", "--", "env")
    #expect(prefixed == "MY_2ND=aWNvbg==\nMY_PORT=8080\n")
  }

  @Test("exec accepts several collections, whose names must not collide")
  func collections() throws {
    let run = try tool.run("exec", "-c", "web", "-c", "other", "--", "env")
    #expect(run.code == 125 && run.text == "" && run.message.contains("both be PORT"))
    let both = try tool.succeed(
      "exec", "-c", "web", "-c", "", "--only", "port", "--only", "top", "--pristine", "--", "env")
    #expect(both == "PORT=8080\nTOP=on\n")
  }

  @Test("exec refuses names that load code, unless --allow lists them")
  func loading() throws {
    try tool.succeed("set", "x/ld-preload", "")
    try tool.succeed("set", "x/bash.env", "")
    for options in [[], ["--watch"], ["--mask"], ["-q"]] {
      let refused = try tool.run(["exec", "-c", "x"] + options + ["--", "echo", "started"], input: [])
      #expect(refused.code == 125 && refused.text == "", "\(options)")
      #expect(refused.message.contains("BASH_ENV, LD_PRELOAD from the settings change how programs"))
      #expect(refused.message.contains("--allow BASH_ENV,LD_PRELOAD"))
    }
    #expect(try tool.run("exec", "-c", "x", "--prefix", "app_", "--", "true").code == 0)
    let refused = try tool.run("exec", "-c", "x", "--allow", "LD_PRELOAD", "--", "true")
    #expect(refused.code == 125 && refused.message.contains("BASH_ENV from the settings changes how"))
    let allowed = try tool.run("exec", "-c", "x", "--allow", "LD_PRELOAD,BASH_ENV", "--", "true")
    #expect(allowed.code == 0 && allowed.message == "")
    #expect(try tool.run("exec", "-c", "web", "--", "true").message == "")
    for name in ["PATH", "IFS", "ENV", "_JAVA_OPTIONS", "LUA_INIT_5_4", "GIT_CONFIG_COUNT", "BASH_FUNC_X", "LESSOPEN"] {
      try tool.succeed("set", "-c", name, name, "x")
      let run = try tool.run("exec", "-c", name, "--", "true")
      #expect(run.code == 125 && run.message.contains(name), "\(name)")
    }
  }

  @Test("exec knows the names by which tools run other programs, npm's in either case, and all of Coffer's own")
  func loadingNames() throws {
    for key in [
      "npm_config_script_shell", "NPM_CONFIG_NODE_OPTIONS", "rsync-rsh", "SVN_SSH", "tar.options", "GOFLAGS",
      "ERL_LIBS",
      "SYSTEMD_EDITOR", "SYSTEMD_PAGER", "GIO_MODULE_DIR", "MAVEN_OPTS", "SSH_SK_PROVIDER", "RUSTC", "home",
      "xdg-data-home", "prefs-managed-dir", "PREFS_STORE", "PREFS_KEY_FILE", "prefs.env",
    ] {
      var variables = EnvironmentVariables(prefix: "")
      try variables.add(key, in: "x", .string("y"), isSecret: false)
      #expect(variables.namesThatChangeLoading == [VariableName.of(key, prefix: "")], "\(key)")
    }
    var variables = EnvironmentVariables(prefix: "")
    for key in ["port", "npm", "preferences", "go", "cc"] {
      try variables.add(key, in: "x", .string("y"), isSecret: false)
    }
    #expect(variables.namesThatChangeLoading.isEmpty)
  }

  @Test("inject accepts spaces in its braces, text for missing keys, and collections with slashes")
  func forms() throws {
    try tool.succeed("set", "-c", "a/b", "k", "deep")
    let template =
      "{{ prefs:web/port }} {{prefs:web/none|8080}} {{ prefs:web/none | a b }}|{{prefs:a/b/k}} {{{prefs:top}}}"
    #expect(try tool.succeed("inject", "-", input: template) == "8080 8080 a b|deep {on}")
    #expect(try tool.succeed("inject", "-", input: "{{prefsFor}} {{ other }}") == "{{prefsFor}} {{ other }}")
    #expect(try tool.succeed("inject", "-", "-o", "-", input: "{{prefs:top}}") == "on")
    // A slash at the beginning names the default collection, and no other.
    #expect(try tool.run("inject", "-", input: "{{prefs:/a/b/k}}").code == 3)
    try tool.succeed("set", "-c", "/a", "b", "other")
    #expect(try tool.run("inject", "-", input: "{{prefs:/a/b}}").code == 3)
    let long = try tool.run("inject", "-", input: "{{prefs:" + String(repeating: "a/", count: 60_000) + "}}")
    #expect(long.code == 8 && long.message.contains("4096"))
  }

  @Test(
    "inject refuses a malformed placeholder, and says where",
    arguments: ["prefs web/port", "prefs", "prefs:", "prefs: |x"])
  func slips(_ slip: String) throws {
    let run = try tool.run("inject", "-", input: "a\nb {{\(slip)}}")
    #expect(run.code == 8 && run.text == "" && run.message.contains("line 2, column 3"), "\(run.message)")
  }

  @Test("exec passes on arguments, input and exit code of the program")
  func program() throws {
    #expect(try tool.succeed("exec", "--", "printf", "%s|", "-5", "--json", "a b", "") == "-5|--json|a b||")
    #expect(try tool.succeed("exec", "--", "cat", input: "in") == "in")
    for code: Int32 in [0, 1, 3, 125] {
      #expect(try tool.run("exec", "--", "sh", "-c", "exit \(code)").code == code)
    }
    #expect(try tool.run("exec", "--", "sh", "-c", "kill -KILL $$").code == 128 + SIGKILL)
  }

  @Test("exec lets signals through")
  func signals() throws {
    let output = try LinePipe(tool.path("out"))
    let child = try tool.spawn(
      [
        "exec", "--", "sh", "-c", "trap 'echo caught; exit 7' TERM; echo ready; while :; do read x <\"$0\"; done",
        tool.path("none"),
      ],
      files: [(0, "/dev/null", O_RDONLY), (1, output.path, O_WRONLY), (2, "/dev/null", O_WRONLY)])
    #expect(try output.next() == "ready")
    kill(child, SIGTERM)
    #expect(try output.next() == "caught")
    #expect(try Tool.exitCode(of: child) == 7)
  }

  @Test("exec is 127 for a missing program, 126 for one that cannot be run, 125 if it fails itself")
  func codes() throws {
    let script = try tool.write("script", "#!/bin/sh\n".utf8)
    chmod(script, 0o600)
    let orphan = try tool.write("orphan", "#!/no/such/interpreter\n".utf8)
    chmod(orphan, 0o700)
    let codes: [([String], Int32)] = [
      (["--", "no-such-program"], 127), (["--", tool.path("none")], 127), (["--", script], 126), (["--", orphan], 126),
      (["--", tool.home.path], 126), (["-c", "none", "--", "true"], 125), (["--only", "none", "--", "true"], 125),
      (["--nonsense", "--", "true"], 125), (["true"], 125), (["--"], 125), (["-d", script, "--", "true"], 125),
    ]
    for (arguments, code) in codes {
      let run = try tool.run(["exec"] + arguments, input: [])
      #expect(run.code == code && run.message.hasPrefix("prefs: ") && run.text == "", "\(arguments) \(run.message)")
    }
    #expect(try tool.run("exec", "--help").code == 0)
  }

  @Test("exec refuses a value that a variable cannot hold, and does not show it")
  func nul() throws {
    try tool.succeed("set", "nul/x", "--secret", "-", input: "hunter\0two")
    let run = try tool.run("exec", "-c", "nul", "--", "true")
    #expect(run.code == 125 && run.message.contains("NUL") && !run.message.contains("hunter"))
  }

  @Test("exec keeps the limit of core dumps, and passes on no descriptor of a key")
  func limits() throws {
    let script = #"ulimit -Sc 4; ulimit -Sc; ulimit -Hc; exec "$0" exec -- sh -c 'ulimit -Sc; ulimit -Hc'"#
    let lines = try tool.succeed("exec", "--", "sh", "-c", script, Tool.executable).split(separator: "\n")
    #expect(lines.count == 4 && lines[0] == lines[2] && lines[1] == lines[3])
    let key = String(decoding: try tool.contents(tool.keyFile), as: UTF8.self)
    let run = try tool.run(
      "exec", "--key-fd", "5", "--", "sh", "-c", "if (: <&5) 2>/dev/null; then echo open; else echo closed; fi",
      descriptors: [5: key])
    #expect(run.code == 0 && run.text == "closed\n", "\(run.message)")
  }

  // MARK: - exec --watch

  /// A program under `exec --watch`, which prints its settings and runs until a signal.
  private struct Watched {
    let child: pid_t
    let output: LinePipe
    let messages: LinePipe
  }

  private func watched(_ script: String, _ options: [String] = []) throws -> Watched {
    let (output, messages) = (try LinePipe(tool.path("out")), try LinePipe(tool.path("messages")))
    let child = try tool.spawn(
      ["exec", "--watch", "-v", "-c", "web", "--only", "port,token"] + options + [
        "--", "sh", "-c", script + "; echo $PORT $TOKEN; while :; do sleep 0.05; done",
      ], files: [(0, "/dev/null", O_RDONLY), (1, output.path, O_WRONLY), (2, messages.path, O_WRONLY)])
    return Watched(child: child, output: output, messages: messages)
  }

  /// Waits until prefs says this.
  private func expect(_ message: String, from watched: Watched) throws {
    while !(try #require(try watched.messages.next()).contains(message)) {}
  }

  @Test("exec --watch restarts the program only for its own settings, and passes on signals and its exit code")
  func watch() throws {
    try tool.succeed("set", "web/token", "first", "--type", "string")
    let watched = try watched("trap 'echo ended; exit 7' TERM")
    #expect(try watched.output.next() == "8080 first")
    try tool.succeed("set", "web/2nd", "eA==")
    try expect("no setting of the program has changed", from: watched)
    try tool.succeed("set", "web/port", "--int", "1")
    #expect(try watched.output.lines(2) == ["ended", "1 first"])
    try tool.succeed("set", "web/token", "second")
    #expect(try watched.output.lines(2) == ["ended", "1 second"])
    kill(watched.child, SIGTERM)
    #expect(try watched.output.next() == "ended")
    #expect(try Tool.exitCode(of: watched.child) == 7)
  }

  @Test("exec --watch restarts the program when a value expires")
  func watchExpiry() throws {
    try tool.succeed("set", "web/token", "first", "--type", "string")
    try tool.succeed("env", "create", "web@now")
    try tool.succeed("set", "web@now/token", "second", "--expires-in", "2s")
    let watched = try watched("trap 'exit 7' TERM", ["--env", "now"])
    #expect(try watched.output.lines(2) == ["8080 second", "8080 first"])
    kill(watched.child, SIGTERM)
    #expect(try Tool.exitCode(of: watched.child) == 7)
  }

  @Test("exec --watch keeps the settings it has while new ones are unavailable, and reports it once")
  func watchUnreadable() throws {
    let watched = try watched("trap 'exit 7' TERM; unset TOKEN")
    #expect(try watched.output.next() == "8080")
    try tool.succeed("unset", "web/token")
    try expect("keeps the settings it has: there is no key \"token\"", from: watched)
    kill(watched.child, SIGTERM)
    #expect(try Tool.exitCode(of: watched.child) == 7)
    #expect(try watched.output.next() == nil)
  }

  @Test("exec --watch does not restart the program once it was told to end")
  func watchEnding() throws {
    let watched = try watched("trap 'echo told' TERM; trap 'exit 7' HUP; unset TOKEN")
    #expect(try watched.output.next() == "8080")
    try tool.succeed("set", "web/port", "--int", "2")
    #expect(try watched.output.next() == "told")
    kill(watched.child, SIGTERM)
    #expect(try watched.output.next() == "told")
    kill(watched.child, SIGHUP)
    #expect(try Tool.exitCode(of: watched.child) == 7)
    #expect(try watched.output.next() == nil)
  }

  @Test("exec --watch ends a stopped program, to restart it and when told to end itself")
  func watchStopped() throws {
    let watched = try watched("trap 'echo ended; exit 7' TERM; unset TOKEN; echo $$")
    func stop() throws {
      let program = try #require(try watched.output.next().flatMap(pid_t.init))
      #expect(try watched.output.next() != nil)
      kill(program, SIGSTOP)
    }
    try stop()
    try tool.succeed("set", "web/port", "--int", "2")
    // Killed after a while, it would not say so.
    try #require(try watched.output.next() == "ended")
    try stop()
    kill(watched.child, SIGTERM)
    #expect(try watched.output.next() == "ended")
    #expect(try Tool.exitCode(of: watched.child) == 7)
  }

  @Test("a supervising exec ends by the signal that ended its program")
  func endBySignal() throws {
    let child = try tool.spawn(
      ["exec", "--mask", "-c", "web", "--", "sh", "-c", "kill -USR1 $$"],
      files: [(0, "/dev/null", O_RDONLY), (1, "/dev/null", O_WRONLY), (2, "/dev/null", O_WRONLY)])
    var status: Int32 = 0
    #expect(waitpid(child, &status, 0) == child && status & 0x7f == SIGUSR1)
  }

  @Test(
    "a supervising exec passes on these signals",
    arguments: [
      SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGURG, SIGWINCH, SIGIO, SIGPIPE, SIGXCPU,
      SIGCONT,
    ])
  func passedOn(_ signal: Int32) throws {
    let watched = try watched("trap 'exit 9' \(signal); unset TOKEN", ["--mask"])
    #expect(try watched.output.next() == "8080")
    kill(watched.child, signal)
    #expect(try Tool.exitCode(of: watched.child) == 9)
  }

  @Test("exec --watch --signal signals the program, which continues, for its own settings only")
  func watchSignal() throws {
    let watched = try watched("trap 'echo told' HUP; unset TOKEN", ["--signal", "HUP"])
    #expect(try watched.output.next() == "8080")
    try tool.succeed("set", "web/2nd", "eA==")
    try expect("no setting of the program has changed", from: watched)
    try tool.succeed("set", "web/port", "--int", "2")
    #expect(try watched.output.next() == "told")
    kill(watched.child, SIGTERM)
    #expect(try Tool.exitCode(of: watched.child) == 128 + SIGTERM)
    #expect(try watched.output.next() == nil)
  }

  @Test("exec --watch ends with the exit code of its program, and --signal needs --watch")
  func watchCodes() throws {
    #expect(try tool.run("exec", "--watch", "--", "sh", "-c", "exit 3").code == 3)
    #expect(try tool.run("exec", "--watch", "--", "sh", "-c", "exit 0").code == 0)
    #expect(try tool.run("exec", "--watch", "--", "no-such-program").code == 127)
    #expect(try tool.run("exec", "--signal", "HUP", "--", "true").code == 125)
    #expect(try tool.run("exec", "--watch", "--signal", "NONE", "--", "true").code == 125)
  }

  // MARK: - exec --mask

  @Test("exec --mask replaces secrets and sealed values in both outputs, whole and line by line")
  func mask() throws {
    let script = #"echo "$TOKEN."; echo "$TOKEN." >&2; echo "line|hunter|hunter2|$PORT"; exit 5"#
    let run = try tool.run("exec", "--mask", "-c", "web", "--", "sh", "-c", script)
    #expect(run.code == 5 && run.text == "<secret>.\n<secret>|hunter|<secret>|8080\n", "\(run.text)")
    #expect(run.message == "<secret>.\n")
    let key = tool.path("vault.key")
    try tool.succeed("seal", "other", "--vault-key-file", key)
    try tool.succeed("set", "other/note", "-", "--vault-key-file", key, input: "sealed note")
    let sealed = try tool.run("exec", "--mask", "-c", "other", "--vault-key-file", key, "--", "sh", "-c", "echo $NOTE")
    #expect(sealed.text == "<secret>\n", "\(sealed.message)")
  }

  @Test("exec --mask names secrets that are too short to mask, without showing them")
  func maskShort() throws {
    try tool.succeed("set", "web/token", "--secret", "-", input: "long enough\nxyz")
    let run = try tool.run("exec", "--mask", "-c", "web", "--", "true")
    #expect(
      run.code == 0 && run.message.contains("TOKEN, or a line of it, is too short") && !run.message.contains("xyz"))
  }

  @Test("exec --mask keeps the order of both outputs if they are one file")
  func maskOrder() throws {
    let script = "for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo $i >&2; done"
    let path = tool.path("both")
    let child = try tool.spawn(
      ["exec", "--mask", "-c", "web", "--", "sh", "-c", script],
      files: [(0, "/dev/null", O_RDONLY), (1, path, O_WRONLY | O_CREAT | O_APPEND), (2, path, O_WRONLY | O_APPEND)])
    #expect(try Tool.exitCode(of: child) == 0)
    let lines = String(decoding: try tool.contents(path), as: UTF8.self).split(separator: "\n")
    #expect(lines == (1...9).flatMap { ["\($0)", "\($0)"] })
  }

  @Test("exec --mask ends a program whose output is closed")
  func maskBrokenPipe() throws {
    let output = try LinePipe(tool.path("out"))
    let child = try tool.spawn(
      ["exec", "--mask", "-c", "web", "--", "yes"],
      files: [(0, "/dev/null", O_RDONLY), (1, output.path, O_WRONLY), (2, "/dev/null", O_WRONLY)])
    #expect(try output.next() == "y")
    output.close()
    #expect(try Tool.exitCode(of: child) == 128 + SIGPIPE)
  }

  #if os(Linux)
    @Test(
      "exec --mask fails if it cannot write what the program has, unless the program fails itself", arguments: [0, 5])
    func maskLoss(code: Int32) throws {
      let child = try tool.spawn(
        ["exec", "--mask", "-c", "web", "--", "sh", "-c", "echo x; exit \(code)"],
        files: [(0, "/dev/null", O_RDONLY), (1, "/dev/full", O_WRONLY), (2, "/dev/null", O_WRONLY)])
      #expect(try Tool.exitCode(of: child) == (code == 0 ? 125 : code))
    }
  #endif

  @Test("exec --watch --mask replaces the old secrets, too")
  func maskAfterChange() throws {
    try tool.succeed("set", "web/token", "--secret", "-", input: "first-token")
    let watched = try watched("trap 'exit 7' TERM; echo first-token second-token", ["--mask"])
    #expect(try watched.output.lines(2) == ["<secret> second-token", "8080 <secret>"])
    try tool.succeed("set", "web/token", "--secret", "-", input: "second-token")
    #expect(try watched.output.lines(2) == ["<secret> <secret>", "8080 <secret>"])
    kill(watched.child, SIGTERM)
    #expect(try Tool.exitCode(of: watched.child) == 7)
  }

  @Test("a mask finds secrets across any split of the text")
  func maskCuts() {
    var mask = SecretMask()
    for secret in ["hunter2", "hunter2-longer", "rabbit", "bitter\nend of it"] { mask.add(Array(secret.utf8)) }
    let text = Array("hunter hunter2 hunter2-long hunter2-longer rabrabbitter\nend of it\nbitter hunt".utf8)
    let expected = "hunter <secret> <secret>-long <secret> rab<secret>ter\n<secret>\n<secret> hunt"
    for first in text.indices {
      for second in first...text.count {
        var (shown, held): ([UInt8], [UInt8]) = ([], [])
        for piece in [text[..<first], text[first..<second], text[second...]] {
          let next = mask.masking(held + piece, isEnd: piece.endIndex == text.count)
          shown += next.shown
          held = next.held
        }
        #expect(String(decoding: shown + held, as: UTF8.self) == expected, "\(first) \(second)")
      }
    }
  }

  // MARK: - inject

  @Test("inject replaces references, and keeps every other byte")
  func inject() throws {
    let template: [UInt8] = Array("p={{prefs:web/port}}{{prefs:top}}\r\n{{x}} {{prefs:web/token}}".utf8) + [0xff, 0]
    let run = try tool.run(["inject", "-"], input: template)
    #expect(run.code == 0 && run.output == Array("p=8080on\r\n{{x}} hunter2\nline".utf8) + [0xff, 0])
    let file = try tool.write("template", "{{prefs:port}}{{prefs:2nd}}".utf8)
    #expect(try tool.succeed("inject", file, "-c", "web") == "8080icon")
    #expect(try tool.succeed("inject", "-", input: "") == "")
  }

  @Test("inject writes a file that only its owner can read")
  func injectFile() throws {
    let path = try tool.write("out", "older and longer than the new one".utf8)
    chmod(path, 0o644)
    try tool.succeed("inject", "-", "-o", path, input: "{{prefs:top}}")
    #expect(try tool.contents(path) == Array("on".utf8) && tool.mode(path) == 0o600)
    try tool.succeed("inject", "-", "-o", tool.path("new"), input: "{{prefs:top}}")
    #expect(try tool.mode(tool.path("new")) == 0o600)
    #expect(try tool.run("inject", "-", "-o", tool.store, input: "x").code == 2)
    #expect(try tool.succeed("get", "top") == "on\n")
  }

  @Test("inject says where a key is missing, and then writes nothing")
  func injectMissing() throws {
    let text = "{{prefs:top}}\nä {{prefs:none}} {{prefs:web/prot}}"
    let run = try tool.run("inject", "-", "-o", tool.path("out"), input: text)
    #expect(run.code == 3 && run.text == "" && !tool.exists(tool.path("out")))
    #expect(run.message.contains("standard input, line 2, column 3: there is no key \"none\""))
    #expect(run.message.contains("line 2, column 18") && run.message.contains("did you mean \"port\""))
    for text in ["{{prefs:top", "{{prefs:top\n}}"] {
      let open = try tool.run("inject", "-", input: "a" + text)
      #expect(open.code == 8 && open.message.contains("line 1, column 2"))
    }
    #expect(try tool.run("inject", tool.path("none")).code == 14)
    #expect(try tool.run("inject").code == 2)
  }
}
