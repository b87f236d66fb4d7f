#if os(Linux)
  import Foundation
  import Testing

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  @Suite("Questions on a terminal")
  struct PromptTests {
    @Test("A new passphrase is asked for twice without echo, then opens the store")
    func newPassphrase() throws {
      let tool = try Tool()
      let terminal = try PseudoTerminal()
      let child = try tool.start("init", "--passphrase", on: terminal)
      try terminal.expect("New passphrase: ")
      #expect(!terminal.echoes)
      let limits = String(decoding: try tool.contents("/proc/\(child)/limits"), as: UTF8.self)
      #expect(limits.contains(#/Max core file size +0 /#), "what is typed must get into no core dump")
      terminal.type("open sesame\n")
      try terminal.expect("The same again: ")
      #expect(!terminal.echoes)
      terminal.type("open sesame\n")
      #expect(try Tool.exitCode(of: child) == 0)
      #expect(terminal.echoes)
      try terminal.drain()
      #expect(!terminal.shown.contains("sesame"))

      let reader = try tool.start("list", on: terminal)
      try terminal.expect("Passphrase for \(tool.store): ")
      // What is typed can be corrected.
      terminal.type("open sesamX\u{7f}e\n")
      #expect(try Tool.exitCode(of: reader) == 0)
      #expect(try tool.run("list", "--passphrase-fd", "3", descriptors: [3: "open sesame"]).code == 0)
    }

    @Test("Two different entries create nothing")
    func mismatch() throws {
      let tool = try Tool()
      let terminal = try PseudoTerminal()
      let child = try tool.start("init", "--passphrase", on: terminal)
      try terminal.expect("New passphrase: ")
      terminal.type("one\n")
      try terminal.expect("The same again: ")
      terminal.type("two\n")
      #expect(try Tool.exitCode(of: child) == 6)
      #expect(!tool.exists(tool.store))
    }

    @Test("A wrong passphrase is 5, an empty one 6")
    func wrongPassphrase() throws {
      let tool = try Tool()
      try #require(try tool.run("init", "--passphrase-fd", "3", descriptors: [3: "right"]).code == 0)
      let terminal = try PseudoTerminal()
      for (typed, code) in [("wrong\n", Int32(5)), ("\n", 6), ("\u{4}", 6)] {
        let child = try tool.start("list", on: terminal)
        try terminal.expect("Passphrase for ")
        terminal.type(typed)
        #expect(try Tool.exitCode(of: child) == code)
        #expect(terminal.echoes)
      }
    }

    @Test("A signal restores the echo and then has its effect", arguments: [SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    func signals(_ signal: Int32) throws {
      let tool = try Tool()
      let terminal = try PseudoTerminal()
      let child = try tool.start("set", "x", "--secret", on: terminal)
      try terminal.expect("Value for x: ")
      #expect(!terminal.echoes)
      kill(child, signal)
      #expect(try Tool.exitCode(of: child) == 128 + signal)
      #expect(terminal.echoes)
    }

    @Test("Control-C at the question ends the tool")
    func interrupt() throws {
      let tool = try Tool()
      let terminal = try PseudoTerminal()
      let child = try tool.start("set", "x", "--secret", on: terminal)
      try terminal.expect("Value for x: ")
      terminal.type("half\u{3}")
      #expect(try Tool.exitCode(of: child) == 128 + SIGINT)
      #expect(terminal.echoes)
      #expect(!tool.exists(tool.store))
    }

    @Test("After a stop signal the question comes again")
    func stop() throws {
      let tool = try Tool()
      try tool.succeed("init")
      let terminal = try PseudoTerminal()
      let child = try tool.start("set", "x", "--secret", on: terminal)
      try terminal.expect("Value for x: ")
      kill(child, SIGTSTP)
      // The leader of a session could never be continued, so the kernel lets the signal pass; the modes went to and fro.
      try terminal.expect("Value for x: ")
      #expect(!terminal.echoes)
      terminal.type("secret\n")
      try terminal.expect("The same again: ")
      terminal.type("secret\n")
      #expect(try Tool.exitCode(of: child) == 0)
      #expect(try tool.succeed("get", "x") == "secret\n")
    }

    @Test("key add asks twice; a prompt that accepts a recovery key says so, and accepts both")
    func recoveryKey() throws {
      let tool = try Tool()
      try tool.succeed("set", "x", "1")
      let terminal = try PseudoTerminal()
      let adder = try tool.start("key", "add", "--cost", "14", on: terminal)
      for question in ["New passphrase: ", "The same again: "] {
        try terminal.expect(question)
        terminal.type("open sesame\n")
      }
      #expect(try Tool.exitCode(of: adder) == 0)
      try tool.succeed("key", "recovery", "-o", tool.path("paper"))
      let key = String(decoding: try tool.contents(tool.path("paper")), as: UTF8.self)
      unlink(tool.keyFile)

      func open(_ typed: String) throws -> Int32 {
        let reader = try tool.start("get", "x", on: terminal)
        try terminal.expect("Passphrase or recovery key for \(tool.store): ")
        terminal.type(typed)
        return try Tool.exitCode(of: reader)
      }
      #expect(try open("open sesame\n") == 0)
      #expect(try open(key.lowercased()) == 0)
      #expect(try open("open\n") == 5)
      #expect(try open(String(key.dropFirst(6).prefix(6)) + key.dropFirst(6)) == 6)
      try terminal.expect("group 1 was mistyped")

      try #require(try tool.run("key", "remove", "1", "-f", "--recovery-key-fd", "3", descriptors: [3: key]).code == 0)
      let reader = try tool.start("get", "x", on: terminal)
      try terminal.expect("Recovery key for \(tool.store): ")
      terminal.type(key)
      #expect(try Tool.exitCode(of: reader) == 0)
    }

    @Test("A recovery key is shown on a terminal once, with its purpose")
    func shownRecoveryKey() throws {
      let tool = try Tool()
      try tool.succeed("set", "x", "1")
      let terminal = try PseudoTerminal()
      let files = [(Int32(0), terminal.path, O_RDWR), (1, terminal.path, O_RDWR), (2, terminal.path, O_RDWR)]
      #expect(try Tool.exitCode(of: tool.spawn(["key", "recovery"], files: files)) == 0)
      try terminal.expect("Keep it on paper")
      let key = try #require(terminal.shown.firstMatch(of: /([0-9A-Z]{5}-){7}[0-9A-Z]{5}/)).output.0
      #expect(try tool.run("get", "x", "--recovery-key-fd", "3", descriptors: [3: String(key)]).code == 0)
    }

    @Test("A new root key asks for the passphrases of the slots that stay, by label, with a progress bar")
    func newRootKey() throws {
      let tool = try Tool()
      try tool.succeed("set", "x", "1")
      #expect(try tool.addPassphrase("hunter2", label: "Ada").code == 0)
      #expect(try tool.addPassphrase("hunter3").code == 0)
      let terminal = try PseudoTerminal()
      let child = try tool.start("rotate", "--new-root-key", on: terminal)
      try terminal.expect("Passphrase of slot 1 \"Ada\": ")
      terminal.type("hunter2\n")
      try terminal.expect("Passphrase of slot 2: ")
      terminal.type("hunter3\n")
      try terminal.expect("re-encrypting [")
      #expect(try Tool.exitCode(of: child) == 0)
      #expect(try tool.run("get", "x", "--passphrase-fd", "3", descriptors: [3: "hunter3"]).code == 0)
      #expect(try tool.succeed("get", "x") == "1\n")

      let slip = try tool.start("rotate", "--new-root-key", "--drop", "2", on: terminal)
      try terminal.expect("Passphrase of slot 1 \"Ada\": ")
      terminal.type("hunter4\n")
      #expect(try Tool.exitCode(of: slip) == 5)
      #expect(try tool.slots().count == 3)
    }

    @Test("seal asks twice for the vault's passphrase; a locked value asks once, for that command only")
    func vaultPassphrase() throws {
      let tool = try Tool()
      try tool.succeed("set", "tokens/key", "value")
      let terminal = try PseudoTerminal()
      let sealer = try tool.start("seal", "tokens", "--cost", "14", on: terminal)
      for question in ["New passphrase for the vault: ", "The same again: "] {
        try terminal.expect(question)
        #expect(!terminal.echoes)
        terminal.type("open sesame\n")
      }
      #expect(try Tool.exitCode(of: sealer) == 0)

      for (command, typed, code) in [("get", "open sesame\n", Int32(0)), ("get", "open\n", 5), ("unlock", "open\n", 5)]
      {
        let reader = try tool.start(command, command == "get" ? "tokens/key" : "-v", on: terminal)
        try terminal.expect("Passphrase for the vault of \(tool.store): ")
        terminal.type(typed)
        #expect(try Tool.exitCode(of: reader) == code)
      }
      let unasked = try tool.start("get", "tokens/key", "--no-input", on: terminal)
      #expect(try Tool.exitCode(of: unasked) == 6)
      try terminal.drain()
      #expect(!terminal.shown.contains("sesame"))
    }

    @Test("key remove asks, and then offers a new root key")
    func removal() throws {
      let tool = try Tool()
      try tool.succeed("set", "x", "1")
      for label in ["Ada", "Bob"] { #expect(try tool.addPassphrase(label, label: label).code == 0) }
      let terminal = try PseudoTerminal()
      let unsure = try tool.start("key", "remove", "Ada", on: terminal)
      try terminal.expect("Remove slot 1 (passphrase \"Ada\")? [y/N] ")
      terminal.type("n\n")
      #expect(try Tool.exitCode(of: unsure) == 1)
      #expect(try tool.slots().count == 3)
      for (label, answer) in [("Ada", "n\n"), ("Bob", "y\n")] {
        let child = try tool.start("key", "remove", label, on: terminal)
        try terminal.expect("? [y/N] ")
        terminal.type("y\n")
        try terminal.expect("Replace the root key now? [y/N] ")
        terminal.type(answer)
        #expect(try Tool.exitCode(of: child) == 0)
      }
      try terminal.expect("replaced it")
      #expect(try tool.slots().count == 1)
      #expect(try tool.succeed("get", "x") == "1\n")
    }

    @Test("key remove removes no other slot that has taken the number of the one it asked about")
    func removalOfAnother() throws {
      let tool = try Tool()
      try tool.succeed("set", "x", "1")
      #expect(try tool.addPassphrase("Ada", label: "Ada").code == 0)
      let terminal = try PseudoTerminal()
      let child = try tool.start("key", "remove", "Ada", on: terminal)
      try terminal.expect("Remove slot 1 (passphrase \"Ada\")? [y/N] ")
      try tool.succeed("key", "remove", "Ada", "--force")
      #expect(try tool.addPassphrase("Bob", label: "Bob").code == 0)
      terminal.type("y\n")
      #expect(try Tool.exitCode(of: child) == 9)
      try terminal.expect("by another command")
      #expect(try tool.slots().map { $0["label"] as? String } == ["", "Bob"])
    }

    @Test("unset --all asks, and accepts yes")
    func confirmation() throws {
      let tool = try Tool()
      try tool.succeed("set", "c/x", "1")
      let terminal = try PseudoTerminal()
      for (answer, code) in [("n\n", Int32(1)), ("\n", 1), ("yes\n", 0)] {
        let child = try tool.start("unset", "-c", "c", "--all", on: terminal)
        try terminal.expect("Remove 1 key of collection \"c\"? [y/N] ")
        terminal.type(answer)
        #expect(try Tool.exitCode(of: child) == code)
      }
      #expect(try tool.succeed("collections") == "")
    }

    @Test("Data is not written to a terminal")
    func dataOnTerminal() throws {
      let tool = try Tool()
      try tool.succeed("set", "x", "--hex", "1b5b")
      let terminal = try PseudoTerminal()
      let files = [(Int32(1), terminal.path, O_RDWR | O_NOCTTY), (2, tool.path("errors"), O_WRONLY | O_CREAT)]
      #expect(try Tool.exitCode(of: try tool.spawn(["get", "x"], files: files)) == 2)
      #expect(String(decoding: try tool.contents(tool.path("errors")), as: UTF8.self).contains("--base64"))
      #expect(try Tool.exitCode(of: try tool.spawn(["get", "x", "--hex"], files: files)) == 0)
      try terminal.expect("1b5b")
    }
  }
#endif
