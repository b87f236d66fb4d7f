#if os(Linux)
  import Foundation
  import Testing

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  @Suite("On a terminal")
  struct TerminalTests {
    let tool: Tool
    let terminal: PseudoTerminal

    init() throws {
      tool = try Tool()
      terminal = try PseudoTerminal()
      terminal.resize(rows: 10, columns: 80)
      for name in ["theme", "font", "size"] { try tool.succeed("set", "editor/" + name, "x") }
      try tool.succeed("set", "editor/token", "-", "--secret", input: "hunter2")
    }

    /// What the tool shows on the terminal, to its end.
    private func shown(_ arguments: String..., environment: [String: String] = [:]) throws -> String {
      let child = try tool.spawn(
        arguments,
        files: [(0, terminal.path, O_RDWR), (1, terminal.path, O_RDWR), (2, terminal.path, O_RDWR)],
        environment: environment)
      #expect(try Tool.exitCode(of: child) == 0)
      try terminal.drain()
      return terminal.shown
    }

    // MARK: - Colour

    @Test("list -l is aligned, not counting colours")
    func colors() throws {
      let colored = try shown("list", "editor", "-l", environment: ["TERM": "xterm"])
      #expect(colored.contains("theme  \u{1b}[36mstring\u{1b}[0m  "))
      #expect(colored.contains("\u{1b}[33msecret\u{1b}[0m"))
      let plain = try tool.succeed("list", "editor", "-l")
      #expect(colored.replacing("\r\n", with: "\n").replacing(#/\u{1b}\[[0-9]*m/#, with: "") == plain)
    }

    @Test(
      "Unwanted colour is off",
      arguments: [["NO_COLOR": "1", "TERM": "xterm"], ["TERM": "dumb"]])
    func withoutColor(_ environment: [String: String]) throws {
      #expect(try !shown("list", "editor", "-l", environment: environment).contains("\u{1b}"))
      #expect(try shown("list", "editor", "-l", "--color", "always", environment: environment).contains("\u{1b}[36m"))
    }

    @Test("Colour can be forced for a pipe, and disabled for a terminal")
    func choice() throws {
      #expect(try tool.succeed("list", "editor", "-l", "--color", "always").contains("\u{1b}[36m"))
      #expect(try !shown("list", "editor", "-l", "--color", "never", environment: ["TERM": "xterm"]).contains("\u{1b}"))
    }

    // MARK: - Pager

    private func fill() throws {
      let template = (0..<30).map { "\($0)" }
      for index in template { try tool.succeed("set", "long/key\(index)", index) }
    }

    @Test("A list longer than the terminal goes through PAGER, a shorter one does not")
    func pager() throws {
      try fill()
      let environment = ["TERM": "xterm", "PAGER": "sed 's/^/paged: /'"]
      #expect(try !shown("list", "editor", environment: environment).contains("paged"))
      let long = try shown("list", "long", environment: environment)
      #expect(long.contains("paged: key0\r\n") && long.contains("paged: key29\r\n"))
    }

    @Test("Nothing is paged with --no-pager, an empty PAGER, on a dumb terminal, in a pipe, and in forms for programs")
    func notPaged() throws {
      try fill()
      let pager = ["TERM": "xterm", "PAGER": "sed 's/^/paged: /'"]
      _ = try shown("list", "long", "--no-pager", environment: pager)
      _ = try shown("list", "long", "--plain", environment: pager)
      _ = try shown("list", "long", "--json", environment: pager)
      _ = try shown("list", "long", environment: ["TERM": "xterm", "PAGER": ""])
      let all = try shown("list", "long", environment: ["TERM": "dumb", "PAGER": "sed 's/^/paged: /'"])
      #expect(!all.contains("paged"))
      #expect(all.components(separatedBy: "key29").count == 6)
      let child = try tool.start("list", "long", on: terminal, environment: pager)
      #expect(try Tool.exitCode(of: child) == 0)
      #expect(try !String(decoding: tool.contents(tool.path("terminal-out")), as: UTF8.self).contains("paged"))
    }

    @Test("A missing pager, or one that is left early, does no harm")
    func pagerEnds() throws {
      try fill()
      let missing = try shown("list", "long", environment: ["TERM": "xterm", "PAGER": "no-such-pager"])
      #expect(missing.contains("key29\r\n"))
      let left = try shown("list", "long", environment: ["TERM": "xterm", "PAGER": "head -n 1"])
      #expect(left.hasSuffix("key0\r\n"))
    }

    @Test("An interrupt is for the pager alone")
    func interrupt() throws {
      try fill()
      let environment = [
        "TERM": "xterm",
        "PAGER": "trap 'echo interrupted' INT; echo ready; cat /dev/tty; echo left",
      ]
      let child = try tool.start("list", "long", on: terminal, showsOutput: true, environment: environment)
      try terminal.expect("ready")
      terminal.type("\u{3}")
      // Ends cat, in case the interrupt came before it.
      terminal.type("\u{4}")
      try terminal.expect("interrupted")
      try terminal.expect("left")
      #expect(try Tool.exitCode(of: child) == 0)
    }

    // MARK: - Progress

    @Test(
      "Long work shows a bar, which goes away", arguments: [["rotate"], ["backup", "copy"], ["doctor", "--deep"]])
    func progress(_ command: [String]) throws {
      let child = try tool.spawn(
        command.map { $0 == "copy" ? tool.path("copy.coffer") : $0 },
        files: [(0, "/dev/null", O_RDONLY), (1, "/dev/null", O_WRONLY), (2, terminal.path, O_RDWR)])
      #expect(try Tool.exitCode(of: child) == 0)
      try terminal.drain()
      #expect(terminal.shown.contains(#/\r[a-z-]+ \[[#-]{30}\] [0-9]+ %\u{1b}\[K\r\u{1b}\[K/#), "\(terminal.shown)")
      // Not without a terminal.
      let quiet = try tool.run(command[0] == "backup" ? ["backup", tool.path("other.coffer")] : command, input: [])
      #expect(quiet.code == 0 && !quiet.message.contains("["))
    }
  }
#endif
