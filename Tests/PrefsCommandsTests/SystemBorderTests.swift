import Foundation
import TestSupport
import Testing

@testable import PrefsCommands

@Suite("Bytes that are no text, descriptors, signals and limits of the caller, and a system without watches")
struct SystemBorderTests {
  private let tool: Tool

  init() throws { tool = try Tool() }

  /// Runs a script in which `"$0"` is the tool.
  private func shell(_ script: String) throws -> Tool.Run {
    try tool.run(["-c", script, Tool.executable], input: [UInt8](), program: "/bin/sh")
  }

  @Test(
    "A variable that is not UTF-8 is refused, and no folder is made beside the one it names",
    arguments: [
      "HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "PREFS_STORE", "PREFS_KEY_FILE", "PREFS_ENV",
    ])
  func variables(_ name: String) throws {
    let before = try FileManager.default.contentsOfDirectory(atPath: tool.home.path)
    for command in ["set a b", "get a", "set a --type string b", "doctor"] {
      let run = try shell("\(name)=\"$HOME/x$(printf '\\377')\" exec \"$0\" \(command)")
      #expect(run.code == 2 && run.message.contains("\(name) is not valid UTF-8"), "\(run.message)")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: tool.home.path) == before)
    // Other programs' variables may hold any bytes.
    #expect(try shell("OTHER=\"$(printf '\\377')\" exec \"$0\" set a b").code == 0)
  }

  @Test("After a signal was ignored, its handler is there again, with its flags")
  func handlers() {
    var (own, former, found) = (sigaction(), sigaction(), sigaction())
    own.sa_flags = SA_SIGINFO
    #if canImport(Darwin)
      own.__sigaction_u.__sa_sigaction = { _, _, _ in }
    #else
      own.__sigaction_handler.sa_sigaction = { _, _, _ in }
    #endif
    sigaction(SIGUSR2, &own, &former)
    defer { sigaction(SIGUSR2, &former, nil) }
    SignalHandlers.ignoring([SIGUSR2]) {
      sigaction(SIGUSR2, nil, &found)
      #expect(SignalHandlers.isIgnoring(found))
    }
    sigaction(SIGUSR2, nil, &found)
    #expect(found.sa_flags & SA_SIGINFO != 0 && !SignalHandlers.isIgnoring(found))
  }

  @Test("A store in a folder whose name is not UTF-8 is refused, and none is made beside it")
  func folders() throws {
    let script = """
      folder="$HOME/x$(printf '\\377')"; mkdir "$folder" && ln -s "$folder" "$HOME/link" && cd "$folder"
      for store in ./s.coffer "$HOME/link/s.coffer"; do
        "$0" -d "$store" set a b; echo $?; "$0" -d "$store" get a; echo $?
      done
      "$0" set a b && "$0" export -o out.json -q && "$0" export -o out.json -q && "$0" import out.json -q; echo $?
      ls -A; ls -d "$HOME"/x* | wc -l
      """
    let run = try shell(script)
    #expect(
      run.text.split(whereSeparator: \.isWhitespace)
        == ["14", "14", "14", "14", "0", "out.json", "1"], "\(run.text) \(run.message)")
    #expect(run.message.contains("is not valid UTF-8") && !run.message.contains(".tmp"), "\(run.message)")
  }

  @Test("The arguments of a program that exec starts may be any bytes, and its own may not")
  func arguments() throws {
    try tool.succeed("set", "a", "b")
    let run = try shell("exec \"$0\" exec -- printf '%s|%s' \"$(printf '\\377x')\" é")
    #expect(run.code == 0 && run.output == [0xff] + Array("x|é".utf8), "\(run.message)")
    #expect(try shell("exec \"$0\" exec --only \"$(printf '\\377')\" -- true").code == 125)
    #expect(try shell("exec \"$0\" set k -- \"$(printf '\\377')\"").code == 2)
    #expect(try shell("exec \"$0\" exec -- \"$(printf '\\377')\"").code == 125)
  }

