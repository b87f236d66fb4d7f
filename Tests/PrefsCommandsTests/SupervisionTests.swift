import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("exec --watch as the first process of a service") struct SupervisionTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "web/port", "--int", "1")
  }

  private func start(
    _ script: String, to output: LinePipe, before: [String] = [], program: String = Tool.executable
  ) throws -> pid_t {
    try tool.spawn(
      before + ["exec", "--watch", "-c", "web", "--", "sh", "-c", script],
      files: [(0, "/dev/null", O_RDONLY), (1, output.path, O_WRONLY), (2, "/dev/null", O_WRONLY)], program: program)
  }

  private func process(_ line: String?) throws -> pid_t { try #require(line.flatMap { pid_t($0) }) }

  /// Whether it has gone, and was waited for: a zombie counts as there.
  private func hasGone(_ process: pid_t) -> Bool { kill(process, 0) != 0 && errno == ESRCH }

  @Test("A restart, and the end, leave nothing behind that a wrapper has started")
  func wrapper() throws {
    let output = try LinePipe(tool.path("out"))
    let child = try start("sleep 1000 & echo $!; wait", to: output)
    let first = try process(try output.next())
    try tool.succeed("set", "web/port", "--int", "2")
    let second = try process(try output.next())
    #expect(hasGone(first) && !hasGone(second))
    kill(child, SIGTERM)
    #expect(try Tool.exitCode(of: child) == 128 + SIGTERM)
    #expect(hasGone(second))
  }

  @Test("What a program leaves behind when it ends by itself is ended")
  func leftBehind() throws {
    let output = try LinePipe(tool.path("out"))
    let child = try start("sleep 1000 & echo $!; exit 3", to: output)
    let left = try process(try output.next())
    #expect(try Tool.exitCode(of: child) == 3)
    #expect(hasGone(left))
  }

  @Test("A process that was told to end gets SIGTERM once, and its time")
  func toldOnce() throws {
    let output = try LinePipe(tool.path("out"))
    // The wrapper dies at once; the other takes its time, and would report a second signal.
    let script = """
      sh -c 'trap "echo told; trap \\"echo again\\" TERM; read x <go; echo done; exit" TERM; echo ready; while :; do sleep 0.05; done' &
      wait
      """
    let go = tool.path("go")
    try #require(mkfifo(go, 0o600) == 0)
    let child = try start("cd \(tool.home.path); " + script, to: output)
    #expect(try output.next() == "ready")
    kill(child, SIGTERM)
    #expect(try output.next() == "told")
    try Data("\n".utf8).write(to: URL(fileURLWithPath: go))
    #expect(try output.next() == "done")
    #expect(try Tool.exitCode(of: child) == 128 + SIGTERM)
    #expect(try output.next() == nil)
  }

  #if os(Linux)
    @Test("A killed prefs takes its program with it")
    func killed() throws {
      let output = try LinePipe(tool.path("out"))
      let child = try start("echo ready; while :; do sleep 0.05; done", to: output)
      #expect(try output.next() == "ready")
      kill(child, SIGKILL)
      #expect(try Tool.exitCode(of: child) == 128 + SIGKILL)
      // The program has the other end of the pipe.
      #expect(try output.next() == nil)
    }

    @Test(
      "As the first process of a container it waits for orphans",
      .enabled(if: geteuid() == 0 && access("/usr/bin/unshare", X_OK) == 0))
    func orphans() throws {
      let output = try LinePipe(tool.path("out"))
      let orphan = tool.path("orphan")
      let script = """
        (sh -c 'echo $$ >"$0"' \(orphan) &)
        until [ -s \(orphan) ]; do sleep 0.01; done
        while kill -0 $(cat \(orphan)) 2>/dev/null; do sleep 0.01; done
        echo gone; exit 5
        """
      let child = try start(
        script, to: output, before: ["--pid", "--fork", "--kill-child", Tool.executable], program: "/usr/bin/unshare")
      #expect(try output.next() == "gone")
      #expect(try Tool.exitCode(of: child) == 5)
    }

    @Test("The program has the terminal: it reads what is typed, and a key interrupts it and prefs")
    func terminal() throws {
      let terminal = try PseudoTerminal()
      let script = "echo port $PORT; read line; echo got $line; while :; do sleep 0.05; done"
      let child = try tool.start(
        "exec", "--watch", "-c", "web", "--", "sh", "-c", script, on: terminal, showsOutput: true)
      try terminal.expect("port 1")
      terminal.type("a line\n")
      try terminal.expect("got a line")
      // Also after a restart.
      try tool.succeed("set", "web/port", "--int", "2")
      try terminal.expect("port 2")
      terminal.type("another\n")
      try terminal.expect("got another")
      terminal.type("\u{3}")
      #expect(try Tool.exitCode(of: child) == 128 + SIGINT)
    }
  #endif
}