  @Test(
    "Closed standard input is an error where a value is read from it, and nothing is set",
    arguments: [
      "set a -", "set --data a -", "set --secret a -", "set a --value-file /dev/stdin", "append a -",
      "import -c c --format json -", "set a - --passphrase-fd 0", "serve", "fleet join -",
    ])
  func closedInput(_ command: String) throws {
    try tool.succeed("set", "a", "kept")
    let run = try shell("exec \"$0\" \(command) <&-")
    let reasons = ["Bad file descriptor", "Is a directory", "descriptor 0 is not open"]
    #expect(run.code != 0 && reasons.contains { run.message.contains($0) }, "\(run)")
    #expect(try tool.succeed("get", "a") == "kept\n")
  }

  @Test("A program that exec starts has no standard input where prefs has none")
  func closedInputOfProgram() throws {
    try tool.succeed("set", "a", "b")
    for options in ["", "--watch", "--mask"] {
      let run = try shell(
        "exec \"$0\" exec \(options) -- sh -c '{ true 3<&0; } 2>/dev/null && echo open || echo closed' <&-")
      #expect(run.text == "closed\n", "\(options) \(run)")
    }
  }

  @Test("A limit on the size of files is an error, which leaves no part of a secret behind")
  func fileSizeLimit() throws {
    try tool.succeed("set", "--secret", "a", "-", input: String(repeating: "secret", count: 100_000))
    for command in ["export --reveal -o \"$HOME/out.json\"", "get a -o \"$HOME/out\"", "backup \"$HOME/copy.coffer\""] {
      let run = try shell("ulimit -f 100; exec \"$0\" \(command)")
      #expect(run.code == 14 && run.message.hasPrefix("prefs: "), "\(command) \(run.code) \(run.message)")
    }
    let files = try FileManager.default.subpathsOfDirectory(atPath: tool.home.path)
    #expect(!files.contains { $0.contains("out") || $0.contains(".tmp") || $0.contains("copy") }, "\(files)")
    // The program that exec starts is ended by the signal, as without prefs.
    try tool.succeed("set", "web/port", "1")
    let script = "ulimit -f 100; \"$0\" exec -c web -- head -c 1000000 /dev/zero >\"$HOME/out\"; echo $? >&2"
    #expect(try shell(script).message.hasSuffix("153\n"))
  }

  #if os(Linux)
    /// A user namespace has limits of its own.
    private static let withoutInotify = "echo 0 >/proc/sys/user/max_inotify_instances && "

    private static let canLimit =
      (try? Child.run(
        "/usr/bin/env", ["unshare", "-Ur", "sh", "-c", withoutInotify + "true"], capturesMessages: true))?.status == 0

    @Test(
      "Without an inotify instance, watch reports commits, and says once that it looks for them", .enabled(if: canLimit)
    )
    func watching() throws {
      try tool.succeed("set", "a", "0")
      // Once it has said that it polls, it has begun.
      let script = """
        \(Self.withoutInotify)
        mkfifo "$HOME/out"
        "$0" watch >"$HOME/out" 2>"$HOME/err" &
        exec 3<"$HOME/out"
        until grep -q 'four times a second' "$HOME/err" || ! kill -0 $!; do sleep 0.05; done
        "$0" set a 1 && read -r line <&3; echo "$line"; "$0" set a 2 && read -r line <&3; echo "$line"
        kill $!; wait $!; grep -c 'four times a second' "$HOME/err"
        """
      let run = try tool.run(
        ["-Ur", "sh", "-c", script, Tool.executable], input: [UInt8](), program: "/usr/bin/unshare")
      let lines = run.text.split(separator: "\n")
      #expect(lines.count == 3 && lines[0].contains("a") && lines[1].contains("a") && lines[2] == "1", "\(run)")
    }

    @Test("Without an inotify instance, exec --watch restarts its program", .enabled(if: canLimit))
    func restarting() throws {
      try tool.succeed("set", "a", "0")
      let script = """
        \(Self.withoutInotify)
        mkfifo "$HOME/out"
        "$0" exec --watch -- sh -c 'echo $A; exec sleep 1000' >"$HOME/out" 2>"$HOME/err" &
        exec 3<"$HOME/out"; read -r line <&3; echo "$line"; "$0" set a 1; read -r line <&3; echo "$line"; kill $!; wait $!
        """
      let run = try tool.run(
        ["-Ur", "sh", "-c", script, Tool.executable], input: [UInt8](), program: "/usr/bin/unshare")
      #expect(run.text == "0\n1\n", "\(run)")
    }
  #endif
}
